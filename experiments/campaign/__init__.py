"""Long checks: our labels of fresh boards against another solver's, and commands watched while they run for long."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
