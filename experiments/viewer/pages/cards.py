"""Cards of items, with kind, progress and the result of a run's policy; and the first page, of all cards."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from markupsafe import Markup

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import is_locked, read_raw
from lakewright.engineer.tally import pool_tallies
from lakewright.experiments.boards.sweep.folder import SweepFolder
from lakewright.experiments.jobs.resumable.driver import find_sign
from lakewright.experiments.loop.records.history import read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.trainers.versions import VersionFiles
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Item, Kind, stamp_of
from lakewright.experiments.viewer.catalogue.run_progress import progress_of
from lakewright.experiments.viewer.catalogue.run_space import LAKE, find_space
from lakewright.experiments.viewer.pages.rendering import Page, asked_for, mark_svg
from lakewright.experiments.viewer.pages.run_charts import rates_chart
from lakewright.experiments.viewer.pages.run_page import agents_of

MOST_SUMMARIES = 10_000  # summaries of runs
MOST_CARDS = 200  # of a kind, on one page


class Card(NamedTuple):
    """An item on the first page, and a run on its study's. problem: why nothing is known of it. done: how far it is."""

    item: Item
    address: str
    state: str
    words: str
    valid: float | None
    problem: str
    done: str = ""


def card_of(item: Item, catalogue: Catalogue) -> Card:
    """The card of an item; of one that cannot be read with the reason."""
    address = f"boards/boards/file/{item.name}" if item.kind is Kind.BOARDS else f"{item.kind}/{item.name}"
    try:
        found = _recall_run(item, catalogue.summaries) if item.kind is Kind.RUN else _KNOWN[item.kind](item)
    except (InputError, OSError) as error:
        return Card(item, address, "unreadable", "", None, str(error))
    words, done = found.get("words", ""), found.get("done", "")
    return Card(item, address, found.get("state", ""), words, found.get("valid"), "", done)


