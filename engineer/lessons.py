"""Lessons for a token model as the engineer: settings, synthetic evidence with a rule's answers, and an exam."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import GroupStatistics
from lakewright.core_jax.support import Share, one_of
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Delta, Design, DesignRow
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.difficulty.model import DifficultySettings, Objective
from lakewright.engineer.evidence.evidence import CellGroups, Evidence, Round, show_evidence
from lakewright.engineer.evidence.modules import PRESETS, EvidenceSettings, Modules
from lakewright.engineer.evidence.token_form import delta_tokens, evidence_tokens, read_tokens
from lakewright.engineer.evidence.vocabulary import DeltaGrammar
from lakewright.engineer.lesson_forecasts import draw_abilities_forecast, draw_forecast
from lakewright.engineer.plugins import Power
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.engineer.teachers.difficulty import ForecastTeacher, WorthTeacher
from lakewright.engineer.teachers.rules import ProportionalTeacher, RulesTeacher, RuleTeacher
from lakewright.engineer.teachers.self import Decode
from lakewright.engineer.windows import find_middle

PROBLEMS = 50
CASES = 3
MOST_ROUNDS = 16  # drawn for an example; only the last two are shown
LEAST_SHARE = 0.01  # of a stratum late in a run
SELDOM = 0.1  # the share of examples with a refused answer, and of earlier rounds that were rolled back


@dataclasses.dataclass(frozen=True)
class Lessons:
    """The rule whose answers are taught, what the evidence of the examples shows, and how its forecasts are fitted.

    late: the share of examples whose evidence is like a late stage's.
    """

    rule: RuleTeacher
    modules: Sequence[Modules]
    difficulty: DifficultySettings
    late: float = 0.0

    def includes(self, shown: EvidenceSettings) -> bool:
        """Return True if such evidence is among them; shuffled evidence looks like any other."""
        return shown.chosen().in_place() in [modules.in_place() for modules in self.modules]


class LessonSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the lessons that the warm-up gives a token model as the engineer."""

    rule: Literal["proportional", "rules", "forecast", "gain"] = "proportional"
    """The teacher whose answers are taught, with this run's objective."""
    power: Power = 1.0
    """The power of that teacher: proportional, forecast or gain."""
    presets: tuple[Annotated[str, one_of(PRESETS)], ...] = ()
    """The evidence presets that it learns to read; by default only this run's evidence, which it learns sooner."""
    recorded: str = ""
    """A folder of runs, such as a study: half of the lessons are evidence recorded by their stages, the rest is drawn
    at random. Without a folder, all lessons are drawn at random."""
    late: Share = 0.0
    """The share of drawn lessons whose evidence is like a late stage's: designs near the edges of the space that change
    little from round to round, and strata with nearly equal success."""

    def __post_init__(self) -> None:
        self._list_modules(EvidenceSettings())
        if self.rule == "rules" and self.power != 1:
            raise InputError(f"lessons: power is {self.power:g}, but the rule `rules` has no power; remove it")

    def build_lessons(
        self, objective: Objective, shown: EvidenceSettings, difficulty: DifficultySettings | None = None
    ) -> Lessons:
        """The lessons of a run whose problems are valued by `objective` and whose engineer is shown `shown`.

        difficulty: how the run's forecasts are fitted.
        """
        fitted = msgspec.structs.replace(difficulty or DifficultySettings(), objective=objective)
        rules: dict[str, Callable[[], RuleTeacher]] = {
            "rules": lambda: RulesTeacher.for_objective(objective),
            "proportional": lambda: ProportionalTeacher(objective, self.power),
            "forecast": lambda: ForecastTeacher(self.power),
            "gain": lambda: WorthTeacher(self.power),
        }
        return Lessons(rules[self.rule](), self._list_modules(shown), fitted, self.late)

    def check(self, shown: EvidenceSettings) -> None:
        """Raises InputError if the evidence of the examples shows something, but not the inputs of the rule."""
        shown_modules = self._list_modules(shown)
        outcomes = any(modules.failures for modules in shown_modules)
        forecast = any(modules.difficulty for modules in shown_modules)
        if self.rule == "forecast" and not forecast:
            raise InputError(
                "lessons: rule is forecast, but the evidence shows no forecast; give evidence.preset=forecast, or have "
                "it among lessons.presets"
            )
        if self.rule == "gain" and not any(modules.difficulty and modules.worth for modules in shown_modules):
            raise InputError(
                "lessons: rule is gain, but the evidence shows no worth; give evidence.preset=worth, or have it among "
                "lessons.presets"
            )
        if self.rule not in ("forecast", "gain") and forecast and not outcomes:
            raise InputError(f"lessons: rule is {self.rule}, but it is shown no outcomes; give lessons.rule=forecast")

    def _list_modules(self, shown: EvidenceSettings) -> list[Modules]:
        return [EvidenceSettings(name).chosen() for name in self.presets] or [shown.chosen()]


