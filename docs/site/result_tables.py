"""The kinds of Markdown tables of docs/results.md and docs/lab; docs/site/results.py says which tables there are.

A table by name has rows of columns of cells. docs/data/printed/NAME.json is such a table with a note: figures as they
were printed, of runs whose results were not kept, or did not say so much at that time.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.support import read_config
from lakewright.experiments.studies.learning_curves import Curve, average_curve, sum_up_reached
from lakewright.experiments.studies.results import Results
from lakewright.experiments.studies.run_results import RunResult
from lakewright.experiments.viewer.charts.evaluation_plot import PUBLISHED

DATA = Path(__file__).parents[1] / "data"
OTHERS = "other sizes"
REWARDS = {"none": "none", "learnability": "learnability", "measured gain besides": "gain"}  # by name of a row
GATES = {"no gate": "none", "guard": "guard", "guard and trial": "guard-trial"}  # by name of a column
TRAINEE = {"warmup": "warm-up", "sft": "warm-up, then SFT", "grpo": "warm-up, then GRPO"}  # docs/data/trainee, by arm
OUTCOMES = ("valid", "optimal_makespan", "optimal_sum_of_costs")

Cell = float | int | str
Cells = dict[str, Cell]


class Printed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of docs/data/printed. note: where its figures come from. corner: the name of its first column."""

    note: str
    corner: str
    rows: dict[str, Cells]


class Tried(msgspec.Struct, frozen=True):
    """A config of a search: what its trial said of its boards, and the points gained by training on them."""

    config: EnvConfig
    valid_of_trial: float
    learnability: float
    informative: float
    gain: float


class Search(msgspec.Struct, frozen=True):
    """docs/data/searches/NAME.json."""

    configs: list[Tried]


class Team(msgspec.Struct, frozen=True):
    """The boards of one number of agents. means: over sizes, of shares of all boards."""

    agents: int
    means: dict[str, float]


class Answers(msgspec.Struct, frozen=True):
    """docs/data/benchmark/NAME.json. judged: where the simulator judged several answers, the best ones."""

    teams: list[Team]
    judged: "Answers | None" = None


class Trainee(msgspec.Struct, frozen=True):
    """docs/data/trainee/NAME.json: by arm and figure the mean over the seeds and the standard deviation."""

    summary: dict[str, dict[str, tuple[float, float]]]


class Rewarded(msgspec.Struct, frozen=True):
    """A group of answers of an engineer that is trained on them: means over it, and what was said."""

    figures: dict[str, float]
    said: list[str]


