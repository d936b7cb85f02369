from .adapters import TRACKERS as TRACKERS
from .figures import Point as Point
from .figures import points_of as points_of
from .publishing import Publisher as Publisher
