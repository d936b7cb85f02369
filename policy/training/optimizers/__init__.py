"""Optimizers of a training, their rates over time and averaged weights, kept so that a training can resume."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
