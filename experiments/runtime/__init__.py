"""What a process sets up before it works: libraries, threads, progress bars."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
