"""Answers from models: sampled in this process, decoded under a schema or grammar, or requested from a server."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
