"""A run as numbers: the table in the terminal, and the same as JSON."""

from collections.abc import Iterator
from typing import Any

import msgspec
from tabulate import tabulate

from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.experiments.loop.records.history import (
    Chapter,
    count_excluded,
    count_met_in_training,
    explain_first_design,
    read_chapters,
    read_examination,
)
from lakewright.experiments.loop.records.lake_form import PRINTED, to_lake
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.viewer.catalogue.run_space import find_space


def as_json(folder: RunFolder) -> dict[str, Any]:
    """Every finished stage, the warm-up first, with its design, its outcomes pooled and by stratum, and the decision.

    checkpoint: the final one. best: the one with most valid answers on the held-out set. A run of the
    lake has the names of the lake's records.
    """
    last, best = _find_last(folder), folder.find_best()
    lake = folder.settings().environment == "lake"
    return {
        "folder": str(folder.folder),
        "checkpoint": str(last.checkpoint) if last else None,
        "best": str(best.checkpoint) if best else None,
        "first_design_throughout": explain_first_design(folder),
        **(_count_repeated(folder) if lake else {}),
        "stages": [_plain_chapter(chapter, lake) for chapter in read_chapters(folder)],
    }


def _count_repeated(folder: RunFolder) -> dict[str, Any]:
    """Numbers of held-out boards met in training, and of boards of `exclude` that were replaced."""
    return {
        "held_out_boards_met_in_training": count_met_in_training(folder),
        "excluded_boards_drawn_and_replaced": count_excluded(folder),
    }


def tabulate_run(folder: RunFolder) -> str:
    """One line for each finished stage, and its most common failures below."""
    about = find_space(folder, folder.settings())
    words = about.space.words
    lines: list[tuple[str, ...]] = []
    for chapter in read_chapters(folder):
        drawn = about.describe_design(chapter.design) if chapter.design else words.references
        name = chapter.name + " (rolled back)" * chapter.rolled_back
        rates = [f"{100 * measure.share(chapter.pooled):.1f}" for measure in about.measures]
        lines.append((name, *rates, drawn))
        lines.append(("", *("" for _ in rates), f"failures: {_failure_line(chapter.pooled)}"))
    drawn_from = f"{words.problems} drawn from" + f" ({words.columns})" * bool(words.columns)
    header = ("", *(f"{measure.short} %" for measure in about.measures), drawn_from)
    alignment = ("left", *["right"] * len(about.measures), "left")
    table = tabulate(lines, header, tablefmt="plain", colalign=alignment if lines else None, disable_numparse=True)
    known = [f"{about.problem}; the records are shown"] if about.problem else []
    unchanged = filter(None, [explain_first_design(folder)])
    return "\n".join(
        [table, *_list_examinations(folder), *_describe_excluded(folder), *known, *unchanged, *_describe_final(folder)]
    )


def _describe_final(folder: RunFolder) -> Iterator[str]:
    """The final checkpoint, from the last stage not rolled back, and the best one if it is another."""
    if last := _find_last(folder):
        line = f"final checkpoint: {_describe_checkpoint(last)}"
        if (best := folder.find_best()) and best.folder != last.folder:
            link = f" ({folder.best_link})" if folder.best_link.is_symlink() else ""
            line += f"; best: {_describe_checkpoint(best)}{link}"
        yield line


def _find_last(folder: RunFolder) -> Stage | None:
    return folder.find_standing(len(folder.finished_stages()) - 1) if folder.warmup.done.exists() else None


def _describe_checkpoint(stage: Stage) -> str:
    found = pool_tallies(read_record(stage.validation, Validation).outcomes.values())
    return f"{stage.checkpoint}, {100 * found.valid_rate:.1f} % valid"


def _list_examinations(folder: RunFolder) -> Iterator[str]:
    """The result of the engineer's examination, if the warm-up taught the engineer's part."""
    if learned := read_examination(folder):
        yield learned.summary()


def _describe_excluded(folder: RunFolder) -> Iterator[str]:
    """The number of boards excluded from training, in runs with `exclude`."""
    if excluded := folder.settings().exclude:
        yield f"boards of {excluded} drawn in training, and replaced: {count_excluded(folder)}"


def _plain_chapter(chapter: Chapter, lake: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": chapter.name, "pooled": chapter.pooled, "strata": chapter.validation.outcomes}
    if decision := chapter.decision:
        found |= {"delta": decision.proposal.delta, "verdict": decision.verdict}
    if chapter.trial or chapter.design:  # a trial after the warm-up, too
        found |= {"trial": chapter.trial, "tokens": chapter.tokens}
    if chapter.design:
        found |= {"design": chapter.design, "rolled_back": chapter.rolled_back}
    found["seconds"] = chapter.seconds
    return PRINTED.to_lake(to_lake(found)) if lake else msgspec.to_builtins(found, str_keys=True)


def _failure_line(tally: Tally) -> str:
    commonest = sorted(((count, name) for name, count in tally.failures.items() if count), reverse=True)
    return ", ".join(f"{name.replace('_', ' ')} {count}" for count, name in commonest) or "none"
