"""The benchmark: a fixed set of certified boards with their prompts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
