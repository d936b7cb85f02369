"""The page of a stage: evidence, prompt, answer, delta, guard, trial, the problems drawn, and the outcomes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import Knob
from lakewright.engineer.design import Delta, Design, DesignRow, Edit
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence import Evidence, evidence_text
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.steps import Attempt
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.engineer.trial import Trial
from lakewright.engineer.windows import find_ends
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    EngineerTraining,
    Example,
    Rollback,
    SampledRecord,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.viewer.catalogue.discovery import Item
from lakewright.experiments.viewer.catalogue.run_space import (
    SOURCES,
    RunSpace,
    find_space,
    format_ends,
    format_value,
)
from lakewright.experiments.viewer.charts.heat import difficulty_panels
from lakewright.experiments.viewer.pages import run_charts as charts
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, format_percent, format_points, mark_svg
from lakewright.experiments.viewer.pictures.board_art import MOST_SIDE, fits_picture
from lakewright.experiments.viewer.pictures.played_plans import draw_played, make_example

STEPS = ("evidence", "prompt", "answer", "delta", "guard", "trial", "drawn", "change", "plans")
MOST_PLAYERS = 8


class Change(NamedTuple):
    """The value of a column in a row before and after."""

    column: Knob
    before: DesignRow
    after: DesignRow

    @property
    def differs(self) -> bool:
        """Whether it changed, as far as one sees."""
        pairs = zip(find_ends(self.after, self.column), find_ends(self.before, self.column), strict=True)
        return any(abs(after - before) > min(5e-4, self.column.span / 1000) for after, before in pairs)

    @property
    def texts(self) -> tuple[str, str]:
        """Both values as text."""
        return format_ends(self.column, self.before), format_ends(self.column, self.after)


class StratumChange(NamedTuple):
    """The values of a stratum before and after, and why."""

    label: str
    changes: list[Change]
    reason: str


class TextExample(NamedTuple):
    """A problem in text with an answer to it. failure: empty of a valid answer."""

    title: str
    prompt: str
    answer: str
    reference: str
    failure: str


class ShownAttempt(NamedTuple):
    """An answer of the engineer with the guard's verdict.

    edits: before the guard. diff: after it. reason: shared by all edits.
    """

    proposal: Proposal
    verdict: GuardVerdict
    edits: Table | None
    reason: str
    diff: list[StratumChange]


class StageView(NamedTuple):
    """The content of the page of a stage; what does not exist yet is None or empty.

    number: from 0, or -1 for the warm-up. columns: the header of tables of designs. maps, frontier: pictures. Fields
    with next: the design that follows, and its problems. own_change, next_change: held-out outcomes before and after.
    """

    number: int
    finished: bool
    columns: tuple[str, ...]
    design: Table | None
    sampled: Table | None
    evidence_text: str | None
    maps: list[Markup]
    frontier: list[Markup]
    frontier_table: Table | None
    engineer: Table | None
    teacher: str
    attempts: list[ShownAttempt]
    trial: Table | None
    trial_tokens: int
    next_design: list[StratumChange] | None
    next_source: str
    next_reasons: list[str]
    next_sampled: Table | None
    next_drawn: bool
    own_change: Table | None
    next_change: Table | None
    rollback: Rollback | None
    problems_saved: bool
    players: list[dict[str, Any]]
    texts: list[TextExample]
    steps: tuple[str, ...] = STEPS
    most_side: int = MOST_SIDE

    @property
    def called(self) -> str:
        """Its name for people."""
        return _call_stage(self.number)


def stage_page(item: Item, number: str) -> Page:
    """A stage so far. item: the run. number: from 0, or `warm-up`. Raises InputError if the run has no such stage."""
    folder = RunFolder(item.path)
    stages, place = folder.settings().stages, -1 if number == "warm-up" else int(number)
    if place >= stages:
        raise InputError(f"{item.name}: has {stages} stages, from 0; stage {place} does not exist")
    about = find_space(folder, folder.settings())
    view = read_stage_view(folder, place, about)
    values = {"about": about, "words": about.space.words, "name": item.name, "stage": view}
    values |= {"stages": stages, "asked_first": asked_first(folder)}
    crumbs = [Crumb("All", ""), Crumb(item.name, f"run/{item.name}"), Crumb(view.called, "")]
    return Page(f"{item.name}, {view.called}", "stage.html", values, crumbs, not view.finished)


def asked_first(folder: RunFolder) -> bool:
    """Whether the engineer was asked after the warm-up, before the first stage."""
    return folder.warmup.proposal.exists()


def _call_stage(number: int) -> str:
    return f"stage {number}" if number >= 0 else "warm-up"


def read_stage_view(folder: RunFolder, number: int, about: RunSpace) -> StageView:
    """The records of a stage, or of the warm-up (-1), so far. about: the design space of the run."""
    stage, before = folder.stage(number), folder.stage(number - 1)
    following = folder.stage(number + 1)
    decision, trial = find_record(stage.proposal, DecisionRecord), find_record(stage.trial, Trial)
    evidence = stage.read_evidence() if stage.evidence.exists() else None
    design = stage.design() if stage.design_file.exists() else None
    forecast, done = find_record(stage.difficulty, Forecast), find_record(stage.done, Done)
    drawn = len(about.space.levels) < 2  # with several levels, a table
    chosen = stage.read_next() if done and (decision or stage.next.exists()) else None
    validation = find_record(stage.validation, Validation)
    examples = validation.examples if validation else []
    return StageView(
        number=number,
        finished=done is not None,
        columns=_head_columns(about),
        design=tabulate_design(design, about) if design else None,
        sampled=_show_sampled(stage, about),
        evidence_text=evidence_text(evidence, about.space) if evidence else None,
        maps=_draw_maps(evidence, following, number, about),
        frontier=list(map(mark_svg, difficulty_panels(forecast, about.space))) if forecast and drawn else [],
        frontier_table=tabulate_forecast(forecast, about) if forecast and not drawn else None,
        engineer=_show_engineer(stage),
        teacher=decision.teacher if decision else "",
        attempts=_list_attempts(decision, design, about) if decision and design else [],
        trial=_show_trial(trial, about) if trial else None,
        trial_tokens=trial.tokens if trial else 0,
        next_design=list_stratum_changes(design, chosen.design, about) if design and chosen else None,
        next_source=SOURCES[chosen.source] if chosen else "",
        next_reasons=chosen.reasons if chosen else [],
        next_sampled=_show_sampled(following, about),
        next_drawn=following.saved_problems is not None,
        own_change=_show_change(before, stage, about) if number >= 0 else None,
        next_change=_show_change(stage, following, about),
        rollback=find_record(stage.rollback, Rollback),
        problems_saved=stage.saved_problems is not None,
        players=_make_players([example for example in examples if example.is_plan]),
        texts=list_texts(examples, about),
    )


def tabulate_forecast(forecast: Forecast, about: RunSpace) -> Table:
    """A line for each cell."""
    knobs, words = about.space.knobs, about.space.words
    header = (words.token, *(knob.short for knob in knobs), "P(valid) %", "±", "p (1 - p) %", "groups")
    rows = []
    for found in forecast.grid:
        pairs = zip(knobs, found.cell.values, strict=True)
        values = [("yes" if value else "no") if knob.trait else format_value(knob, value) for knob, value in pairs]
        shares = map(format_percent, (found.p, found.deviation, found.learnability))
        rows.append((about.label(found.cell.stratum), *values, *shares, str(found.groups)))
    return Table(header, rows)


def _head_columns(about: RunSpace) -> tuple[str, ...]:
    """The header of a table of designs."""
    return about.space.words.token, *(column.short for column in about.space.columns)


def _show_engineer(stage: Stage) -> Table | None:
    """The rewards of the checkpoint's own proposals, round by round, if it was trained on them."""
    if not stage.engineer.exists():
        return None
    groups = read_record(stage.engineer, EngineerTraining).groups
    names = list(groups[0].figures)
    rows = [
        [str(turn), *(f"{group.figures[name]:.3g}" if name in group.figures else "" for name in names)]
        for turn, group in enumerate(groups)
    ]
    return Table(["round", *names], rows)


