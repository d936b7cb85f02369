"""What there is to look at: runs, studies, sweeps, evaluations, benchmarks and board files below some folders."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
