"""The closed loop: train, validate, show the engineer the evidence, train on the boards it asks for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
