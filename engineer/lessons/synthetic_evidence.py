"""Evidence made up by chance and answered by rule, to teach a tiny model the form of prompt and answer."""

from collections.abc import Sequence

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import MAX_HOLE_RATIO, EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import GroupStatistics, Outcomes
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.difficulty import DifficultyModel, DifficultySettings, Forecast, Objective, features, grid_of
from lakewright.engineer.evidence import (
    STEPS,
    Case,
    CellGroups,
    Evidence,
    Round,
    SizeStatistics,
    delta_tokens,
    evidence_tokens,
    shown,
)
from lakewright.engineer.lessons.settings import Lessons, Rule

BOARDS = 50
CASES = 3
MOST_ROUNDS = 16  # made up for an example; only the last two are shown
SELDOM = 0.1  # the share of examples with a refused answer, and of earlier rounds that were taken back


def synthetic_examples(
    count: int, config: EnvConfig, rounds: int, rng: np.random.Generator, lessons: Lessons
) -> list[tuple[list[str], list[str]]]:
    """`count` pairs (prompt tokens, answer tokens) over the sizes of `config`, at a random round of `rounds`.

    Each round's config is drawn from the step grid and its outcomes at random; which modules show it is drawn from
    the kinds of `lessons`, and sometimes an earlier answer was refused. The answer is that of their rule, applied to
    what is shown. The generator `rng` is consumed. Raises InputError where `rounds` is less than 1.
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; choose at least 1")
    return [_example(config, rounds, rng, lessons) for _ in range(count)]


def _example(config: EnvConfig, rounds: int, rng: np.random.Generator, lessons: Lessons) -> tuple[list[str], list[str]]:
    modules = lessons.kinds[int(rng.integers(len(lessons.kinds)))]
    place = int(rng.integers(0, rounds))
    *past, now = [_round(config, rng) for _ in range(min(place + 1, MOST_ROUNDS))]
    evidence = Evidence(
        config=now.config,
        outcomes=now.outcomes,
        history=past,
        round=place,
        rounds=rounds,
        summary=_summary(past[-1], lessons.rule) if past else "",
        groups=[
            _groups(size, cell, forced, rng) for size, cell in now.config.sizes.items() for forced in (False, True)
        ],
        statistics={size: _sampled(cell, rng) for size, cell in now.config.sizes.items()},
        cases=[_case(int(size), rng) for size in rng.choice(list(now.config.sizes), CASES)],
        refusals=["refused"] * int(rng.integers(1, 3)) if _seldom(rng) else [],
    )
    if modules.difficulty:
        evidence = msgspec.structs.replace(evidence, forecast=_forecast(now.config, rng, lessons.difficulty))
    # Shuffled evidence looks like any other.
    view = shown(evidence, msgspec.structs.replace(modules, shuffled=False), jax.random.key(0))
    return evidence_tokens(view), delta_tokens(lessons.rule.delta(view, now.config))


def _seldom(rng: np.random.Generator) -> bool:
    return bool(rng.random() < SELDOM)


def _forecast(config: EnvConfig, rng: np.random.Generator, how: DifficultySettings) -> Forecast:
    """Of a model whose weights are drawn: from their prior, or nearer to 0 where it sees each size by itself, as nearly
    all P(valid) would be 0 or 1 otherwise."""
    weights = rng.normal(size=features([], [], how.by_size).shape[1:])
    if how.by_size:
        weights = weights * rng.uniform(0.1, 0.6)
    objective: Objective = "regret" if how.objective == "regret" else "learnability"
    covariance = (0.1 * np.eye(len(weights))).tolist()
    model = DifficultyModel(weights.tolist(), covariance, BOARDS, 1.0, objective, how.by_size, how.reach)
    return Forecast(model, grid_of(config, model), [], 0.5, 0.5)


def _sampled(cell: SizeConfig, rng: np.random.Generator) -> SizeStatistics:
    makespan = float(rng.uniform(1, 12))
    return SizeStatistics(BOARDS, cell.hole_ratio, cell.wait_ratio, makespan, 2 * makespan, float(rng.random()))


def _case(size: int, rng: np.random.Generator) -> Case:
    failure = str(rng.choice(FAILURE_NAMES[1:]))
    return Case(size, [], [], [], [], failure, 0, int(rng.integers(0, 12)))


def _summary(past: Round, rule: Rule) -> str:
    """A round's own summary: its answer, in words."""
    evidence = Evidence(config=past.config, outcomes=past.outcomes, round=None, rounds=None)
    return " ".join(delta_tokens(rule.delta(evidence, past.config)))


def _groups(size: int, cell: SizeConfig, forced: bool, rng: np.random.Generator) -> CellGroups:
    valid, informative = (int(rng.integers(0, BOARDS + 1)) for _ in range(2))
    seen = GroupStatistics(BOARDS, informative, informative, BOARDS, valid, float(rng.random()), 0.0, 0.0)
    return CellGroups(size, cell.hole_ratio, forced, seen)


def _round(config: EnvConfig, rng: np.random.Generator) -> Round:
    sizes = sorted(config.sizes)
    drawn = dict(zip(sizes, _cells(len(sizes), rng), strict=True))
    rates = zip(sizes, *_rates(len(sizes), rng), strict=True)
    outcomes = {size: _outcomes(rate, forced, rng) for size, rate, forced in rates}
    return Round(config.replace(drawn), outcomes, undone=_seldom(rng))


def _rates(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Valid rates of sizes, close together or far apart; and on the boards that force a wait, mostly lower."""
    rates = np.clip(rng.uniform() + rng.uniform(0, 0.5) * rng.normal(size=count), 0, 1)
    return rates, np.clip(rates * rng.uniform(0, 1.2, count), 0, 1)


def _cells(count: int, rng: np.random.Generator) -> Sequence[SizeConfig]:
    data = _shares(count, rng)
    hole = _multiples(STEPS["hole_ratio"], MAX_HOLE_RATIO, count, rng)
    wait = _multiples(STEPS["wait_ratio"], 1.0, count, rng)
    return [SizeConfig(*ratios) for ratios in zip(data, hole, wait, strict=True)]


def _shares(count: int, rng: np.random.Generator) -> list[float]:
    """At least one step of data each, the rest of the whole at random: alike, or nearly all for one."""
    step = STEPS["data_ratio"]
    spare = round(1 / step) - count
    return [float(share) for share in (1 + rng.multinomial(spare, rng.dirichlet([1.0] * count))) * step]


def _multiples(step: float, top: float, count: int, rng: np.random.Generator) -> list[float]:
    return [float(multiple) * step for multiple in rng.integers(0, round(top / step) + 1, count)]


def _outcomes(rate: float, forced_rate: float, rng: np.random.Generator) -> Outcomes:
    """Half the boards force a wait, as in a held-out set; seldom none does."""
    wait_boards = 0 if _seldom(rng) else BOARDS // 2
    wait_valid = int(rng.binomial(wait_boards, forced_rate))
    valid = wait_valid + int(rng.binomial(BOARDS - wait_boards, rate))
    kinds = FAILURE_NAMES[1:]
    failures = rng.multinomial(BOARDS - valid, rng.dirichlet([0.5] * len(kinds)))
    return Outcomes(
        boards=BOARDS,
        valid=valid,
        optimal_makespan=int(rng.integers(0, valid + 1)),
        optimal_sum_of_costs=int(rng.integers(0, valid + 1)),
        failures=dict(zip(kinds, failures.tolist(), strict=True)),
        wait_boards=wait_boards,
        wait_valid=wait_valid,
    )