def list_stratum_changes(old: Design, new: Design, about: RunSpace, delta: Delta | None = None) -> list[StratumChange]:
    """The changes from one design to another, stratum by stratum.

    Args:
        old, new: the two designs.
        about: the design space.
        delta: gives the reasons.
    """
    found = []
    for stratum in about.space.sort_strata(new.strata):
        row, was = new.strata[stratum], old.strata.get(stratum, new.strata[stratum])
        changes = [Change(column, was, row) for column in about.space.columns]
        reason = delta.edits[stratum].reason if delta and stratum in delta.edits else ""
        found.append(StratumChange(about.label(stratum), changes, reason))
    return found


def _list_attempts(decision: DecisionRecord, design: Design, about: RunSpace) -> list[ShownAttempt]:
    """Every answer of a round, refused ones first, with its delta and its verdict."""
    attempts = [*decision.refused, Attempt(decision.proposal, decision.verdict)]
    return [
        ShownAttempt(
            proposal=attempt.proposal,
            verdict=attempt.verdict,
            edits=_tabulate_edits(attempt.proposal.delta, about),
            reason=_find_reason(attempt.proposal.delta),
            diff=list_stratum_changes(design, attempt.verdict.design, about, attempt.proposal.delta),
        )
        for attempt in attempts
    ]


