"""The benchmark as a data set of Hugging Face: Parquet files and the card that describes them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
