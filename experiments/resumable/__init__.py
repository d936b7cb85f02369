"""Long work that resumes after any kill: claims of folders, parts of files, journals, pools of processes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