def markdown(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of rows."""
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def by_name(corner: str, rows: Mapping[str, Mapping[str, Cell]]) -> str:
    """A table of named rows and columns; a cell is empty where a row lacks the column."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [[name, *(_text(row.get(column, "")) for column in columns)] for name, row in rows.items()]
    return markdown([corner, *columns], lines)


def printed(name: str) -> Printed:
    """Figures of which no more is left."""
    return read_config(DATA / "printed" / f"{name}.json", Printed)


def printed_table(name: str) -> str:
    """A table of such figures alone."""
    found = printed(name)
    return by_name(found.corner, found.rows)


def valid_by_size(results: Results, kept: Printed, arms: Sequence[str], sizes: Sequence[int], *, others: bool) -> str:
    """Valid % by size, of the warm-up as printed and of arms as means over their seeds; on forced waits as printed.

    others: the sizes that are not named too, as one, as all have as many boards in the test.
    """
    rows = {"warm-up": kept.rows["warm-up"]}
    for arm in arms:
        runs = [run.sizes for run in results.runs if run.arm == arm]
        means = {size: _mean([run[size] for run in runs]) for size in runs[0]}
        cells: Cells = {f"{size}x{size}": means[size] for size in sizes}
        if others:
            cells[OTHERS] = _mean([mean for size, mean in means.items() if size not in sizes])
        rows[f"`{arm}`"] = cells | kept.rows.get(f"`{arm}`", {})
    return by_name(kept.corner, rows)


def valid_of_arms(results: Results, arms: Mapping[str, str], seeds: Sequence[int]) -> str:
    """The mean valid % over these seeds of arms, each under the name of its column."""
    return by_name("", {"valid %": {column: _valid(results, arm, seeds) for column, arm in arms.items()}})


def rewards_and_gates(results: Results, seeds: Sequence[int]) -> str:
    """The mean valid % over these seeds of the arms gate-GATE-REWARD."""
    rows = {
        row: {column: _valid(results, f"gate-{gate}-{reward}", seeds) for column, gate in GATES.items()}
        for row, reward in REWARDS.items()
    }
    return by_name("reward of the engineer", rows)


def before_and_since(found: Mapping[str, Results]) -> str:
    """The valid % of the runs of docs/data/fault, and of the same runs as they are in the results of their studies."""
    rows: dict[str, Cells] = {}
    for path in sorted((DATA / "fault").glob("*.json"), key=lambda path: path.stem):
        since = {(run.arm, run.seed): run.valid for run in found[path.stem].runs}
        for run in msgspec.json.decode(path.read_bytes(), type=list[RunResult]):
            pair = f"{run.valid:.1f}, {since[run.arm, run.seed]:.1f}"
            rows.setdefault(f"`{run.arm}`", {})[f"`{path.stem}`, seed {run.seed}"] = pair
    return by_name("valid %, before and since", rows)


def arms_again(before: Results, since: Results, seeds: Sequence[int]) -> str:
    """The mean valid % over these seeds of the arms of `since`, and of the same arms in `before`."""
    arms = sorted({run.arm for run in since.runs})
    rows = {
        when: {f"`{arm}`": _valid(results, arm, seeds) for arm in arms}
        for when, results in (("before", before), ("since", since))
    }
    return by_name("valid %", rows)


def tested_differences(found: Mapping[str, Results], rows: Sequence[tuple[str, str, str, str]]) -> str:
    """The valid % of two arms and their tested difference, for each row with its study, an arm and another one."""
    cells = [_test_differences(name, study, found[study], arm, other) for name, study, arm, other in rows]
    return markdown(list(cells[0]), [list(row.values()) for row in cells])


def _test_differences(name: str, study: str, results: Results, arm: str, other: str) -> dict[str, str]:
    valid = {one.arm: one.valid for one in results.arms}
    test = next(test for test in results.tests if (test.arm, test.other) == (arm, other))
    gain = test.difference
    return {
        "boards": name,
        "study": f"`{study}`",
        "seeds": str(test.seeds),
        "valid %": f"`{arm}` {valid[arm]:.1f}",
        "compared with": f"`{other}` {valid[other]:.1f}",
        "difference (95 %)": f"{gain.mean:+.1f} ({gain.low:+.1f} to {gain.high:+.1f})",
        "p by Holm": f"{test.corrected:.2g}",
    }


def tokens_to_best(found: Mapping[str, Results], rows: Sequence[tuple[str, str, str]], baseline: str = "fixed") -> str:
    """How many thousand tokens arms need until they are as good as a baseline at its best, and how good they are.

    found: the results. rows: label, study and arm. baseline: the arm of each study.
    """

    def row(label: str, study: str, name: str) -> tuple[str, ...]:
        results = found[study]
        curves = {arm: {run.seed: run.curve for run in results.runs if run.arm == arm} for arm in (name, baseline)}
        reached = sum_up_reached(curves[name], curves[baseline])
        (valid,) = (arm.valid for arm in results.arms if arm.arm == name)
        along = _mean([average_curve(curve, results.budget) for curve in curves[name].values()])
        known = reached and reached.tokens is not None and reached.share is not None
        low, high = _share_interval(curves[name], curves[baseline])
        spread = "" if name == baseline else f" ({low:.2f} to {high:.2f})"
        sooner = (f"{reached.tokens / 1000:.0f}", f"{reached.share:.2f}{spread}") if known else ("never", "")
        return (label, f"`{name}`", *sooner, f"{along:.1f}", f"{valid:.1f}")

    names = ("boards", "arm", "thousand tokens", "share (95 %)", "along, valid %", "in the end, valid %")
    return markdown(names, [row(*given) for given in rows])


def _share_interval(
    curves: Mapping[int, Curve], baselines: Mapping[int, Curve], times: int = 1000
) -> tuple[float, float]:
    """A bootstrap interval, over seeds, of the share of `sum_up_reached`; infinite where half never get there."""
    seeds, rng = sorted(curves), np.random.default_rng(0)
    shares = []
    for picked in rng.choice(seeds, (times, len(seeds))):
        again = [{place: of[int(seed)] for place, seed in enumerate(picked)} for of in (curves, baselines)]
        reached = sum_up_reached(*again)
        shares.append(np.inf if not reached or reached.share is None else reached.share)
    low, high = np.quantile(shares, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def search_table(name: str) -> str:
    """The configs of a search, that of the largest gain first."""
    configs = read_config(DATA / "searches" / f"{name}.json", Search).configs
    names = ("gain, points", "mean regret 1 - p", "mean p (1 - p)", "groups with some valid, some not", "mean size")
    rows = (
        (
            f"{tried.gain:+.1f}",
            f"{1 - tried.valid_of_trial:.2f}",
            f"{tried.learnability:.3f}",
            f"{100 * tried.informative:.0f} %",
            f"{sum(cell.data_ratio * size for size, cell in tried.config.sizes.items()):.1f}",
            f"{sum(cell.data_ratio * cell.wait_ratio for cell in tried.config.sizes.values()):.2f}",
        )
        for tried in sorted(configs, key=lambda tried: -tried.gain)
    )
    return markdown([*names, "share of forced waits"], rows)


def readings(kept: Printed, valid: Mapping[str, float]) -> str:
    """What the examinations of some seeds said, and the valid % of the policies after the warm-up."""
    return by_name(kept.corner, kept.rows | {"valid plans, %": valid})


class Examined(msgspec.Struct, frozen=True):
    """A row of examine.py: what share of an engineer's changes is as taught, about evidence of one kind."""

    engineer: str
    evidence: str
    questions: int
    agreement: float
    low: float
    high: float
    chance: float


def examinations_table(path: Path) -> str:
    """The changes as taught by kind of evidence and engineer, in %, with intervals and chance."""
    rows: dict[str, dict[str, Cell]] = {}
    for row in read_config(path, list[Examined]):
        share = f"{100 * row.agreement:.0f} ({100 * row.low:.0f} to {100 * row.high:.0f}), {100 * row.chance:.0f}"
        rows.setdefault(row.evidence, {"questions": row.questions})[row.engineer] = share
    return by_name("evidence; % as taught (95 %), by chance", rows)


def teams_table(answers: Mapping[str, str], kept: Printed) -> str:
    """Rows of docs/data/benchmark, then those as printed, then the published row with most valid plans.

    answers: the files by the names of their rows; after a file whose answers were judged stands the row of that.
    """
    rows: dict[str, Cells] = {}
    for row, name in answers.items():
        found = read_config(DATA / "benchmark" / f"{name}.json", Answers)
        rows[row] = _of_teams(found)
        if found.judged:
            rows["the same, the simulator as judge of 9 answers"] = _of_teams(found.judged)
    best = max(PUBLISHED, key=lambda score: sum(score.valid.values()))
    published: Cells = {
        f"{agents} agents": f"{best.valid[agents]:.2f} / {best.optimal[agents]:.2f}" for agents in best.valid
    }
    named = f"the paper's best row, valid and optimal % (which optimum is not known): {best.who}"
    return by_name(kept.corner, rows | kept.rows | {named: published})


def trainee_means(name: str) -> str:
    """Means over the seeds of a study of the trainee, with standard deviations."""
    summary = read_config(DATA / "trainee" / f"{name}.json", Trainee).summary
    rows = {
        f"{figure} %": {arm: "{:.1f} ± {:.1f}".format(*summary[key][figure]) for key, arm in TRAINEE.items()}
        for figure in summary["warmup"]
    }
    return by_name("", rows)


def rounds_of_training(path: Path) -> str:
    """What the answers of an engineer in words earned, round by round; the last are those after its training."""
    groups = msgspec.json.decode(path.read_bytes(), type=list[Rewarded])
    columns = {"reward": "reward", "held back": "projected", "refused": "refused", "different": "distinct"}
    shown = ([f"{group.figures[name]:.2f}" for name in columns.values()] for group in groups)
    return markdown(["round", *columns], ([str(turn), *figures] for turn, figures in enumerate(shown)))


def _of_teams(answers: Answers) -> Cells:
    return {
        f"{team.agents} agents": " / ".join(f"{100 * team.means[outcome]:.1f}" for outcome in OUTCOMES)
        for team in answers.teams
    }


def _valid(results: Results, arm: str, seeds: Sequence[int]) -> float:
    return _mean([run.valid for run in results.runs if run.arm == arm and run.seed in seeds])


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures)


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{cell:.1f}" if isinstance(cell, float) else f"{cell:,}"
