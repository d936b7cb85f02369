"""Networks of our own, beside those of transformers: they read the codec's words and compute on the board."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
