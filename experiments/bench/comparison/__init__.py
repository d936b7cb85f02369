"""What the solver is compared with: its peers, and what the bandwidth of memory allows."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
