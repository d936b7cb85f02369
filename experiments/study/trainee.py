"""What half an hour makes of the tiny model, and whether GRPO is worth its cost.

    lakewright study trainee --out study --seeds 3

For each seed: a warm-up, and from its end two ways to spend the same minutes, GRPO (`grpo`) and more supervised
learning (`sft`). After each, greedy plans for boards that are in no training set: `natural` ones, drawn uniformly and
kept if solvable, and `forced` ones, on which every optimal plan waits.

Every part leaves its files and is skipped where they are, so a study that was killed repeats at most one part.
"""

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import msgspec
import numpy as np
from matplotlib.figure import Figure
from tabulate import tabulate

from core_jax.config import EnvConfig, holes_of
from core_jax.generator import draw_free, generate
from core_jax.results import Outcomes, pool
from core_jax.solver import solve
from core_jax.support import Count, Positive, convert, locked, replacing
from core_jax.types import Board, Status
from experiments.loop import check_machine
from experiments.loop.records import read, write
from experiments.loop.settings import RunSettings, load_settings, seed_for
from experiments.resumable import Claim
from experiments.runtime import print_on_terminal, progress

ARMS = {"warmup": "warm-up", "sft": "warm-up, then SFT", "grpo": "warm-up, then GRPO"}
KINDS = ("natural", "forced")
EVALUATION_SEED = 20261121
FORMAT = 2  # 1 had natural boards of its own drawing


class StudySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of the runs, and how much is measured. boards: of a kind, for each size and hole ratio.

    sft_rate: the rates of continued supervised learning, as a share of those of the warm-up.
    """

    run: RunSettings
    seeds: Count
    boards: Count
    sft_rate: Positive
    format: int = FORMAT


CLAIM = Claim("study of the trainee", "config.json", StudySettings, FORMAT, "lakewright study trainee")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of an arm: seconds of training, steps, seconds spent waiting for boards, and outcomes by kind, size."""

    seconds: float
    steps: int
    waited: float
    outcomes: dict[str, dict[int, Outcomes]]


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """result.json: the parts by seed and arm, and for each arm and figure the mean and its standard deviation."""

    settings: StudySettings
    parts: dict[int, dict[str, Part]]
    summary: dict[str, dict[str, tuple[float, float]]]


def trainee_settings(preset: str, overrides: list[str], seeds: int, boards: int, sft_rate: float) -> StudySettings:
    """The settings of a study, from a preset with overrides. Raises InputError naming setting, value and remedy."""
    run = msgspec.to_builtins(load_settings(preset, overrides), str_keys=True)
    given = {"run": run, "seeds": seeds, "boards": boards, "sft_rate": sft_rate}
    return convert(given, StudySettings, "command line")


def study_trainee(settings: StudySettings, folder: Path) -> Result:
    """Runs the study in `folder`, or resumes it.

    Raises InputError where the folder holds another study, or the machine lacks what the runs need.
    """
    check_machine(settings.run)
    with locked(folder):
        CLAIM.take(folder, settings)
        parts = _parts(settings, folder)
        result = Result(settings, parts, _summary(parts))
        write(folder / "result.json", result)
        _plot(result, folder / "result.svg")
    return result


def _parts(settings: StudySettings, folder: Path) -> dict[int, dict[str, Part]]:
    held_out = {kind: _held_out(kind, settings) for kind in KINDS}
    parts: dict[int, dict[str, Part]] = {}
    for seed in range(settings.seeds):
        parts[seed] = {}
        for arm in ARMS:
            place = folder / f"seed{seed}" / arm
            if not (place / "part.json").exists():
                print_on_terminal(f"seed {seed}: {ARMS[arm]}")
                write(place / "part.json", _part(settings, seed, arm, place, held_out))
            parts[seed][arm] = read(place / "part.json", Part)
    return parts


