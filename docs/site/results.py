"""The tables and pictures of docs/results.md and docs/lab, made from the raw results in docs/data.

    python docs/site/results.py                           # makes all of them again
    python docs/site/results.py studies/frontier          # after taking in the results of a study, by its folder's name

docs/data/studies/NAME/results.json is that of a study, and spec.toml beside it the spec of a closed one;
docs/data/demo/seedN.json is what `lakewright report --json` says of a run of the demo, and docs/data/smollm2/seedN.json
of one of the preset smollm2, where engineers.json is what `lakewright engineer sample --json` says, and rounds.json has
figures and answers of each round of a run's engineer.json; docs/data/trial_checks/NAME.json is a list of the files that
`lakewright study check-trials` writes.
docs/data/reading/NAME is the folder of a test of `lakewright engineer read`; its table and picture are reading-NAME.
docs/data/worlds.json is what `lakewright bench worlds --json` prints, docs/data/forecast_losses.json what
docs/site/forecast_losses.py writes.
docs/data/benchmark holds what `lakewright benchmark eval` writes, docs/data/trainee a closed study of ways to train,
docs/data/searches a search that was stopped, docs/data/fault the runs that were run again, as they were before, and
docs/data/printed tables of figures of which no more is left.

In these pages the lines between `<!-- made: NAME -->` and `<!-- end -->` are the table of NAME, and
docs/images/NAME.svg and NAME-curves.svg are the pictures of a study. The table `forecasts` and
docs/images/forecasts.svg say how well the difficulty model predicted what was drawn next, over all studies. Tables
that are not made are listed in tests/test_docs.py, with the reason. docs/images/redesign.svg is the first redesign of
the demo's seed 0.
"""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from forecast_losses import format_losses
from redesign_picture import draw_redesign
from result_tables import (
    arms_again,
    before_and_since,
    by_name,
    examinations_table,
    markdown,
    printed,
    printed_table,
    readings,
    rewards_and_gates,
    rounds_of_training,
    search_table,
    teams_table,
    tested_differences,
    tokens_to_best,
    trainee_means,
    valid_by_size,
    valid_of_arms,
)

from lakewright.core_jax.support import read_config, write_atomically
from lakewright.engineer.difficulty import Calibration, pool_calibrations
from lakewright.experiments.bench.world_scores import WorldScore, format_scores
from lakewright.experiments.bench.worlds import KINDS
from lakewright.experiments.boards.evaluation.scores import Summary
from lakewright.experiments.studies.engineer_samples import EngineerAnswers, format_counts
from lakewright.experiments.studies.plot import curves_svg, study_svg
from lakewright.experiments.studies.reading.reading_table import Result, draw_results, format_results
from lakewright.experiments.studies.results import Results
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.trial_checks import TrialCheck, reliability_of, reliability_table
from lakewright.experiments.viewer.charts.evaluation_plot import evaluation_svg
from lakewright.experiments.viewer.charts.frame import COLOURS
from lakewright.experiments.viewer.charts.lines import reliability_chart
from lakewright.experiments.viewer.charts.rows import ChartRow, Mark, row_chart

