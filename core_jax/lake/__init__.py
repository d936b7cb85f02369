"""The rules: boards as bits, one joint step, the verdict on a whole plan, and the lake as an environment."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
