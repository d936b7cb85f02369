"""Whether a model has learned its lessons: its answers to evidence that it has not seen, beside those of the rule."""

from collections.abc import Sequence

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import Share
from lakewright.engineer.delta import FIELDS, ConfigDelta
from lakewright.engineer.evidence import STEPS, DeltaGrammar, tokens_delta
from lakewright.engineer.teachers import Decode


class Examination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of so many questions, the share of changes, one for each size and ratio, that are exactly those of the rule.

    chance: the share that are those of the rule for the next question; an engineer that does not read has no more.
    """

    questions: int
    agreement: Share
    chance: Share

    def summary(self) -> str:
        """In a sentence."""
        return (
            f"the engineer gives {100 * self.agreement:.0f} % of {self.questions} answers' changes as it was taught "
            f"({100 * self.chance:.0f} % by chance)"
        )


def examined(examples: Sequence[tuple[list[str], list[str]]], config: EnvConfig, decode: Decode) -> Examination:
    """Asks for an answer to the prompt of each example, under the grammar of deltas over the sizes of `config`."""
    allowed = DeltaGrammar(config.sizes).allowed
    given = [_strides(tokens_delta(decode(prompt, allowed)), config) for prompt, _ in examples]
    right = [_strides(tokens_delta(taught), config) for _, taught in examples]
    return Examination(len(examples), _same(given, right), _same(given, [*right[1:], right[0]]))


def agreement(given: ConfigDelta, right: ConfigDelta, config: EnvConfig) -> float:
    """The share of changes of `config`, one for each size and ratio, that are the same steps in both."""
    return _same([_strides(given, config)], [_strides(right, config)])


def _strides(delta: ConfigDelta, config: EnvConfig) -> list[int]:
    edits = delta.edits
    return [
        round(getattr(edits[size], field) / STEPS[field]) if size in edits else 0
        for size in config.sizes
        for field in FIELDS
    ]


def _same(given: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> float:
    pairs = [pair for mine, yours in zip(given, right, strict=True) for pair in zip(mine, yours, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)
