"""The header of a GGUF file, read within bounds: a hostile one may claim more data than the file holds."""

import math
from typing import Any

import numpy as np
from gguf import GGUFReader

# Beyond any known header: a vocabulary of two hundred thousand words takes a million and a half parts.
MOST_PARTS = 1 << 21  # numbers and strings; each is an array of NumPy, some hundred bytes
MOST_LETTERS = 1 << 26  # bytes of all strings together


class Header(GGUFReader):
    """A header whose parts all lie in the file. Raises some exception on any other file.

    The library's own reader finds empty arrays behind the end of a file, as many as an array of the header claims.
    """

    def __init__(self, file: Any) -> None:
        self._parts = self._letters = 0
        super().__init__(file)

    @property
    def weights(self) -> int:
        """The numbers in all tensors; Python's because NumPy's start again at 0 beyond 64 bits."""
        return sum(math.prod(map(int, tensor.shape)) for tensor in self.tensors)

    def _get(self, offset: Any, dtype: Any, count: Any = 1, override_order: Any = None) -> Any:
        self.data: Any = self.data.view(np.ndarray)  # of which parts are made far more quickly than of a memmap
        found = super()._get(offset, dtype, count, override_order)
        self._parts += 1
        if len(found) < count or self._parts > MOST_PARTS:
            raise ValueError("ends early, or never")
        return found

    def _get_str(self, offset: Any) -> tuple[np.ndarray, np.ndarray]:
        length, letters = super()._get_str(offset)
        self._letters += len(letters)
        if self._letters > MOST_LETTERS:
            raise ValueError("too many letters")
        return length, letters
