"""The text form of evidence, for an engineer that reads language."""

import itertools
from collections.abc import Iterator, Mapping

import msgspec

from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.delta import make_printable, summarize_delta
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.evidence.evidence import CellGroups, Evidence, Round
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, subtract_tally
from lakewright.engineer.windows import write_ends

CHARACTERS_PER_TOKEN = 3  # fewer than English needs, as tables of numbers need more tokens; see `token_estimate`


def evidence_text(evidence: Evidence, space: DesignSpace) -> str:
    """A view of the evidence as text, section by section; what it leaves out has no section.

    Rates are shares of problems. Words that a model wrote are on one line, in quotes, without control characters.
    """
    return "\n".join(line for section in _write_sections(evidence, space) for line in (*section, "")).rstrip() + "\n"


def token_estimate(text: str) -> int:
    """About how many tokens a text takes, without a tokenizer: a token for every three bytes of UTF-8."""
    return -(-len(text.encode()) // CHARACTERS_PER_TOKEN)


def _write_sections(evidence: Evidence, space: DesignSpace) -> Iterator[list[str]]:
    words = space.words
    if evidence.round is not None:
        count = "" if evidence.rounds is None else f" of {evidence.rounds}"
        trained = "" if evidence.problems is None else f" It trained on {evidence.problems} {words.problems}."
        yield [f"This is round {evidence.round + 1}{count}.{trained}"]
    if evidence.guideline:
        yield ["## Guideline", evidence.guideline]
    if evidence.history:
        past = (_write_past(number, old, evidence, space) for number, old in enumerate(evidence.history))
        yield ["## Earlier rounds shown, oldest first", *itertools.chain(*past)]
    yield [f"## Current {words.design}", *_write_design(evidence.design, evidence.given, space)]
    if evidence.outcomes:
        title = f"## Outcomes on held-out {words.problems} after training on it"
        yield [title, *_write_outcomes(evidence.outcomes, evidence.by_trait, space)]
    if evidence.summary:
        yield ["## What you told yourself in the round before", _quote_text(evidence.summary)]
    if evidence.training:
        yield ["## Training", *(f"{name}: {_write_number(value)}" for name, value in evidence.training.items())]
    if evidence.groups:
        yield ["## Training rollouts", *(_write_rollouts(cell, space) for cell in evidence.groups)]
    if evidence.statistics:
        strata = space.sort_strata(evidence.statistics)
        yield ["## What was really sampled", *(words.drawn(one, evidence.statistics[one]) for one in strata)]
    if evidence.forecast:
        title = f"## What a model of all rollouts expects, of {words.problems} drawn or not"
        if any(forecast.worth is not msgspec.UNSET for forecast in evidence.forecast.grid):
            title += "; worth: what training on one gains"
        yield [title, *_write_forecast(evidence.forecast, space)]
    if evidence.cases:
        yield [f"## {words.answers.capitalize()} that failed", *itertools.chain(*map(words.case, evidence.cases))]
    if evidence.refusals:
        refused = (f"- {_quote_text(refusal)}" for refusal in evidence.refusals)
        yield ["## Your earlier answers to this were refused", *refused]


def _write_past(number: int, old: Round, evidence: Evidence, space: DesignSpace) -> Iterator[str]:
    yield f"Round shown {number + 1}:"
    yield from (f"  {line}" for line in _write_design(old.design, evidence.given, space))
    yield from (f"  {line}" for line in _write_outcomes(old.outcomes, {}, space))
    if old.delta is not None:
        yield f"  then proposed: {_quote_text(summarize_delta(old.delta, space))}"
    if old.note:
        yield f"  which was {_quote_text(old.note)}"
    if old.rolled_back:
        yield "  The round was taken back, as validation fell."


def _write_design(design: Design, given: Mapping[str, tuple[int | float, ...]], space: DesignSpace) -> Iterator[str]:
    for stratum in space.sort_strata(design.strata):
        row = design.strata[stratum]
        values = ", ".join(f"{column.name} {write_ends(row, column)}" for column in space.columns)
        yield f"{space.words.label_in_design(stratum, design, given)}: {values}"


def _write_outcomes(
    outcomes: Mapping[Stratum, Tally], by_trait: Mapping[Stratum, Mapping[str, Tally]], space: DesignSpace
) -> Iterator[str]:
    for stratum in space.sort_strata(outcomes):
        yield f"{space.words.label(stratum)}: {_write_rates(outcomes[stratum], space)}"
        for place in space.traits:
            knob = space.knobs[place]
            if (part := by_trait.get(stratum, {}).get(knob.name)) is not None:
                yield f"  {space.words.trait_outcome(knob, True)}: {_write_rates(part, space)}"
                rest = subtract_tally(outcomes[stratum], part)
                yield f"  {space.words.trait_outcome(knob, False)}: {_write_rates(rest, space)}"


def _write_rates(seen: Tally, space: DesignSpace) -> str:
    words = space.words
    grades = words.grades(seen, space.grades)
    rates = {name: seen.rate(seen.failures.get(name, 0)) for name in space.failures}
    failures = ", ".join(f"{words.failure(name)} {rate:.2f}" for name, rate in rates.items())
    valid = f"{seen.problems} {words.problems}, valid {seen.valid_rate:.2f}"
    return f"{valid}{f', {grades}' if grades else ''}; failed by {failures}"


def _write_rollouts(found: CellGroups, space: DesignSpace) -> str:
    seen = found.groups
    return (
        f"{_write_cell(found.cell, space)}: {seen.groups} {space.words.problems}, "
        f"valid {seen.success:.2f}, groups with a signal {seen.informative_share:.2f}, "
        f"mean reward {seen.reward:.2f}, mean p(1-p) {seen.learnability:.3f}"
    )


def _write_cell(cell: Cell, space: DesignSpace) -> str:
    parts = [
        space.words.trait(knob, bool(value)) if knob.trait else f"{knob.name} {_write_number(value)}"
        for knob, value in zip(space.knobs, cell.values, strict=True)
    ]
    return ", ".join([space.words.label(cell.stratum), *parts])


def _write_forecast(forecast: Forecast, space: DesignSpace) -> Iterator[str]:
    """A line for each stratum and its traits: P(valid) at values of the levels."""
    lines: dict[tuple, list[str]] = {}
    for found in forecast.grid:
        cell = found.cell
        levels = ", ".join(f"{space.knobs[place].name} {_write_number(cell.values[place])}" for place in space.levels)
        kind = cell.stratum, tuple(bool(cell.values[place]) for place in space.traits)
        worth = "" if found.worth is msgspec.UNSET else f", worth {found.worth:.2f}"
        rate = f"{found.p:.2f} +- {found.deviation:.2f}{worth}" + (f" at {levels}" if levels else "")
        lines.setdefault(kind, []).append(rate)
    for (stratum, has), rates in lines.items():
        traits = [space.words.trait(space.knobs[place], one) for place, one in zip(space.traits, has, strict=True)]
        yield f"{', '.join([space.words.label(stratum), *traits])}: valid {', '.join(rates)}"


def _write_number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _quote_text(words: str) -> str:
    return f'"{make_printable(words)}"'