def synthetic_examples(
    count: int,
    design: Design,
    space: DesignSpace,
    rounds: int,
    rng: np.random.Generator,
    lessons: Lessons,
    recorded: Sequence[Evidence] = (),
) -> list[tuple[list[str], list[str]]]:
    """`count` pairs (prompt tokens, answer tokens) over the strata of `design`, at a random round of `rounds`.

    Args:
        count: how many examples.
        design: gives the strata.
        space: the design space.
        rounds: rounds of a run, at least 1.
        rng: a generator, consumed.
        lessons: the rule and the evidence.
        recorded: evidence of runs over the same strata, of which every other example is made.

    Each round's design is drawn from the step grid and its outcomes at random; which modules show it is drawn from
    the modules of `lessons`, and sometimes an earlier answer was refused. The answer is their rule's, applied to
    what is shown. Raises InputError if `rounds` is less than 1.
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; choose at least 1")
    examples = []
    for number in range(count):
        modules = lessons.modules[int(rng.integers(len(lessons.modules)))]
        # Every other example, not a random half: the mixture is the same for any count of examples.
        if recorded and number % 2:
            evidence = recorded[int(rng.integers(len(recorded)))]
        else:
            evidence = _draw_evidence(design, space, rounds, rng, modules, lessons)
        view = show_evidence(evidence, modules.in_place(), make_key(0))  # shuffled evidence looks like any other
        delta = lessons.rule.make_delta(view, view.design, space)
        examples.append((evidence_tokens(view, space), delta_tokens(delta, space)))
    return examples


def _draw_evidence(
    design: Design, space: DesignSpace, rounds: int, rng: np.random.Generator, modules: Modules, lessons: Lessons
) -> Evidence:
    """Evidence of a random round of a run, to be shown by `modules`."""
    place = int(rng.integers(0, rounds))
    # No number is drawn if no lesson is late, so that lessons without this setting are the same as before it existed.
    late = bool(lessons.late) and rng.random() < lessons.late
    draw = _draw_late_rounds if late else _draw_rounds
    *past, now = draw(design, space, rng, min(place + 1, MOST_ROUNDS))
    rows = now.design.strata
    return Evidence(
        design=now.design,
        outcomes=now.outcomes,
        guideline=space.words.guide(),
        history=past,
        round=place,
        rounds=rounds,
        summary=_summarize_round(past[-1], lessons.rule, space) if past else "",
        groups=[
            _draw_groups(cell, rng) for stratum, row in rows.items() for cell in list_trait_cells(stratum, row, space)
        ],
        statistics={
            stratum: Drawn(
                problems=PROBLEMS,
                knobs={knob.name: find_middle(row, knob) for knob in space.knobs},
                measures=space.words.imagine_measures(rng),
                acceptance=float(rng.random()),
            )
            for stratum, row in rows.items()
        },
        cases=[
            Case(list(rows)[at], "", str(rng.choice(space.failures)), place=int(rng.integers(0, 12)))
            for at in rng.choice(len(rows), CASES).tolist()
        ],
        refusals=["refused"] * int(rng.integers(1, 3)) if _draw_seldom(rng) else [],
        forecast=_choose_forecast(now.design, space, rng, lessons) if modules.difficulty else None,
    )


def tells_worth(evidence: Evidence) -> bool:
    """Return True if the rule gain can follow the evidence: it has a forecast of a model that knows worths."""
    return evidence.forecast is not None and any(found.worth is not msgspec.UNSET for found in evidence.forecast.grid)


def _draw_seldom(rng: np.random.Generator) -> bool:
    return bool(rng.random() < SELDOM)


def _choose_forecast(design: Design, space: DesignSpace, rng: np.random.Generator, lessons: Lessons) -> Forecast:
    """A forecast that knows what the rule follows."""
    if isinstance(lessons.rule, WorthTeacher):
        return draw_abilities_forecast(design, space, rng, lessons.difficulty)
    return draw_forecast(design, space, rng, lessons.difficulty)


def _summarize_round(past: Round, rule: RuleTeacher, space: DesignSpace) -> str:
    """A round's own summary: its answer, in tokens."""
    evidence = Evidence(design=past.design, outcomes=past.outcomes, round=None, rounds=None)
    return " ".join(delta_tokens(rule.make_delta(evidence, past.design, space), space))