def _part(settings: StudySettings, seed: int, arm: str, place: Path, held_out: dict[str, list]) -> Part:
    """Trains one arm, unless its checkpoint is there, and lets it plan."""
    from experiments.loop.training import load_policy
    from policy.evaluation import evaluate, outcomes_by_size

    if not (place / "trained.json").exists():
        seconds, steps, waited = _train(settings, seed, arm, place)
        write(place / "trained.json", Part(seconds, steps, waited, {}))
    model, tokenizer = load_policy(settings.run, place / "checkpoint")
    outcomes = {}
    for kind, tasks in held_out.items():
        with progress(f"{kind} boards", len(tasks), "boards") as bar:
            verdicts, _ = evaluate(model, tokenizer, tasks, horizon=settings.run.horizon, on_progress=bar.update)
        outcomes[kind] = outcomes_by_size(tasks, verdicts)
    return msgspec.structs.replace(read(place / "trained.json", Part), outcomes=outcomes)


def _train(settings: StudySettings, seed: int, arm: str, place: Path) -> tuple[float, int, float]:
    """Trains and saves a checkpoint: seconds, steps, and seconds spent waiting for boards."""
    from experiments.loop.training import load_policy
    from experiments.runtime import FreeCores
    from policy.checkpoints import build_model, save_checkpoint
    from policy.codecs import build_tokenizer
    from policy.training import BoardStream, train_grpo, warm_up, with_hole_ratios

    run = settings.run
    env = run.env if arm == "grpo" else run.warmup_env
    purpose = f"study {seed} {arm}"
    if arm == "warmup":
        tokenizer = build_tokenizer()
        model = build_model(run.model, tokenizer, seed_for(run.seed, f"{purpose} model"), run.device)
    else:
        model, tokenizer = load_policy(run, place.parent / "warmup" / "checkpoint")
    steps, cores = 0, FreeCores()
    stream = BoardStream(with_hole_ratios(env, run.warmup.hole_ratios), seed_for(run.seed, f"{purpose} boards"))
    with stream, progress(ARMS[arm], None, "steps") as bar, _log(place / "train.jsonl") as log:
        begun = time.monotonic()

        def on_step(figures: dict[str, Any]) -> None:
            nonlocal steps
            steps += 1
            bar.update()
            log({"seconds": round(time.monotonic() - begun, 2), **figures})
            cores.adapt()

        if arm == "grpo":
            model = train_grpo(
                *(model, tokenizer, stream, _same_minutes(settings), run.reward),
                horizon=run.horizon,
                seed=seed_for(run.seed, purpose),
                scratch=place / ".scratch",
                on_step=on_step,
            )
        else:
            how = run.warmup if arm == "warmup" else _continued(settings)
            on_warmup_step = lambda step, loss: on_step({"step": step, "loss": loss})  # noqa: E731
            model = warm_up(model, tokenizer, stream, [], how, seed_for(run.seed, purpose), on_warmup_step)
        seconds = time.monotonic() - begun
    shutil.rmtree(place / ".scratch", ignore_errors=True)
    shutil.rmtree(place / "checkpoint", ignore_errors=True)  # of a study killed between checkpoint and trained.json
    save_checkpoint(place / "checkpoint", model, tokenizer)
    return seconds, steps, stream.waited


def _minutes(run: RunSettings) -> float | None:
    """What the arms after the warm-up have, each: that of all stages of a run."""
    return run.grpo.minutes and run.stages * run.grpo.minutes


def _same_minutes(settings: StudySettings) -> Any:
    run = settings.run
    return msgspec.structs.replace(run.grpo, steps=run.stages * run.grpo.steps, minutes=_minutes(run))


def _continued(settings: StudySettings) -> Any:
    warmup = settings.run.warmup
    rates = {name: settings.sft_rate * getattr(warmup, name) for name in ("matrix_rate", "other_rate")}
    return msgspec.structs.replace(warmup, minutes=_minutes(settings.run), **rates)


def _held_out(kind: str, settings: StudySettings) -> list:
    """Fresh boards of every size and hole ratio of the settings."""
    from policy.training import tasks_of

    tasks: list[Any] = []
    for size in settings.run.env.sizes:
        for hole_ratio in settings.run.validation.hole_ratios:
            seed = seed_for(EVALUATION_SEED, f"{kind} {size} {hole_ratio}")
            if kind == "natural":
                tasks += _natural(size, settings.run.env.agents, hole_ratio, settings.boards, seed)
            else:
                config = EnvConfig.single(size, settings.run.env.agents, hole_ratio, 1.0)
                tasks += tasks_of(generate(config, seed, settings.boards))
    return tasks


