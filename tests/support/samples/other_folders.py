"""Folders of every kind that the viewer shows, written by hand or by the smallest of commands, hostile where asked."""

from pathlib import Path

import msgspec

from lakewright.core_jax.rows import write_rows
from lakewright.core_jax.support import listed
from lakewright.experiments.boards.evaluation.answerers import PlannerAnswerer
from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings, evaluate_on_benchmark
from tests.support.samples.finished_run import begin, board, finish

PLAIN = "plain"


def study(folder: Path, text: str = PLAIN, name: str = "board", arms: int = 2) -> None:
    """A finished study of arms of two seeds. text: what its records say wherever they hold text; name: of boards."""
    runs = [f"{arm}-s{seed}" for arm in ("one", "two")[:arms] for seed in (0, 1)]
    for number, run in enumerate(runs):
        finish(folder / "runs" / run, text, name, horizon=20 + number // 2)
    begin(folder / "start")
    difference = {"mean": 2.0, "low": -1.0, "high": 5.0}
    results = [{"arm": text, "seeds": 2, "valid": 40.0, "against": {"points": 2.0, "interval": 3.0}}]
    tests = [{"arm": text, "other": "one", "difference": difference, "seeds": 2, "p_value": 0.2, "corrected": 0.2}]
    record = {"budget": 1000, "baseline": text, "valid": 15.0, "held_out": 80, "arms": results, "tests": tests}
    _write(folder / "results.json", record | {"missing": [text]})
    _write(folder / "study.json", {"runs": runs})


def evaluation(folder: Path, text: str = PLAIN) -> None:
    """An evaluation of two boards by a planner, which says `text` of itself."""
    folder.mkdir(parents=True)
    write_rows(folder / "boards.jsonl", [board(text), board(f"{text} too")])
    evaluate_on_benchmark(
        folder / "boards.jsonl", folder / "answers", lambda kept: PlannerAnswerer("optimal", 0), EvaluationSettings()
    )
    summary = msgspec.json.decode((folder / "answers" / "summary.json").read_bytes())
    with listed(folder / "answers" / "summary.json"):
        _write(folder / "answers" / "summary.json", summary | {"who": text})


def benchmark(folder: Path, text: str = PLAIN) -> None:
    """A benchmark of two boards, called `text`."""
    folder.mkdir(parents=True)
    write_rows(folder / "benchmark.parquet", [board(text), board(f"{text} too")])
    _write(
        folder / "manifest.json", {"boards": 2, "counts": [{"agents": 2, "size": 3, "boards": 2, "wait_required": 0}]}
    )


def _write(path: Path, record: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(record))
