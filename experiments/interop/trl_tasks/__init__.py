"""The lake for TRL's own GRPO trainer: whole plans as answers to prompts, and play step by step by a tool."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
