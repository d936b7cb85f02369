"""The closed loop: training, validation, and the redesign of the problems between stages."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
