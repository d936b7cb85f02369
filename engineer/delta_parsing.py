"""The parser of a model's answer to a delta: strict, because the answer is untrusted, and nothing is evaluated."""

import json
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, first_repeated
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta
from lakewright.engineer.space import DesignSpace

MAX_ANSWER_BYTES = 32_768

MAX_REASON = 500

Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON, description="the evidence this edit answers")]


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
        checked: Any = convert(raw, answer_type(space), "answer")
    except json.JSONDecodeError as error:
        raise InputError(f"answer: not JSON ({error}); answer with one JSON object") from error
    except UnicodeEncodeError as error:
        raise InputError("answer: holds half a surrogate pair, which no file can; use plain text") from error
    except RecursionError as error:
        raise InputError("answer: nested too deeply; answer with one object of edits") from error
    if len(checked.edits) < len(raw["edits"]):  # "5" and "5.0" are the same number
        raise InputError(f"answer: edits names a {space.words.stratum} twice; give each one edit")
    fields = {stratum: msgspec.structs.asdict(edit) for stratum, edit in checked.edits.items()}
    edits = {stratum: make_edit(space, given["reason"], given) for stratum, given in fields.items()}
    return Delta(edits), checked.summary


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
