"""Proposals that teachers made, or would make, on the recorded evidence of a run; nothing is written."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import indent
from typing import Any

import msgspec
from tabulate import tabulate

from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.delta import describe_changes, summarize_delta
from lakewright.engineer.design import Design
from lakewright.engineer.evidence import Evidence, evidence_text
from lakewright.engineer.proposal import Stateful
from lakewright.engineer.random_generators import make_key
from lakewright.engineer.steps import Attempt, Next
from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.lake_form import PRINTED, to_lake
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import DecisionRecord, EngineerTraining, read_record
from lakewright.experiments.loop.redesign.teacher_models import load_teacher, make_engineer
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.viewer.catalogue.run_space import RunSpace, describe_next

RECORDED = "recorded"  # the name under which the decision of the run itself is shown


class Shown(msgspec.Struct, frozen=True):
    """One stage of a run: the evidence for the engineer, its answers, and the next design."""

    folder: str
    stage: int
    teacher: str
    design: Design
    evidence: Evidence
    attempts: list[Attempt]
    trial: Trial | None
    following: Next
    engineer: EngineerTraining | None


class Replayed(msgspec.Struct, frozen=True):
    """The proposals of one teacher on one stage's evidence."""

    folder: str
    stage: int
    teacher: str
    attempts: list[Attempt]

    @property
    def last(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]


def read_shown_stage(folder: RunFolder, number: int) -> Shown:
    """The record of a finished stage. Raises InputError without one."""
    stage = find_finished_stage(folder, number)
    decision = read_record(stage.proposal, DecisionRecord) if stage.proposal.exists() else None
    attempts = [*decision.refused, Attempt(decision.proposal, decision.verdict)] if decision else []
    trial = read_record(stage.trial, Trial) if stage.trial.exists() else None
    engineer = read_record(stage.engineer, EngineerTraining) if stage.engineer.exists() else None
    return Shown(
        folder=str(folder.folder),
        stage=number,
        teacher=decision.teacher if decision else folder.settings().teacher,
        design=stage.design(),
        evidence=stage.read_evidence(),
        attempts=attempts,
        trial=trial,
        following=stage.read_next(),
        engineer=engineer,
    )


def plain_stage(shown: Shown, about: RunSpace) -> dict[str, Any]:
    """A stage as JSON values; of the lake with the names of the lake's records."""
    fields, following = msgspec.structs.asdict(shown), shown.following
    del fields["following"]
    fields |= {"next_design": following.design, "source": following.source, "reasons": following.reasons}
    if not about.lake:
        return msgspec.to_builtins(fields, str_keys=True)
    return PRINTED.to_lake({name: to_lake(value) for name, value in fields.items()})


def plain_replay(found: Replayed, about: RunSpace) -> dict[str, Any]:
    """A dry run as JSON values; of the lake with the names of the lake's records."""
    return to_lake(found) if about.lake else msgspec.to_builtins(found, str_keys=True)


def ask_teacher(settings: RunSettings, folder: RunFolder, number: int) -> Replayed:
    """The proposal of the teacher of `settings` after a finished stage, with those before it observed."""
    find_finished_stage(folder, number)
    *_, last = _replay_stages(settings, folder, range(number + 1), only=number)
    return last


def replay_teachers(settings: Sequence[RunSettings], folder: RunFolder) -> Iterator[Replayed]:
    """The run's own decisions, and other teachers' proposals on the same evidence, stage by stage."""
    numbers = range(len(folder.finished_stages()))
    others = [_replay_stages(chosen, folder, numbers) for chosen in settings]
    for number in numbers:
        yield Replayed(str(folder.folder), number, RECORDED, read_shown_stage(folder, number).attempts)
        for other in others:
            yield next(other)


def find_finished_stage(folder: RunFolder, number: int) -> Stage:
    """A stage that counts. Raises InputError, naming those there are, on another."""
    finished = len(folder.finished_stages())
    if not 0 <= number < finished:
        choices = f"choose 0 to {finished - 1}" if finished else "run it first"
        raise InputError(f"{folder.folder}: stage {number} is not finished; {choices}")
    return folder.stage(number)


def _round_lines(training: EngineerTraining) -> Iterator[str]:
    """One line for each round, means over its answers."""
    for turn, group in enumerate(training.groups):
        figures = (f"{name} {value:.3g}" for name, value in group.figures.items())
        yield f"round {turn}: {', '.join(figures)}"


def stage_text(shown: Shown, about: RunSpace) -> str:
    """A stage as text: evidence and prompt, every answer with its verdict, the trial, and the outcome."""
    following = shown.following
    parts = [
        f"stage {shown.stage} of {shown.folder}, teacher {shown.teacher}",
        f"drawn from  {about.describe_design(shown.design)}",
    ]
    if about.problem:
        parts.append(f"{escape_controls(about.problem)}; the records are shown")
    parts += ["", "## evidence", escape_controls(evidence_text(shown.evidence, about.space)).rstrip()]
    for attempt in shown.attempts:
        parts += list(_attempt_lines(attempt, about))
    if shown.engineer:
        parts += ["", "## training of the engineer on its own proposals", *_round_lines(shown.engineer)]
    if shown.trial:
        parts += ["", "## trial", *_trial_lines(shown.trial, about)]
    why = f"{following.source}: {'; '.join(following.reasons)}"
    if not about.lake:
        why = describe_next(following, shown.design, shown.stage, about)
    return "\n".join([*parts, "", escape_controls(why), f"next stage  {about.describe_design(following.design)}"])


