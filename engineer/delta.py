"""The typed change of a config that the engineer answers with."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, first_repeated

FIELDS = ("data_ratio", "hole_ratio", "wait_ratio")
MAX_ANSWER_BYTES = 32_768
MAX_REASON = 500
DECIMALS = 6  # ratios are read to six decimals, by `core_jax.generator` too; on that grid sum and difference are exact

Change = Annotated[float, msgspec.Meta(ge=-1, le=1, description="signed change, added to the current value")]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_REASON, description="the evidence this edit answers")]


class SizeEdit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Signed changes added to the current ratios of one map size, and why; a ratio that is not named stays."""

    data_ratio: Change = 0.0
    hole_ratio: Change = 0.0
    wait_ratio: Change = 0.0
    reason: Reason


class ConfigDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edits by map size; a size that is not named stays."""

    edits: dict[int, SizeEdit]


D = TypeVar("D", bound=ConfigDelta)


def delta_schema() -> dict[str, Any]:
    """The JSON schema of an answer, for prompts and guided decoding."""
    return msgspec.json.schema(ConfigDelta)


def parse_delta(answer: str | bytes, kind: type[D] = ConfigDelta) -> D:  # type: ignore[assignment]
    """Reads a model's answer: one JSON object of the shape of `delta_schema`, and nothing around it.

    `kind` may add fields of its own.

    Raises InputError, and nothing else, on whatever is not exactly that: other text, unknown or repeated fields, NaN or
    infinite numbers, changes beyond -1 .. 1, halves of surrogate pairs, nesting too deep, more than MAX_ANSWER_BYTES.
    """
    try:
        raw = json.loads(_text(answer), object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=float)
        json.dumps(raw, ensure_ascii=False).encode()
        delta = convert(raw, kind, "answer")
    except json.JSONDecodeError as error:
        raise InputError(f"answer: not JSON ({error}); answer with one JSON object") from error
    except UnicodeEncodeError as error:
        raise InputError("answer: holds half a surrogate pair, which no file can; use plain text") from error
    except RecursionError as error:
        raise InputError("answer: nested too deeply; answer with one object of edits") from error
    if len(delta.edits) < len(raw["edits"]):  # "5" and "5.0" are the same size
        raise InputError("answer: edits names a map size twice; give each one edit")
    return delta


def edited(config: EnvConfig, delta: ConfigDelta) -> dict[int, SizeConfig]:
    """The sizes of `config` plus the changes, to DECIMALS: raw sums, not yet legal. What is not changed stays as it is.

    Raises InputError on a map size that the config lacks.
    """
    _check_known(config, delta.edits)
    return {size: _plus(cell, delta.edits.get(size)) for size, cell in config.sizes.items()}


def difference(old: EnvConfig, new: Mapping[int, SizeConfig], reason: str | Mapping[int, str]) -> ConfigDelta:
    """The delta from `old` to its sizes as in `new`, one reason for all or one a size: `edited` gives `new` back.

    That is exact where the ratios of `new` that change have at most DECIMALS. Raises InputError on a size that `old`
    lacks.
    """
    _check_known(old, new)
    reasons = reason if isinstance(reason, Mapping) else dict.fromkeys(new, reason)
    edits = {
        size: _edit(old.sizes[size], cell, reasons[size]) for size, cell in new.items() if cell != old.sizes.get(size)
    }
    return ConfigDelta(edits)


def normalised(sizes: Mapping[int, SizeConfig]) -> dict[int, SizeConfig]:
    """The sizes with data ratios on the grid of DECIMALS that sum to one, by largest remainder; the others rounded.

    Data ratios are taken relative to their sum; where that is 0, equal.
    """
    whole = 10**DECIMALS
    total = math.fsum(cell.data_ratio for cell in sizes.values())
    parts = [cell.data_ratio / total * whole if total else whole / len(sizes) for cell in sizes.values()]
    floors = [math.floor(part) for part in parts]
    order = sorted(range(len(parts)), key=lambda place: floors[place] - parts[place])
    for place in order[: whole - sum(floors)]:
        floors[place] += 1
    return {
        size: SizeConfig(part / whole, round(cell.hole_ratio, DECIMALS), round(cell.wait_ratio, DECIMALS))
        for part, (size, cell) in zip(floors, sizes.items(), strict=True)
    }


def summary(delta: ConfigDelta) -> str:
    """The delta as one line for people, such as `5x5 data +0.05, hole -0.05 (too hard)`."""
    return "; ".join(_spoken(size, edit) for size, edit in sorted(delta.edits.items())) or "no edits"


def _text(answer: str | bytes) -> str:
    try:
        data = answer.encode() if isinstance(answer, str) else answer
        text = data.decode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raise InputError(f"answer: not UTF-8 text ({error.reason}); answer with JSON text") from error
    if len(data) > MAX_ANSWER_BYTES:
        raise InputError(f"answer: {len(data)} bytes long; answer with at most {MAX_ANSWER_BYTES}")
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if (twice := first_repeated(name for name, _ in pairs)) is not None:
        raise InputError(f"answer: field {twice!r:.60} is given twice; give it once")
    return fields


def _no_constant(name: str) -> float:
    raise InputError(f"answer: {name} is not a number; give a change between -1 and 1")


def _check_known(config: EnvConfig, sizes: Iterable[int]) -> None:
    for size in sizes:
        if size not in config.sizes:
            choices = ", ".join(map(str, config.sizes))
            name = f"{size!s:.20}"
            raise InputError(f"edits.{name}: map size {name} is not in the config; choose from {choices}")


def _plus(cell: SizeConfig, edit: SizeEdit | None) -> SizeConfig:
    if edit is None:
        return cell
    changes = {field: getattr(edit, field) for field in FIELDS if getattr(edit, field)}
    sums = {field: round(getattr(cell, field) + change, DECIMALS) for field, change in changes.items()}
    return msgspec.structs.replace(cell, **sums)


def _edit(old: SizeConfig, new: SizeConfig, reason: str) -> SizeEdit:
    return SizeEdit(**{field: getattr(new, field) - getattr(old, field) for field in FIELDS}, reason=reason)


def _spoken(size: int, edit: SizeEdit) -> str:
    changes = [(field.removesuffix("_ratio"), getattr(edit, field)) for field in FIELDS]
    named = ", ".join(f"{name} {change:+.3g}" for name, change in changes if change) or "unchanged"
    printable = "".join(letter if letter.isprintable() else " " for letter in edit.reason)
    return f"{size}x{size} {named} ({' '.join(printable.split())})"
