"""What each arm trained on and what it then answers, by task: `count_cells.py STUDY OUT`, by the folder of the study.

OUT is a JSON file: for each arm, pooled over its finished seeds, and for the warm-up, the problems drawn of
each task in a run, the valid % on the test by rung of `complex_arithmetic`, and the mean valid % over all other cells.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean

APART = "complex_arithmetic"
Cell = tuple[str, int, int]


def main() -> None:
    """Writes the file and prints it."""
    study, out = map(Path, sys.argv[1:])
    test = {line["key"]: line for line in read_lines(study / "test.jsonl")}
    found = {"warm-up": rate_cells([study / "start"], test)}
    runs = [path.parent for path in sorted(study.glob("runs/*/test.json"))]
    for arm in sorted({run.name.rpartition("-s")[0] for run in runs}):
        mine = [run for run in runs if run.name.rpartition("-s")[0] == arm]
        found[arm] = {"seeds": len(mine), "drawn in a run": count_drawn(mine)} | rate_cells(mine, test)
    out.write_text(json.dumps(found, indent=1) + "\n")
    for name, counted in found.items():
        print(f"{name}: {counted}")


def count_drawn(runs: list[Path]) -> dict[str, int]:
    """The mean number of problems of each task that a run trained on."""
    drawn = Counter(
        line["cell"][0] for run in runs for path in run.glob("stage_*/problems.jsonl") for line in read_lines(path)
    )
    return {task: round(count / len(runs)) for task, count in sorted(drawn.items())}


def rate_cells(runs: list[Path], test: dict[str, dict]) -> dict[str, object]:
    """Valid % on the test by rung of one task, and on average over the cells of the others."""
    asked, valid = Counter[Cell](), Counter[Cell]()
    for run in runs:
        for line in read_lines(run / "test_answers.jsonl"):
            problem = test[line["problem"]]
            cell = (problem["cell"][0], *map(int, problem["cell"][1]))
            asked[cell] += 1
            valid[cell] += line["answers"][0]["text"] == problem["answer"]
    rates = {cell: 100 * valid[cell] / count for cell, count in sorted(asked.items())}
    rungs = {str(cell[2]): round(rate, 1) for cell, rate in rates.items() if cell[0] == APART}
    return {
        f"{APART} by rung": rungs,
        "other cells": round(fmean(rates[cell] for cell in rates if cell[0] != APART), 2),
    }


def read_lines(path: Path) -> list[dict]:
    """The lines of a file of JSON."""
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main()