def proposal_text(found: Replayed, about: RunSpace) -> str:
    """A dry run as text."""
    lines = [line for attempt in found.attempts for line in _attempt_lines(attempt, about)]
    head = f"stage {found.stage} of {found.folder}, teacher {found.teacher}"
    design = about.describe_design(found.last.verdict.design)
    return "\n".join([head, *lines, "", f"next {about.space.words.design}  {design}"])


def side_by_side(found: Sequence[Replayed], designs: Mapping[tuple[str, int], tuple[Design, RunSpace]]) -> str:
    """One block for each stage, one line for each teacher: its verdict, and what of the design would change.

    found: the proposals. designs: by folder and stage the design of the stage, and the run's design space.
    """
    blocks = []
    for (folder, stage), replays in groupby(found, lambda replay: (replay.folder, replay.stage)):
        design, about = designs[folder, stage]
        rows = [(replay.teacher, *_describe_outcome(replay, design, about)) for replay in replays]
        table = tabulate(rows, tablefmt="plain", disable_numparse=True)
        blocks.append(f"{folder} stage {stage}: {about.describe_design(design)}\n{indent(table, '  ')}")
    return "\n\n".join(blocks)


def _describe_outcome(replay: Replayed, design: Design, about: RunSpace) -> tuple[str, str]:
    """The verdict on what a teacher proposed, and what would change or why it was refused."""
    if not replay.attempts:
        return "not asked", "the stage was rolled back"
    verdict = replay.last.verdict
    if verdict.status == "refused":
        return verdict.status, escape_controls(verdict.reasons[0])
    return verdict.status, describe_changes(design, verdict.design, about.space)


def escape_controls(text: str) -> str:
    """Text of a model for a terminal: control characters, except new lines, are spelled out."""
    return "\n".join(map(one_line, text.split("\n")))


def _replay_stages(
    settings: RunSettings, folder: RunFolder, numbers: range, only: int | None = None
) -> Iterator[Replayed]:
    """A teacher's proposals stage by stage, its state handed on; one without state is asked after `only` alone."""
    state, environment = None, make_trainee(settings).environment
    # Rivals for a trial would be asked for again, and none is held here.
    alone = msgspec.structs.replace(settings, engineer=msgspec.structs.replace(settings.engineer, proposals=1))
    for number in numbers:
        stage = find_finished_stage(folder, number)
        teacher = load_teacher(settings, folder, stage, state)
        if only is not None and number != only and isinstance(teacher, Stateful) and not teacher.list_state():
            continue
        key = make_key(derive_seed(settings.seed, f"stage {number} teacher"))
        attempts = make_engineer(alone, environment, stage.design(), teacher).propose(
            stage.read_evidence(), stage.read_forecast(), key
        )
        state = teacher.state_dict()
        yield Replayed(str(folder.folder), number, settings.teacher, attempts)


def _attempt_lines(attempt: Attempt, about: RunSpace) -> Iterator[str]:
    proposal, verdict = attempt.proposal, attempt.verdict
    for name, text in (("prompt", proposal.prompt), ("answer", proposal.answer)):
        if text:
            yield from ("", f"## {name}", escape_controls(text).rstrip())
    if proposal.cut:
        yield f"cut from the evidence: {', '.join(proposal.cut)}"
    yield from (
        "",
        "## delta",
        summarize_delta(proposal.delta, about.space) if proposal.delta else f"none: {escape_controls(proposal.error)}",
    )
    yield from (f"or {summarize_delta(delta, about.space)}" for delta in proposal.candidates)
    yield f"{verdict.status}{''.join(f'{chr(10)}- {escape_controls(reason)}' for reason in verdict.reasons)}"


def _trial_lines(trial: Trial, about: RunSpace) -> Iterator[str]:
    rows = []
    for place, tried in enumerate(trial.candidates):
        name = ("current" if not place else "proposed") + ("*" if place == trial.chosen else "")
        strata = " ".join(f"{stratum}: {signal.variance:.3f}" for stratum, signal in tried.strata.items())
        whole = tried.signal
        better = f"{trial.leads[place].better:.2f}" if trial.leads and place else ""
        measured = f"{tried.score:.4f}", f"{whole.variance:.4f}", better
        rows.append((name, *measured, f"{whole.informative:.3f}", f"{whole.valid:.3f}", strata))
    alignment = ("left", *["right"] * 5, "left")
    header = ("", "score", "p(1-p)", "P(better)", "informative", "valid", f"per {about.space.words.token} p(1-p)")
    yield tabulate(rows, header, tablefmt="plain", colalign=alignment, disable_numparse=True)
    yield f"* chosen; {trial.tokens} tokens"
