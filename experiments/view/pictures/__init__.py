"""Boards as SVG: still, frame by frame, played, and moving by itself; and where a plan leads, step by step."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
