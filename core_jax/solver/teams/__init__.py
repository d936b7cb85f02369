"""Three to eight agents: bounded search in compiled code, satisfiability, and proofs that there is no plan."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
