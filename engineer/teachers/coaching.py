"""reasoning-gym's coaching: a task goes up its ladders where it is solved, and down where it is not.

Stojanovski et al. 2025, arXiv 2505.24760, and its training example (`training/trainers/ray_grpo_trainer.py`).
"""

from dataclasses import dataclass, field

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Natural, Share
from lakewright.engineer.cells import Stratum
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta, Design, Edit
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.vocabulary import TOO_EASY, TOO_HARD, vocabulary_of
from lakewright.engineer.proposal import Proposal, Stateful, propose_delta
from lakewright.engineer.random_generators import Key
from lakewright.engineer.space import DesignSpace


@dataclass
class CoachingTeacher(Stateful):
    """Per stratum, with R the share of valid answers among its training rollouts since its last decision:

    R > success: every knob one step harder. R < failure: every knob one step easier. Else, or with at most `last`
    answers, the stratum stays. Shares never change.

    reasoning-gym moves upper bounds alone, so that easy problems never leave and a step down can fail; here a knob is
    the value that problems have, and stops at the ends of its range.
    """

    success: Share = 0.7
    failure: Share = 0.3
    last: Natural = 0
    counts: dict[str, list[int]] = field(default_factory=dict, init=False)  # answers and valid ones by stratum

    def __post_init__(self) -> None:
        if self.failure > self.success:
            raise InputError(
                f"teacher_options: failure is {self.failure:g}, more than success {self.success:g}; choose less"
            )

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The delta of the rule. Deterministic. Without rollouts, no edits."""
        for seen in evidence.groups:
            counts = self.counts.setdefault(str(seen.cell.stratum), [0, 0])
            counts[0] += seen.groups.completions
            counts[1] += seen.groups.valid
        edits: dict[Stratum, Edit] = {}
        for stratum in space.sort_strata(design.strata):
            answers, valid = self.counts.get(str(stratum), (0, 0))
            if not answers or answers <= self.last:
                continue
            del self.counts[str(stratum)]
            way = (valid / answers > self.success) - (valid / answers < self.failure)
            if edit := _make_edit(stratum, way, design, space):
                edits[stratum] = edit
        return propose_delta(Delta(edits))


def _make_edit(stratum: Stratum, way: int, design: Design, space: DesignSpace) -> Edit | None:
    """A step harder (way 1) or easier (-1) of every knob, inside its range; None if that changes nothing."""
    changes = {}
    for knob in space.knobs:
        low, high = space.limits(stratum, knob)
        now = design.strata[stratum][knob.name]
        changes[knob.name] = min(high, max(low, now + way * knob.harder * knob.step)) - now
    reason = vocabulary_of(space).reasons[TOO_EASY if way > 0 else TOO_HARD]
    return make_edit(space, reason, changes) if any(changes.values()) else None
