"""The page of an engineer's folder: its versions and what changed, outcomes over versions, and what was asked."""

from collections.abc import Sequence
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.engineer.delta import describe_changes
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.steps import Attempt
from lakewright.engineer.trial import Trial
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.reports import FolderStatus
from lakewright.experiments.trainers.versions import Version, VersionFiles
from lakewright.experiments.viewer.catalogue.discovery import Item
from lakewright.experiments.viewer.catalogue.run_space import RunSpace
from lakewright.experiments.viewer.charts.heat import difficulty_panels
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.pages.rendering import Crumb, Page, Table, format_percent, mark_svg
from lakewright.experiments.viewer.pages.stage_page import list_stratum_changes, tabulate_design, tabulate_forecast

MOST_VERSIONS, MOST_DECISIONS = 500, 20  # that are shown, the newest


class Reasoned(msgspec.Struct, frozen=True):
    """The parts of a decision that say why; versions note more."""

    attempts: list[Attempt]
    trial: Trial | None
    line: str

    def explain_proposal(self) -> str:
        """The reasons of the last proposal; without a proposal the line of the decision."""
        delta = self.attempts[-1].proposal.delta if self.attempts else None
        return "; ".join(dict.fromkeys(edit.reason for edit in delta.edits.values()) if delta else ()) or self.line

    def sum_up_trial(self) -> str:
        """The trial in a line; empty without one."""
        return self.trial.summary() if self.trial and len(self.trial.candidates) > 1 else ""


class Noted(Reasoned, frozen=True, kw_only=True):
    """The parts of a decision that are shown."""

    forecast: Forecast | None


def engineer_page(item: Item) -> Page:
    """An engineer's folder, also while a trainer uses it. Raises InputError if its versions cannot be read."""
    files = VersionFiles(item.path)
    setup = files.read_setup()
    versions = [files.read_version(number) for number in files.list_versions()[-MOST_VERSIONS:]]
    if not versions:
        raise InputError(f"{item.name}: has no version yet; lakewright engineer begin makes the first")
    about, status, problem = _open_folder(item)
    newest = versions[-1]
    values = {
        "item": item,
        "setup": setup,
        "newest": newest,
        "status": status,
        "problem": problem,
        "design": _tabulate_design(newest, about),
        "chart": _draw_outcomes(status, about) if status and about else None,
        "outcomes": _tabulate_outcomes(status) if status else None,
        "suspects": status.suspects if status else [],
        "versions": _tabulate_versions(versions, status, about),
        "decisions": _list_decisions(versions, about),
        **_show_forecast(versions, about),
    }
    crumbs = [Crumb("All", ""), Crumb(item.name, f"engineer/{item.name}")]
    return Page(item.name, "engineer.html", values, crumbs, live=True)


def _open_folder(item: Item) -> tuple[RunSpace | None, FolderStatus | None, str]:
    """The design space and the status, and why one of them is missing."""
    about = None
    try:
        folder = EngineerFolder(item.path)
        about = RunSpace(folder.space)
        return about, folder.status(), ""
    except InputError as error:
        return about, None, str(error)


def _tabulate_design(version: Version, about: RunSpace | None) -> Table:
    """The shares and knobs of a version. about: None if its environment cannot be loaded."""
    rows = version.design.strata
    if about:
        return tabulate_design(version.design, about)
    names = list(next(iter(rows.values()), {}))
    return Table(
        ("stratum", *names),
        [(str(stratum), *(f"{row[name]:.4g}" for name in names)) for stratum, row in rows.items()],
    )


def _draw_outcomes(status: FolderStatus, about: RunSpace) -> Any:
    """Valid answers over versions, a curve for each stratum; None without outcomes."""
    curves: dict[str, list[Point]] = {}
    for version, strata in status.outcomes.items():
        for stratum, (total, valid) in strata.items():
            words = f"{valid} of {total} valid"
            curves.setdefault(stratum, []).append(Point(float(version), 100 * valid / total, words=words))
    if not curves:
        return None
    word = about.space.words.token
    series = [Series(f"{word} {stratum}", points) for stratum, points in sorted(curves.items())]
    names = {float(version): version for version in status.outcomes}
    chart = line_chart("Valid answers by version", series, x_label="version", y_label="% valid", names=names)
    return mark_svg(chart)


