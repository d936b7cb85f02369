from .play import LakePlay as LakePlay
from .play import PlayedLake as PlayedLake
from .prompts import LakePrompts as LakePrompts
from .prompts import plan_reward as plan_reward
