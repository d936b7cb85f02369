"""A run as numbers: the table in the terminal, and the same as JSON."""

from collections.abc import Iterator
from typing import Any

from tabulate import tabulate

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.results import Outcomes, pool
from lakewright.experiments.loop.records import (
    Chapter,
    RunFolder,
    Stage,
    Validation,
    chapters,
    examination_of,
    excluded_met,
    forced_rate,
    met_in_training,
    read,
)

HEADER = ("", "valid %", "opt. makespan %", "opt. cost %", "forced wait %", "boards drawn from (size: share hole wait)")

ALIGNMENT = ("left", *["right"] * 4, "left")


def as_json(folder: RunFolder) -> dict[str, Any]:
    """Every finished stage, the warm-up first, with its config, its outcomes pooled and per size, and the decision.

    checkpoint: that of the policy that counts. best: the one with most valid plans on the held-out set.
    """
    last, best = _last(folder), folder.best()
    return {
        "folder": str(folder.folder),
        "checkpoint": str(last.checkpoint) if last else None,
        "best": str(best.checkpoint) if best else None,
        "held_out_boards_met_in_training": met_in_training(folder),
        "excluded_boards_drawn_and_replaced": excluded_met(folder),
        "stages": [_plain_chapter(chapter) for chapter in chapters(folder)],
    }


def as_table(folder: RunFolder) -> str:
    """One line for each finished stage, and its most common failures below."""
    lines: list[tuple[str, ...]] = []
    for chapter in chapters(folder):
        config = describe_config(chapter.config) if chapter.config else "certified plans"
        name = chapter.name + " (taken back)" * chapter.taken_back
        lines.append((name, *_format_rates(chapter.pooled), config))
        lines.append(("", "", "", "", "", f"failures: {_failure_line(chapter.pooled)}"))
    table = tabulate(lines, HEADER, tablefmt="plain", colalign=ALIGNMENT, disable_numparse=True)
    return "\n".join([table, *_list_examinations(folder), *_left_out(folder), *_that_counts(folder)])


def _that_counts(folder: RunFolder) -> Iterator[str]:
    """The policy that a run continues with, or ended with, and the best one where that is another."""
    if last := _last(folder):
        line = f"the policy that counts: {_checkpoint(last)}"
        if (best := folder.best()) and best.folder != last.folder:
            link = f" ({folder.best_link})" if folder.best_link.is_symlink() else ""
            line += f"; the best: {_checkpoint(best)}{link}"
        yield line


def _last(folder: RunFolder) -> Stage | None:
    return folder.standing(len(folder.finished_stages()) - 1) if folder.warmup.done.exists() else None


def _checkpoint(stage: Stage) -> str:
    found = pool(read(stage.validation, Validation).sizes.values())
    return f"{stage.checkpoint}, {100 * found.rate(found.valid):.1f} % valid"


def _list_examinations(folder: RunFolder) -> Iterator[str]:
    """How well the engineer has learned its part, where the warm-up taught it."""
    if learned := examination_of(folder):
        yield learned.summary()


def _left_out(folder: RunFolder) -> Iterator[str]:
    """How many boards were kept out of the training, where any are to be."""
    if excluded := folder.settings().exclude:
        yield f"boards of {excluded} drawn in training, and replaced: {excluded_met(folder)}"


def _plain_chapter(chapter: Chapter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": chapter.name, "pooled": chapter.pooled, "sizes": chapter.validation.sizes}
    if decision := chapter.decision:
        found |= {"delta": decision.proposal.delta, "verdict": decision.verdict}
    if chapter.config:
        found |= {"trial": chapter.trial, "tokens": chapter.tokens}
        found |= {"config": chapter.config, "taken_back": chapter.taken_back}
    return found | {"seconds": chapter.seconds}


def _format_rates(outcomes: Outcomes) -> list[str]:
    counts = (outcomes.valid, outcomes.optimal_makespan, outcomes.optimal_sum_of_costs)
    return [f"{100 * rate:.1f}" for rate in (*map(outcomes.rate, counts), forced_rate(outcomes))]


def describe_config(config: EnvConfig) -> str:
    """A config in a line: for each size its share, hole ratio and wait ratio."""
    cells = sorted(config.sizes.items())
    return " · ".join(f"{size}: {c.data_ratio:.2f} {c.hole_ratio:.2f} {c.wait_ratio:.2f}" for size, c in cells)


def _failure_line(outcomes: Outcomes) -> str:
    commonest = sorted(((count, name) for name, count in outcomes.failures.items() if count), reverse=True)
    return ", ".join(f"{name.replace('_', ' ')} {count}" for count, name in commonest) or "none"
