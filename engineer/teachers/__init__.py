"""Teachers, one file each: from evidence to a proposed change of the config."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
