"""Tests of environments: the properties that all must have, tried case by case, and hypothesis strategies."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
