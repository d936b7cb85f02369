from .parallel_env import LakeParallelEnv as LakeParallelEnv
from .team_env import TeamEnv as TeamEnv
from .vector_env import TeamVectorEnv as TeamVectorEnv
