"""What teachers proposed, or would propose, on the recorded evidence of a run; nothing is written."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from textwrap import indent

import msgspec
from tabulate import tabulate

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError, one_line
from lakewright.core_jax.generator import can_draw_for
from lakewright.engineer.delta import summary
from lakewright.engineer.evidence import Evidence, evidence_text
from lakewright.engineer.negotiation import Attempt, negotiate
from lakewright.engineer.proposal import Stateless
from lakewright.experiments.loop.records import Decision, EngineerTraining, Next, RunFolder, Source, Stage, Trial, read
from lakewright.experiments.loop.redesign import changes, teacher_of, trust_region
from lakewright.experiments.loop.settings import RunSettings, key_for
from lakewright.experiments.view.run_table import describe_config

RECORDED = "recorded"  # the name under which the decision of the run itself is shown

TRIAL_HEADER = ("", "score", "p(1-p)", "P(better)", "informative", "valid", "per size p(1-p)")


class Shown(msgspec.Struct, frozen=True):
    """One stage of a run as the engineer saw it, and what came of it."""

    folder: str
    stage: int
    teacher: str
    config: EnvConfig
    evidence: Evidence
    attempts: list[Attempt]
    trial: Trial | None
    next_config: EnvConfig
    source: Source
    reasons: list[str]
    engineer: EngineerTraining | None


class Replayed(msgspec.Struct, frozen=True):
    """What one teacher makes of one stage's evidence."""

    folder: str
    stage: int
    teacher: str
    attempts: list[Attempt]

    @property
    def last(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]


def shown_stage(folder: RunFolder, number: int) -> Shown:
    """The record of a finished stage. Raises InputError where there is none."""
    stage = finished_stage(folder, number)
    decision = read(stage.proposal, Decision) if stage.proposal.exists() else None
    attempts = [*decision.refused, Attempt(decision.proposal, decision.verdict)] if decision else []
    trial = read(stage.trial, Trial) if stage.trial.exists() else None
    engineer = read(stage.engineer, EngineerTraining) if stage.engineer.exists() else None
    evidence, config = _read_evidence(stage), stage.config()
    teacher = decision.teacher if decision else folder.settings().teacher
    return Shown(
        str(folder.folder),
        number,
        teacher,
        config,
        evidence,
        attempts,
        trial,
        *_describe_next(stage.following()),
        engineer,
    )


def ask_teacher(settings: RunSettings, folder: RunFolder, number: int) -> Replayed:
    """What the teacher of `settings` proposes after a finished stage, having seen those before it."""
    finished_stage(folder, number)
    *_, last = _replay_stages(settings, folder, range(number + 1), only=number)
    return last


def replay_teachers(settings: Sequence[RunSettings], folder: RunFolder) -> Iterator[Replayed]:
    """The run's own decisions, and what other teachers make of the same evidence, stage by stage."""
    numbers = range(len(folder.finished_stages()))
    others = [_replay_stages(chosen, folder, numbers) for chosen in settings]
    for number in numbers:
        yield Replayed(str(folder.folder), number, RECORDED, shown_stage(folder, number).attempts)
        for other in others:
            yield next(other)


def finished_stage(folder: RunFolder, number: int) -> Stage:
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


def stage_text(shown: Shown) -> str:
    """A stage as text: evidence and prompt, every answer with its verdict, the trial, and what it came to."""
    parts = [
        f"stage {shown.stage} of {shown.folder}, teacher {shown.teacher}",
        f"drawn from  {describe_config(shown.config)}",
    ]
    parts += ["", "## evidence", escape_controls(evidence_text(shown.evidence)).rstrip()]
    for attempt in shown.attempts:
        parts += list(_attempt_lines(attempt))
    if shown.engineer:
        parts += ["", "## training of the engineer on its own proposals", *_round_lines(shown.engineer)]
    if shown.trial:
        parts += ["", "## trial", *_trial_lines(shown.trial)]
    why = escape_controls("; ".join(shown.reasons))
    return "\n".join([*parts, "", f"{shown.source}: {why}", f"next stage  {describe_config(shown.next_config)}"])


