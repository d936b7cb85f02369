"""Boards as questions in words, with a certified answer and a score: what frameworks of language models ask for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
