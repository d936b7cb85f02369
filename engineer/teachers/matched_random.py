"""The control that edits as much as another teacher, but elsewhere: it separates the choice from the change."""

from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.engineer.delta import FIELDS, ConfigDelta, SizeEdit
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Teacher, decided
from lakewright.engineer.random_generators import Key, numpy_rng, split
from lakewright.engineer.teachers.step_edits import TOPS

REASON = "a random edit of the same size as another teacher's"


class MatchedRandomTeacher:
    """Asks another teacher, and gives its edits to sizes drawn by chance, each change with a sign drawn by chance.

    So the number of edits and the absolute changes of each ratio are those of the other teacher. A sign that would
    leave the ratio's range is turned. Asking costs what it costs the other teacher, whose prompt, error, summary,
    state and tokens are this one's too.
    """

    def __init__(self, other: Teacher) -> None:
        self.other = other

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The other teacher's proposal with its edits dealt out again."""
        asking, dealing = split(key)
        asked = self.other.propose(evidence, config, asking)
        if asked.delta is None:
            return asked
        rng = numpy_rng(dealing)
        unknown = [size for size in asked.delta.edits if size not in config.sizes]
        drawn = rng.permutation(sorted(config.sizes)).tolist()[: len(asked.delta.edits) - len(unknown)]
        edits = [edit for size, edit in asked.delta.edits.items() if size not in unknown]
        dealt = {size: _dealt(config.sizes[size], edit, rng) for size, edit in zip(drawn, edits, strict=True)}
        own = decided(ConfigDelta(dict(sorted(dealt.items()))))
        costs = {"tokens": asked.tokens, "dollars": asked.dollars}
        return msgspec.structs.replace(own, prompt=asked.prompt, summary=asked.summary, cut=asked.cut, **costs)

    def state_dict(self) -> dict[str, Any]:
        """The other teacher's."""
        return self.other.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The other teacher's."""
        self.other.load_state_dict(state)


def _dealt(cell: SizeConfig, edit: SizeEdit, rng: np.random.Generator) -> SizeEdit:
    changes = {}
    for field in FIELDS:
        change = abs(getattr(edit, field)) * float(rng.choice([-1, 1]))
        inside = 0 <= getattr(cell, field) + change <= TOPS[field]
        changes[field] = change if inside or not change else -change
    return SizeEdit(**changes, reason=REASON)
