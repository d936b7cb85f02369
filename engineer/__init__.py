"""The engineer: reads how a policy fails and changes what it trains on next, for any generated environment."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