def list_trait_cells(stratum: Stratum, row: DesignRow, space: DesignSpace) -> list[Cell]:
    """The cells of a stratum with and without each trait. row: has the levels. space: the design space."""
    usual = space.list_usual(row)
    ways = [(False, True) if knob.trait else (value,) for knob, value in zip(space.knobs, usual, strict=True)]
    return [Cell(stratum, values) for values in itertools.product(*ways)]


def _draw_groups(cell: Cell, rng: np.random.Generator) -> CellGroups:
    valid, informative = (int(rng.integers(0, PROBLEMS + 1)) for _ in range(2))
    seen = GroupStatistics(PROBLEMS, informative, informative, PROBLEMS, valid, float(rng.random()), 0.0, 0.0)
    return CellGroups(cell, seen)


def _draw_rounds(design: Design, space: DesignSpace, rng: np.random.Generator, count: int) -> list[Round]:
    return [_draw_round(design, space, rng) for _ in range(count)]


def _draw_late_rounds(design: Design, space: DesignSpace, rng: np.random.Generator, count: int) -> list[Round]:
    """Rounds near the optimum: knobs near an edge, strata with hardly a share, rates nearly alike, small changes."""
    strata, knobs = space.sort_strata(design.strata), space.knobs
    # In a run the design drifts to the edges of the space and then hardly changes. Beta(0.6, 0.6) is highest at both
    # ends, and all strata share a place, give or take a tenth.
    places = rng.beta(0.6, 0.6, size=len(knobs))[:, None] + 0.1 * rng.normal(size=(len(knobs), len(strata)))
    weights = rng.dirichlet([0.7] * len(strata))
    rates = rng.uniform(0.3, 1) + 0.1 * rng.normal(size=len(strata))
    easier = rng.uniform(0.6, 1.1, size=(len(space.traits), len(strata)))  # of problems with a trait, than others
    least = min(LEAST_SHARE, 0.5 / len(strata))
    rounds = []
    for _ in range(count):
        places = np.clip(places + 0.05 * rng.normal(size=places.shape), 0, 1)
        weights = 0.8 * weights + 0.2 * rng.dirichlet([0.7] * len(strata))
        rates = np.clip(rates + 0.03 * rng.normal(size=len(strata)), 0, 1)
        rows = _place_rows(strata, places, least + (1 - least * len(strata)) * weights, space)
        of_traits = [np.clip(rates * part, 0, 1) for part in easier]
        rounds.append(_make_round(design, rows, rates, of_traits, space, rng))
    return rounds


def _place_rows(
    strata: Sequence[Stratum], places: np.ndarray, shares: np.ndarray, space: DesignSpace
) -> dict[Stratum, DesignRow]:
    """Rows with these shares and with knobs at these places, 0 to 1 within their limits, on the step grid."""
    rows: dict[Stratum, DesignRow] = {}
    for number, stratum in enumerate(strata):
        rows[stratum] = {space.share.name: float(shares[number])}
        for knob, along in zip(space.knobs, places[:, number].tolist(), strict=True):
            low, high = space.reachable(stratum, knob)
            stepped = low + round(along * (high - low) / knob.step) * knob.step
            rows[stratum][knob.name] = knob.round_value(min(high, stepped))
    return rows


def _draw_round(design: Design, space: DesignSpace, rng: np.random.Generator) -> Round:
    strata = space.sort_strata(design.strata)
    rows = _draw_rows(strata, space, rng)
    # Valid rates are close together or far apart, and mostly lower on the problems that have a trait.
    rates = np.clip(rng.uniform() + rng.uniform(0, 0.5) * rng.normal(size=len(strata)), 0, 1)
    of_traits = [np.clip(rates * rng.uniform(0, 1.2, len(strata)), 0, 1) for _ in space.traits]
    return _make_round(design, rows, rates, of_traits, space, rng)


def _make_round(
    design: Design,
    rows: dict[Stratum, DesignRow],
    rates: np.ndarray,
    of_traits: Sequence[np.ndarray],
    space: DesignSpace,
    rng: np.random.Generator,
) -> Round:
    """A round with outcomes at these rates of valid answers, by stratum in the order of the rows."""
    outcomes = {
        stratum: _draw_tally(rates[place], [part[place] for part in of_traits], space, rng)
        for place, stratum in enumerate(rows)
    }
    return Round(design.replace(rows), outcomes, rolled_back=_draw_seldom(rng))


