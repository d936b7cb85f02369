"""The reading test: do the changes that an engineer proposes follow its evidence?"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
