from .judgement import GuardVerdict as GuardVerdict
from .judgement import Reachable as Reachable
from .judgement import judge as judge
from .settings import GuardSettings as GuardSettings
from .settings import widened as widened
