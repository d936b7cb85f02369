"""Rows in files, JSONL or Parquet, as arrays and back, and the labelling of whole files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
