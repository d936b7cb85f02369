"""Whether the memory of this machine holds a model."""

import psutil

from lakewright.core_jax.errors import InputError

FLOAT_BYTES = 4  # of a weight in float32


def check_memory(place: str, weights: int, each: float = FLOAT_BYTES) -> None:
    """Raises InputError where so many weights of so many bytes each are more than the memory of this machine."""
    there = psutil.virtual_memory().total
    if weights * each > there:
        raise InputError(
            f"{place}: {weights:,} weights take {weights * each / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB; choose a smaller model"
        )