def _draw_rows(strata: Sequence[Stratum], space: DesignSpace, rng: np.random.Generator) -> dict[Stratum, DesignRow]:
    """Values on the step grid, inside the limits of each stratum."""
    shares = _draw_shares(len(strata), space.share.step, rng)
    rows: dict[Stratum, DesignRow] = {one: {space.share.name: share} for one, share in zip(strata, shares, strict=True)}
    for knob in space.knobs:
        top = 1.0 if knob.trait else knob.high
        multiples = rng.integers(0, round((top - knob.low) / knob.step) + 1, len(strata)).tolist()
        for stratum, multiple in zip(strata, multiples, strict=True):
            value: int | float = knob.low + float(multiple) * knob.step
            if not knob.trait:
                low, high = space.limits(stratum, knob)
                value = min(high, max(low, knob.round_value(value) if knob.whole else value))
            rows[stratum][knob.name] = value
    return rows


def _draw_shares(count: int, step: float, rng: np.random.Generator) -> list[float]:
    """At least one step of data each, the rest of the whole at random: alike, or nearly all for one."""
    # One step for each stratum first: an answer in steps can only take data from a stratum that has some.
    spare = max(0, round(1 / step) - count)
    return [float(share) for share in (1 + rng.multinomial(spare, rng.dirichlet([1.0] * count))) * step]


def _draw_tally(rate: float, rates_of_traits: Sequence[float], space: DesignSpace, rng: np.random.Generator) -> Tally:
    """Half the problems have a trait, as in a held-out set; sometimes no problem does."""
    traits: dict[str, Tally] = {}
    valid = other = 0
    for number, place in enumerate(space.traits):
        having = 0 if _draw_seldom(rng) else PROBLEMS // 2
        solved = int(rng.binomial(having, rates_of_traits[number]))
        traits[space.knobs[place].name] = Tally(having, solved)
        if not number:
            valid, other = solved, having
    valid += int(rng.binomial(PROBLEMS - other, rate))
    # Dirichlet(0.5) is uneven: mostly one failure dominates, as in a run, and a rule that names the worst has a clear
    # answer.
    failures = rng.multinomial(PROBLEMS - valid, rng.dirichlet([0.5] * len(space.failures)))
    return Tally(
        problems=PROBLEMS,
        valid=valid,
        grades={name: int(rng.integers(0, valid + 1)) for name in space.grades},
        failures=dict(zip(space.failures, failures.tolist(), strict=True)),
        traits=traits,
    )


class Examination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The share of changes, one for each stratum and column, that are exactly the rule's, over some questions.

    chance: the share that fit the rule's answer to the next question; an engineer that does not read has no more.
    """

    questions: int
    agreement: Share
    chance: Share

    def summary(self) -> str:
        """The examination in a sentence."""
        shares = f"{100 * self.agreement:.0f} %", f"chance {100 * self.chance:.0f} %"
        return (
            f"engineer exam: {shares[0]} of the edits in {self.questions} answers match the taught rule ({shares[1]})"
        )


def examine_engineer(
    examples: Sequence[tuple[list[str], list[str]]], design: Design, space: DesignSpace, decode: Decode
) -> Examination:
    """Asks for an answer to the prompt of each example, under the grammar of deltas over the strata of `design`.

    Args:
        examples: prompts and right answers, in tokens.
        design, space: what the answers change.
        decode: the model.
    """
    allowed = DeltaGrammar(space, design.strata).allowed
    given = [_count_strides(read_tokens(decode(prompt, allowed), space), design, space) for prompt, _ in examples]
    right = [_count_strides(read_tokens(taught, space), design, space) for _, taught in examples]
    # The same answers against the next question's: whatever an engineer scores by habit, without reading, it scores
    # here too.
    return Examination(len(examples), _share_same(given, right), _share_same(given, [*right[1:], right[0]]))


def measure_agreement(given: Delta, right: Delta, design: Design, space: DesignSpace) -> float:
    """The share of changes of `design`, one for each stratum and column, that are the same steps in both.

    Args:
        given, right: the deltas.
        design: gives the strata.
        space: the design space.
    """
    return _share_same([_count_strides(given, design, space)], [_count_strides(right, design, space)])


def _count_strides(delta: Delta, design: Design, space: DesignSpace) -> list[int]:
    edits = delta.edits
    return [
        round(edits[stratum].changes.get(column.name, 0.0) / column.step) if stratum in edits else 0
        for stratum in design.strata
        for column in space.columns
    ]


def _share_same(given: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> float:
    pairs = [pair for mine, yours in zip(given, right, strict=True) for pair in zip(mine, yours, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)
