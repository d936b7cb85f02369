"""Training of a policy: warm-up on certified plans, then GRPO on rewards of the simulator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
