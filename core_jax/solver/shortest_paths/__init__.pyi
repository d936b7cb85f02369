from .disjoint_paths import FAR as FAR
from .disjoint_paths import Certified as Certified
from .disjoint_paths import certify as certify
from .disjoint_paths import distances as distances