def _natural(size: int, agents: int, hole_ratio: float, count: int, seed: int) -> list:
    """Boards whose holes, starts and goals are drawn uniformly, those that are solvable."""
    from policy.tasks import Task

    tasks: list[Task] = []
    holes = holes_of(size, agents, hole_ratio)
    for first in itertools.count(0, 2 * count):
        boards = draw_free(size, agents, holes, seed, first, 2 * count)
        labels = solve(boards)
        for row in np.flatnonzero(np.asarray(labels.status) == Status.SOLVABLE):
            board = Board(boards.holes[row], boards.starts[row], boards.goals[row])
            optima = (int(labels.makespan[row]), int(labels.sum_of_costs[row]), bool(labels.wait_required[row]))
            tasks.append(Task(board, *optima, np.asarray(labels.moves[row])))
        if len(tasks) >= count:
            break
    return tasks[:count]


def _figures(part: Part) -> dict[str, float]:
    """Percentages of all boards of a kind."""
    figures = {}
    for kind, sizes in part.outcomes.items():
        outcomes = pool(sizes.values())
        figures[f"{kind} valid"] = 100 * outcomes.rate(outcomes.valid)
        figures[f"{kind} optimal makespan"] = 100 * outcomes.rate(outcomes.optimal_makespan)
        figures[f"{kind} optimal sum of costs"] = 100 * outcomes.rate(outcomes.optimal_sum_of_costs)
    return figures


def _summary(parts: dict[int, dict[str, Part]]) -> dict[str, dict[str, tuple[float, float]]]:
    summary: dict[str, dict[str, tuple[float, float]]] = {}
    for arm in ARMS:
        rows = [_figures(arms[arm]) for arms in parts.values()]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        spread = {name: float(np.std(column, ddof=1)) if len(column) > 1 else 0.0 for name, column in columns.items()}
        summary[arm] = {name: (float(np.mean(column)), spread[name]) for name, column in columns.items()}
    return summary


def trainee_table(result: Result) -> str:
    """Means and standard deviations over the seeds, in percent."""
    summary = result.summary
    rows = [
        (name, *(f"{summary[arm][name][0]:.1f} ± {summary[arm][name][1]:.1f}" for arm in ARMS))
        for name in summary["warmup"]
    ]
    alignment = ("left", *["right"] * len(ARMS))
    return tabulate(rows, ("", *ARMS.values()), tablefmt="plain", colalign=alignment, disable_numparse=True)


def _plot(result: Result, path: Path) -> None:
    """Every seed as a point, the mean as a line."""
    from experiments.charts import COLOURS, LOOK, MARKERS

    names = ("natural valid", "forced valid", "natural optimal sum of costs", "forced optimal sum of costs")
    with matplotlib.rc_context(LOOK | {"svg.hashsalt": "study"}), replacing(path) as beside:
        figure = Figure((9.2, 3.6), layout="constrained")
        axes = figure.subplots()
        for i, arm in enumerate(ARMS):
            at = np.arange(len(names)) + 0.26 * (i - 1)
            means = [result.summary[arm][name][0] for name in names]
            axes.hlines(means, at - 0.11, at + 0.11, color=COLOURS[i], alpha=0.5)
            for seed, arms in result.parts.items():
                figures = _figures(arms[arm])
                label = ARMS[arm] if not seed else None
                points = [figures[name] for name in names]
                axes.plot(at, points, linestyle="", marker=MARKERS[i], color=COLOURS[i], label=label)
        axes.set(ylabel="% of boards")
        axes.set_xticks(range(len(names)), [name.replace(" optimal", "\noptimal") for name in names])
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(ARMS))
        figure.savefig(beside, format="svg", metadata={"Date": None})


@contextmanager
def _log(path: Path) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields a function that adds a line of JSON; the file takes its place once all is written."""
    with replacing(path) as beside, open(beside, "wb") as lines:

        def add(figures: dict[str, Any]) -> None:
            lines.write(msgspec.json.encode(figures) + b"\n")

        yield add
