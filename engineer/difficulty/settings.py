"""How the difficulty model is fitted."""

from typing import Literal, TypeVar

import msgspec
import numpy as np

from lakewright.core_jax.support import Share
from lakewright.engineer.options import Power

Objective = Literal["learnability", "regret"]
"""What a problem is worth: learnability, p (1 - p), or regret, 1 - p, by which a right answer beats the policy."""


Values = TypeVar("Values", float, np.ndarray)


def value_of(success: Values, objective: Objective) -> Values:
    """What problems are worth by the objective, `success` being their P(valid): a number, or an array of them."""
    return 1 - success if objective == "regret" else success * (1 - success)


class DifficultySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the model of P(valid) is fitted."""

    decay: Share = 0.6
    """The factor by which the weight of a group falls with every stage since it was rolled out, 0 to 1."""
    objective: Literal["auto", "learnability", "regret"] = "auto"
    """What problems are worth: learnability, p (1 - p), or regret, 1 - p, by which a right answer beats the policy;
    auto is regret where each group holds the reference answer (grpo.guided), and learnability elsewhere."""
    by_size: Power = 0.0
    """How far, in logits, a stratum may be from the smooth curve of all strata, with and without a trait apart: the
    prior's standard deviation; 0: not at all. Strata without an order always have effects of their own."""
    held_out: bool = False
    """Whether the model is fitted to the answers to the held-out problems, too."""
    reach: Power = 0.0
    """What problems are worth is multiplied by r to this power, r being the largest P(valid) of problems that differ in
    their traits alone."""
