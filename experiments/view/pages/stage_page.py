"""The page of a stage: evidence, prompt, answer, delta, guard, trial, the boards drawn, and what came of them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Outcomes, pool
from lakewright.core_jax.support import read_raw
from lakewright.engineer.delta import FIELDS, ConfigDelta
from lakewright.engineer.evidence import Evidence, evidence_text
from lakewright.engineer.negotiation import Attempt
from lakewright.experiments.charts.difficulty_map import difficulty_svg
from lakewright.experiments.loop.records import (
    Decision,
    Done,
    EngineerTraining,
    Example,
    Rollback,
    RunFolder,
    Sampled,
    Stage,
    Trial,
    Validation,
    read,
)
from lakewright.experiments.view.catalogue.discovery import Catalogue, Item
from lakewright.experiments.view.pages import run_charts as charts
from lakewright.experiments.view.pages.rendering import Crumb, Page, Table, format_percent, format_points, mark_svg
from lakewright.experiments.view.pictures.board_art import MOST_SIDE, is_drawable
from lakewright.experiments.view.pictures.played_plans import played

STEPS = ("evidence", "prompt", "answer", "delta", "guard", "trial", "drawn", "change", "plans")
MOST_PLAYERS = 8


class Change(NamedTuple):
    """A ratio before and after."""

    field: str
    before: float
    after: float

    @property
    def differs(self) -> bool:
        """Whether it changed, as far as one sees."""
        return abs(self.after - self.before) > 5e-4


class SizeChange(NamedTuple):
    """The ratios of a size before and after, and why."""

    size: int
    changes: list[Change]
    reason: str


def stage_page(catalogue: Catalogue, item: Item, query: Mapping[str, list[str]], number: str) -> Page:
    """A stage that is finished, or as far as it is. Raises InputError where the run has no such stage."""
    folder = RunFolder(item.path)
    stages = folder.settings().stages
    if int(number) >= stages:
        raise InputError(f"{item.name}: has {stages} stages, from 0; there is no stage {int(number)}")
    values = stage_values(folder, item.name, int(number)) | {"stages": stages}
    crumbs = [Crumb("All", ""), Crumb(item.name, f"run/{item.name}"), Crumb(f"stage {int(number)}", "")]
    return Page(f"{item.name}, stage {int(number)}", "stage.html", values, crumbs, not values["finished"])


def stage_values(folder: RunFolder, name: str, number: int) -> dict[str, Any]:
    """All that the page of a stage shows; what is not there yet is None."""
    stage, before = folder.stage(number), folder.stage(number - 1) if number else folder.warmup
    following = folder.stage(number + 1)
    decision = read(stage.proposal, Decision) if stage.proposal.exists() else None
    evidence = stage.read_evidence() if stage.evidence.exists() else None
    trial = read(stage.trial, Trial) if stage.trial.exists() else None
    config = stage.config() if stage.env.exists() else None
    following_config = stage.following() if stage.done.exists() and (decision or stage.next.exists()) else None
    return {
        "name": name,
        "number": number,
        "steps": STEPS,
        "finished": stage.done.exists(),
        "seconds": read(stage.done, Done).seconds if stage.done.exists() else None,
        "config": _config_table(config) if config else None,
        "sampled": _sampled(stage),
        "evidence_text": evidence_text(evidence) if evidence else None,
        "maps": _maps(evidence, following, number),
        "frontier": mark_svg(difficulty_svg(read_raw(stage.difficulty))) if stage.difficulty.exists() else None,
        "engineer": _engineer(stage),
        "decision": decision,
        "attempts": _attempts(decision, config) if decision and config else [],
        "trial": _trial(trial) if trial else None,
        "trial_tokens": trial.tokens if trial else 0,
        "next_config": size_changes(config, following_config.config) if config and following_config else None,
        "next_source": following_config.source if following_config else "",
        "next_reasons": following_config.reasons if following_config else [],
        "next_drawn": following.boards.exists(),
        "next_sampled": _sampled(following),
        "own_change": _change(before, stage),
        "next_change": _change(stage, following),
        "rollback": read(stage.rollback, Rollback) if stage.rollback.exists() else None,
        "boards_kept": stage.boards.exists(),
        "players": _players(stage),
        "most_side": MOST_SIDE,
    }


def _engineer(stage: Stage) -> Table | None:
    """What the checkpoint's own proposals earned, round by round, where it was trained on them."""
    if not stage.engineer.exists():
        return None
    groups = read(stage.engineer, EngineerTraining).groups
    names = list(groups[0].figures)
    rows = [
        [str(turn), *(f"{group.figures[name]:.3g}" if name in group.figures else "" for name in names)]
        for turn, group in enumerate(groups)
    ]
    return Table(["round", *names], rows)


