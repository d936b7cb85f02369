"""Teachers: from evidence to a proposed change of the design."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
