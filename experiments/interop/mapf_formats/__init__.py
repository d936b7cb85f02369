"""Boards and plans in the file formats of multi-agent path finding, and back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
