from .builder import build as build
from .tiers import TIERS as TIERS