def _find_reason(delta: Delta | None) -> str:
    """The reason that all changes of several strata share; empty if they differ."""
    reasons = {edit.reason for edit in delta.edits.values()} if delta else set()
    return reasons.pop() if delta and len(reasons) == 1 < len(delta.edits) else ""


def _tabulate_edits(delta: Delta | None, about: RunSpace) -> Table | None:
    """The proposed changes, before the guard, each with its reason unless all share it."""
    if delta is None or not delta.edits:
        return None
    rows, named = [], not _find_reason(delta)
    for stratum in about.space.sort_strata(delta.edits):
        edit = delta.edits[stratum]
        steps = (_write_steps(edit, column) for column in about.space.columns)
        rows.append((about.label(stratum), *steps, *[edit.reason] * named))
    header = (*_head_columns(about), *["reason"] * named)
    return Table(header, rows, prose=[len(header) - 1] * named)


def _write_steps(edit: Edit, column: Knob) -> str:
    """The change of a column and, if there is one, the change of its window."""
    step, further = (edit.changes.get(name, 0.0) for name in (column.name, column.top))
    return (f"{step:+.3g}" if step else "0") + (f", up to {further:+.3g}" if further else "")


def _show_trial(trial: Trial, about: RunSpace) -> Table:
    header = ("", "signal", "p (1 - p)", "informative groups %", f"valid {about.space.words.answers} %")
    rows = []
    for place, tried in enumerate(trial.candidates):
        name = ("proposed" if place else "current") + (", chosen" if place == trial.chosen else "")
        signal = tried.signal
        rows.append(
            (
                name,
                f"{tried.score:.3f}",
                f"{signal.variance:.3f}",
                format_percent(signal.informative),
                format_percent(signal.valid),
            )
        )
    return Table(header, rows)


def tabulate_design(design: Design, about: RunSpace) -> Table:
    """The share and knobs of each stratum."""
    rows = []
    for stratum in about.space.sort_strata(design.strata):
        row = design.strata[stratum]
        rows.append((about.label(stratum), *(format_ends(one, row) for one in about.space.columns)))
    return Table(_head_columns(about), rows)


