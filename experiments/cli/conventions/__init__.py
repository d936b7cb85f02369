"""What all commands have in common: shared options, settings on the line, how help, results and errors look."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
