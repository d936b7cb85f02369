"""The guard between the engineer's answer and the next round: legal ranges, floors and a trust region."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
