"""Evidence that several tests of the engineer share, about the lake."""

from typing import Any

import jax

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.results import BoardOutcomes, GroupStatistics
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Design, Edit
from lakewright.engineer.evidence import CellGroups, Evidence, Modules, Round, show_evidence
from lakewright.engineer.guard import Bounds
from lakewright.engineer.tally import Tally
from lakewright.experiments.environments.lake import Lake, design_of, lake_space, tally_of

V6 = Modules()
SPACE = lake_space()


class RoomyLake(Lake):
    """A lake on which all boards can be drawn; only an agent alone never has to wait. It draws nothing to know that."""

    def drawable(self, cell: Cell) -> bool:
        """Whether there are such boards."""
        return self.agents > 1 or not cell.values[1]


LAKE = Lake()
ROOMY = RoomyLake()
# What a language model answers as engineer: the edit of a size, and a whole answer.
EDIT = {"reason": "too hard", "data_ratio": 0.05, "hole_ratio": -0.1, "wait_ratio": 0}
GOOD = {"edits": {"3": EDIT, "5": EDIT | {"data_ratio": 0}}}


def design(config: EnvConfig | Design) -> Design:
    """The design of a config."""
    return config if isinstance(config, Design) else design_of(config)


def tally(outcomes: BoardOutcomes | Tally) -> Tally:
    """Outcomes on boards as a tally."""
    return outcomes if isinstance(outcomes, Tally) else tally_of(outcomes)


def edit(reason: str, **changes: float) -> Edit:
    """An edit of a map size."""
    return make_edit(SPACE, reason, changes)


def past(config: EnvConfig, outcomes: dict[int, BoardOutcomes], *rest: Any, **facts: Any) -> Round:
    """An earlier round of the lake."""
    return Round(design(config), {size: tally(seen) for size, seen in outcomes.items()}, *rest, **facts)


def everything(
    config: EnvConfig | Design,
    outcomes: dict[int, BoardOutcomes],
    past: list[Round] | None = None,
    round: int = 0,
    forced: dict[int, BoardOutcomes] | None = None,
    **facts: Any,
) -> Evidence:
    """All that is known after a round of `rounds`, by default 3."""
    given = {"rounds": 3, "guideline": SPACE.words.guide(), **facts}
    seen = {size: tally(found) for size, found in outcomes.items()}
    by_trait = {size: {"wait_ratio": tally(found)} for size, found in (forced or {}).items()}
    return Evidence(design=design(config), outcomes=seen, by_trait=by_trait, history=past or [], round=round, **given)


def view(modules: Modules, *arguments: Any, **facts: Any) -> Evidence:
    """What the modules show of `everything`."""
    return show_evidence(everything(*arguments, **facts), modules, jax.random.key(0))


def rollouts(size: int, forced: bool = False, hole_ratio: float = 0.25, **figures: float) -> CellGroups:
    """The groups of a cell; of ten groups of eight plans by default, none of them informative."""
    counts = {"groups": 10, "informative": 0, "mixed": 0, "completions": 80, "valid": 0, "reward": 0.0}
    means = {"learnability": 0.0, "advantage": 0.0}
    return CellGroups(Cell(size, (hole_ratio, forced)), GroupStatistics(**{**counts, **means, **figures}))


def decode_first(prompt, allowed) -> list[str]:
    """A policy that takes the first token that is allowed, until none is."""
    tokens: list[str] = []
    while choices := allowed(tokens):
        tokens.append(choices[0])
    return tokens


def sample_first(prompt, allowed, seed) -> list[list[str]]:
    """Two answers of `decode_first`."""
    return [decode_first(prompt, allowed)] * 2


def legal(found: Design, bounds: Bounds) -> bool:
    """Whether all values are in range, and all problems asked for can be drawn."""
    space = bounds.space
    for stratum, row in found.strata.items():
        for column in space.columns:
            low, high = space.limits(stratum, column)
            if not low <= row[column.name] <= high:
                return False
    return all(bounds.drawable(cell) for cell in space.cells(found))