def _show_sampled(stage: Stage, about: RunSpace) -> Table | None:
    """Statistics of the problems that were drawn: means by stratum."""
    if not stage.sampled.exists():
        return None
    statistics, words = read_record(stage.sampled, SampledRecord).statistics, about.space.words
    knobs = [knob.name for knob in about.space.knobs]
    measures = list(dict.fromkeys(name for found in statistics.values() for name in found.measures))
    known = any(found.acceptance is not None for found in statistics.values())
    names = [name.replace("_", " ") for name in (*knobs, *measures)]
    header = (words.token, words.problems, *names, *([f"attempts that gave a {words.problem} %"] if known else []))
    rows = []
    for stratum in about.space.sort_strata(statistics):
        found = statistics[stratum]
        means = [*(found.knobs.get(name) for name in knobs), *(found.measures.get(name) for name in measures)]
        values = ["" if mean is None else f"{mean:.2f}" for mean in means]
        accepted = [format_percent(found.acceptance)] if known else []
        rows.append((about.label(stratum), str(found.problems), *values, *accepted))
    return Table(header, rows)


def _draw_maps(evidence: Evidence | None, following: Stage, number: int, about: RunSpace) -> list:
    """Maps of the difficulty of problems in training, before the redesign and after it."""
    found = []
    if evidence and evidence.groups:
        found.append(
            mark_svg(charts.difficulty_map(evidence, f"{_call_stage(number).capitalize()}: before the redesign", about))
        )
    if following.evidence.exists():
        after = following.read_evidence()
        if after.groups:
            found.append(mark_svg(charts.difficulty_map(after, f"Stage {number + 1}: after the redesign", about)))
    return found


def _show_change(before: Stage, after: Stage, about: RunSpace) -> Table | None:
    """Valid answers to the held-out problems, by stratum and over all."""
    if not before.validation.exists() or not after.validation.exists():
        return None
    one, other = (read_record(stage.validation, Validation).outcomes for stage in (before, after))
    strata = about.space.sort_strata(one.keys() & other.keys())
    rows = [_change_row(about.label(stratum), one[stratum], other[stratum]) for stratum in strata]
    rows.append(_change_row("all", pool_tallies(one.values()), pool_tallies(other.values())))
    words = about.space.words
    return Table((words.token, words.problems, "valid % before", "valid % after", "change"), rows)


def _change_row(name: str, before: Tally, after: Tally) -> tuple[str, ...]:
    was, now = before.valid_rate, after.valid_rate
    return name, str(after.problems), format_percent(was), format_percent(now), format_points(now - was)


def _make_players(examples: Sequence[Example]) -> list[dict[str, Any]]:
    """Plans for held-out boards to step through; failing plans stand beside the certified plans."""
    found: list[dict[str, Any]] = []
    for example in _choose_examples(examples):
        row = example.row
        if not fits_picture(row.size):
            found.append({"title": row.id, "played": None, "side": row.size})
            continue
        found.append({"title": row.id, "played": draw_played(example)})
        if example.failure != "none" and row.plan:
            found.append({"title": f"{row.id}: the certified plan", "played": draw_played(make_example(row, row.plan))})
    return found


def list_texts(examples: Sequence[Example], about: RunSpace) -> list[TextExample]:
    """Some of the answers in text to held-out problems, failures first."""
    words, found = about.space.words, []
    for example in _choose_examples([example for example in examples if not example.is_plan]):
        problem = example.problem
        failure = "" if example.failure == "none" else words.failure(example.failure)
        title = about.describe_cell(problem.cell)
        found.append(TextExample(title, problem.prompt, example.answer, problem.answer, failure))
    return found


def _choose_examples(examples: Sequence[Example]) -> list[Example]:
    """Chooses the examples to show: half of them fail, and come first."""
    failed = [example for example in examples if example.failure != "none"]
    valid = [example for example in examples if example.failure == "none"]
    return failed[: MOST_PLAYERS // 2] + valid[: MOST_PLAYERS // 2]
