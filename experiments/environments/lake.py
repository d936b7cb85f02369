"""The lake as an environment: map sizes with hole and wait ratios, boards of the vmapped generator, exact verdicts."""

import functools
import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.config import (
    MAX_HOLE_RATIO,
    MAX_SIZE,
    MAX_TOKEN_SIZE,
    MIN_SIZE,
    EnvConfig,
    SizeConfig,
    holds,
    hole_ratio_of,
    holes_of,
    with_teams,
)
from lakewright.core_jax.generator import Acceptance, can_draw_for, generate, generate_in_turn
from lakewright.core_jax.results import BoardOutcomes
from lakewright.core_jax.rows import Row, board_key, rows_in_turn, rows_of
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.cells import Cell, Given, Knob, Stratum
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.words import RateWords, Words

GRADES = ("optimal_makespan", "optimal_sum_of_costs")
WAIT = "wait_ratio"
TRAITS = MappingProxyType({"wait_ratio": ("a forced wait", "no forced wait")})
TRAIT_OUTCOMES = MappingProxyType({"wait_ratio": ("a wait is forced", "no wait is forced")})
FAILURES = MappingProxyType({"illegal_move": "off board", "goal_not_reached": "not home"})
RATES = MappingProxyType(
    {
        "optimal_makespan": RateWords("optimal_makespan", "optimal makespan", "opt. makespan"),
        "optimal_sum_of_costs": RateWords("optimal_cost", "optimal sum of costs", "opt. cost"),
        WAIT: RateWords("forced", "wait forced", "forced wait", "where the board forces a wait"),
    }
)
GUIDELINE = (
    "Edit locally: change a few ratios by a little and keep what works. Act on the failures you see. "
    "Put the data just below the frontier of competence, where some plans are valid and some are not. "
    "Do not maximise difficulty: a size on which nearly every plan fails, or nearly none, gives little signal and gets "
    "less data, but never abandon a size, least of all a large one. Where an earlier edit went too far, take some back."
)
SYSTEM = (
    "You are the engineer of a training environment. A policy learns to plan the ways of several agents on boards of "
    "a frozen lake. You read how it does, and change the distribution of the boards that it trains on next. It is "
    "judged on held-out boards of all sizes, which you cannot change."
)
QUESTION = """\
## Your task
For each map size, change the share of boards (data_ratio), the share of cells that are holes (hole_ratio, 0 to 0.5) and
the share of boards on which a wait is forced (wait_ratio, 0 to 1). Give signed changes:
{changes}
0 keeps a ratio. Data ratios are made to sum to one afterwards, and what is illegal or too large a change is cut back.
Give a short reason for each size, first of all.{summary}
Think first. Then write a line {answer} and below it one JSON object of this form, with nothing after it,
with a number for each <change> and your own words for each <why>:
{form}
"""


class LakeSpace(DesignSpace):
    """The lake's design space, whose one trait needs more than one agent."""

    def siblings(self, cell: Cell) -> list[Cell]:
        """See `DesignSpace.siblings`: an agent alone never has to wait."""
        return super().siblings(cell) if not cell.given or cell.given[0] > 1 else []


@functools.cache
def lake_space(*, several: bool = True) -> LakeSpace:
    """The design space of boards. several: True if boards have more than one agent; a single agent never waits."""
    return LakeSpace(
        range(MIN_SIZE, MAX_SIZE + 1),
        (
            Knob(
                name="hole_ratio",
                meaning="the share of cells that are holes",
                high=MAX_HOLE_RATIO,
                step=0.05,
                reach=0.1,
                told=(0.1, 0.3),
                word="hole",
                window=False,  # a config has one hole ratio a size
            ),
            Knob(
                name=WAIT,
                meaning="the share of boards on which a wait is forced",
                trait=True,
                step=0.1,
                reach=0.25,
                word="wait",
            ),
        ),
        share=Knob(name="data_ratio", meaning="the share of boards", step=0.05, reach=0.15, word="data"),
        limits={} if several else {size: {WAIT: (0.0, 0.0)} for size in range(MIN_SIZE, MAX_SIZE + 1)},
        ranked=True,
        scale=lambda size: (int(size) - 6.5) / 3.5,
        givens=(Given(name="agents", middle=2.0, half=3.0),),
        failures=FAILURE_NAMES[1:],
        grades=GRADES,
        words=LakeWords(),
        spoken=range(MIN_SIZE, MAX_TOKEN_SIZE + 1),
    )


def design_of(config: EnvConfig) -> Design:
    """The design of a config."""
    rows: dict[int | str, DesignRow] = {size: msgspec.structs.asdict(cell) for size, cell in config.sizes.items()}
    return Design(rows, given={"agents": config.agents})


def config_of(design: Design) -> EnvConfig:
    """The config of a design. Raises ValueError if a ratio is out of range."""
    return EnvConfig({int(size): SizeConfig(**row) for size, row in design.strata.items()}, int(design.given["agents"]))


