"""What a run needs of a machine: its memory as arithmetic, and whether this machine has it before anything is spent."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
