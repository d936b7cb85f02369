"""How well two difficulty models predict what a policy answers next, from the records of runs.

    python docs/site/forecast_losses.py STUDY/runs/RUN ... --out docs/data/forecast_losses.json

After each stage both models are fitted to all that was known then: groups of the stages so far, and answers to
held-out problems. Each predicts P(valid) of the cells that the next stage draws. The loss of a stage is the mean over
its answers of -log P(answer), in nats. Beside it stand the loss of one prediction for all, the mean so far, and the
least possible, which knows the share of valid answers of each cell. The regression is the one that measured best: an
effect of each stratum's own, and held-out answers. Prints a table: a row for each arm of a study.
"""

import json
import statistics
import sys
from pathlib import Path

import numpy as np

from lakewright.engineer.difficulty import DifficultySettings, make_forecast, observe_groups, observe_held_out
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_rollouts

MODELS = {
    "abilities": DifficultySettings(),
    "regression": DifficultySettings(model="regression", by_size=2.0, held_out=True),
}


def measure_losses(folder: RunFolder) -> list[dict[str, float]]:
    """The losses of each stage after the first, by model."""
    environment, held_out = load_environment(folder.settings().environment), read_held_out(folder)
    stages = [stage for number in range(folder.settings().stages) if (stage := folder.stage(number)).groups.exists()]
    groups = [[(problem.cell, group) for problem, group in read_rollouts(stage)] for stage in stages]
    tested = [_read_tested(stage, held_out) for stage in (folder.warmup, *stages)]
    losses = []
    for last in range(len(stages) - 1):
        seen = [one for past in range(last + 1) for one in observe_groups(groups[past], last - past)]
        known = [one for past in range(last + 2) for one in observe_held_out(tested[past], last + 1 - past)]
        following = observe_groups(groups[last + 1])
        space, design = environment.space, stages[last + 1].design()
        cells = [space.complete_cell(one.cell, design) for one in following]
        right = np.array([one.success / one.groups for one in following])
        weight = np.array([one.answers for one in following], float)
        found = {"least": _loss(right, right, weight)}
        mean = sum(one.success for one in seen) / sum(one.groups for one in seen)
        found["mean"] = _loss(np.full(len(right), mean), right, weight)
        for name, settings in MODELS.items():
            model = make_forecast(design, seen, [], settings, space, tested=known).model
            found[name] = _loss(model.predict(cells, space).mean, right, weight)
        losses.append(found)
    return losses


def _read_tested(stage: Stage, held_out: list) -> list:
    answered = read_record(stage.validation, Validation).answered
    return [(problem.cell, valid) for problem, valid in zip(held_out, answered, strict=True)]


def _loss(chance: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float:
    chance = np.clip(chance, 1e-6, 1 - 1e-6)
    return float(-(weight @ (right * np.log(chance) + (1 - right) * np.log(1 - chance))) / weight.sum())


def format_losses(found: dict[str, dict[str, float]]) -> str:
    """The means of the arms of studies, in Markdown. found: the losses of each run, by STUDY/ARM-sSEED."""
    arms: dict[str, list[dict[str, float]]] = {}
    for run, losses in found.items():
        arms.setdefault(run.rsplit("-s", 1)[0], []).append(losses)
    names = ("least", "abilities", "regression", "mean")
    rows = ["| runs of | least possible | abilities | regression | one prediction for all | abilities better |"]
    rows.append("|---|---|---|---|---|---|")
    for arm, runs in arms.items():
        means = (f"{statistics.fmean(run[name] for run in runs):.4f}" for name in names)
        better = sum(run["abilities"] < run["regression"] for run in runs)
        study, name = arm.split("/")
        rows.append(f"| `{name}` of `{study}` | {' | '.join(means)} | {better} of {len(runs)} |")
    return "\n".join(rows)


def main(words: list[str]) -> None:
    """Measures the losses of runs, and writes the means of each."""
    out, runs = Path(words[words.index("--out") + 1]), words[: words.index("--out")]
    found = {}
    for run in map(Path, sorted(runs)):
        losses = measure_losses(RunFolder(run))
        means = {name: round(statistics.fmean(one[name] for one in losses), 5) for name in losses[0]}
        found[f"{run.parent.parent.name}/{run.name}"] = means
        print(run, means, flush=True)
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(format_losses(found))


if __name__ == "__main__":
    main(sys.argv[1:])
