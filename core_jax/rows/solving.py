"""Rows with certified labels: boards just drawn, or rows of mixed kinds, solved kind by kind."""

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator.generator import Batch
from lakewright.core_jax.rows.arrays import board_columns, boards_in, hole_ratios, kinds_of, label_columns
from lakewright.core_jax.rows.columns import by_kind, columns_of, places_by_kind, records_of, take_places
from lakewright.core_jax.rows.row import SCHEMA, Row
from lakewright.core_jax.solver.memory import check_memory
from lakewright.core_jax.solver.solver import solve
from lakewright.core_jax.types import Labels


def rows_of(batches: dict[int, Batch], config: EnvConfig) -> list[Row]:
    """The rows of a generated set, in its order."""
    return rows_in_turn([batches], [config])


def rows_in_turn(made: Sequence[dict[int, Batch]], configs: Sequence[EnvConfig]) -> list[Row]:
    """The rows of a set that configs have a board each of in turn, in its order."""
    return _to_rows(columns_in_turn(made, configs))


def columns_in_turn(made: Sequence[dict[int, Batch]], configs: Sequence[EnvConfig]) -> pa.RecordBatch:
    """Like `rows_in_turn`, in columns."""
    parts = [part for pair in zip(made, configs, strict=True) for part in _columns_by_size(*pair)]
    if not parts:
        return columns_of([], SCHEMA)
    batch = pa.concat_batches([columns for _, columns in parts])
    places = np.concatenate([places for places, _ in parts])
    return batch if (np.diff(places) > 0).all() else batch.take(pa.array(np.argsort(places)))


def _columns_by_size(batches: dict[int, Batch], config: EnvConfig) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """The places of the boards of each size in the set, and their rows."""
    for size, batch in batches.items():
        cell = config.sizes[size]
        name = f"{config.agents}ag_{size}x{size}_hr{cell.hole_ratio:.2f}_wr{cell.wait_ratio:.2f}"
        columns = {
            "id": pa.array([f"{name}_{place:06d}" for place in batch.index.tolist()], pa.string()),
            **board_columns(batch.boards),
            "hole_ratio": pa.array(np.full(len(batch.index), batch.hole_ratio)),
            **label_columns(batch.labels),
        }
        yield batch.index, pa.RecordBatch.from_arrays([columns[key] for key in SCHEMA.names], schema=SCHEMA)


def unsolvable_here(batch: pa.RecordBatch) -> dict[int, str]:
    """Why rows cannot be solved on this machine, by their place."""
    problems: dict[int, str] = {}
    kinds = kinds_of(batch)
    for places in places_by_kind(kinds):
        try:
            check_memory(*kinds[places[0]].tolist())
        except InputError as error:
            problems |= dict.fromkeys(places.tolist(), str(error))
    return problems


def solve_columns(
    batch: pa.RecordBatch, makespan_plans: bool = False, on_progress: Callable[[int], object] = lambda boards: None
) -> pa.RecordBatch:
    """The rows with certified labels, in order; no row may be `unsolvable_here`.

    makespan_plans: also a plan that reaches the makespan.
    """

    def solved(places: np.ndarray) -> pa.RecordBatch:
        some = take_places(batch, places)
        done = with_labels(some, solve(boards_in(some), makespan_plans))
        on_progress(len(some))
        return done

    return by_kind(kinds_of(batch), solved) if len(batch) else batch


def with_labels(batch: pa.RecordBatch, labels: Labels) -> pa.RecordBatch:
    """Rows of one kind with their labels; plans that reach the makespan if `labels` has them."""
    columns = {name: batch[name] for name in SCHEMA.names} | label_columns(labels)
    return pa.RecordBatch.from_pydict(columns | {"hole_ratio": hole_ratios(batch)}, SCHEMA)


def solve_rows(rows: Sequence[Row]) -> list[Row]:
    """Like `solve_columns`, for rows."""
    return _to_rows(solve_columns(columns_of(rows, SCHEMA)))


def _to_rows(batch: pa.RecordBatch) -> list[Row]:
    return msgspec.convert(records_of(batch), list[Row])
