"""A stage's work on the config: the teacher's proposal, its trial, and the rollback."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
