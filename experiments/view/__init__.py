"""What people look at: the report of a run, pictures of boards, and proposals side by side."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
