"""The engineer's part, as the warm-up teaches it to a model of tokens: made-up evidence and a rule's answers to it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
