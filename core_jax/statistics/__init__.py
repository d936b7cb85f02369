"""Statistics of boards: features of maps, of shortest paths and of labels, one column each."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
