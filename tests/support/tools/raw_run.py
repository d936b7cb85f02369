"""The raw records in the folder of a run on sums, read without the code that writes them, and what they imply."""

import json
from pathlib import Path
from statistics import fmean

from lakewright.experiments.loop.records.run_folder import RunFolder

PARTS = ("warmup", "stage_00", "stage_01")


def lines(path: Path) -> list[dict]:
    """A record a line."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def record(run: RunFolder, part: str, name: str) -> dict:
    """A record of the warm-up or a stage."""
    return json.loads((run.folder / part / f"{name}.json").read_text())


def answers(run: RunFolder, part: str) -> list[tuple[int, bool, str]]:
    """Stratum, whether the sum carries, and failure of the answer to each held-out problem."""
    failures = {line["problem"]: line["answers"][0]["failure"] for line in lines(run.folder / part / "plans.jsonl")}
    held_out = lines(run.folder / "held_out.jsonl")
    return [(problem["cell"][0], problem["cell"][1][1], failures[problem["key"]]) for problem in held_out]


def rate(found: list[tuple[int, bool, str]], **where: object) -> tuple[int, int]:
    """Valid answers, and of how many. where: the stratum, or that they carry."""
    kept = [one for one in found if where.get("stratum", one[0]) == one[0] and where.get("carry", one[1]) == one[1]]
    return sum(failure == "none" for *_, failure in kept), len(kept)


def tokens_until(run: RunFolder, part: str) -> int:
    """Generated from the first stage until the end of this one."""
    total = 0
    for earlier in PARTS[1 : PARTS.index(part) + 1]:
        total += sum(round(step["sampled/tokens"]) for step in lines(run.folder / earlier / "train.jsonl"))
        total += record(run, earlier, "sampled")["figures"]["tokens"] + record(run, earlier, "trial")["tokens"]
        total += record(run, earlier, "proposal")["proposal"]["tokens"]
    return total


def tokens_before_validation(run: RunFolder, part: str) -> int:
    """Generated until the policy of a stage was validated: its trial and the engineer's answer came later."""
    if part == PARTS[0]:
        return 0
    later = record(run, part, "trial")["tokens"] + record(run, part, "proposal")["proposal"]["tokens"]
    return tokens_until(run, part) - later


def brier_scores(run: RunFolder) -> tuple[int, float, float]:
    """Of the forecast of stage 1: its groups, its Brier score, and that of one prediction for all.

    The mean over groups of (expected - observed share of their cell)^2; of one for all, expected is the mean so far.
    """
    before, drawn = record(run, "stage_00", "difficulty"), lines(run.folder / "stage_01" / "problems.jsonl")
    expected = {json.dumps(cell["cell"][:2]): cell["p"] for cell in before["grid"]}
    shares: dict[str, list[float]] = {}
    groups = {
        line["board"]: line["valid"] / line["completions"] for line in lines(run.folder / "stage_01/groups.jsonl")
    }
    for problem in drawn:
        shares.setdefault(json.dumps(problem["cell"][:2]), []).append(groups[problem["key"]])
    total = sum(map(len, shares.values()))
    earlier = [line["valid"] / line["completions"] for line in lines(run.folder / "stage_00/groups.jsonl")]
    brier = sum(len(part) * (expected[cell] - fmean(part)) ** 2 for cell, part in shares.items()) / total
    constant = sum(len(part) * (fmean(earlier) - fmean(part)) ** 2 for part in shares.values()) / total
    return total, brier, constant


def shares_of(design: dict) -> dict[str, float]:
    """The share of each kind of sums: of its digits, times that of sums that carry or not."""
    found = {}
    for stratum, row in design["strata"].items():
        for carry in (False, True):
            found[json.dumps([int(stratum), [row["terms"], carry], []])] = row["share"] * (
                row["carry"] if carry else 1 - row["carry"]
            )
    return found


def score_of(valid: int, samples: int) -> float:
    """The share of ordered pairs of answers of which only the first is valid."""
    return valid * (samples - valid) / (samples * (samples - 1))


def mean_score(trial: dict, design: dict) -> float:
    """The signal that a trial measured of a design: over its kinds of sums, the mean of their problems."""
    cells = {json.dumps(cell["cell"]): cell for cell in trial["cells"]}
    return sum(
        share * fmean(score_of(valid, cells[name]["answers"]) for valid in cells[name]["valid"])
        for name, share in shares_of(design).items()
        if share
    )
