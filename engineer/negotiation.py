"""Asking the engineer: a refused proposal goes back with its error, until one passes or the tries are over."""

import msgspec

from lakewright.engineer.design import Design
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import Bounds, GuardSettings, GuardVerdict, judge
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.random_generators import Key, fold, split
from lakewright.engineer.trial import add_rivals

TOLD = 300  # characters of a refusal that the teacher is shown: what it wrote itself may be in there


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try: what was proposed, and the guard's verdict on it."""

    proposal: Proposal
    verdict: GuardVerdict


def negotiate(
    teacher: Teacher,
    evidence: Evidence,
    design: Design,
    bounds: Bounds,
    key: Key,
    settings: GuardSettings,
    proposals: int = 1,
) -> list[Attempt]:
    """Asks until a proposal is not refused, at most `settings.tries` times; the last attempt is what counts.

    teacher: is asked. evidence, design: as in `Teacher.propose`. bounds: the environment. key: consumed. settings: the
    guard's. proposals: how many deltas are asked for, to be tried side by side.

    Each refusal is in `evidence.refusals` of the next try, and leaves no trace in the teacher's state. Where the
    last is refused too, its verdict holds `design`.
    """
    attempts: list[Attempt] = []
    before = teacher.state_dict()
    for attempt_key in split(key, settings.tries):
        proposal = teacher.propose(evidence, design, bounds.space, attempt_key)
        attempts.append(Attempt(proposal, judge_proposal(proposal, design, bounds, settings)))
        if attempts[-1].verdict.status != "refused":
            if proposals > 1:
                rivals = fold(key, proposals)
                proposal = add_rivals(teacher, proposal, evidence, design, bounds.space, rivals, proposals)
                attempts[-1] = msgspec.structs.replace(attempts[-1], proposal=proposal)
            break
        teacher.load_state_dict(before)
        errors = [*evidence.refusals, "; ".join(attempts[-1].verdict.reasons)[:TOLD]]
        evidence = msgspec.structs.replace(evidence, refusals=errors)
    return attempts


def judge_proposal(proposal: Proposal, design: Design, bounds: Bounds, settings: GuardSettings) -> GuardVerdict:
    """The guard's verdict on a proposal; one without a delta is refused for its own error."""
    if proposal.delta is None:
        return GuardVerdict("refused", [proposal.error], design)
    return judge(design, proposal.delta, bounds, settings)
