"""Which rows show the same board."""

from typing import TypeAlias

from core_jax.rows.row import Row

Fingerprint: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


def fingerprint(row: Row) -> Fingerprint:
    """Grid, starts and goals: what exactly the rows of one board share, whatever their ids and labels."""
    return tuple(row.grid), tuple(row.starts), tuple(row.goals)
