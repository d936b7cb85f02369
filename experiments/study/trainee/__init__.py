"""What half an hour makes of the tiny model, and whether GRPO is worth its cost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
