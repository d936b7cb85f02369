"""Exact labels of any boards: status, both optima, forced wait, and a plan as proof."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
