"""Proposals tried before one is trained on: who is tried, on which boards, what was measured, and what it earns."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
