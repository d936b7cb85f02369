"""Answers from models: sampled here, decoded under a schema, or asked of a server."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
