from .play import LakePlay as LakePlay
from .prompts import LakePrompts as LakePrompts
from .prompts import plan_reward as plan_reward
