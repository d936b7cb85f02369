"""The history of a run, read once for its report.

`describe_stage` and `describe_redesign` tell of a stage in a few lines for people.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from lakewright.engineer.cells import Stratum
from lakewright.engineer.delta import describe_changes, make_printable, summarize_delta
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import Calibration
from lakewright.engineer.lessons import Examination
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    Excluded,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_stage_problems
from lakewright.experiments.loop.records.token_budget import Spent, count_stage_tokens

MOST = 200  # characters of a proposal


class Chapter(msgspec.Struct, frozen=True):
    """The warm-up, or a finished stage. log: the figures of each training step.

    design: None for the warm-up, of which there is a decision only if the engineer is asked before the first stage.

    calibration: how well the difficulty model forecast this stage. engineer: the figures of each group of the training
    of `self_trained`, the last after it.
    """

    name: str
    validation: Validation
    log: list[dict[str, float | None]]
    seconds: float
    design: Design | None
    decision: DecisionRecord | None
    trial: Trial | None = None
    tokens: Spent = Spent()
    rolled_back: bool = False
    calibration: Calibration | None = None
    engineer: list[dict[str, float]] = []

    @property
    def pooled(self) -> Tally:
        """The outcomes on the whole held-out set."""
        return self.validation.pooled

    @property
    def tick(self) -> str:
        """The name, short."""
        return self.name.removeprefix("stage ")


def read_chapters(folder: RunFolder) -> list[Chapter]:
    """The warm-up and every finished stage, in order; fewer if the run is not finished."""
    found = [_read_chapter("warm-up", folder.warmup)] if folder.warmup.done.exists() else []
    warmup = [msgspec.structs.replace(chapter, design=None) for chapter in found]  # the engineer's, if it was asked
    stages = enumerate(folder.finished_stages())
    return warmup + [_read_chapter(f"stage {number}", stage) for number, stage in stages]


def count_met_in_training(folder: RunFolder) -> dict[Stratum, int]:
    """Number of held-out problems of each stratum that also occur among the problems of the finished stages.

    There are few 3x3 boards, so some do. The problems of the warm-up are not saved and not counted.
    """
    if not folder.saved_held_out:
        return {}
    saved = [stage for stage in folder.finished_stages() if stage.saved_problems]
    trained = {problem.key for stage in saved for problem in read_stage_problems(stage)}
    held_out = read_held_out(folder)
    met = Counter(problem.cell.stratum for problem in held_out if problem.key in trained)
    return {problem.cell.stratum: met[problem.cell.stratum] for problem in held_out}


def read_examination(folder: RunFolder) -> Examination | None:
    """The result of the engineer's examination; None if the warm-up did not teach the engineer's part."""
    return find_record(folder.warmup.examination, Examination)


def count_excluded(folder: RunFolder) -> int:
    """Number of boards of `exclude`, or symmetric to one, that training drew and replaced by others."""
    stages = [folder.warmup, *folder.finished_stages()]
    return sum(found.boards for stage in stages if (found := find_record(stage.excluded, Excluded)))


def _read_chapter(name: str, stage: Stage) -> Chapter:
    return Chapter(
        name=name,
        validation=read_record(stage.validation, Validation),
        log=stage.read_steps(),
        seconds=read_record(stage.done, Done).seconds,
        design=find_record(stage.design_file, Design),
        decision=find_record(stage.proposal, DecisionRecord),
        trial=find_record(stage.trial, Trial),
        tokens=count_stage_tokens(stage),
        rolled_back=stage.rolled_back() is not None,
        calibration=stage.read_calibration(),
        engineer=stage.engineer_figures(),
    )


def explain_first_design(folder: RunFolder) -> str | None:
    """Why all stages of a run were drawn from the first design; None if one wasn't, or nothing was decided."""
    stages = folder.finished_stages()
    decided = [stage for stage in (folder.warmup, *stages[:-1]) if stage.proposal.exists() or stage.rolled_back()]
    first = find_record(decided[0].design_file, Design) if decided else None
    if first is None or any(find_record(stage.design_file, Design) != first for stage in stages):
        return None
    counted = Counter(map(_explain_no_change, decided))
    reasons = ", ".join(f"{count} time{'s' * (count > 1)} {reason}" for reason, count in counted.items())
    which = f"all {len(stages)} stages were" if len(stages) > 1 else "the only stage was"
    return f"{which} drawn from the first design: {reasons}"


def _explain_no_change(stage: Stage) -> str:
    """The reason for which a decision did not change the design."""
    if stage.read_next().source == "rollback":
        return "a stage was rolled back"
    if find_record(stage.trial, Trial):
        return "the trial preferred it"
    decision = find_record(stage.proposal, DecisionRecord)
    if decision is None or decision.proposal.delta is None:
        return "no answer of the engineer could be used"
    return "the guard refused the change" if decision.verdict.status == "refused" else "no change was proposed"


def describe_stage(folder: RunFolder, number: int, space: DesignSpace) -> list[str]:
    """The lines of a finished stage."""
    stage, before = folder.stage(number), folder.find_standing(number - 1)
    old, new = (read_record(part.validation, Validation) for part in (before, stage))
    lines = [_describe_validation(old, new, space)]
    if over := read_record(stage.done, Done).started_over:
        lines.append(f"training    interrupted {over} times, and each time begun again from the previous checkpoint")
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
    changes = describe_changes(stage.design(), following.design, space)
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
