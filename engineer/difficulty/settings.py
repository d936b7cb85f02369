"""How the difficulty model is fitted."""

from typing import Literal, TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.support import Share
from lakewright.engineer.options import Power

Objective = Literal["learnability", "regret"]
"""What a board is worth: learnability, p (1 - p), or regret, 1 - p, by which the certified plan beats the policy."""


Values = TypeVar("Values", float, np.ndarray)


def value_of(success: Values, objective: Objective) -> Values:
    """What boards are worth by the objective, `success` being their P(valid): a number, or an array of them."""
    return 1 - success if objective == "regret" else success * (1 - success)


class DifficultySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the model of P(valid) is fitted."""

    decay: Share = 0.6
    """The factor by which the weight of a group falls with every stage since it was rolled out, 0 to 1."""
    objective: Literal["auto", "learnability", "regret"] = "auto"
    """What boards are worth: learnability, p (1 - p), or regret, 1 - p, by which the certified plan beats the policy;
    auto is regret where each group holds the certified plan (grpo.guided), and learnability elsewhere."""
    by_size: Power = 0.0
    """How far, in logits, a size may be from the smooth curve of all sizes, boards with and without a forced wait
    apart: the prior's standard deviation; 0: not at all."""
    held_out: bool = False
    """Whether the model is fitted to the plans for the held-out boards, too."""
    reach: Power = 0.0
    """What boards are worth is multiplied by r to this power, r being the larger of P(valid) with a forced wait and
    without one on maps of the same size and hole ratio."""
