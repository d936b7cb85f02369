"""The closed loop in TensorBoard, Weights & Biases and trackio, read from the files of a run."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
