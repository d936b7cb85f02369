"""Models and their files: building, saving, checks of folders and weights, GGUF, and loading."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
