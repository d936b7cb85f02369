"""Two agents: joint floods backward from the goals, and optimal plans read out of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
