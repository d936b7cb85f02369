"""The words of the token form, and the grammar of a delta in them."""

import functools
import math
from collections.abc import Iterable, Sequence

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import first_repeated
from lakewright.engineer.cells import Stratum
from lakewright.engineer.space import DesignSpace

TOP_BUCKET = 10
UNKNOWN, GUIDED, PAST, NOW, DELTA, END = "<unknown>", "<guideline>", "<past>", "<now>", "<delta>", "<end>"
SUMMARY, ROLLOUTS, SAMPLED, CASE, REFUSED = "<summary>", "<rollouts>", "<sampled>", "<case>", "<refused>"
UNDONE, FORECAST = "<undone>", "<forecast>"
TOO_EASY, TOO_HARD, FRONTIER = "<because_too_easy>", "<because_too_hard>", "<because_frontier>"
STRIDES = (-2, -1, 1, 2)  # steps of an edit


def bucket_token(value: float, step: float = 1 / TOP_BUCKET) -> str:
    """The word of a non-negative value: its nearest multiple of `step`, at most the tenth."""
    return f"<q{max(0, min(TOP_BUCKET, math.floor(value / step + 0.5)))}>"


def round_tokens(round: int, rounds: int) -> list[str]:
    """The two words of `round` of `rounds`, each at most ten."""
    return [f"<round_{min(TOP_BUCKET, round)}>", f"<of_{min(TOP_BUCKET, rounds)}>"]


def because_token(failure: str) -> str:
    """The word of the reason that too many answers fail in this way."""
    return f"<because_{failure}>"


class Vocabulary:
    """The words for a space.

    strata: those that have words. edits: the column and the change that the word of an edit means, such as `<data+2>`.
    reasons: the sentence that the word of a reason means. tokens: all words, in the order of their token ids in
    checkpoints. Raises InputError if two of them are equal.
    """

    def __init__(self, space: DesignSpace) -> None:
        self.space = space
        self.strata = space.spoken
        self.stratum_tokens = {stratum: f"<{space.words.token}_{stratum}>" for stratum in self.strata}
        self.strata_by_token = {token: stratum for stratum, token in self.stratum_tokens.items()}
        self.steps = {column.name: column.step for column in space.columns}
        self.edits = {
            f"<{column.short}{stride:+d}>": (column.name, stride * column.step)
            for column in space.columns
            for stride in STRIDES
        }
        easy, hard, frontier = space.words.reasons()
        answers = space.words.answers
        self.reasons = {TOO_EASY: easy, TOO_HARD: hard, FRONTIER: frontier} | {
            because_token(name): f"too many {answers} fail here, most often by {name}" for name in space.failures
        }
        self.tokens: tuple[str, ...] = (
            *self.stratum_tokens.values(),
            *(f"<{kind}{number}>" for kind in ("q", "round_", "of_") for number in range(TOP_BUCKET + 1)),
            *(UNKNOWN, GUIDED, PAST, NOW, DELTA, END),
            *(SUMMARY, ROLLOUTS, SAMPLED, CASE, REFUSED, UNDONE),
            *self.edits,
            *self.reasons,
            FORECAST,  # last, as it came last: checkpoints have the ids of this order
        )
        if (twice := first_repeated(self.tokens)) is not None:
            raise InputError(f"space: two words have the token {twice}; choose another token or other names")

    def stratum_token(self, stratum: Stratum, where: str = "grammar") -> str:
        """The word of a stratum. Raises InputError if missing."""
        if stratum not in self.stratum_tokens:
            listed = (
                f"{self.strata[0]} to {self.strata[-1]}"
                if all(isinstance(one, int) for one in self.strata)
                else ", ".join(map(str, self.strata))
            )
            raise InputError(f"{where}: {self.space.words.stratum} {stratum!s:.60} has no token; choose {listed}")
        return self.stratum_tokens[stratum]


@functools.lru_cache(maxsize=64)
def vocabulary_of(space: DesignSpace) -> Vocabulary:
    """The words for a space."""
    return Vocabulary(space)


class DeltaGrammar:
    """The tokens that may come next in a delta over `strata`.

    delta := edit* <end>;  edit := stratum change+ reason. Strata ascend by rank; the changes of an edit come in the
    order of the columns, each at most once. Raises InputError on a stratum that has no token.
    """

    def __init__(self, space: DesignSpace, strata: Iterable[Stratum]) -> None:
        self._words = vocabulary_of(space)
        self._strata = tuple(self._words.stratum_token(stratum) for stratum in space.sort_strata(set(strata)))
        changes = tuple(self._words.edits)
        self._next = {END: (), **dict.fromkeys(self._strata, changes)}
        for place, token in enumerate(changes):
            later = changes[place - place % len(STRIDES) + len(STRIDES) :]  # of the columns that follow
            self._next[token] = (*later, *self._words.reasons)

    def allowed(self, prefix: Sequence[str]) -> tuple[str, ...]:
        """The tokens that may follow `prefix`, itself made of allowed tokens; empty after `<end>`."""
        if prefix and prefix[-1] not in self._words.reasons:
            return self._next[prefix[-1]]
        named = next((token for token in reversed(prefix) if token in self._strata), None)
        later = self._strata[self._strata.index(named) + 1 :] if named else self._strata
        return (*later, END)
