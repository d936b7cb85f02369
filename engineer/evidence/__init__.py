"""What the engineer is shown: the evidence of a round, its modules, and its forms in words and in tokens."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
