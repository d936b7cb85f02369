"""The engineer and the guard: a refused proposal goes back with its error, until one passes or the tries are over."""

import jax
import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import can_draw
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import GuardSettings, GuardVerdict, Reachable, judge
from lakewright.engineer.proposal import Proposal, Teacher
from lakewright.engineer.trial import with_rivals

TOLD = 300  # characters of a refusal that the teacher is shown: what it wrote itself may be in there


class Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One try: what was proposed, and what the guard made of it."""

    proposal: Proposal
    verdict: GuardVerdict


def negotiate(
    teacher: Teacher,
    evidence: Evidence,
    config: EnvConfig,
    key: jax.Array,
    settings: GuardSettings,
    reachable: Reachable = can_draw,
    proposals: int = 1,
) -> list[Attempt]:
    """Asks until a proposal is not refused, at most `settings.tries` times; the last attempt is what counts.

    proposals: how many deltas are asked for, to be tried side by side.

    Each refusal is in `evidence.refusals` of the next try, and leaves no trace in the teacher's state. Where the
    last is refused too, its verdict holds `config`. The key is consumed.
    """
    attempts: list[Attempt] = []
    before = teacher.state_dict()
    for attempt_key in jax.random.split(key, settings.tries):
        proposal = teacher.propose(evidence, config, attempt_key)
        attempts.append(Attempt(proposal, verdict_on(proposal, config, settings, reachable)))
        refused = attempts[-1].verdict.status == "refused"
        if not refused:
            attempts[-1] = _with_rivals(teacher, attempts[-1], evidence, config, key, proposals)
            break
        teacher.load_state_dict(before)
        errors = [*evidence.refusals, "; ".join(attempts[-1].verdict.reasons)[:TOLD]]
        evidence = msgspec.structs.replace(evidence, refusals=errors)
    return attempts


def _with_rivals(
    teacher: Teacher, last: Attempt, evidence: Evidence, config: EnvConfig, key: jax.Array, proposals: int
) -> Attempt:
    if proposals == 1:
        return last
    proposal = with_rivals(teacher, last.proposal, evidence, config, jax.random.fold_in(key, proposals), proposals)
    return msgspec.structs.replace(last, proposal=proposal)


def verdict_on(
    proposal: Proposal, config: EnvConfig, settings: GuardSettings, reachable: Reachable = can_draw
) -> GuardVerdict:
    """The guard's verdict on a proposal; one without a delta is refused for its own error."""
    if proposal.delta is None:
        return GuardVerdict("refused", [proposal.error], config)
    return judge(config, proposal.delta, settings, reachable)
