"""Language models that others have trained: where their files come from, and what a run needs of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