def proposal_text(found: Replayed) -> str:
    """A dry run as text."""
    lines = [line for attempt in found.attempts for line in _attempt_lines(attempt)]
    head = f"stage {found.stage} of {found.folder}, teacher {found.teacher}"
    return "\n".join([head, *lines, "", f"next config  {describe_config(found.last.verdict.config)}"])


def side_by_side(found: Sequence[Replayed], configs: dict[tuple[str, int], EnvConfig]) -> str:
    """One block for each stage, one line for each teacher: its verdict, and what of the config would change."""
    blocks = []
    for (folder, stage), replays in groupby(found, lambda replay: (replay.folder, replay.stage)):
        config = configs[folder, stage]
        rows = [(replay.teacher, *_describe_outcome(replay, config)) for replay in replays]
        table = tabulate(rows, tablefmt="plain", disable_numparse=True)
        blocks.append(f"{folder} stage {stage}: {describe_config(config)}\n{indent(table, '  ')}")
    return "\n\n".join(blocks)


def _describe_outcome(replay: Replayed, config: EnvConfig) -> tuple[str, str]:
    """The verdict on what a teacher proposed, and what would change or why it was refused."""
    if not replay.attempts:
        return "not asked", "the stage was taken back"
    verdict = replay.last.verdict
    refused = verdict.status == "refused"
    return verdict.status, escape_controls(verdict.reasons[0]) if refused else changes(config, verdict.config)


def escape_controls(text: str) -> str:
    """Text of a model for a terminal: control characters, except new lines, are spelled out."""
    return "\n".join(map(one_line, text.split("\n")))


def _describe_next(following: Next) -> tuple[EnvConfig, Source, list[str]]:
    return following.config, following.source, following.reasons


def _read_evidence(stage: Stage) -> Evidence:
    return stage.read_evidence()


def _replay_stages(
    settings: RunSettings, folder: RunFolder, numbers: range, only: int | None = None
) -> Iterator[Replayed]:
    """A teacher's proposals stage by stage, its state handed on; one without state is asked after `only` alone."""
    state = None
    for number in numbers:
        stage = finished_stage(folder, number)
        teacher = teacher_of(settings, folder, stage, state)
        if only is not None and number != only and isinstance(teacher, Stateless):
            continue
        key = key_for(settings.seed, f"stage {number} teacher")
        reachable = can_draw_for(settings.teams)
        guard = trust_region(settings, stage)
        attempts = negotiate(teacher, _read_evidence(stage), stage.config(), key, guard, reachable)
        state = teacher.state_dict()
        yield Replayed(str(folder.folder), number, settings.teacher, attempts)


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    proposal, verdict = attempt.proposal, attempt.verdict
    for name, text in (("prompt", proposal.prompt), ("answer", proposal.answer)):
        if text:
            yield from ("", f"## {name}", escape_controls(text).rstrip())
    if proposal.cut:
        yield f"cut from the evidence: {', '.join(proposal.cut)}"
    yield from (
        "",
        "## delta",
        summary(proposal.delta) if proposal.delta else f"none: {escape_controls(proposal.error)}",
    )
    yield from (f"or {summary(delta)}" for delta in proposal.candidates)
    yield f"{verdict.status}{''.join(f'{chr(10)}- {escape_controls(reason)}' for reason in verdict.reasons)}"


def _trial_lines(trial: Trial) -> Iterator[str]:
    rows = []
    for place, tried in enumerate(trial.candidates):
        name = ("current" if not place else "proposed") + ("*" if place == trial.chosen else "")
        sizes = " ".join(f"{size}: {signal.variance:.3f}" for size, signal in tried.sizes.items())
        whole = tried.signal
        better = f"{trial.leads[place].better:.2f}" if trial.leads and place else ""
        measured = f"{tried.score:.4f}", f"{whole.variance:.4f}", better
        rows.append((name, *measured, f"{whole.informative:.3f}", f"{whole.valid:.3f}", sizes))
    alignment = ("left", *["right"] * 5, "left")
    yield tabulate(rows, TRIAL_HEADER, tablefmt="plain", colalign=alignment, disable_numparse=True)
    yield f"* chosen; {trial.tokens} tokens"