def size_changes(old: EnvConfig, new: EnvConfig, delta: ConfigDelta | None = None) -> list[SizeChange]:
    """What changes from one config to another, size by size."""
    found = []
    for size, cell in sorted(new.sizes.items()):
        was = old.sizes.get(size, cell)
        changes = [Change(_short(field), getattr(was, field), getattr(cell, field)) for field in FIELDS]
        reason = delta.edits[size].reason if delta and size in delta.edits else ""
        found.append(SizeChange(size, changes, reason))
    return found


def _attempts(decision: Decision, config: EnvConfig) -> list[dict[str, Any]]:
    """Every answer of a round, refused ones first, with its delta and its verdict."""
    attempts = [*decision.refused, Attempt(decision.proposal, decision.verdict)]
    return [
        {
            "proposal": attempt.proposal,
            "verdict": attempt.verdict,
            "edits": _edits(attempt.proposal.delta),
            "diff": size_changes(config, attempt.verdict.config, attempt.proposal.delta),
        }
        for attempt in attempts
    ]


def _edits(delta: ConfigDelta | None) -> Table | None:
    """What was proposed, as it was proposed."""
    if delta is None or not delta.edits:
        return None
    rows = []
    for size, edit in sorted(delta.edits.items()):
        steps = (getattr(edit, field) for field in FIELDS)
        rows.append((f"{size}x{size}", *(f"{step:+.3g}" if step else "0" for step in steps), edit.reason))
    return Table(("size", "data", "hole", "wait", "reason"), rows, prose=4)


def _trial(trial: Trial) -> Table:
    header = ("", "p (1 - p)", "informative groups %", "valid plans %")
    rows = []
    for place, tried in enumerate(trial.candidates):
        name = ("proposed" if place else "current") + (", chosen" if place == trial.chosen else "")
        signal = tried.signal
        rows.append((name, f"{signal.variance:.3f}", format_percent(signal.informative), format_percent(signal.valid)))
    return Table(header, rows)


def _config_table(config: EnvConfig) -> Table:
    rows = [
        (f"{size}x{size}", *(f"{getattr(cell, field):.2f}" for field in FIELDS))
        for size, cell in sorted(config.sizes.items())
    ]
    return Table(("size", *map(_short, FIELDS)), rows)


def _sampled(stage: Stage) -> Table | None:
    if not stage.sampled.exists():
        return None
    header = ("size", "boards", "hole ratio", "wait ratio", "makespan", "sum of costs", "attempts that gave a board %")
    rows = []
    for size, found in sorted(read(stage.sampled, Sampled).sizes.items()):
        means = (found.hole_ratio, found.wait_ratio, found.makespan, found.sum_of_costs)
        rows.append(
            (f"{size}x{size}", str(found.boards), *(f"{m:.2f}" for m in means), format_percent(found.acceptance))
        )
    return Table(header, rows)


def _maps(evidence: Evidence | None, following: Stage, number: int) -> list:
    """How hard boards were in training, before the redesign and after it."""
    found = []
    if evidence and evidence.groups:
        found.append(mark_svg(charts.difficulty_map(evidence, f"Stage {number}: before the redesign")))
    if following.evidence.exists():
        after = following.read_evidence()
        if after.groups:
            found.append(mark_svg(charts.difficulty_map(after, f"Stage {number + 1}: after it")))
    return found


def _change(before: Stage, after: Stage) -> Table | None:
    """Valid plans on the held-out boards, by size and over all."""
    if not before.validation.exists() or not after.validation.exists():
        return None
    one, other = (read(stage.validation, Validation).sizes for stage in (before, after))
    rows = [_change_row(f"{size}x{size}", one[size], other[size]) for size in sorted(one.keys() & other.keys())]
    rows.append(_change_row("all", pool(one.values()), pool(other.values())))
    return Table(("size", "boards", "valid % before", "valid % after", "change"), rows)


def _change_row(name: str, before: Outcomes, after: Outcomes) -> tuple[str, ...]:
    was, now = before.rate(before.valid), after.rate(after.valid)
    return name, str(after.boards), format_percent(was), format_percent(now), format_points(now - was)


def _players(stage: Stage) -> list[dict[str, Any]]:
    """Plans for held-out boards to be stepped through; next to those that fail, the certified ones."""
    if not stage.validation.exists():
        return []
    examples = read(stage.validation, Validation).examples
    failed = [example for example in examples if example.failure != "none"]
    valid = [example for example in examples if example.failure == "none"]
    found: list[dict[str, Any]] = []
    for example in failed[: MOST_PLAYERS // 2] + valid[: MOST_PLAYERS // 2]:
        if not is_drawable(example.row.size):
            found.append({"title": example.row.id, "played": None, "side": example.row.size})
            continue
        found.append({"title": example.row.id, "played": played(example)})
        if example.failure != "none" and example.row.plan:
            certified = Example(example.row, example.row.plan, "none", -1, -1)
            found.append({"title": f"{example.row.id}: the certified plan", "played": played(certified)})
    return found


def _short(field: str) -> str:
    return field.removesuffix("_ratio")
