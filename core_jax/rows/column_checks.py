"""Checks of whole columns for good rows; `Row` says of the others what is wrong."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewright.core_jax.rows.columns import list_lengths, read_letters, read_numbers, take_places
from lakewright.core_jax.rows.row import CERTIFICATES
from lakewright.core_jax.types import MOVES, STATUS_NAMES

REQUIRED = ("id", "size", "agents", "grid", "starts", "goals")
GRID = np.isin(np.arange(256), [ord("."), ord("H")])
STEP = np.isin(np.arange(256), [ord(move) for move in MOVES])


def good_rows(batch: pa.RecordBatch) -> np.ndarray:
    """Marks the rows of a batch of its schema that `Row` accepts: bool [rows]."""
    good = _numbers_fit(batch) & _shapes_fit(batch)
    places = np.flatnonzero(good)
    if len(places):
        good[places] = _cells_fit(take_places(batch, places))
    return good


def _numbers_fit(batch: pa.RecordBatch) -> np.ndarray:
    """Marks rows whose numbers and words are in their ranges, with no null in required columns: bool [rows]."""
    good = np.logical_and.reduce([_to_bools(batch[name].is_valid()) for name in REQUIRED])
    for name, lowest in (("size", 1), ("agents", 1), ("makespan", 0), ("sum_of_costs", 0)):
        good &= _to_bools(pc.greater_equal(batch[name], lowest).fill_null(True))
    good &= _to_bools(pc.is_finite(batch["hole_ratio"]).fill_null(True))
    for name, words in (("status", STATUS_NAMES), ("certificate", CERTIFICATES)):
        good &= _to_bools(pc.is_in(batch[name], pa.array([*words, None], pa.string())))
    return good


def _shapes_fit(batch: pa.RecordBatch) -> np.ndarray:
    """Marks rows with the right numbers of lines, letters, cells and strings, and known letters only: bool [rows]."""
    size, agents = read_numbers(batch["size"]), read_numbers(batch["agents"])
    good = _lists_fit(batch["grid"], size, GRID, size)
    for name in ("starts", "goals"):
        good &= _lists_fit(batch[name], agents)
        pairs = batch[name].flatten()
        good &= _all_of(batch[name], (list_lengths(pairs) == 2) & _to_bools(pairs.is_valid()))
        good &= _all_of(batch[name], _all_of(pairs, _to_bools(pairs.flatten().is_valid())))
    for name in ("plan", "makespan_plan"):
        good &= _lists_fit(batch[name], agents, STEP) | ~_to_bools(batch[name].is_valid())
    return good


def _lists_fit(
    lists: pa.Array, count: np.ndarray, alphabet: np.ndarray | None = None, length: np.ndarray | None = None
) -> np.ndarray:
    """Marks the lists that have `count` items that fit: bool [rows].

    Args:
        lists: one for each row.
        count: int [rows], the items of each.
        alphabet: bool [256], the letters of strings; None for items of another type.
        length: int [rows], the letters of each string; None for any length.
    """
    good = list_lengths(lists) == count
    if alphabet is None:
        return good
    strings = lists.flatten()
    fit = _to_bools(strings.is_valid())
    if strings.null_count:
        strings = strings.fill_null("")
    if length is not None:
        fit &= list_lengths(strings) == np.repeat(length, list_lengths(lists))
    known = alphabet[read_letters(strings)]
    return good & _all_of(lists, fit & (known.all() or _all_of(strings, known)))


def _all_of(lists: pa.Array, fit: np.ndarray) -> np.ndarray:
    """Marks the lists (strings) of which all items (letters) are `fit`, bool of all items: bool [rows]."""
    good = np.ones(len(lists), bool)
    if not fit.all():
        ends = np.cumsum(list_lengths(lists))
        good[np.searchsorted(ends, np.flatnonzero(~fit), side="right")] = False
    return good


def _cells_fit(batch: pa.RecordBatch) -> np.ndarray:
    """Marks rows whose cells are on the board, free, and distinct among starts and among goals; their shapes fit."""
    size, agents = read_numbers(batch["size"]).astype(np.int64), read_numbers(batch["agents"])
    grid = read_letters(batch["grid"].flatten())
    begin = np.cumsum(size * size) - size * size  # of each board's letters
    owner = np.repeat(np.arange(len(batch)), agents)
    good = np.ones(len(batch), bool)
    for name in ("starts", "goals"):
        line, column = batch[name].flatten().flatten().to_numpy().reshape(-1, 2).T
        side = size[owner]
        off = (line < 0) | (line >= side) | (column < 0) | (column >= side)
        place = begin[owner] + np.where(off, 0, line * side + column)
        good[owner[off | (grid[place] == ord("H"))]] = False
        place.sort()  # each board's cells stay side by side
        good[owner[1:][place[1:] == place[:-1]]] = False
    return good


def _to_bools(array: pa.Array) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False)
