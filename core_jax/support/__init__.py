"""Tools of every wing: whole files, strict decoding, typed fields, parallel blocks, profiling, random keys."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