def tally_of(outcomes: BoardOutcomes) -> Tally:
    """Outcomes on boards as a tally."""
    return Tally(
        problems=outcomes.boards,
        valid=outcomes.valid,
        failures=outcomes.failures,
        grades={name: getattr(outcomes, name) for name in GRADES},
        traits={WAIT: Tally(outcomes.wait_boards, outcomes.wait_valid)},
    )


def outcomes_of(tally: Tally) -> BoardOutcomes:
    """The inverse of `tally_of`."""
    waits = tally.traits.get(WAIT, Tally(0, 0))
    grades = {name: tally.grades.get(name, 0) for name in GRADES}
    return BoardOutcomes(
        boards=tally.problems,
        valid=tally.valid,
        failures=tally.failures,
        wait_boards=waits.problems,
        wait_valid=waits.valid,
        **grades,
    )


def cell_of(row: Row) -> Cell:
    """The cell that a board is of, with its number of agents."""
    return Cell(row.size, (float(row.hole_ratio or 0), bool(row.wait_required)), (row.agents,))


def row_of(problem: Problem) -> Row:
    """The board of a problem."""
    return problem.data if isinstance(problem.data, Row) else msgspec.convert(problem.data, Row)


def problem_of(row: Row) -> Problem:
    """A board as a problem of the loop, whose policy sees the row and not a prompt in text."""
    return Problem("", data=row, cell=cell_of(row), key=board_key(row))


