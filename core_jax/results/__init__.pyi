from .outcomes import Outcomes as Outcomes
from .outcomes import pool as pool
from .outcomes import without as without
from .rollout_groups import Group as Group
from .rollout_groups import GroupStatistics as GroupStatistics
from .rollout_groups import statistics_of as statistics_of
