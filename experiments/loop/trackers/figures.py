"""The figures of a run for trackers: numbers and pictures at rising steps, from the files of its finished stages."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from lakewright.core_jax.rows import Row, read_all
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Row as DesignRow
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.engineer.trial import Trial
from lakewright.experiments.boards.episodes.pictures import as_pixels
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Done, Validation, read_record

COUNTERS = ("step", "epoch")  # of TRL's log, whose steps start from one in each stage
# What the figures of the lake are called, which were there before there were other environments.
GRADES = {"optimal_sum_of_costs": "optimal"}
TRAITS = {"wait_ratio": "forced_wait"}
COLUMNS = {"data_ratio": "data", "hole_ratio": "hole", "wait_ratio": "wait"}


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
    lake = folder.settings().lake
    figures = dict(_list_validation(read_record(stage.validation, Validation), lake=lake))
    if chapter:
        figures |= _read_redesign(stage, lake=lake)
    yield Point(begun + len(lines), figures, _render_boards(stage) if chapter and lake else {})


def _read_lines(stage: Stage) -> list[dict[str, float]]:
    """The numbers of each step of the training."""
    return [{name: value for name, value in line.items() if _is_figure(name, value)} for line in stage.read_steps()]


def _is_figure(name: str, value: object) -> bool:
    return name not in COUNTERS and type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _list_validation(found: Validation, *, lake: bool) -> Iterator[tuple[str, float]]:
    """Shares of the held-out problems, of each stratum and of all: valid, of each grade, and valid with each trait."""
    parts: dict[str, Tally] = {f"/{stratum}": part for stratum, part in found.outcomes.items()}
    for ending, part in itertools.chain(parts.items(), [("", pool_tallies(found.outcomes.values()))]):
        yield f"eval/valid{ending}", part.valid_rate
        for name, count in part.grades.items():
            if not lake or name in GRADES:
                yield f"eval/{GRADES[name] if lake else name}{ending}", part.rate(count)
        for name, having in part.traits.items():
            yield f"eval/{TRAITS[name] if lake else name}{ending}", having.valid_rate


def _list_design(strata: Mapping[Stratum, DesignRow], *, lake: bool) -> Iterator[tuple[str, float]]:
    for stratum, row in strata.items():
        for name, value in row.items():
            yield f"engineer/{COLUMNS[name] if lake else name}/{stratum}", float(value)


def _read_redesign(stage: Stage, *, lake: bool) -> dict[str, float]:
    """The engineer's changes for the stage that follows, the result of the trial, and their cost."""
    back, done = stage.rolled_back() is not None, read_record(stage.done, Done)
    figures = {"loop/taken_back": float(back), "loop/seconds": done.seconds}
    figures |= dict(_list_design(stage.read_next().design.strata, lake=lake))
    if groups := stage.engineer_figures():
        names = ("reward", "distinct", "refused")
        figures |= {f"train/engineer/{name}": groups[-1][name] for name in names}
        figures["train/engineer/reward_before"] = groups[0]["reward"]
    if known := stage.read_calibration():
        figures |= {"difficulty/brier": known.brier, "difficulty/brier_of_constant": known.baseline}
    if stage.trial.exists():
        trial = read_record(stage.trial, Trial)
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
