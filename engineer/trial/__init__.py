"""Proposals tried before training on one: the designs, their problems, the measurements, and the rewards."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
