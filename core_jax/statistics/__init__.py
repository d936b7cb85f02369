"""What boards are like: features of maps, of shortest paths and of labels, a column each."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
