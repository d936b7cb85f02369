"""The trial: a policy is rolled out on a few problems of proposed designs and of the current one, before training."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.engineer.calls import show
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.model import Objective, Observation
from lakewright.engineer.difficulty.worth import Mix, Worth
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.trial.selection import Lead, choose_rival, estimate_lead, problems_by_round
from lakewright.engineer.trial.signals import CellTrial, Signal, TrialSettings, Tried, problems_to_try, sum_up_trial

RollOut: TypeAlias = Callable[[Sequence[Problem], int, int], tuple[Sequence[RolloutGroup], int]]
"""Rolls a policy out: (problems, answers to each, the turn of the trial, which seeds the sampling) -> (a group for each
problem, in order; the tokens generated).
"""
NO_LEAD = Lead(0.0, 0.0, 0.0, 0.0, 0.0, 0.5)


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """trial.json: the designs that were tried, the current one first; the place of the one chosen; what it cost.

    cells: the valid answers to each problem rolled out. leads: each design's lead over the current, and how likely it
    is better; empty in a trial without a current design, or of an older version.
    """

    candidates: list[Tried]
    chosen: int
    tokens: int
    cells: list[CellTrial] = []
    leads: list[Lead] = []

    def observe(self) -> list[Observation]:
        """The groups rolled out, by cell."""
        return [
            Observation(
                part.cell,
                groups=len(part.valid),
                success=sum(part.valid) / part.answers,
                variance=sum(part.variances()),
                answers=part.answers * len(part.valid),
                tried=True,
            )
            for part in self.cells
        ]

    def summary(self) -> str:
        """The outcome in a line."""
        others = range(1, len(self.candidates))
        best = self.chosen or max(others, key=lambda place: self.leads[place].better if self.leads else 0)
        scores = [self.candidates[place].score for place in (best, 0)]
        signal = f"(signal {scores[0]:.3f} against {scores[1]:.3f})"
        if not any(scores) and self.leads and self.leads[best].expected:
            signal = "by the forecast alone (no signal in either)"
        found = "tried" if self.chosen else "tried, and not trained on"
        if self.leads:
            return f"{found}: worth more with probability {self.leads[best].better:.2f} {signal}"
        return f"{found}: worth {'more' if self.chosen else 'less'} {signal}"


class TrialWork:
    """The cells rolled out so far, shared by all designs, and what that cost.

    Args:
        environment: draws the problems.
        roll_out: samples the policy.
        settings: how many problems and answers.
        objective: says what problems are worth.
        seed: seed of the problems.
        trained: the answers that were trained on since the last redesign; None does not limit the trial.

    unheld: why no trial was held, once that is known.
    """

    def __init__(
        self,
        environment: Environment,
        roll_out: RollOut,
        settings: TrialSettings,
        objective: Objective,
        seed: int,
        trained: int | None = None,
    ) -> None:
        self.environment, self.settings, self.objective, self.seed = environment, settings, objective, seed
        self.trained = trained
        self._roll_out = roll_out
        # Cells and not designs are stored: a rollout counts for every design that contains its cell.
        self.cells: dict[Cell, CellTrial] = {}
        self.tokens = self.turns = 0
        self.unheld = ""

    @property
    def signals(self) -> dict[Cell, Signal]:
        """The signal of each cell."""
        return {cell: part.signal() for cell, part in self.cells.items()}

    def value_problems(self, leverage: Mapping[Stratum, float]) -> Mapping[Cell, Sequence[float]]:
        """The worth of the problems of each cell. leverage: the worth of a unit of signal by stratum, else 1."""
        return {
            cell: [leverage.get(cell.stratum, 1.0) * value for value in part.values(self.objective)]
            for cell, part in self.cells.items()
        }

    def roll_out_on(self, mixes: Sequence[Mix], problems: int) -> None:
        """Rolls out the problems that these mixes still lack, up to `problems` for each."""
        samples, drawn = self.settings.samples, {}
        for cell, count in problems_to_try(mixes, msgspec.structs.replace(self.settings, boards=problems)).items():
            # Problems of a cell have an order that no design changes: a later round continues after the known,
            # and two designs that share a cell are compared on the same problems.
            known = len(self.cells[cell].valid) if cell in self.cells else 0
            if count > known:
                drawn[cell] = self.environment.draw_cell(cell, count - known, self.seed, first=known)
        if not drawn:
            return
        problems_in_turn = list(itertools.chain(*drawn.values()))
        groups, tokens = check_rollouts(
            self._roll_out(problems_in_turn, samples, self.turns), problems_in_turn, samples
        )
        self.turns += 1
        self.tokens += tokens
        valid = iter([group.valid for group in groups])
        for cell, part in drawn.items():
            before = self.cells[cell].valid if cell in self.cells else []
            self.cells[cell] = CellTrial(cell, samples, [*before, *(next(valid) for _ in part)])

    def explain_cost(self, designs: Sequence[Design]) -> str:
        """Why no trial of these designs is held: it takes more answers than `trial.share` allows; empty if it fits."""
        share, trained = self.settings.share, self.trained
        if not share or trained is None:
            return ""
        problems = problems_to_try([self.environment.mix(design) for design in designs], self.settings)
        if (answers := self.settings.samples * sum(problems.values())) <= share * trained:
            return ""
        said = f"no trial: it may take {answers} answers, and trial.share allows {share:g} of the {trained} trained on"
        return f"{said} since the last redesign"

    def sum_up(self, designs: Sequence[Design]) -> list[Tried]:
        """The signal of each design."""
        signals = self.signals
        return [sum_up_trial(one, self.environment.mix(one), signals, self.objective) for one in designs]


def check_rollouts(returned: Any, problems: Sequence[Problem], samples: int) -> tuple[Sequence[RolloutGroup], int]:
    """Groups and tokens of `roll_out`. Raises InputError on anything but a group of all answers to each problem."""
    groups, tokens = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, None)
    listed = isinstance(groups, Sequence) and all(isinstance(group, RolloutGroup) for group in groups)
    if not (listed and len(groups) == len(problems) and isinstance(tokens, int) and tokens >= 0):
        said = f"roll_out: gave {show(returned)} for {len(problems)} problems"
        raise InputError(f"{said}; return a list with a group for each, and the number of tokens")
    for problem, group in zip(problems, groups, strict=True):
        if group.completions != samples or not 0 <= group.valid <= samples:
            said = f"roll_out: gave {group.valid} valid of {group.completions} answers to {problem.prompt!r:.40}"
            raise InputError(f"{said}; give {samples} answers to each problem")
        # A group in another's place would count for another cell, and no number would show it.
        if group.key != problem.key:
            said = f"roll_out: a group is of {group.key!r:.40} where the problem is {problem.key!r:.40}"
            raise InputError(f"{said}; return the groups in the order of the problems")
    return groups, tokens


def try_designs(work: TrialWork, designs: Sequence[Design]) -> Trial:
    """The signal of each design on all the problems of a trial, and the place of the best."""
    work.roll_out_on([work.environment.mix(design) for design in designs], work.settings.boards)
    candidates = work.sum_up(designs)
    # Of equal scores the first wins, so the design before stays unless another is better.
    chosen = max(range(len(designs)), key=lambda place: (candidates[place].score, -place))
    return Trial(candidates, chosen, work.tokens, cells=list(work.cells.values()))


def try_beside_current(
    work: TrialWork,
    current: Design,
    rivals: Sequence[Design],
    priors: Sequence[Worth] = (),
    proposed: int | None = None,
    leverage: Mapping[Stratum, float] = MappingProxyType({}),
) -> Trial:
    """Tries the current design and its rivals by successive halving: each round drops the worse half of the rivals.

    `choose_rival` decides between the one that stays to the end and the current design.

    Args:
        work: rolls the problems out.
        current, rivals: the designs.
        priors: each rival's expected lead over the current design, by the difficulty model; empty if it is not asked.
        proposed: the place of the first proposal among the rivals, if it is tried.
        leverage: the worth of a unit of signal by stratum; by default all strata are worth the same.
    """
    mix, others = work.environment.mix(current), [work.environment.mix(rival) for rival in rivals]
    places, leads = list(range(len(rivals))), [NO_LEAD for _ in rivals]
    for problems in problems_by_round(work.settings.boards, len(rivals)):
        work.roll_out_on([mix, *(others[place] for place in places)], problems)
        values = work.value_problems(leverage)
        for place in places:
            prior = priors[place] if priors else None
            leads[place] = estimate_lead(others[place], mix, values, work.settings.samples, prior)
        # The worse half leaves by its mean, the prior included; rounded up, so that one rival reaches the end.
        order = sorted(places, key=lambda place: -leads[place].mean)
        places = order[: (len(order) + 1) // 2]
    chosen = choose_rival(leads, places[0], proposed)
    # All rivals are reported, also those that left: their cells were rolled out, if on fewer problems.
    candidates = work.sum_up([current, *rivals])
    place = 0 if chosen is None else chosen + 1
    return Trial(candidates, place, work.tokens, cells=list(work.cells.values()), leads=[NO_LEAD, *leads])


def measure_leads(work: TrialWork, current: Design, rivals: Sequence[Design]) -> list[Lead]:
    """The lead of each rival over the current design, from rollouts on all the problems; no design leaves."""
    mix, others = work.environment.mix(current), [work.environment.mix(rival) for rival in rivals]
    work.roll_out_on([mix, *others], work.settings.boards)
    values = work.value_problems({})
    return [estimate_lead(other, mix, values, work.settings.samples, None) for other in others]
