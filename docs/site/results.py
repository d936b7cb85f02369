"""The tables and pictures of docs/results.md, made from the raw results in docs/data/studies.

    python docs/site/results.py                           # makes all of them anew
    python docs/site/results.py studies/frontier          # after taking in the results of a study, by its folder's name

docs/data/studies/NAME.json is results.json of a study; docs/data/demo/seedN.json is what `lakewright report --json`
says of a run of the demo, and docs/data/smollm2/seedN.json of one of the preset smollm2, where engineers.json is what
`lakewright engineer sample --json` says; docs/data/trial_checks/NAME.json is a list of the files that
`lakewright study check-trials` writes. In docs/results.md the lines between `<!-- made: NAME -->` and `<!-- end -->`
are the table of NAME, and docs/images/NAME.svg and NAME-curves.svg are the pictures of a study. The table `forecasts`
and docs/images/forecasts.svg say how well the difficulty model foresaw what was drawn next, over all studies.
"""

import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from core_jax.support import read_config, write_atomically
from engineer.difficulty import Calibration, pooled_calibration
from experiments.charts import reliability_chart
from experiments.loop.redesign import EngineerAnswers, counts_table
from experiments.study import Results, TrialCheck, as_table, curves_svg, reliability_of, reliability_table, study_svg

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "results.md"
ENGINEERS = DOCS / "data" / "smollm2" / "engineers.json"
RUNS = ("demo", "smollm2")  # folders of docs/data with a report of each seed
CURVES = {  # arms that are drawn, of a study of so many that the curves of all would hide each other
    "arena": ["fixed", "dapo", "rules", "uniform", "best-static", "difficulty", "self", "self-trained"],
}
FORECASTS = ["arena", "arena-evidence", "frontier-forecast", "frontier-taught"]  # whose reliability is drawn
GAPS = {  # map sizes on which forced waits are missing; their share of the data is the table NAME-data
    "frontier-taught": (4, 6),
    "frontier-head-start": (4, 6),
    "frontier-mended": (4, 6),
    "frontier-mended-head-start": (4, 6),
    "frontier-thrifty": (4, 6),
}
MADE = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


def main(studies: Sequence[str]) -> None:
    """Takes in the results of finished studies, and makes the page's tables and pictures."""
    (DOCS / "data" / "studies").mkdir(exist_ok=True)
    for study in map(Path, studies):
        shutil.copyfile(study / "results.json", DOCS / "data" / "studies" / f"{study.name}.json")
    for path, content in made().items():
        write_atomically(path, content.encode())


def made() -> dict[Path, str]:
    """What each file should hold: the page with its tables, and the pictures."""
    found = {path.stem: read_config(path, Results) for path in sorted((DOCS / "data" / "studies").glob("*.json"))}
    pictures = {DOCS / "images" / f"{name}.svg": study_svg(results) for name, results in found.items()}
    curves = {
        DOCS / "images" / f"{name}-curves.svg": curves_svg(results, CURVES.get(name))
        for name, results in found.items()
        if not results.prediction
    }
    tables = {name: f"```\n{as_table(results)}\n```" for name, results in found.items()}
    tables |= {f"{name}-data": _forced_data(found[name], sizes) for name, sizes in GAPS.items()}
    tables |= {name: _stages(name) for name in RUNS if (DOCS / "data" / name).exists()}
    calibrations = {name: known for name, results in found.items() if (known := _calibrations(results))}
    tables["forecasts"] = _forecast_table(calibrations)
    drawn = {name: pooled for name in FORECASTS if (pooled := pooled_calibration(calibrations.get(name, [])))}
    pictures[DOCS / "images" / "forecasts.svg"] = reliability_chart(drawn)
    tables["engineers"] = counts_table(msgspec.json.decode(ENGINEERS.read_bytes(), type=list[EngineerAnswers]))
    for path in (DOCS / "data" / "trial_checks").glob("*.json"):
        checks = msgspec.json.decode(path.read_bytes(), type=list[TrialCheck])
        tables[f"{path.stem}-trials"] = f"```\n{reliability_table(reliability_of(checks))}\n```"
    page = MADE.sub(lambda place: f"{place[1]}\n{tables[place[2]]}\n\n{place[3]}", PAGE.read_text())
    return {PAGE: page} | pictures | curves


def _calibrations(results: Results) -> list[Calibration]:
    return [one for run in results.runs for one in run.calibrations]


def _forecast_table(studies: Mapping[str, Sequence[Calibration]]) -> str:
    """How well the difficulty model foresaw the groups that were drawn next, a line for each study."""
    names = ("study", "forecasts", "groups", "Brier score", "of one prediction for all", "forecasts worse than that")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for name, calibrations in studies.items():
        if pooled := pooled_calibration(calibrations):
            worse = sum(one.brier > one.baseline for one in calibrations)
            scores = f"{pooled.brier:.4f} | {pooled.baseline:.4f}"
            lines.append(f"| `{name}` | {len(calibrations)} | {pooled.groups:,} | {scores} | {worse} |")
    return "\n".join(lines)


def _forced_data(results: Results, sizes: Sequence[int]) -> str:
    """The share of a stage's data that force a wait on these sizes: means over seeds, of the stages that all have."""
    named = " and ".join(f"{size}x{size}" for size in sizes)
    rows = {
        arm.arm: _forced_shares(results, arm.arm, sizes) for arm in sorted(results.arms, key=lambda arm: -arm.valid)
    }
    stages = range(max(map(len, rows.values())))
    lines = [f"| % of data on forced waits on {named} | {' | '.join(f'stage {stage}' for stage in stages)} |"]
    lines.append("|---" * (len(stages) + 1) + "|")
    for arm, shares in rows.items():
        cells = [f"{100 * share:.0f}" for share in shares] + [""] * (len(stages) - len(shares))
        lines.append(f"| `{arm}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _forced_shares(results: Results, arm: str, sizes: Sequence[int]) -> list[float]:
    runs = [run.drawn for run in results.runs if run.arm == arm]
    common = zip(*runs, strict=False)  # up to the last stage of the shortest run
    return [
        sum(drawn[size].data_ratio * drawn[size].wait_ratio for drawn in stage for size in sizes) / len(runs)
        for stage in common
    ]


def _stages(preset: str) -> str:
    """The runs of a preset, one line for each seed and stage."""
    runs = {path.stem: json.loads(path.read_text()) for path in sorted((DOCS / "data" / preset).glob("seed*.json"))}
    first = next(iter(runs.values()))["stages"][0]
    sizes = " / ".join(f"{size}x{size}" for size in first["sizes"])
    names = ("seed", "after", "valid %", "valid, wait forced %", "optimal sum of costs %", f"{sizes} valid %")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for seed, run in runs.items():
        for stage in run["stages"]:
            pooled = stage["pooled"]
            shares = [
                pooled["valid"] / pooled["boards"],
                pooled["wait_valid"] / pooled["wait_boards"],
                pooled["optimal_sum_of_costs"] / pooled["boards"],
            ]
            by_size = " / ".join(f"{100 * part['valid'] / part['boards']:.0f}" for part in stage["sizes"].values())
            cells = [
                seed.removeprefix("seed"),
                stage["name"],
                *(f"{100 * share:.1f}" for share in shares),
                by_size,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
