"""The grammar of a delta in tokens."""

from collections.abc import Iterable, Sequence

from lakewright.core_jax.errors import InputError
from lakewright.engineer.evidence.vocabulary import END, REASONS, SIZES, STEPS, STRIDES, edit_token, size_token


class DeltaGrammar:
    """Which token may come next in a delta over `sizes`.

    delta := edit* <end>;  edit := size field+ reason. Sizes ascend; the fields of an edit come in the order data, hole,
    wait, each at most once. Raises InputError on a size that has no token.
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        ordered = sorted(set(sizes))
        if strange := [size for size in ordered if size not in SIZES]:
            raise InputError(f"grammar: map size {strange[0]} has no token; choose {SIZES[0]} to {SIZES[-1]}")
        self._sizes = tuple(size_token(size) for size in ordered)
        self._next = {END: (), **dict.fromkeys(self._sizes, _edits(0)), **_after_edits()}

    def allowed(self, prefix: Sequence[str]) -> tuple[str, ...]:
        """The tokens that may follow `prefix`, itself made of allowed tokens; after `<end>`, none."""
        if prefix and prefix[-1] not in REASONS:
            return self._next[prefix[-1]]
        named = next((token for token in reversed(prefix) if token in self._sizes), None)
        later = self._sizes[self._sizes.index(named) + 1 :] if named else self._sizes
        return (*later, END)


def _edits(first_field: int) -> tuple[str, ...]:
    return tuple(edit_token(field, stride) for field in list(STEPS)[first_field:] for stride in STRIDES)


def _after_edits() -> dict[str, tuple[str, ...]]:
    return {
        edit_token(field, stride): (*_edits(index + 1), *REASONS)
        for index, field in enumerate(STEPS)
        for stride in STRIDES
    }
