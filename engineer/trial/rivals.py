"""Several proposals of one teacher: asked again with other chances, and its change taken further or less far."""

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.engineer.delta import FIELDS, ConfigDelta, SizeEdit
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.random_generators import Key, split

STRETCHES = (2.0, 0.5, 3.0, 1.5, 4.0)  # of a change, in the order in which they are proposed


def with_rivals(
    teacher: Teacher, proposal: Proposal, evidence: Evidence, config: EnvConfig, key: Key, count: int
) -> Proposal:
    """The proposal with candidates, `count` deltas in all where there are so many.

    A teacher that generates no tokens is asked again, each time in the state that the proposal left; what it then
    learned is forgotten. What lacks is the first change stretched by STRETCHES. The key is consumed.
    """
    if proposal.delta is None or not proposal.delta.edits:
        return proposal
    deltas = [proposal.delta, *proposal.candidates]
    if not proposal.tokens:
        state = teacher.state_dict()
        for again in split(key, count)[1:]:
            other = teacher.propose(evidence, config, again).delta
            deltas += [other] if other and other not in deltas else []
            teacher.load_state_dict(state)
    deltas += [stretched(proposal.delta, factor) for factor in STRETCHES][: max(0, count - len(deltas))]
    return msgspec.structs.replace(proposal, candidates=tuple(deltas[1:count]))


def stretched(delta: ConfigDelta, factor: float) -> ConfigDelta:
    """The delta with every change `factor` times as large, within -1 .. 1."""
    return ConfigDelta({size: _stretched(edit, factor) for size, edit in delta.edits.items()})


def _stretched(edit: SizeEdit, factor: float) -> SizeEdit:
    changes = {field: max(-1.0, min(1.0, factor * getattr(edit, field))) for field in FIELDS}
    return msgspec.structs.replace(edit, **changes)
