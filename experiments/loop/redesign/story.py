"""A stage in a few lines for people: validation, the proposal, guard and trial, and what is trained on next."""

from collections.abc import Iterator

from lakewright.engineer.delta import list_changes, make_printable, summarize_delta
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import DecisionRecord, Validation, find_record, read_record

MOST = 200  # characters of a proposal


def describe_stage(folder: RunFolder, number: int, space: DesignSpace) -> list[str]:
    """The lines of a finished stage."""
    stage, before = folder.stage(number), folder.find_standing(number - 1)
    old, new = (read_record(part.validation, Validation) for part in (before, stage))
    lines = [_describe_validation(old, new, space)]
    if stage.rolled_back():
        lines.append(f"rolled back {stage.read_next().reasons[0]}")
    return [*lines, *describe_redesign(stage, space)]


def describe_redesign(stage: Stage, space: DesignSpace) -> list[str]:
    """The lines on the decision after a stage, or after the warm-up."""
    following, lines = stage.read_next(), list[str]()
    if following.source != "rollback":
        lines += _describe_proposal(read_record(stage.proposal, DecisionRecord), space)
        if trial := find_record(stage.trial, Trial):
            lines.append(f"trial       {trial.summary()}")
    changes = list_changes(stage.design(), following.design, space)
    return [*lines, f"next        {changes} ({following.source}: {_cut_text(following.reasons[-1])})"]


def _cut_text(text: str) -> str:
    return make_printable(text)[:MOST] + "..." * (len(text) > MOST)


def _describe_validation(before: Validation, after: Validation, space: DesignSpace) -> str:
    strata = space.sort_strata(after.outcomes)
    parts = ", ".join(f"{space.words.label(one)} {100 * after.outcomes[one].valid_rate:.0f}" for one in strata)
    old, new = 100 * before.pooled.valid_rate, 100 * after.pooled.valid_rate
    return f"validation  {new:.1f} % of held-out {space.words.answers} valid ({new - old:+.1f}): {parts}"


def _describe_proposal(decision: DecisionRecord, space: DesignSpace) -> Iterator[str]:
    proposal, verdict = decision.proposal, decision.verdict
    text = summarize_delta(proposal.delta, space) if proposal.delta else proposal.error
    others = f" (and {len(proposal.candidates)} more)" if proposal.candidates else ""
    yield f"proposal    {_cut_text(text)}{others}"
    if verdict.status == "projected":
        yield f"guard       clipped {len(verdict.reasons)} of the changes"
    elif verdict.status == "refused":
        yield f"guard       refused: {_cut_text(verdict.reasons[0])}"
