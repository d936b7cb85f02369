"""Deltas of a space: applied, described, and read from the untrusted answers of models."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, first_repeated
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Delta, Design, Edit, Row
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.windows import list_moves, move_row, replace_window

MAX_ANSWER_BYTES = 32_768

MAX_REASON = 500

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON, description="the evidence this edit answers")]


def make_edit(space: DesignSpace, reason: str, changes: Mapping[str, float]) -> Edit:
    """An edit in which every column of the space is named, and the windows that change."""
    windows = {knob.top: changes[knob.top] for knob in space.knobs if changes.get(knob.top)}
    return Edit({column.name: changes.get(column.name, 0.0) for column in space.columns} | windows, reason)


def edit_design(design: Design, delta: Delta, space: DesignSpace) -> dict[Stratum, Row]:
    """The rows of `design` plus the changes: raw sums, not yet legal. Other values stay.

    Raises InputError on a stratum that the design lacks.
    """
    _check_known(design, delta.edits, space)
    rows = dict(design.strata)
    for stratum, edit in delta.edits.items():
        rows[stratum] = move_row(rows[stratum], edit.changes, space.columns)
    return rows


def join_edits(edits: Mapping[Stratum, Edit]) -> Delta:
    """The delta of those edits that change something."""
    return Delta({stratum: edit for stratum, edit in edits.items() if any(edit.changes.values())})


def derive_delta(
    old: Design, new: Mapping[Stratum, Row], reason: str | Mapping[Stratum, str], space: DesignSpace
) -> Delta:
    """The delta from `old` to its strata as in `new`, one reason for all or one a stratum: `edit_design` gives `new`.

    Args:
        old: the design.
        new: its rows after the change.
        reason: the edits' reason.
        space: the design space.

    The delta is exact if the values of `new` that change have at most DECIMALS. Raises InputError on a stratum that
    `old` lacks.
    """
    _check_known(old, new, space)
    reasons = reason if isinstance(reason, Mapping) else dict.fromkeys(new, reason)
    edits = {}
    for stratum, row in new.items():
        # An unchanged stratum has no edit, so an edit always says that something changed.
        if row != (before := old.strata[stratum]):
            edits[stratum] = Edit(list_moves(before, row, space.columns), reasons[stratum])
    return Delta(edits)


def weigh_cells(weights: Mapping[Cell, float], like: Design, space: DesignSpace) -> dict[Stratum, Row]:
    """The rows that weights of cells mean: shares of the whole, and of each knob the mean over the stratum's cells.

    A stratum of `like` without weight gets no data and keeps the rest.
    """
    rows: dict[Stratum, Row] = {}
    for stratum, old in like.strata.items():
        mine = {cell: weight for cell, weight in weights.items() if cell.stratum == stratum}
        # A design has one value of a level per stratum, so the weights of cells that differ in it become their mean.
        total = sum(mine.values())
        row = {**old, space.share.name: total or 0.0}
        for place, knob in enumerate(space.knobs if total else ()):
            mean = sum(cell.values[place] * weight for cell, weight in mine.items()) / total
            row = replace_window(row, knob, mean, mean)
        rows[stratum] = row
    return normalize_rows(rows, space)


def summarize_delta(delta: Delta, space: DesignSpace) -> str:
    """The delta as one line for people, such as `5x5 data +0.05, hole -0.05 (too hard)`."""
    changes = _list_edits(delta, space)
    lines = (f"{change} ({make_printable(delta.edits[stratum].reason)})" for stratum, change in changes.items())
    return "; ".join(lines) or "no edits"


def describe_delta(delta: Delta, space: DesignSpace) -> str:
    """As `summarize_delta`, but a reason that all edits share is given once, at the end."""
    reasons = {edit.reason for edit in delta.edits.values()}
    if len(reasons) != 1:
        return summarize_delta(delta, space)
    return f"{'; '.join(_list_edits(delta, space).values())} ({make_printable(reasons.pop())})"


def _list_edits(delta: Delta, space: DesignSpace) -> dict[Stratum, str]:
    lines = {}
    for stratum in space.sort_strata(delta.edits):
        named = ", ".join(_list_steps(delta.edits[stratum].changes, space, ".3g", 0)) or "unchanged"
        lines[stratum] = f"{space.words.label(stratum)} {named}"
    return lines


def list_changes(old: Design, new: Design, space: DesignSpace) -> str:
    """The differences between two designs, such as `5x5 data +0.05 hole -0.1`."""
    parts = []
    for stratum, row in new.strata.items():
        before = old.strata.get(stratum, dict.fromkeys(row, 0.0))
        shown = _list_steps(list_moves(before, row, space.columns), space, ".2g", 1e-6)
        parts += [f"{space.words.label(stratum)} {' '.join(shown)}"] if shown else []
    return ", ".join(parts) or "no change"


def _list_steps(changes: Mapping[str, float], space: DesignSpace, form: str, least: float) -> list[str]:
    """The changes of columns that are more than `least`, each followed by the change of its window."""
    steps = [
        (word, changes.get(name, 0.0))
        for column in space.columns
        for word, name in ((column.short, column.name), (f"{column.short} up to", column.top))
    ]
    return [f"{word} {step:+{form}}" for word, step in steps if abs(step) > least]


def encode_delta(delta: Delta) -> str:
    """The delta as an answer has it, in JSON: `{"edits": {STRATUM: {COLUMN: CHANGE, ..., "reason": REASON}}}`."""
    edits = {str(stratum): {**edit.changes, "reason": edit.reason} for stratum, edit in delta.edits.items()}
    return msgspec.json.encode({"edits": edits}).decode()


@lru_cache(maxsize=64)
def answer_type(space: DesignSpace) -> type[msgspec.Struct]:
    """The exact type of an untrusted answer: a delta, and what a model may add to it."""
    changes: list[tuple[str, Any, float]] = []
    for column in space.columns:
        most = max(1.0, column.span)
        meta = msgspec.Meta(ge=-most, le=most, description="signed change, added to the current value")
        changes.append((column.name, Annotated[float, meta], 0.0))
        changes += [(column.top, Annotated[float, meta], 0.0)] if column.top and column is not space.share else []
    options: dict[str, Any] = {"frozen": True, "forbid_unknown_fields": True}
    edit = msgspec.defstruct("Edit", [*changes, ("reason", Reason)], kw_only=True, **options)
    key = int if all(isinstance(stratum, int) for stratum in space.strata) else str
    edits = ("edits", dict[key, edit])  # type: ignore[valid-type]
    return msgspec.defstruct("Answer", [edits, ("reasoning", str, ""), ("summary", str, "")], **options)


def read_answer(answer: str | bytes, space: DesignSpace) -> tuple[Delta, str]:
    """The delta of a model's answer, one JSON object of `answer_type` with nothing around it, and its summary.

    Raises InputError, and nothing else, on whatever is not exactly that: other text, unknown or repeated fields, NaN or
    infinite numbers, changes out of range, halves of surrogate pairs, nesting too deep, more than MAX_ANSWER_BYTES.
    """
    try:
        raw = json.loads(
            _decode_text(answer), object_pairs_hook=_refuse_repeated, parse_constant=_no_constant, parse_int=float
        )
        json.dumps(raw, ensure_ascii=False).encode()
        found: Any = convert(raw, answer_type(space), "answer")
    except json.JSONDecodeError as error:
        raise InputError(f"answer: not JSON ({error}); answer with one JSON object") from error
    except UnicodeEncodeError as error:
        raise InputError("answer: holds half a surrogate pair, which no file can; use plain text") from error
    except RecursionError as error:
        raise InputError("answer: nested too deeply; answer with one object of edits") from error
    if len(found.edits) < len(raw["edits"]):  # "5" and "5.0" are the same number
        raise InputError(f"answer: edits names a {space.words.stratum} twice; give each one edit")
    fields = {stratum: msgspec.structs.asdict(edit) for stratum, edit in found.edits.items()}
    edits = {stratum: make_edit(space, given["reason"], given) for stratum, given in fields.items()}
    return Delta(edits), found.summary


def _decode_text(answer: str | bytes) -> str:
    try:
        data = answer.encode() if isinstance(answer, str) else answer
        text = data.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise InputError(f"answer: not UTF-8 text ({error.reason}); answer with JSON text") from error
    if len(data) > MAX_ANSWER_BYTES:
        raise InputError(f"answer: {len(data)} bytes long; answer with at most {MAX_ANSWER_BYTES}")
    return text


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if (twice := first_repeated(name for name, _ in pairs)) is not None:
        raise InputError(f"answer: field {twice!r:.60} is given twice; give it once")
    return fields


def _no_constant(name: str) -> float:
    raise InputError(f"answer: {name} is not a number; give a change between -1 and 1")


def _check_known(design: Design, strata: Iterable[Stratum], space: DesignSpace) -> None:
    for stratum in strata:
        if stratum not in design.strata:
            choices = ", ".join(map(str, design.strata))
            name, words = f"{stratum!s:.20}", space.words
            raise InputError(
                f"edits.{name}: {words.stratum} {name} is not in the {words.design}; choose from {choices}"
            )


def make_printable(text: str) -> str:
    """Text of a model on one line, without control characters."""
    letters = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(letters.split())
