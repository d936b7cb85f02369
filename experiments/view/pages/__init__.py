"""The pages of the viewer, the static site and the report: what each shows, and the templates that show it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
