"""Three spaces unlike the lake's, and what a policy did in them."""

import jax
import numpy as np

from lakewright.core_jax.results import GroupStatistics
from lakewright.engineer.cells import Cell, Knob
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import DifficultySettings, HeldOutCell, make_forecast, observe_groups
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import CellGroups, Evidence, Round
from lakewright.engineer.problems import Group, Problem, Verdict
from lakewright.engineer.space import DesignSpace

RAGGED = DesignSpace(
    ["sums", "word-game", "logic/1"],
    [Knob(name="level", high=10, step=1, reach=1, whole=True)],
    limits={"word-game": {"level": (0, 3)}, "logic/1": {"level": (2, 2)}},
    ranked=False,
    failures=("no_answer", "wrong"),
)
BARE = DesignSpace(["task"], [])
WIDE = DesignSpace(
    range(4),
    [
        *(Knob(name=f"whole_{number}", high=7, step=1, reach=1, whole=True) for number in range(8)),
        *(Knob(name=f"trait_{number}", trait=True) for number in range(2)),
    ],
)
SPACES = {"ragged": RAGGED, "bare": BARE, "wide": WIDE}


class Odd(Environment):
    """Problems whose right answer is a number; those of cells of even first value are the easy ones."""

    def __init__(self, space: DesignSpace) -> None:
        self.space = space

    def make(self, cell, rng) -> Problem:
        """The sum of the cell's values and a random number."""
        number = rng.randrange(10**6)
        return Problem(f"{cell}: {number}", str(number))

    def judge(self, problem, answer) -> Verdict:
        """Whether it is the number."""
        valid = answer == problem.answer
        return Verdict(valid, float(valid), "" if valid else "wrong")


def roll_out(environment: Odd, design: Design, seed: int, count: int = 40) -> list[Group]:
    """Groups of four answers, right by chance."""
    rng = np.random.default_rng(seed)
    problems = environment.draw(design, count, seed)
    right = rng.random((count, 4)) < rng.random((count, 1))
    texts = [[one.answer if ok else "?" for ok in row] for one, row in zip(problems, right, strict=True)]
    return environment.groups(problems, texts)


def sum_up(groups: list[Group]) -> list[CellGroups]:
    """The groups by cell."""
    cells: dict[Cell, list[Group]] = {}
    for group in groups:
        cells.setdefault(group.cell, []).append(group)
    return [CellGroups(cell, _statistics(found)) for cell, found in cells.items()]


def _statistics(groups: list[Group]) -> GroupStatistics:
    means = {name: float(np.mean([getattr(one, name) for one in groups])) for name in ("learnability", "advantage")}
    return GroupStatistics(
        groups=len(groups),
        informative=sum(one.informative for one in groups),
        mixed=sum(one.mixed for one in groups),
        completions=sum(one.completions for one in groups),
        valid=sum(one.valid for one in groups),
        reward=float(np.mean([one.reward for one in groups])),
        **means,
    )


def know_everything(environment: Odd, design: Design, round: int = 1) -> Evidence:
    """Evidence with every part filled."""
    groups = roll_out(environment, design, seed=round)
    held_out = environment.draw(design, 40, seed=100)
    answers = [one.answer if place % 3 else "?" for place, one in enumerate(held_out)]
    verdicts = environment.verdicts(held_out, answers)
    outcomes = environment.tallies(held_out, answers)
    parts = [HeldOutCell(cell, share) for cell, share in environment.cells(design).items()]
    seen = observe_groups((group.cell, group) for group in groups)
    return Evidence(
        design=design,
        outcomes=dict(outcomes),
        by_trait={stratum: tally.traits for stratum, tally in outcomes.items() if tally.traits},
        guideline=environment.space.words.guide(),
        history=[Round(design, dict(outcomes))] * 2,
        summary="harder",
        round=round,
        rounds=4,
        problems=40,
        groups=sum_up(groups),
        training={"lr": 0.1},
        statistics=environment.statistics(held_out),
        cases=environment.cases(held_out, answers, verdicts, 3),
        forecast=make_forecast(design, seen, parts, DifficultySettings(), environment.space),
        refusals=["no"],
    )


def key_of(number: int) -> jax.Array:
    """A key."""
    return jax.random.key(number)
