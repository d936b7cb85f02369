from .episode import Episode as Episode
from .parallel_env import LakeParallelEnv as LakeParallelEnv
from .pools import BoardPool as BoardPool
from .pools import PoolOptions as PoolOptions
from .pools import board_pool as board_pool
from .pools import pool_rows as pool_rows
from .team_env import TeamEnv as TeamEnv
from .vector_env import TeamVectorEnv as TeamVectorEnv
