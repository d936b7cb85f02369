"""Optimizers of a training, their rates over time, averaged weights, and all of it kept for a training that goes on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
