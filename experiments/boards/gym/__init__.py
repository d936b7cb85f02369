"""The lake in Gymnasium, as `lakewright/Lake-v0`, which importing this room registers, and in PettingZoo."""

import gymnasium
import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

gymnasium.register(
    "lakewright/Lake-v0",
    entry_point="lakewright.experiments.boards.gym.team_env:TeamEnv",
    vector_entry_point="lakewright.experiments.boards.gym.vector_env:TeamVectorEnv",
)
