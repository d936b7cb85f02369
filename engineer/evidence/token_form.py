"""The token form of evidence and delta, for a tiny model whose vocabulary is words."""

import math
from collections.abc import Sequence

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.curriculum_cells import Cell
from lakewright.engineer.delta import ConfigDelta, SizeEdit
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence.evidence import CellGroups, Evidence, SizeStatistics
from lakewright.engineer.evidence.grammar import DeltaGrammar
from lakewright.engineer.evidence.vocabulary import (
    CASE,
    DELTA,
    EDITS,
    END,
    ENGINEER_TOKENS,
    FORECAST,
    FORECAST_HOLES,
    GUIDED,
    NOW,
    PAST,
    REASONS,
    REFUSED,
    ROLLOUTS,
    SAMPLED,
    SIZES,
    STEPS,
    SUMMARY,
    UNDONE,
    UNKNOWN,
    bucket_token,
    round_tokens,
    size_token,
)

__all__ = ["ENGINEER_TOKENS", "DeltaGrammar", "delta_tokens", "evidence_tokens", "tokens_delta"]

HISTORY = 2
RATES = 3 + len(FAILURE_NAMES[1:])
MAX_SUMMARY = 40


def evidence_tokens(evidence: Evidence) -> list[str]:
    """The prompt: guideline marker, round, own summary, the last two rounds, then the current one, and `<delta>`.

    A size is its token; data, hole and wait ratio in steps of 0.05, 0.05 and 0.1; then in tenths the valid rate, the
    rate optimal by makespan, each failure's rate, and the valid rate of boards that force a wait. Of an earlier round
    only the valid rate is shown, and `<undone>` where it was taken back. A rate of no boards is `<unknown>`; what a
    module left out has no token. Of the training the rollouts are shown, a cell being its size, 0 or 10 for a forced
    wait, and in tenths informative groups, valid plans and mean reward; of what was sampled, its hole and wait ratio,
    its acceptance and its makespan in tenths of twice the side; of a case, its size, failure and step; of the forecast
    P(valid) in tenths of each size at hole ratios 0.1 and 0.3, each without and with a forced wait. Numbers of boards
    and settings have no words.
    """
    tokens = [GUIDED] if evidence.guideline else []
    if evidence.round is not None and evidence.rounds is not None:
        tokens += round_tokens(evidence.round, evidence.rounds)
    if evidence.summary:
        tokens += [SUMMARY, *(word for word in evidence.summary.split() if word in _WORDS)][:MAX_SUMMARY]
    for old in evidence.history[-HISTORY:]:
        tokens += [PAST, *[UNDONE] * old.undone, *_sizes(old.config, old.outcomes, rates=1)]
    tokens += [NOW, *_sizes(evidence.config, evidence.outcomes, rates=RATES)]
    tokens += [token for cell in evidence.groups for token in _rollouts(cell)]
    tokens += [token for size, sampled in sorted(evidence.statistics.items()) for token in _sampled(size, sampled)]
    for case in evidence.cases:
        tokens += [CASE, size_token(case.size), f"<because_{case.failure}>", bucket_token(max(case.step, 0), 1)]
    if evidence.forecast:
        tokens += _forecast(evidence.forecast)
    return [*tokens, *[REFUSED] * len(evidence.refusals), DELTA]


def delta_tokens(delta: ConfigDelta) -> list[str]:
    """The answer: the delta in the order of `DeltaGrammar`.

    Raises InputError where the delta has no token form: a change that is not -2, -1, 1 or 2 steps, an edit that changes
    nothing, a reason that is none of REASONS, a size without a token.
    """
    edits = [token for size, edit in sorted(delta.edits.items()) for token in _edit_tokens(size, edit)]
    return [*edits, END]


