"""The names of the lake in prompts, evidence and summaries."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lakewright.core_jax.config import holds
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.words import Words

TRAITS = MappingProxyType({"wait_ratio": ("a forced wait", "no forced wait")})
TRAIT_OUTCOMES = MappingProxyType({"wait_ratio": ("a wait is forced", "no wait is forced")})
FAILURES = MappingProxyType({"illegal_move": "off board", "goal_not_reached": "not home"})
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


class LakeWords(Words, frozen=True, kw_only=True):
    """Boards, map sizes and plans."""

    problem: str = "board"
    problems: str = "boards"
    answer: str = "plan"
    answers: str = "plans"
    stratum: str = "map size"
    design: str = "config"
    path: str = "sizes"
    token: str = "size"
    guideline: str = GUIDELINE
    question: str = QUESTION
    traits: Mapping[str, tuple[str, str]] = TRAITS
    trait_outcomes: Mapping[str, tuple[str, str]] = TRAIT_OUTCOMES
    failures: Mapping[str, str] = FAILURES

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
