"""Episodes on certified boards, step by step: what environments of every framework are made of."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
