"""Whether a model has learned its lessons: its answers to evidence that it has not seen, beside those of the rule."""

from collections.abc import Sequence

import msgspec

from lakewright.core_jax.support import Share
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence import DeltaGrammar, read_tokens
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers import Decode


class Examination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of so many questions, the share of changes, one for each stratum and column, that are exactly those of the rule.

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


def examine(
    examples: Sequence[tuple[list[str], list[str]]], design: Design, space: DesignSpace, decode: Decode
) -> Examination:
    """Asks for an answer to the prompt of each example, under the grammar of deltas over the strata of `design`.

    examples: prompts and right answers, in tokens. design, space: what the answers change. decode: the model.
    """
    allowed = DeltaGrammar(space, design.strata).allowed
    given = [_strides(read_tokens(decode(prompt, allowed), space), design, space) for prompt, _ in examples]
    right = [_strides(read_tokens(taught, space), design, space) for _, taught in examples]
    return Examination(len(examples), _share_same(given, right), _share_same(given, [*right[1:], right[0]]))


def agreement(given: Delta, right: Delta, design: Design, space: DesignSpace) -> float:
    """The share of changes of `design`, one for each stratum and column, that are the same steps in both."""
    return _share_same([_strides(given, design, space)], [_strides(right, design, space)])


def _strides(delta: Delta, design: Design, space: DesignSpace) -> list[int]:
    edits = delta.edits
    return [
        round(edits[stratum].changes.get(column.name, 0.0) / column.step) if stratum in edits else 0
        for stratum in design.strata
        for column in space.columns
    ]


def _share_same(given: Sequence[Sequence[int]], right: Sequence[Sequence[int]]) -> float:
    pairs = [pair for mine, yours in zip(given, right, strict=True) for pair in zip(mine, yours, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)
