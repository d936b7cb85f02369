"""A stage in a few lines for people: validation, the proposal, guard and trial, and what is trained on next."""

from collections.abc import Iterator

from lakewright.engineer.delta import list_changes, make_printable, summarize_delta
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import pool_tallies
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records import Decision, RunFolder, Validation, read

MOST = 200  # characters of a proposal


def story_of(folder: RunFolder, number: int, space: DesignSpace) -> list[str]:
    """The lines of a finished stage."""
    stage, before = folder.stage(number), folder.standing(number - 1)
    lines = [_validation(read(before.validation, Validation), read(stage.validation, Validation), space)]
    following = stage.following()
    if stage.rolled_back():
        lines.append(f"rolled back {following.reasons[0]}")
    if following.source != "rollback":
        lines += _proposal(read(stage.proposal, Decision), space)
        if stage.trial.exists():
            lines.append(f"trial       {read(stage.trial, Trial).summary()}")
    changes = list_changes(stage.design(), following.design, space)
    return [*lines, f"next        {changes} ({following.source}: {_cut(following.reasons[-1])})"]


def _cut(text: str) -> str:
    return make_printable(text)[:MOST] + "..." * (len(text) > MOST)


def _validation(before: Validation, after: Validation, space: DesignSpace) -> str:
    old, new = pool_tallies(before.outcomes.values()), pool_tallies(after.outcomes.values())
    strata = space.sort_strata(after.outcomes)
    parts = ", ".join(f"{space.words.label(one)} {100 * after.outcomes[one].valid_rate:.0f}" for one in strata)
    rates = 100 * old.valid_rate, 100 * new.valid_rate
    answers = space.words.answers
    return f"validation  {rates[1]:.1f} % of held-out {answers} valid ({rates[1] - rates[0]:+.1f}): {parts}"


def _proposal(decision: Decision, space: DesignSpace) -> Iterator[str]:
    proposal, verdict = decision.proposal, decision.verdict
    text = summarize_delta(proposal.delta, space) if proposal.delta else proposal.error
    others = f" (and {len(proposal.candidates)} more)" if proposal.candidates else ""
    yield f"proposal    {_cut(text)}{others}"
    if verdict.status == "projected":
        yield f"guard       clipped {len(verdict.reasons)} of the changes"
    elif verdict.status == "refused":
        yield f"guard       refused: {_cut(verdict.reasons[0])}"