def _tabulate_outcomes(status: FolderStatus) -> Table:
    """Answers of training by version and stratum, the newest version first, and the pools of their groups."""
    rows = [
        (
            version,
            stratum,
            str(total),
            str(valid),
            format_percent(valid / total),
            *_list_pools(status, version, stratum),
        )
        for version, strata in reversed(status.outcomes.items())
        for stratum, (total, valid) in strata.items()
    ]
    pools = ("groups", "% learnable", "% solved", "% out of reach", "% tokens without signal")
    return Table(("version", "stratum", "answers", "valid", "%", *pools), rows)


def _list_pools(status: FolderStatus, version: str, stratum: str) -> tuple[str, ...]:
    one = status.strata[version][stratum]
    shares = (one.learnable, one.solved, one.out_of_reach, one.wasted)
    return str(one.groups), *(format_percent(share) if one.groups else "" for share in shares)


def _tabulate_versions(versions: Sequence[Version], status: FolderStatus | None, about: RunSpace | None) -> Table:
    """The versions, newest first: what each changed, and the valid answers to its problems."""
    rows = []
    for place, version in reversed(list(enumerate(versions))):
        counts = list(status.outcomes.get(str(version.version), {}).values()) if status else []
        total, valid = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
        before = versions[place - 1].design if place else None
        changes = describe_changes(before, version.design, about.space) if before and about else ""
        share = format_percent(valid / total) if total else ""
        rows.append((str(version.version), version.by, str(total), share, changes, _explain_version(version)))
    return Table(("version", "by", "answers", "% valid", "what changed", "why"), rows, prose=(4, 5))


def _explain_version(version: Version) -> str:
    """The reasons of a version; what changed has a column of its own."""
    if version.by != "engineer" or not version.decisions:
        return version.line
    made = convert(version.decisions[0], Reasoned, f"version {version.version}")
    return "; ".join(part for part in (made.explain_proposal(), made.sum_up_trial()) if part)


def _list_decisions(versions: Sequence[Version], about: RunSpace | None) -> list[dict[str, Any]]:
    """The decisions of the engineer, newest first, with each proposal beside the design that it was made of."""
    found: list[dict[str, Any]] = []
    for place, version in reversed(list(enumerate(versions))):
        for number, note in reversed(list(enumerate(version.decisions))):
            if len(found) == MOST_DECISIONS:
                return found
            made = number == 0 and version.by == "engineer"
            before = versions[place - 1].design if made and place else version.design
            noted = convert(note, Noted, f"version {version.version}")
            found.append(
                {
                    "title": f"Version {version.version}" if made else f"Version {version.version} stays",
                    "line": noted.line,
                    "why": noted.explain_proposal(),
                    "trial": noted.sum_up_trial(),
                    "attempts": [
                        {
                            "proposal": attempt.proposal,
                            "verdict": attempt.verdict,
                            "diff": list_stratum_changes(before, attempt.verdict.design, about, attempt.proposal.delta)
                            if about
                            else [],
                        }
                        for attempt in noted.attempts
                    ],
                }
            )
    return found


def _show_forecast(versions: Sequence[Version], about: RunSpace | None) -> dict[str, Any]:
    """The difficulty model of the last decision: pictures, or a table if there are several levels."""
    notes = [note for version in versions for note in version.decisions]
    columns = (about.space.words.token, *(column.short for column in about.space.columns)) if about else ()
    found: dict[str, Any] = {"frontier": [], "frontier_table": None, "columns": columns}
    forecast = convert(notes[-1], Noted, "versions").forecast if notes else None
    if forecast is None or about is None:
        return found
    if len(about.space.levels) < 2:
        return found | {"frontier": list(map(mark_svg, difficulty_panels(forecast, about.space)))}
    return found | {"frontier_table": tabulate_forecast(forecast, about)}
