"""The files of a policy's model: settings, folders, GGUF, building, loading, and the modes of a loaded model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
