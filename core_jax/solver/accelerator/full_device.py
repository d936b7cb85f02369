"""Blocks of work on a device that may be full, or may disappear: smaller blocks, or one line."""

from collections.abc import Callable
from typing import TypeVar

import jax

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.solver.accelerator.sizes import BLOCKS, Sizes, cut_sizes

R = TypeVar("R")


def make_with_room(make: Callable[[Sizes, int], R], sizes: Sizes, begin: int, end: int) -> list[R]:
    """`make` of a block of rows on the default device, or of several smaller blocks if the device's memory is full.

    Blocks are made again from their inputs, so nothing of a block that failed is in a result.

    Args:
        make: gets sizes and a first row, makes the `sizes.block` rows from there on, and waits until it has them.
        sizes: those to try first.
        begin: the first row.
        end: the number of all rows; a block may reach beyond, and then smaller ones are made only where rows are.

    Raises InputError if the device has no room for the smallest block, or cannot go on.
    """
    try:
        return [make(sizes, begin)]
    except jax.errors.JaxRuntimeError as error:
        said = str(error).partition("\n")[0]
        if "RESOURCE_EXHAUSTED" not in said or sizes.block <= BLOCKS[-1]:
            raise InputError(
                f"the device stopped at a block of {sizes.block} boards ({said:.200}); free its memory, or set "
                "JAX_PLATFORMS=cpu"
            ) from error
    smaller = cut_sizes(sizes)
    firsts = range(begin, min(begin + sizes.block, end), smaller.block)
    return [part for first in firsts for part in make_with_room(make, smaller, first, end)]
