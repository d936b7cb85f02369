"""The evidence that the engineer is shown: of a round, its modules, and its forms as text and as tokens."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
