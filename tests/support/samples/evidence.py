"""Evidence that several tests of the engineer share."""

from typing import Any

import jax

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig
from lakewright.core_jax.results import GroupStatistics, Outcomes
from lakewright.engineer.evidence import CellGroups, Evidence, Round, shown
from lakewright.engineer.evidence.context_modules import Modules
from lakewright.engineer.guard import Reachable

V6 = Modules()
# What a language model answers as engineer: the edit of a size, and a whole answer.
EDIT = {"reason": "too hard", "data_ratio": 0.05, "hole_ratio": -0.1, "wait_ratio": 0}
GOOD = {"edits": {"3": EDIT, "5": EDIT | {"data_ratio": 0}}}


def everything(
    config: EnvConfig, outcomes: dict[int, Outcomes], past: list[Round] | None = None, round: int = 0, **facts: Any
) -> Evidence:
    """All that is known after a round of `rounds`, by default 3."""
    return Evidence(config=config, outcomes=outcomes, history=past or [], round=round, **{"rounds": 3, **facts})


def view(modules: Modules, *arguments: Any, **facts: Any) -> Evidence:
    """What the modules show of `everything`."""
    return shown(everything(*arguments, **facts), modules, jax.random.key(0))


def rollouts(size: int, forced: bool = False, hole_ratio: float = 0.25, **figures: float) -> CellGroups:
    """The groups of a cell; of ten groups of eight plans by default, none of them informative."""
    counts = {"groups": 10, "informative": 0, "mixed": 0, "completions": 80, "valid": 0, "reward": 0.0}
    means = {"learnability": 0.0, "advantage": 0.0}
    return CellGroups(size, hole_ratio, forced, GroupStatistics(**{**counts, **means, **figures}))


def decode_first(prompt, allowed) -> list[str]:
    """A policy that takes the first token that is allowed, until none is."""
    tokens: list[str] = []
    while choices := allowed(tokens):
        tokens.append(choices[0])
    return tokens


def sample_first(prompt, allowed, seed) -> list[list[str]]:
    """Two answers of `decode_first`."""
    return [decode_first(prompt, allowed)] * 2


def legal(config: EnvConfig, reachable: Reachable) -> bool:
    """Whether all ratios are in range, and all boards asked for can be drawn."""
    for size, cell in config.sizes.items():
        if not (0 <= cell.data_ratio <= 1 and 0 <= cell.hole_ratio <= MAX_HOLE_RATIO and 0 <= cell.wait_ratio <= 1):
            return False
        strata = [wait for wait, share in ((True, cell.wait_ratio), (False, 1 - cell.wait_ratio)) if share]
        if not all(reachable(size, config.agents, cell.hole_ratio, wait) for wait in strata):
            return False
    return True
