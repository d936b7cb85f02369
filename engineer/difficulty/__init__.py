"""The difficulty model: P(valid) of any cell, with its uncertainty, from all groups rolled out so far."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
