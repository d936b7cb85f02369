"""The local server: pages of what lies under some folders, on the loopback address, read-only."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
