"""The token form of evidence and delta, for a small model whose vocabulary is words."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Knob, Stratum
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta, Design, Edit
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.evidence.evidence import CellGroups, Evidence
from lakewright.engineer.evidence.vocabulary import (
    CASE,
    DELTA,
    END,
    FORECAST,
    GUIDED,
    NOW,
    PAST,
    REFUSED,
    ROLLOUTS,
    SAMPLED,
    SUMMARY,
    TOP_BUCKET,
    UNDONE,
    UNKNOWN,
    DeltaGrammar,
    because_token,
    bucket_token,
    round_tokens,
    vocabulary_of,
)
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Drawn, Tally
from lakewright.engineer.windows import find_middle

HISTORY = 2
MAX_SUMMARY = 40


def evidence_tokens(evidence: Evidence, space: DesignSpace) -> list[str]:
    """The prompt: guideline marker, round, own summary, the last two rounds, then the current one, and `<delta>`.

    A stratum is its token, then its share and knobs in steps; a window is its middle. In tenths follow the valid
    rate, the rate of the first grade, each failure's rate, and for each trait the valid rate of the problems that have
    it. Of an earlier round only the valid rate is shown, and `<undone>` if it was rolled back. A rate of no problems is
    `<unknown>`; what a module left out has no token. Of the training the rollouts are shown, a cell being its stratum,
    0 or 10 for each trait, and in tenths informative groups, valid answers and mean reward; of the sampled problems the
    knobs, the acceptance and what the environment measures; of a case its stratum, failure and place. Of the forecast
    P(valid) of the cells that `DesignSpace.list_stated_cells` lists is shown in tenths, and then, if `weighed`, their
    worths in tenths of the largest. Numbers of problems and settings have no words.
    """
    words = vocabulary_of(space)
    tokens = [GUIDED] if evidence.guideline else []
    if evidence.round is not None and evidence.rounds is not None:
        tokens += round_tokens(evidence.round, evidence.rounds)
    if evidence.summary:
        known = frozenset(words.tokens)
        tokens += [SUMMARY, *(word for word in evidence.summary.split() if word in known)][:MAX_SUMMARY]
    for old in evidence.history[-HISTORY:]:
        tokens += [PAST, *[UNDONE] * old.rolled_back, *_encode_strata(old.design, old.outcomes, space, valid_only=True)]
    tokens += [NOW, *_encode_strata(evidence.design, evidence.outcomes, space, valid_only=False)]
    tokens += [token for cell in evidence.groups for token in _encode_rollouts(cell, space)]
    for stratum in space.sort_strata(evidence.statistics):
        tokens += _encode_sampled(stratum, evidence.statistics[stratum], space)
    for case in evidence.cases:
        failure, place = because_token(case.failure), bucket_token(max(case.place, 0), 1)
        tokens += [CASE, words.stratum_token(case.stratum), failure, place]
    if evidence.forecast:
        tokens += _encode_forecast({forecast.cell: forecast.p for forecast in evidence.forecast.grid}, space)
    if evidence.forecast and evidence.weighed:
        tokens += _encode_forecast(rate_worths(evidence.forecast, space), space)
    return [*tokens, *[REFUSED] * len(evidence.refusals), DELTA]


def delta_tokens(delta: Delta, space: DesignSpace) -> list[str]:
    """The answer: the delta in the order of `DeltaGrammar`.

    Raises InputError if the delta has no token form: a change that is not -2, -1, 1 or 2 steps, an edit that changes
    nothing, a reason without a token, a stratum without a token.
    """
    strata = space.sort_strata(delta.edits)
    return [*(token for stratum in strata for token in _edit_tokens(stratum, delta.edits[stratum], space)), END]


def read_tokens(tokens: Sequence[str], space: DesignSpace) -> Delta:
    """The delta that a complete answer means. Raises InputError on the first token that the grammar does not allow."""
    _check_grammar(tokens, space)
    words = vocabulary_of(space)
    edits: dict[Stratum, Edit] = {}
    changes: dict[str, float] = {}
    for token in tokens:
        if token in words.strata_by_token:
            stratum, changes = words.strata_by_token[token], {}
        elif token in words.edits:
            column, change = words.edits[token]
            changes[column] = change
        elif token in words.reasons:
            edits[stratum] = make_edit(space, words.reasons[token], changes)
    return Delta(edits)


def _encode_strata(
    design: Design, outcomes: Mapping[Stratum, Tally], space: DesignSpace, *, valid_only: bool
) -> list[str]:
    words, tokens = vocabulary_of(space), []
    for stratum in space.sort_strata(design.strata):
        row = design.strata[stratum]
        values = (_value_token(find_middle(row, column), column, space) for column in space.columns)
        tokens += [words.stratum_token(stratum), *values]
        if outcomes:
            rates = _encode_rates(outcomes.get(stratum), space)
            tokens += rates[:1] if valid_only else rates
    return tokens


def _value_token(value: float, column: Knob, space: DesignSpace) -> str:
    """A share in its steps; the value of a knob in its steps, or in tenths of its range if these are larger."""
    step = column.step if column is space.share else max(column.step, column.span / TOP_BUCKET)
    return bucket_token(value - column.low, step)


def _encode_rates(seen: Tally | None, space: DesignSpace) -> list[str]:
    traits = [space.knobs[place].name for place in space.traits]
    if seen is None or not seen.problems:
        return [UNKNOWN] * (1 + bool(space.grades) + len(space.failures) + len(traits))
    counts = [seen.valid, *(seen.grades.get(name, 0) for name in space.grades[:1])]
    counts += [seen.failures.get(name, 0) for name in space.failures]
    parts = [seen.traits.get(name) for name in traits]
    having = [bucket_token(part.valid_rate) if part and part.problems else UNKNOWN for part in parts]
    return [*(bucket_token(seen.rate(count)) for count in counts), *having]


def _encode_rollouts(found: CellGroups, space: DesignSpace) -> list[str]:
    seen, cell = found.groups, found.cell
    traits = (float(cell.values[place]) for place in space.traits)
    shares = (*traits, seen.informative_share, seen.success, max(0.0, seen.reward))
    return [ROLLOUTS, vocabulary_of(space).stratum_token(cell.stratum), *map(bucket_token, shares)]


def _encode_sampled(stratum: Stratum, seen: Drawn, space: DesignSpace) -> list[str]:
    knobs = [
        _value_token(seen.knobs[knob.name], knob, space) if knob.name in seen.knobs else UNKNOWN for knob in space.knobs
    ]
    accepted = UNKNOWN if seen.acceptance is None else bucket_token(seen.acceptance)
    measures = map(bucket_token, space.words.measures(stratum, seen))
    return [SAMPLED, vocabulary_of(space).stratum_token(stratum), *knobs, accepted, *measures]


def rate_worths(forecast: Forecast, space: DesignSpace) -> dict[Cell, float]:
    """The worth of each cell that tokens tell, as a share of the largest of them; nothing if it is not known.

    A forecast without held-out problems, or of a regression, knows no worth.
    """
    known = {found.cell: found.worth for found in forecast.grid if found.worth is not msgspec.UNSET}
    strata = {cell.stratum for cell in known}
    # Relative to the largest, because tokens have tenths: only the order and rough size of worths fit into them.
    told = (cell for stratum in strata for cell in space.list_stated_cells(stratum, known))
    worth = {cell: known[cell] for cell in told if cell in known}
    most = max(worth.values(), default=0.0)
    return {cell: one / most for cell, one in worth.items()} if most > 0 else {}


def _encode_forecast(figures: Mapping[Cell, float], space: DesignSpace) -> list[str]:
    tokens = []
    for stratum in space.sort_strata({cell.stratum for cell in figures}):
        cells = space.list_stated_cells(stratum, figures)
        told = (bucket_token(figures[cell]) if cell in figures else UNKNOWN for cell in cells)
        tokens += [FORECAST, vocabulary_of(space).stratum_token(stratum), *told]
    return tokens


def _edit_tokens(stratum: Stratum, edit: Edit, space: DesignSpace) -> list[str]:
    words = vocabulary_of(space)
    token = words.stratum_token(stratum, f"edits.{stratum}")
    reason = next((token for token, sentence in words.reasons.items() if sentence == edit.reason), None)
    if reason is None:
        raise InputError(f"edits.{stratum}.reason: {edit.reason!r:.60} has no token; choose one of the vocabulary's")
    named = [name for name in words.steps if edit.changes.get(name)]
    changes = [_change_token(stratum, name, edit.changes[name], space) for name in named]
    if not changes:
        raise InputError(f"edits.{stratum}: changes nothing; leave the {space.words.stratum} out")
    return [token, *changes, reason]


def _change_token(stratum: Stratum, column: str, change: float, space: DesignSpace) -> str:
    words = vocabulary_of(space)
    for token, (name, step) in words.edits.items():
        if name == column and math.isclose(change, step, rel_tol=1e-6):
            return token
    step = words.steps[column]
    raise InputError(f"edits.{stratum}.{column}: {change:g} has no token; choose -2, -1, 1 or 2 steps of {step:g}")


def _check_grammar(tokens: Sequence[str], space: DesignSpace) -> None:
    # The same grammar that masks a model's sampling, so what can be sampled can be read, and nothing else can.
    grammar = DeltaGrammar(space, space.spoken)
    for index, token in enumerate(tokens):
        if token not in grammar.allowed(tokens[:index]):
            raise InputError(f"answer: token {index} is {token!r:.40}; choose from the delta's grammar")
    if not tokens or tokens[-1] != END:
        raise InputError(f"answer: ends after {len(tokens)} tokens without {END}; finish it")
