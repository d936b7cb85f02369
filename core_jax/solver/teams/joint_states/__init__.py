"""All joint states of a team: whether its goals can be reached at all, and optima by exhaustive floods."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