def tokens_delta(tokens: Sequence[str]) -> ConfigDelta:
    """The delta that a complete answer means. Raises InputError on the first token that the grammar does not allow."""
    _check_grammar(tokens)
    edits: dict[int, SizeEdit] = {}
    for token in tokens:
        if token in _SIZE_OF:
            size, changes = _SIZE_OF[token], dict.fromkeys(STEPS, 0.0)
        elif token in EDITS:
            field, change = EDITS[token]
            changes[field] = change
        elif token in REASONS:
            edits[size] = SizeEdit(**changes, reason=REASONS[token])
    return ConfigDelta(edits)


_WORDS = frozenset(ENGINEER_TOKENS)
_GRAMMAR = DeltaGrammar(SIZES)
_SIZE_OF = {size_token(size): size for size in SIZES}
_REASON_OF = {sentence: token for token, sentence in REASONS.items()}


def _sizes(config: EnvConfig, outcomes: dict[int, Outcomes], rates: int) -> list[str]:
    tokens = []
    for size, cell in sorted(config.sizes.items()):
        tokens += [size_token(size), *(bucket_token(getattr(cell, field), step) for field, step in STEPS.items())]
        if outcomes:
            tokens += _rates(outcomes.get(size))[:rates]
    return tokens


def _rates(seen: Outcomes | None) -> list[str]:
    if seen is None or not seen.boards:
        return [UNKNOWN] * RATES
    counts = [seen.valid, seen.optimal_makespan, *(seen.failures.get(name, 0) for name in FAILURE_NAMES[1:])]
    waiting = bucket_token(seen.wait_valid / seen.wait_boards) if seen.wait_boards else UNKNOWN
    return [*(bucket_token(seen.rate(count)) for count in counts), waiting]


def _rollouts(cell: CellGroups) -> list[str]:
    seen = cell.groups
    shares = (float(cell.forced), seen.informative_share, seen.success, max(0.0, seen.reward))
    return [ROLLOUTS, size_token(cell.size), *(bucket_token(share) for share in shares)]


def _sampled(size: int, sampled: SizeStatistics) -> list[str]:
    ratios = [bucket_token(getattr(sampled, field), STEPS[field]) for field in ("hole_ratio", "wait_ratio")]
    accepted = UNKNOWN if sampled.acceptance is None else bucket_token(sampled.acceptance)
    return [SAMPLED, size_token(size), *ratios, accepted, bucket_token(sampled.makespan / (2 * size))]


def _forecast(forecast: Forecast) -> list[str]:
    p = {found.cell: found.p for found in forecast.grid}
    tokens = []
    for size in sorted({cell.size for cell in p}):
        cells = [Cell(size, hole, forced) for hole in FORECAST_HOLES for forced in (False, True)]
        tokens += [FORECAST, size_token(size), *(bucket_token(p[cell]) if cell in p else UNKNOWN for cell in cells)]
    return tokens


def _edit_tokens(size: int, edit: SizeEdit) -> list[str]:
    if size not in SIZES:
        raise InputError(f"edits.{size}: map size {size} has no token; choose {SIZES[0]} to {SIZES[-1]}")
    if edit.reason not in _REASON_OF:
        raise InputError(f"edits.{size}.reason: {edit.reason!r:.60} has no token; choose one of REASONS")
    changes = [_change_token(size, field, getattr(edit, field)) for field in STEPS if getattr(edit, field)]
    if not changes:
        raise InputError(f"edits.{size}: changes nothing; leave the size out")
    return [size_token(size), *changes, _REASON_OF[edit.reason]]


def _change_token(size: int, field: str, change: float) -> str:
    for token, (name, step) in EDITS.items():
        if name == field and math.isclose(change, step, rel_tol=1e-6):
            return token
    step = STEPS[field]
    raise InputError(f"edits.{size}.{field}: {change:g} has no token; choose -2, -1, 1 or 2 steps of {step:g}")


def _check_grammar(tokens: Sequence[str]) -> None:
    for index, token in enumerate(tokens):
        if token not in _GRAMMAR.allowed(tokens[:index]):
            raise InputError(f"answer: token {index} is {token!r:.40}; choose from the delta's grammar")
    if not tokens or tokens[-1] != END:
        raise InputError(f"answer: ends after {len(tokens)} tokens without {END}; finish it")
