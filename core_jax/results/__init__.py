"""What became of plans: outcomes counted by failure type, rates with intervals, groups of answers to one board."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
