"""Pairs of evidence in which strata swap their figures, and the changes that the figures decide."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import DifficultySettings
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence.evidence import Evidence, exchange_strata
from lakewright.engineer.lesson_forecasts import draw_forecast
from lakewright.engineer.lessons import list_trait_cells
from lakewright.engineer.reading.forms import ColumnPlace, map_signs
from lakewright.engineer.space import DesignSpace, normalize_design
from lakewright.engineer.tally import Tally
from lakewright.engineer.teachers.difficulty import ForecastTeacher
from lakewright.engineer.teachers.rules import ProportionalTeacher, RuleTeacher

PairKind = Literal["outcomes", "forecast"]
KINDS: tuple[PairKind, ...] = ("outcomes", "forecast")
RULES: dict[PairKind, RuleTeacher] = {"outcomes": ProportionalTeacher(), "forecast": ForecastTeacher()}
"""The rule whose changes say what evidence decides, by what is shown."""
STRATA = 3  # of a design
PROBLEMS = 25  # held-out ones of each combination of traits of a stratum
FITTED = DifficultySettings(model="regression", by_size=1.0)  # strata differ by themselves, not only along a curve
ATTEMPTS = 1000


class Pair(NamedTuple):
    """A question asked twice, with the same figures of other strata.

    kind: what is shown. design: the current one, alike in all strata. evidence: true and exchanged. other: the strata
    that exchange their figures. truth: the forecast from which the figures come. deciding: the changes that they
    decide, 1 or -1 by the rule under the true evidence; the exchanged evidence asks for the opposite.
    """

    kind: PairKind
    design: Design
    evidence: tuple[Evidence, Evidence]
    other: dict[Stratum, Stratum]
    truth: Forecast
    deciding: dict[ColumnPlace, int]


def draw_pairs(environment: Environment, count: int, seed: int, strata: int = STRATA) -> list[Pair]:
    """Draws `count` pairs of evidence, for which no policy is trained.

    Args:
        environment: gives the space, and by its own first design whatever the space does not say.
        count: how many.
        seed: seed of everything random.
        strata: how many strata a design has, at most.

    In turn the outcomes of two strata are exchanged, and the forecasts of all strata reversed in order. Figures come
    from a difficulty model whose weights are drawn. A pair decides at least one share. Raises InputError if the
    environment has one stratum alone, or no figures were found that decide.
    """
    if (most := min(strata, len(environment.start().strata))) < 2:
        words = environment.space.words
        raise InputError(f"reading test: {most} {words.stratum} has nothing to exchange; take a {words.design} of two")
    rng = np.random.default_rng(seed)
    return [_draw_deciding_pair(KINDS[place % len(KINDS)], environment, strata, rng) for place in range(count)]


def _draw_deciding_pair(kind: PairKind, environment: Environment, strata: int, rng: np.random.Generator) -> Pair:
    share = environment.space.share.name
    for _ in range(ATTEMPTS):
        pair = _draw_pair(kind, environment, strata, rng)
        if any(column == share for _, column in pair.deciding):
            return pair
    raise InputError(f"reading test: no {kind} were found that decide a {share}; change its step")


def _draw_pair(kind: PairKind, environment: Environment, strata: int, rng: np.random.Generator) -> Pair:
    space = environment.space
    design = _draw_even_design(environment, strata, rng)
    truth = draw_forecast(design, space, rng, FITTED)
    named = space.sort_strata(design.strata)
    if kind == "outcomes":
        one, two = rng.choice(len(named), 2, replace=False)
        other = {named[one]: named[two], named[two]: named[one]}
    else:
        other = dict(zip(named, reversed(named), strict=True))
    true = _draw_evidence(kind, design, truth, space, rng)
    evidence = true, exchange_strata(true, other)
    signs, opposite = (map_signs(RULES[kind].make_delta(shown, design, space), design, space) for shown in evidence)
    deciding = {place: sign for place, sign in signs.items() if sign * opposite[place] < 0}
    return Pair(kind, design, evidence, other, truth, deciding)


class Question(NamedTuple):
    """Evidence about a design, and the forecast that its figures come from."""

    evidence: Evidence
    truth: Forecast


def draw_question(kind: PairKind, environment: Environment, strata: int, rng: np.random.Generator) -> Question:
    """A question about an even design of some strata, as for pairs.

    Args:
        kind: what is shown.
        environment, strata: see `draw_pairs`.
        rng: consumed.
    """
    design = _draw_even_design(environment, strata, rng)
    truth = draw_forecast(design, environment.space, rng, FITTED)
    return Question(_draw_evidence(kind, design, truth, environment.space, rng), truth)


def _draw_even_design(environment: Environment, strata: int, rng: np.random.Generator) -> Design:
    """A design of some strata with equal shares and middle values, so that only the evidence tells them apart."""
    space, start = environment.space, environment.start()
    named = space.sort_strata(start.strata)
    places = sorted(rng.choice(len(named), min(strata, len(named)), replace=False).tolist())
    middle = space.uniform(**start.given).strata
    even = Design({named[place]: middle[named[place]] for place in places}, given=start.given)
    return normalize_design(even, space)


def _draw_evidence(
    kind: PairKind, design: Design, truth: Forecast, space: DesignSpace, rng: np.random.Generator
) -> Evidence:
    """Outcomes on held-out problems of a policy whose P(valid) is the one of `truth`, or `truth` itself."""
    shown = Evidence(design=design, outcomes={}, guideline=space.words.guide(), round=None, rounds=None)
    if kind == "forecast":
        return msgspec.structs.replace(shown, forecast=truth)
    strata = space.sort_strata(design.strata)
    outcomes = {stratum: _draw_tally(stratum, design, truth, space, rng) for stratum in strata}
    by_trait = {stratum: tally.traits for stratum, tally in outcomes.items()}
    return msgspec.structs.replace(shown, outcomes=outcomes, by_trait=by_trait)


def _draw_tally(
    stratum: Stratum, design: Design, truth: Forecast, space: DesignSpace, rng: np.random.Generator
) -> Tally:
    cells = list(filter(space.allows, list_trait_cells(stratum, design.strata[stratum], space)))
    success = truth.model.predict([space.complete_cell(cell, design) for cell in cells], space).mean
    valid = dict(zip(cells, rng.binomial(PROBLEMS, success).tolist(), strict=True))
    failed = rng.multinomial(PROBLEMS * len(cells) - sum(valid.values()), rng.dirichlet([0.5] * len(space.failures)))
    traits = {
        space.knobs[place].name: _count_valid({cell: count for cell, count in valid.items() if cell.values[place]})
        for place in space.traits
    }
    whole = _count_valid(valid)
    failures = dict(zip(space.failures, failed.tolist(), strict=True))
    return Tally(whole.problems, whole.valid, failures, traits=traits)


def _count_valid(valid: Mapping[Cell, int]) -> Tally:
    return Tally(PROBLEMS * len(valid), sum(valid.values()))
