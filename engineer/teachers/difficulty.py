"""The teacher that follows the difficulty model: an item-response model of P(valid), Thompson-sampled."""

import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import Natural, Share
from lakewright.engineer.curriculum_cells import Cell, config_of
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import Forecast, HeldOutCell, value_of
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.options import Power
from lakewright.engineer.proposal import Proposal, Stateless, decided, moved_to
from lakewright.engineer.random_generators import Key, numpy_rng

REASON = "the cells of the largest expected learnability, weighed by the held-out boards"


class DifficultyTeacher(Stateless):
    """q_c ~ h_c l_c^power r_c / s_c^length over the held-out cells c; h_c is the share of the held-out boards,
    l_c = p_c (1 - p_c), and s_c the map's size.

    Where the model's objective is the regret, l_c = 1 - p_c. r_c is the larger p of boards with and without a forced
    wait of c's size and hole ratio, to the power of the model's reach.

    With `group` G, l_c = 1 - p_c^G - (1 - p_c)^G instead: the chance that G plans do not all earn the same. Where
    advantages are divided by their standard deviation, every such group pulls alike.

    With power 1 that is the maximum of sum_c h_c l_c log q_c: data on a cell have diminishing returns. With length 1 it
    is so for a budget of tokens, as plans grow with the map: each board of c costs s_c of it. p is drawn from the
    posterior of the model once a proposal (Thompson 1933), so that cells of which little is known are explored.
    `mix` of the data are spread as the held-out boards are. A config draws one hole ratio a size: the mean of q's.
    """

    def __init__(self, power: Power = 1.0, mix: Share = 0.1, group: Natural = 0, length: Power = 0.0) -> None:
        self.power = power
        self.mix = mix
        self.group = group
        self.length = length

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The config of q. Without rollouts, no edits."""
        known = evidence.forecast
        held_out = [part for part in known.held_out if part.cell.size in config.sizes] if known else []
        if known is None or not known.model.groups or not held_out:
            return decided(ConfigDelta({}))
        return moved_to(config, config_of(config, self._weights(known, held_out, config.agents, key)), REASON)

    def _weights(self, known: Forecast, held_out: list[HeldOutCell], agents: int, key: Key) -> dict[Cell, float]:
        cells = [part.cell for part in held_out]
        drawn = known.model.sampled(cells, [agents] * len(cells), numpy_rng(key), 1)
        shares = np.array([part.share for part in held_out])
        sizes = np.array([cell.size for cell in cells])
        reach = drawn.best[0] ** known.model.reach
        weights = shares * self._value(drawn.success[0], known) ** self.power * reach / sizes**self.length
        weights = (1 - self.mix) * weights / weights.sum() + self.mix * shares / shares.sum()
        return dict(zip(cells, weights.tolist(), strict=True))

    def _value(self, success: np.ndarray, known: Forecast) -> np.ndarray:
        if self.group:
            return np.clip(1 - success**self.group - (1 - success) ** self.group, 1e-6, 1)
        return value_of(success, known.model.objective)
