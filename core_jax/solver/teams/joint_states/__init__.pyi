from .exhaustive import Flood as Flood
from .reachability import component as component
from .reachability import solvable as solvable
from .reachability import steps_of as steps_of
