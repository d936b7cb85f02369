"""Long work that any kill leaves fit to go on: parts of files, journals, pools of processes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
