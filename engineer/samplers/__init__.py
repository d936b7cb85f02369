"""Instance-level samplers: they choose the single problems that a stage trains on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