DOCS = Path(__file__).parents[1]
PAGES = [DOCS / "results.md", DOCS / "how-good.md", *sorted((DOCS / "lab").glob("*.md"))]
STUDIES = DOCS / "data" / "studies"
EXAMINATIONS = STUDIES / "arena-recorded-lessons" / "examinations.json"
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
    "frontier-early": (4, 6),
    "frontier-first": (4, 6),
}
SIZES = {  # arms and map sizes of the table NAME-sizes
    "arena": (["fixed", "self", "self-shuffled", "self-trained", "difficulty", "best-static", "uniform"], (3, 4, 5, 6)),
    "arena-evidence": (["self", "self-shuffled"], (3, 4, 5, 6)),
    "one-size": (["only3", "only4", "only5", "only6"], (3, 4, 5, 6)),
    "blind-spot": (["fixed", "self", "proportional", "self-shuffled"], (3, 4, 5, 6)),
    "frontier-forecast": (["fixed", "self-trained", "difficulty-rollouts", "difficulty", "best-static"], (4, 6, 8)),
}
READERS = {  # arms of the arena that differ in what the engineer reads, or in who it is
    "`self-none`": "self-none",
    "V1": "self-v1",
    "V2": "self-v2",
    "V3": "self-v3",
    "V4": "self-v4",
    "V5": "self-v5",
    "V6 (`self`)": "self",
    "RL details": "self-rl-details",
    "difficulty model": "self-difficulty",
    "shuffled V6": "self-shuffled",
    "`base` with V6": "base",
}
TESTED = {  # tables of docs/results.md: the row, its study, and two of its arms
    "gains": [
        ("small boards, gaps", "arena", "self-trained", "fixed"),
        ("small boards, gaps, before the first stage", "arena-first", "difficulty-first", "fixed"),
        ("the same, the default engineer", "arena-default", "gain", "fixed"),
        ("larger, the default engineer", "frontier-graded", "gain", "fixed"),
        ("larger, gaps, before the first stage", "frontier-first", "self-trained-first", "fixed"),
        ("the same, boards out of reach left alone", "frontier-within-reach", "difficulty-within-reach", "fixed"),
        ("small, no gaps", "arena-second", "self-trained", "fixed"),
        ("larger, no gaps", "random-start", "difficulty", "fixed"),
        ("sums of numbers, regret", "arithmetic", "difficulty", "fixed"),
        ("the same, before the first stage", "arithmetic", "difficulty-first", "fixed"),
        ("sums of numbers, learnability, before the first stage", "arithmetic-second", "learnability-first", "fixed"),
        ("the same from another warm-up", "arithmetic-static", "learnability-first", "fixed"),
        ("the same from a third", "arithmetic-rules", "learnability-first", "fixed"),
        (
            "the same, without right answers in the groups",
            "arithmetic-rules",
            "learnability-first-alone",
            "fixed-alone",
        ),
        ("sums of numbers, the policy as its own engineer", "arithmetic-self", "self", "fixed"),
        ("the same, trained on its proposals", "arithmetic-self", "self-trained", "fixed"),
        ("six tasks of reasoning-gym", "reasoning-gym", "difficulty-first", "fixed"),
        ("the same, five times the tokens", "reasoning-gym-long", "difficulty-first", "fixed"),
        ("the same, the default engineer", "reasoning-gym-evenness", "gain", "fixed"),
        ("largest of some digits, from an even design, trained by TRL", "trl-largest", "gain", "fixed"),
        ("sums of two numbers, from random designs, trained by TRL", "trl-guess", "gain-default", "fixed"),
    ],
    "against-static": [
        ("small boards", "arena", "self-trained", "best-static"),
        ("small boards, before the first stage", "arena-first", "difficulty-first", "best-static"),
        ("the same, the default engineer", "arena-default", "gain", "best-static"),
        ("larger", "frontier-taught", "self-trained", "best-static"),
        ("larger, before the first stage", "frontier-first", "self-trained-first", "best-static"),
        ("the same, boards out of reach left alone", "frontier-within-reach", "difficulty-within-reach", "best-static"),
        ("sums of numbers, before the first stage", "arithmetic-static", "learnability-first", "best-static"),
        ("sums of numbers, the default engineer", "arithmetic-default", "gain", "best-static"),
        ("six tasks of reasoning-gym", "reasoning-gym-static", "difficulty-first", "best-static"),
    ],
    "evidence": [
        ("small boards", "arena", "self", "self-shuffled"),
        ("the same, twenty more seeds", "arena-evidence", "self", "self-shuffled"),
        ("larger", "frontier-taught", "self", "self-shuffled"),
        ("small, no gaps", "arena-second", "self", "self-shuffled"),
        ("small, an unseen size", "blind-spot", "self", "self-shuffled"),
    ],
}
SOONER = [  # the table of docs/results.md of how soon arms are as good as `fixed` at its best
    ("small boards, gaps", "arena-first", "fixed"),
    ("", "arena-first", "best-static"),
    ("", "arena-first", "difficulty-first"),
    ("", "arena-default", "gain"),
    ("larger, gaps", "frontier-first", "fixed"),
    ("", "frontier-first", "best-static"),
    ("", "frontier-first", "self-trained-first"),
    ("larger, gaps, run again", "frontier-within-reach", "fixed"),
    ("", "frontier-within-reach", "difficulty-within-reach"),
    ("the same, today's code", "frontier-graded", "gain"),
    ("sums of numbers", "arithmetic-second", "fixed"),
    ("", "arithmetic-second", "learnability-first"),
    ("the same, second warm-up", "arithmetic-static", "fixed"),
    ("", "arithmetic-static", "learnability-first"),
    ("the same, third warm-up", "arithmetic-rules", "fixed"),
    ("", "arithmetic-rules", "learnability-first"),
]
SABOTEURS = {
    "`saboteur` behind guard, trial and rollback": "saboteur",
    "`saboteur` without them": "saboteur-bare",
    "`fixed`": "fixed",
}
WITH_OTHERS = ("frontier-forecast",)  # whose other sizes stand there as one
GATES = {"arena": (0, 1, 2), "arena-second": (0, 1)}  # seeds of the table NAME-gates
PRINTED = ("unseen-waits-forced", "best-config", "zero-shot", "learning-curve", "half-hour", "half-hour-seeds")
TEAMS = {  # docs/data/benchmark by row
    "after the warm-up": "board-network-62-minutes",
    "after GRPO: [`pretrained`](../policies.md#the-policy-called-pretrained)": "pretrained",
}
MADE = re.compile(r"^( *)(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.S | re.M)


def main(studies: Sequence[str]) -> None:
    """Takes in the results of finished studies, and makes the tables and pictures of all pages."""
    for study in map(Path, studies):
        folder = STUDIES / study.name
        folder.mkdir(exist_ok=True)
        shutil.copyfile(study / "results.json", folder / "results.json")
    for path, content in made().items():
        write_atomically(path, content.encode())


def made() -> dict[Path, str]:
    """What each file should hold: the pages with their tables, and the pictures."""
    found = {path.parent.name: read_config(path, Results) for path in sorted(STUDIES.glob("*/results.json"))}
    pictures = {DOCS / "images" / f"{name}.svg": study_svg(results) for name, results in found.items()}
    curves = {
        DOCS / "images" / f"{name}-curves.svg": curves_svg(results, CURVES.get(name))
        for name, results in found.items()
        if not results.prediction
    }
    tables = {name: f"```\n{tabulate_results(results)}\n```" for name, results in found.items()}
    tables |= {f"{name}-data": _forced_data(found[name], sizes) for name, sizes in GAPS.items()}
    tables |= {name: _stages(name) for name in RUNS if (DOCS / "data" / name).exists()}
    calibrations = {name: known for name, results in found.items() if (known := _calibrations(results))}
    tables["forecasts"] = _forecast_table(calibrations)
    drawn = {name: pooled for name in FORECASTS if (pooled := pool_calibrations(calibrations.get(name, [])))}
    pictures[DOCS / "images" / "forecasts.svg"] = reliability_chart(drawn)
    scores = read_config(DOCS / "data" / "benchmark" / "pretrained.json", Summary)
    pictures[DOCS / "images" / "pretrained.svg"] = evaluation_svg(scores)
    pictures[DOCS / "images" / "redesign.svg"] = draw_redesign(*_reports("demo")["0"]["stages"][:2])
    tables["engineers"] = format_counts(msgspec.json.decode(ENGINEERS.read_bytes(), type=list[EngineerAnswers]))
    for path in (DOCS / "data" / "trial_checks").glob("*.json"):
        checks = msgspec.json.decode(path.read_bytes(), type=list[TrialCheck])
        tables[f"{path.stem}-trials"] = f"```\n{reliability_table(reliability_of(checks))}\n```"
    for path in sorted((DOCS / "data" / "reading").glob("*/results.json")):
        results = msgspec.json.decode(path.read_bytes(), type=list[Result])
        tables[f"reading-{path.parent.name}"] = format_results(results)
        pictures[DOCS / "images" / f"reading-{path.parent.name}.svg"] = draw_results(results)
    worlds = msgspec.json.decode((DOCS / "data" / "worlds.json").read_bytes(), type=list[WorldScore])
    tables["worlds"] = format_scores(worlds)
    pictures[DOCS / "images" / "worlds.svg"] = _draw_scores(worlds, ("gain", "difficulty", "coaching"))
    tables["losses"] = format_losses(json.loads((DOCS / "data" / "forecast_losses.json").read_text()))
    tables |= _further_tables(found)
    texts = {page: page.read_text() for page in PAGES}
    placed = {name for text in texts.values() for _, _, name, _ in MADE.findall(text)}
    if unplaced := tables.keys() - placed:
        raise ValueError(f"no page has these tables; put their marks into one of docs/lab: {sorted(unplaced)}")
    pages = {page: MADE.sub(lambda place: _filled(place, tables), text) for page, text in texts.items()}
    return pages | pictures | curves


def _draw_scores(scores: Sequence[WorldScore], teachers: Sequence[str]) -> str:
    """A row for each kind with a mark for each of some teachers, as SVG."""
    marks = {
        name: Mark(0.0, ("disc", "square", "triangle", "diamond")[place % 4], COLOURS[place % len(COLOURS)])
        for place, name in enumerate(teachers)
    }
    rows = []
    for kind in dict.fromkeys(score.kind for score in scores):
        found = {score.teacher: score for score in scores if score.kind == kind}
        placed = [
            marks[name]._replace(
                x=found[name].end,
                interval=(found[name].end - 2 * found[name].error, found[name].end + 2 * found[name].error),
                words=f"{name} {found[name].end:.2f}",
            )
            for name in teachers
        ]
        rows.append(ChartRow(f"{kind}: {KINDS[kind][0]}", placed))
    return row_chart(
        "Scores in worlds of known truth, at the end",
        rows,
        x_label="0: no redesign, 1: an oracle; bars are two standard errors",
        lines={0.0: "", 1.0: ""},
        legend=marks,
    )


def _filled(place: re.Match[str], tables: Mapping[str, str]) -> str:
    """A place of the page with its table, as far in as its first line."""
    return textwrap.indent(f"{place[2]}\n{tables[place[3]]}\n\n{place[4]}", place[1])


def _further_tables(found: Mapping[str, Results]) -> dict[str, str]:
    """The tables that are not of one study or preset as a whole."""
    tables = {name: printed_table(name) for name in PRINTED}
    for name, (arms, sizes) in SIZES.items():
        kept = printed(f"{name}-sizes")
        tables[f"{name}-sizes"] = valid_by_size(found[name], kept, arms, sizes, others=name in WITH_OTHERS)
    tables |= {f"{name}-gates": rewards_and_gates(found[name], seeds) for name, seeds in GATES.items()}
    tables |= {name: tested_differences(found, rows) for name, rows in TESTED.items()}
    tables["sooner"] = tokens_to_best(found, SOONER)
    tables["saboteur"] = valid_of_arms(found["arena"], SABOTEURS, (0, 1, 2))
    tables["arena-readers"] = valid_of_arms(found["arena"], READERS, (0, 1, 2))
    tables["fault"] = before_and_since(found)
    tables["moments"] = arms_again(found["arena"], found["arena-moments"], (0, 1, 2))
    tables["frontier-guided"] = search_table("frontier-guided")
    tables["words"] = rounds_of_training(DOCS / "data" / "smollm2" / "rounds.json")
    tables["demo-reading"] = readings(printed("demo-reading"), _valid_after_warmup("demo"))
    tables["teams"] = teams_table(TEAMS, printed("prioritized"))
    tables["trainee"] = trainee_means("board-network")
    tables["examinations"] = examinations_table(EXAMINATIONS)
    return tables


def _reports(preset: str) -> dict[str, dict[str, Any]]:
    """By seed what the report of a run says."""
    files = sorted((DOCS / "data" / preset).glob("seed*.json"))
    return {path.stem.removeprefix("seed"): json.loads(path.read_text()) for path in files}


def _valid_after_warmup(preset: str) -> dict[str, float]:
    """By seed the valid % on the held-out set."""
    first = {seed: run["stages"][0]["pooled"] for seed, run in _reports(preset).items()}
    return {seed: 100 * pooled["valid"] / pooled["boards"] for seed, pooled in first.items()}


def _calibrations(results: Results) -> list[Calibration]:
    return [one for run in results.runs for one in run.calibrations]


def _forecast_table(studies: Mapping[str, Sequence[Calibration]]) -> str:
    """How well the difficulty model foresaw the groups that were drawn next, a line for each study."""
    names = ("study", "forecasts", "groups", "Brier score", "of one prediction for all", "forecasts worse than that")
    rows = []
    for name, calibrations in studies.items():
        if pooled := pool_calibrations(calibrations):
            worse = sum(one.brier > one.baseline for one in calibrations)
            scores = (f"{pooled.brier:.4f}", f"{pooled.baseline:.4f}")
            rows.append((f"`{name}`", str(len(calibrations)), f"{pooled.groups:,}", *scores, str(worse)))
    return markdown(names, rows)


def _forced_data(results: Results, sizes: Sequence[int]) -> str:
    """The share of a stage's data that force a wait on these sizes: means over seeds, of the stages that all have."""
    named = " and ".join(f"{size}x{size}" for size in sizes)
    rows = {
        arm.arm: _forced_shares(results, arm.arm, sizes) for arm in sorted(results.arms, key=lambda arm: -arm.valid)
    }
    cells = {
        f"`{arm}`": {f"stage {stage}": f"{100 * share:.0f}" for stage, share in enumerate(shares)}
        for arm, shares in rows.items()
    }
    return by_name(f"% of data on forced waits on {named}", cells)


def _forced_shares(results: Results, arm: str, sizes: Sequence[int]) -> list[float]:
    runs = [run.drawn for run in results.runs if run.arm == arm]
    common = zip(*runs, strict=False)  # up to the last stage of the shortest run
    return [
        sum(drawn[size]["data_ratio"] * drawn[size]["wait_ratio"] for drawn in stage for size in sizes) / len(runs)
        for stage in common
    ]


def _stages(preset: str) -> str:
    """The runs of a preset, one line for each seed and stage."""
    runs = _reports(preset)
    first = next(iter(runs.values()))["stages"][0]
    sizes = " / ".join(f"{size}x{size}" for size in first["sizes"])
    names = ("seed", "after", "valid %", "valid, wait forced %", "optimal sum of costs %", f"{sizes} valid %")
    rows = []
    for seed, run in runs.items():
        for stage in run["stages"]:
            pooled = stage["pooled"]
            shares = [
                pooled["valid"] / pooled["boards"],
                pooled["wait_valid"] / pooled["wait_boards"],
                pooled["optimal_sum_of_costs"] / pooled["boards"],
            ]
            by_size = " / ".join(f"{100 * part['valid'] / part['boards']:.0f}" for part in stage["sizes"].values())
            rows.append((seed, stage["name"], *(f"{100 * share:.1f}" for share in shares), by_size))
    return markdown(names, rows)


if __name__ == "__main__":
    main(sys.argv[1:])
