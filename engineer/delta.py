"""Deltas of a space: made, applied and described. `delta_parsing.py` reads them from answers of models."""

from collections.abc import Iterable, Mapping

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Cell, Stratum
from lakewright.engineer.design import Delta, Design, DesignRow, Edit
from lakewright.engineer.space import DesignSpace, normalize_rows
from lakewright.engineer.windows import find_ends, map_moves, move_row, replace_window


def make_edit(space: DesignSpace, reason: str, changes: Mapping[str, float]) -> Edit:
    """An edit in which every column of the space is named, and the windows that change."""
    windows = {knob.top: changes[knob.top] for knob in space.knobs if changes.get(knob.top)}
    return Edit({column.name: changes.get(column.name, 0.0) for column in space.columns} | windows, reason)


def edit_design(design: Design, delta: Delta, space: DesignSpace) -> dict[Stratum, DesignRow]:
    """The rows of `design` plus the changes: raw sums, not yet legal. Other values stay.

    Raises InputError on a stratum that the design lacks.
    """
    _check_known(design, delta.edits, space)
    rows = dict(design.strata)
    for stratum, edit in delta.edits.items():
        rows[stratum] = move_row(rows[stratum], edit.changes, space.columns)
    return rows


def join_edits(edits: Mapping[Stratum, Edit]) -> Delta:
    """The delta of all edits that change something."""
    return Delta({stratum: edit for stratum, edit in edits.items() if any(edit.changes.values())})


def derive_delta(
    old: Design, new: Mapping[Stratum, DesignRow], reason: str | Mapping[Stratum, str], space: DesignSpace
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
            edits[stratum] = Edit(map_moves(before, row, space.columns), reasons[stratum])
    return Delta(edits)


def weigh_cells(weights: Mapping[Cell, float], like: Design, space: DesignSpace) -> dict[Stratum, DesignRow]:
    """The rows that weights of cells mean: shares of the whole, and of each knob the mean over the stratum's cells.

    A stratum of `like` without weight gets no data and keeps the rest.
    """
    rows: dict[Stratum, DesignRow] = {}
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
    """The delta in one readable line, such as `5x5 data +0.05, hole -0.05 (too hard)`."""
    changes = _map_edits(delta, space)
    lines = (f"{change} ({make_printable(delta.edits[stratum].reason)})" for stratum, change in changes.items())
    return "; ".join(lines) or "no edits"


def describe_delta(delta: Delta, space: DesignSpace) -> str:
    """Like `summarize_delta`, but a reason that all edits share is given once, at the end."""
    reasons = {edit.reason for edit in delta.edits.values()}
    if len(reasons) != 1:
        return summarize_delta(delta, space)
    return f"{'; '.join(_map_edits(delta, space).values())} ({make_printable(reasons.pop())})"


def _map_edits(delta: Delta, space: DesignSpace) -> dict[Stratum, str]:
    lines = {}
    for stratum in space.sort_strata(delta.edits):
        named = ", ".join(_list_steps(delta.edits[stratum].changes, space, ".3g", 0)) or "unchanged"
        lines[stratum] = f"{space.words.label(stratum)} {named}"
    return lines


def describe_changes(old: Design, new: Design, space: DesignSpace) -> str:
    """The differences between two designs, such as `5x5 data +0.05 hole -0.1`."""
    parts = []
    for stratum, row in new.strata.items():
        before = old.strata.get(stratum, dict.fromkeys(row, 0.0))
        shown = _list_steps(map_moves(before, row, space.columns), space, ".2g", 1e-6)
        parts += [f"{space.words.label(stratum)} {' '.join(shown)}"] if shown else []
    return ", ".join(parts) or "no change"


def describe_moved_knobs(old: Mapping[str, float], new: Mapping[str, float], space: DesignSpace) -> str:
    """The knobs whose values differ in two rows of a stratum, such as `digits 4 to 5, carry 0.3 to 0.35`."""
    ends = ((knob.short, find_ends(old, knob), find_ends(new, knob)) for knob in space.knobs)
    return ", ".join(
        f"{word} {_show_ends(before)} to {_show_ends(after)}" for word, before, after in ends if before != after
    )


def _show_ends(ends: tuple[float, float]) -> str:
    return "-".join(f"{value:g}" for value in dict.fromkeys(ends))


def _list_steps(changes: Mapping[str, float], space: DesignSpace, form: str, least: float) -> list[str]:
    """The changes of columns that are more than `least`, each followed by the change of its window."""
    steps = [
        (word, changes.get(name, 0.0))
        for column in space.columns
        for word, name in ((column.short, column.name), (f"{column.short} up to", column.top))
    ]
    return [f"{word} {step:+{form}}" for word, step in steps if abs(step) > least]


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
