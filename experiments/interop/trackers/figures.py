"""What trackers are given of a run: figures and pictures at rising steps, from the files of its finished stages."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lakewright.core_jax.results import Outcomes, pool
from lakewright.core_jax.rows import Row, read_all
from lakewright.experiments.interop.episodes.pictures import as_pixels
from lakewright.experiments.loop.records import Done, RunFolder, Stage, Trial, Validation, read

COUNTERS = ("step", "epoch")  # of TRL's log, whose steps begin anew with each stage


class Point(NamedTuple):
    """Figures by name, and pictures uint8 [height, width, 3] by name, at a step of the whole run."""

    step: int
    figures: dict[str, float]
    pictures: dict[str, np.ndarray]


def points_of(folder: RunFolder, chapter: int) -> Iterator[Point]:
    """The points of a finished chapter: 0 is the warm-up, 1 the first stage; steps go on from the chapters before."""
    stages = [folder.warmup, *(folder.stage(number) for number in range(chapter))]
    *earlier, stage = stages
    begun, lines = sum(len(_read_lines(before)) for before in earlier), _read_lines(stage)
    for number, line in enumerate(lines, 1):
        yield Point(begun + number, {f"{'train' if chapter else 'warmup'}/{name}": line[name] for name in line}, {})
    figures = dict(_list_validation(read(stage.validation, Validation)))
    if chapter:
        figures |= _read_redesign(folder, stage)
    yield Point(begun + len(lines), figures, _render_boards(stage) if chapter else {})


def _read_lines(stage: Stage) -> list[dict[str, float]]:
    """The numbers of each step of the training."""
    return [{name: value for name, value in line.items() if _is_figure(name, value)} for line in stage.steps()]


def _is_figure(name: str, value: object) -> bool:
    return name not in COUNTERS and type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _list_validation(found: Validation) -> Iterator[tuple[str, float]]:
    """Shares of the held-out boards, of each size and of all."""
    parts: dict[str, Outcomes] = {f"/{size}": part for size, part in found.sizes.items()}
    for ending, part in itertools.chain(parts.items(), [("", pool(found.sizes.values()))]):
        yield f"eval/valid{ending}", part.rate(part.valid)
        yield f"eval/optimal{ending}", part.rate(part.optimal_sum_of_costs)
        yield f"eval/forced_wait{ending}", part.wait_valid / part.wait_boards if part.wait_boards else 0.0


def _read_redesign(folder: RunFolder, stage: Stage) -> dict[str, float]:
    """What the engineer made of the boards for the stage that follows, what the trial found, and what it all cost."""
    following = stage.following()
    figures = {"loop/taken_back": float(stage.taken_back() is not None), "loop/seconds": read(stage.done, Done).seconds}
    for size, cell in following.config.sizes.items():
        figures |= {
            f"engineer/data/{size}": cell.data_ratio,
            f"engineer/hole/{size}": cell.hole_ratio,
            f"engineer/wait/{size}": cell.wait_ratio,
        }
    if groups := stage.engineer_figures():
        names = ("reward", "distinct", "refused")
        figures |= {f"train/engineer/{name}": groups[-1][name] for name in names}
        figures["train/engineer/reward_before"] = groups[0]["reward"]
    if known := stage.calibration():
        figures |= {"difficulty/brier": known.brier, "difficulty/brier_of_constant": known.baseline}
    if stage.trial.exists():
        trial = read(stage.trial, Trial)
        scores = [candidate.score for candidate in trial.candidates]
        figures |= {
            "trial/score": max(scores[1:]),
            "trial/current": scores[0],
            "trial/accepted": float(trial.chosen > 0),
            "trial/tokens": float(trial.tokens),
        }
    return figures


def _render_boards(stage: Stage) -> dict[str, np.ndarray]:
    """A picture of the first board of each size that the stage trained on."""
    first: dict[int, Row] = {}
    for row in read_all(stage.boards):
        first.setdefault(row.size, row)
    return {f"boards/{size}": _render_board(row) for size, row in sorted(first.items())}


def _render_board(row: Row) -> np.ndarray:
    holes = np.array([[cell == "H" for cell in line] for line in row.grid])
    return as_pixels(holes, np.array(row.starts), np.array(row.goals))
