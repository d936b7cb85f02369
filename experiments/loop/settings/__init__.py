"""The settings of a run: presets, overrides, and how training is launched."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
