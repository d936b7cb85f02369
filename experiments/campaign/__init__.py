"""A campaign of fresh boards: our labels against another solver's, and the time of each board."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
