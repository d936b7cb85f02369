"""What each agent needs on its own: shortest paths, and the cheapest certificate, shortest paths that never meet."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