def _recall_run(item: Item, summaries: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """A run in a line; read again once its files have changed. summaries: earlier summaries with file stamps."""
    stamp = stamp_of(item.path)
    saved = summaries.get(str(item.path))
    if saved and saved[0] == stamp and saved[1]["state"] != "running":
        return saved[1]
    if len(summaries) >= MOST_SUMMARIES:
        summaries.clear()
    found = _summarise_run(item)
    summaries[str(item.path)] = stamp, found
    return found


def _summarise_run(item: Item) -> dict[str, Any]:
    """The progress of a run, and the share of valid answers of its last policy."""
    folder = RunFolder(item.path)
    settings = folder.settings()
    progress, state = progress_of(folder, settings), ""
    ended = [stage for stage in progress.stages if stage.state == "done"]
    stage = folder.stage(ended[-1].number) if ended and ended[-1].number >= 0 else folder.warmup
    there = stage.validation.exists()
    valid = pool_tallies(read_record(stage.validation, Validation).outcomes.values()).valid_rate if there else None
    count = sum(stage.number >= 0 for stage in ended)
    most = "at most " if progress.state == "finished" and count < settings.stages else ""
    done = f"{count} of {most}{settings.stages} stages"
    doing = f"; {progress.now.name}: {progress.now.doing}" if progress.state == "running" and progress.now else ""
    words = f"{settings.teacher}, seed {settings.seed}; {done}; {_describe_problems(settings)}{doing}"
    if item.path.name == "start" and (item.path.parent / "study.json").exists():
        done = "the warm-up that all runs share"
        words = f"the warm-up that all runs of the study share; {words}"
        state = "finished" if folder.warmup.done.exists() else ""
    return {"state": state or progress.state, "words": words, "valid": valid, "done": f"{done}{doing}"}


def _describe_problems(settings: RunSettings) -> str:
    """The boards of a run, or its environment."""
    if settings.environment != LAKE:
        return settings.environment
    sizes = list(map(int, settings.design))
    return f"{agents_of(settings)} agents, sizes {min(sizes)} to {max(sizes)}"


def _summarise_sweep(item: Item) -> dict[str, Any]:
    status = SweepFolder(item.path).status()
    words = f"{status.shards_done} of {status.shards} shards, {status.boards_done:,} of {status.boards:,} boards"
    state = "finished" if status.shards_done == status.shards else "running" if status.boards_per_second else "stopped"
    return {"state": state, "words": words}


def _summarise_evaluation(item: Item) -> dict[str, Any]:
    if not (item.path / "summary.json").exists():
        return {"state": "running", "words": "no summary yet"}
    found = read_raw(item.path / "summary.json")
    if not isinstance(found, dict):
        raise InputError("summary.json: holds no object; run the evaluation again")
    state = "finished" if found.get("complete") is True else "stopped"
    return {"state": state, "words": f"{found.get('who', '')!s:.80}, {found.get('boards', '?')!s:.12} boards"}


def _summarise_study(item: Item) -> dict[str, Any]:
    runs = (item.path / "runs").iterdir() if (item.path / "runs").is_dir() else ()
    state, place = describe_study(item, finished=(item.path / "results.json").exists())
    words = f"{len(list(runs))} runs under one budget of tokens each"
    return {"state": state, "words": f"{words}; {place}" if place else words}


def describe_study(item: Item, *, finished: bool) -> tuple[str, str]:
    """The state of a study, and if its driver is or was, if that is known."""
    sign = find_sign(item.path)
    running = is_locked(item.path) or (sign is not None and sign.alive)
    state = "running" if running else "finished" if finished else "stopped"
    if sign is None:
        return state, ""
    seen = "running on {host}, last sign of life {age} ago" if running else "last seen on {host}, {age} ago"
    return state, seen.format(host=sign.host, age=_describe_age(sign.age))


def _describe_age(seconds: float) -> str:
    return f"{max(seconds, 0):.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _summarise_engineer(item: Item) -> dict[str, Any]:
    files = VersionFiles(item.path)
    setup, numbers = files.read_setup(), files.list_versions()
    return {"words": f"{setup.environment}, teacher {setup.teacher}; {len(numbers)} versions"}


def _summarise_benchmark(item: Item) -> dict[str, Any]:
    found = read_raw(item.path / "manifest.json")
    boards = found.get("boards", "?") if isinstance(found, dict) else "?"
    return {"state": "finished", "words": f"{boards!s:.12} certified boards with prompts"}


def _format_size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


_KNOWN = {
    Kind.SWEEP: _summarise_sweep,
    Kind.EVALUATION: _summarise_evaluation,
    Kind.STUDY: _summarise_study,
    Kind.ENGINEER: _summarise_engineer,
    Kind.BENCHMARK: _summarise_benchmark,
    Kind.BOARDS: lambda item: {"words": _format_size(item.path.stat().st_size)},
}


class ShownFolder(msgspec.Struct, frozen=True):
    """The page that is shown, of each kind with more than MOST_CARDS items."""

    page: Annotated[int, msgspec.Meta(ge=0)] = 0


def index_page(catalogue: Catalogue, query: Mapping[str, list[str]]) -> Page:
    """All items by kind, newest first; the runs of a study are on its own page.

    Cards are read for those alone that are shown, since each needs some files.
    """
    items, page = catalogue.items(), asked_for(ShownFolder, query).page
    studies = tuple(f"{item.name}/" for item in items if item.kind is Kind.STUDY)
    kinds = {kind: [item for item in items if item.kind is kind and not item.name.startswith(studies)] for kind in Kind}
    first = page * MOST_CARDS
    shown = {
        kind: [card_of(item, catalogue) for item in found[first : first + MOST_CARDS]] for kind, found in kinds.items()
    }
    groups = {kind: cards for kind, cards in shown.items() if cards}
    values = {
        "groups": groups,
        "counts": {kind: len(found) for kind, found in kinds.items()},
        "total": sum(map(len, kinds.values())),
        "place": page,
        "first": first,
        "more": any(len(found) > first + MOST_CARDS for found in kinds.values()),
        "curve": _draw_only(kinds[Kind.RUN]),
        "roots": catalogue.roots(),
        "maps": [] if any(kinds.values()) else catalogue.maps(),
    }
    live = any(card.state == "running" for cards in groups.values() for card in cards)
    return Page("What is here", "index.html", values, (), live)


def _draw_only(runs: Sequence[Item]) -> Markup | None:
    """The curve of the only run; None if there are others, or nothing to draw."""
    if len(runs) != 1:
        return None
    folder = RunFolder(runs[0].path)
    try:
        history = read_chapters(folder)
        return mark_svg(rates_chart(history, find_space(folder, folder.settings()))) if history else None
    except (InputError, OSError):  # its card says so
        return None
