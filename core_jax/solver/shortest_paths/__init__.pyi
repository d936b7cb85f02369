from .disjoint_paths import NO_PATH as NO_PATH
from .disjoint_paths import Certified as Certified
from .disjoint_paths import certify as certify
from .disjoint_paths import distances as distances
