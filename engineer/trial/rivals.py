"""Several proposals of one teacher: asked again with other chances, and its change taken further or less far."""

import msgspec

from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.random_generators import Key, split
from lakewright.engineer.space import DesignSpace

STRETCHES = (2.0, 0.5, 3.0, 1.5, 4.0)  # of a change, in the order in which they are proposed


def add_rivals(
    teacher: Teacher,
    proposal: Proposal,
    evidence: Evidence,
    design: Design,
    space: DesignSpace,
    key: Key,
    count: int,
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
            other = teacher.propose(evidence, design, space, again).delta
            deltas += [other] if other and other not in deltas else []
            teacher.load_state_dict(state)
    deltas += [stretch(proposal.delta, factor, space) for factor in STRETCHES][: max(0, count - len(deltas))]
    return msgspec.structs.replace(proposal, candidates=tuple(deltas[1:count]))


def stretch(delta: Delta, factor: float, space: DesignSpace) -> Delta:
    """The delta with every change `factor` times as large, within -1 .. 1 or the range of a knob if that is larger."""
    most = {column.name: max(1.0, column.span) for column in space.columns}
    edits = {}
    for stratum, edit in delta.edits.items():
        changes = {name: max(-most[name], min(most[name], factor * change)) for name, change in edit.changes.items()}
        edits[stratum] = msgspec.structs.replace(edit, changes=changes)
    return Delta(edits)