class Lake(Environment):
    """Boards of the frozen lake for several agents.

    agents: on each board; teams: numbers of agents that boards have in turn instead.
    """

    def __init__(self, agents: int = 2, teams: Sequence[int] = ()) -> None:
        self.agents, self.teams = agents, tuple(teams)
        self.space = lake_space(several=agents > 1)
        self._reachable = can_draw_for(self.teams)

    def start(self) -> Design:
        """Equal shares of 3x3 to 6x6, a quarter of holes, half of the boards with a forced wait."""
        wait = 0.5 if self.agents > 1 else 0.0
        return design_of(EnvConfig({size: SizeConfig(0.25, 0.25, wait) for size in (3, 4, 5, 6)}, self.agents))

    def make(self, cell: Cell, rng: random.Random) -> Problem:
        """A board of a cell, as a question in text."""
        config = self._config_of(cell)
        (row,) = rows_of(generate(config, rng.getrandbits(31), 1), config)
        return self._write_problem(row)

    def judge(self, problem: Problem, answer: str) -> Verdict:
        """The simulator's verdict on a plan in text, which is read strictly."""
        from lakewright.experiments.environments.text_tasks import TextTask, score

        row = row_of(problem)
        seen = TextTask(row).judge(answer)
        grades = tuple(name for name in GRADES if seen.valid and getattr(seen, name))
        failure = "" if seen.valid else str(seen.failure)
        return Verdict(bool(seen.valid), score(row, seen), failure, grades, -1 if seen.step is None else seen.step)

    def drawable(self, cell: Cell) -> bool:
        """Whether boards of a cell are met by one in 256 attempts or more, for every team that fits on the size."""
        hole_ratio, wait = cell.values
        return self._reachable(int(cell.stratum), self.agents, float(hole_ratio), bool(wait))

    def cells(self, design: Design) -> dict[Cell, float]:
        """The share of each cell of the boards, for each team in turn."""
        parts = with_teams(config_of(design), self.teams)
        found = {}
        for part in parts:
            for cell, share in self.space.cells(design_of(part)).items():
                found[cell._replace(given=(part.agents,))] = share / len(parts)
        return found

    def canonical(self, cell: Cell) -> Cell:
        """The cell whose hole ratio follows from its number of holes."""
        (agents,), (hole_ratio, wait) = cell.given or (self.agents,), cell.values
        holes = holes_of(int(cell.stratum), int(agents), float(hole_ratio))
        return Cell(cell.stratum, (hole_ratio_of(int(cell.stratum), int(agents), holes), bool(wait)), (agents,))

    def measures(self, problems: Sequence[Problem]) -> dict[str, float]:
        """Mean optima."""
        rows = list(map(row_of, problems))
        return {name: float(np.mean([getattr(row, name) for row in rows])) for name in ("makespan", "sum_of_costs")}

    def features(self, problem: Problem) -> list[float]:
        """Size, agents, share of holes, both optima and forced wait."""
        row = row_of(problem)
        holes = sum(line.count("H") for line in row.grid) / row.size**2
        optima = row.makespan or 0, row.sum_of_costs or 0
        return [float(row.size), float(row.agents), holes, *map(float, optima), float(bool(row.wait_required))]

    def describe(self, problem: Problem, answer: str, verdict: Verdict) -> str:
        """The board, the agents and the answer."""
        row = row_of(problem)
        ends = zip(row.starts, row.goals, strict=True)
        agents = "; ".join(f"agent {number} {s} to {g}" for number, (s, g) in enumerate(ends))
        return "\n".join([f"{row.size}x{row.size}", *row.grid, agents, f"answer: {answer[:500]}"])

    def draw(self, design: Design, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Like `Environment.draw`, by the vmapped generator, as questions in text."""
        rows, _ = self.draw_rows(design, count, seed, first)
        return [msgspec.structs.replace(self._write_problem(row), version=design.version) for row in rows]

    def draw_cell(self, cell: Cell, count: int, seed: int, first: int = 0) -> list[Problem]:
        """Like `Environment.draw_cell`, by the vmapped generator; for policies that see rows."""
        config = self._config_of(cell)
        return list(map(problem_of, rows_of(generate(config, seed, count, first=first), config)))

    def draw_rows(
        self,
        design: Design,
        count: int,
        seed: int,
        first: int = 0,
        on_progress: Callable[[int], object] = lambda boards: None,
    ) -> tuple[list[Row], list[Acceptance]]:
        """Like `draw`, the boards as rows, and the acceptance of the attempts at them."""
        configs = with_teams(config_of(design), self.teams)
        made = generate_in_turn(configs, seed, count, on_progress, first)
        acceptance = [part for batches in made for batch in batches.values() for part in batch.acceptance]
        return rows_in_turn(made, configs), acceptance

    def _config_of(self, cell: Cell) -> EnvConfig:
        """A config of the boards of a cell.

        The ratio of a number of holes is over the largest that a config may have if the ratio rounds up to this
        number, as on 3x3: three of five cells.
        """
        agents = int(cell.given[0]) if cell.given else self.agents
        hole_ratio, wait = cell.values
        return EnvConfig.single(int(cell.stratum), agents, min(float(hole_ratio), MAX_HOLE_RATIO), float(wait))

    def _write_problem(self, row: Row) -> Problem:
        from lakewright.experiments.environments.text_tasks import TextTask

        task = TextTask(row)
        return msgspec.structs.replace(problem_of(row), prompt=task.question, answer=task.answer)


def convert_row(fields: Mapping[str, Any]) -> Row:
    """A row from its fields in a file."""
    return msgspec.convert(fields, Row)


class LakeWords(Words, frozen=True, kw_only=True):
    """Boards, map sizes and plans."""

    problem: str = "board"
    problems: str = "boards"
    answer: str = "plan"
    answers: str = "plans"
    references: str = "certified plans"
    stratum: str = "map size"
    design: str = "config"
    designs: str = "configs"
    columns: str = "size: share hole wait"
    path: str = "sizes"
    token: str = "size"
    guideline: str = GUIDELINE
    question: str = QUESTION
    traits: Mapping[str, tuple[str, str]] = TRAITS
    trait_outcomes: Mapping[str, tuple[str, str]] = TRAIT_OUTCOMES
    failures: Mapping[str, str] = FAILURES
    rates: Mapping[str, RateWords] = RATES

    def label(self, stratum: Stratum) -> str:
        """A map size, such as 5x5."""
        return f"{stratum}x{stratum}"

    def label_in_design(self, stratum: Stratum, design: Design, given: Mapping[str, Sequence[float]]) -> str:
        """A map size with the numbers of agents on its boards."""
        teams = [int(team) for team in given.get("agents") or (design.given["agents"],)]
        agents = " or ".join(str(team) for team in teams if holds(int(stratum), team))
        return f"{self.label(stratum)}, {agents} agents"

    def grades(self, tally: Tally, names: tuple[str, ...]) -> str:
        """The shares of optimal plans."""
        makespan, costs = (tally.rate(tally.grades.get(name, 0)) for name in names)
        return f"optimal {makespan:.2f} by makespan, {costs:.2f} by sum of costs"

    def drawn(self, stratum: Stratum, seen: Drawn) -> str:
        """The boards that were drawn of a size."""
        accepted = "" if seen.acceptance is None else f", {seen.acceptance:.3f} of the attempts accepted"
        return (
            f"{self.label(stratum)}: {seen.problems} boards, hole_ratio {seen.knobs['hole_ratio']:.3f}, "
            f"wait_ratio {seen.knobs['wait_ratio']:.3f}, mean optimum {seen.measures['makespan']:.2f} (makespan), "
            f"{seen.measures['sum_of_costs']:.2f} (sum of costs){accepted}"
        )

    def measures(self, stratum: Stratum, seen: Drawn) -> list[float]:
        """The mean makespan as a share of twice the side."""
        return [seen.measures["makespan"] / (2 * int(stratum))]

    def imagine_measures(self, rng: np.random.Generator) -> dict[str, float]:
        """Optima of boards that do not exist."""
        makespan = float(rng.uniform(1, 12))
        return {"makespan": makespan, "sum_of_costs": 2 * makespan}

    def case(self, case: Case) -> list[str]:
        """A board, and the plan that failed on it."""
        seen = case.data
        ends = zip(seen["starts"], seen["goals"], strict=True)
        agents = "; ".join(f"agent {number} {tuple(s)} to {tuple(g)}" for number, (s, g) in enumerate(ends))
        return [
            f"{self.label(case.stratum)}, failed by {self.failure(case.failure)} of agent {seen['agent']} "
            f"at step {case.place}",
            *(f"  {line}" for line in seen["grid"]),
            f"  {agents}",
            f"  plan: {', '.join(seen['plan'])}",
        ]

    def system(self) -> str:
        """The system message of a language model as the engineer."""
        return SYSTEM
