"""From what a page shows to HTML, by templates; and from what an address asks for to our own types."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
