"""What the children of a server do, which a test may kill: `python -m tests.support.processes.killable_work KIND`.

A line is a command line as JSON, or the folder of a run or benchmark. What a kind imports is imported once, here. The
workers that a command begins import this file too, as `__mp_main__`.
"""

import importlib
import json
import math
import runpy
import sys
import threading
from pathlib import Path

import pytest

from lakewright.core_jax.rows import chunks
from lakewright.experiments import cli
from lakewright.experiments.boards.benchmark.tiers import TIERS, Tier
from lakewright.experiments.jobs.resumable import part_work
from tests.support.processes.commands import HOUSE
from tests.support.processes.killable import serve

SMALL_TIER = Tier(teams=((2, 3), (2, 5)), hole_ratios=(0.1, 0.5), wait_ratios=(0.25, 0.75), boards=6)
FEW_MADE_UP = 50  # examples for the engineer of a tiny run
IMPORTED = (
    *(
        "lakewright.core_jax.solver.solver",
        "lakewright.core_jax.generator.generator",
        "lakewright.experiments.boards.sweep.runner",
        "lakewright.experiments.cli.app",
    ),
    *(
        "lakewright.experiments.boards.benchmark.builder",
        "lakewright.experiments.boards.evaluation.evaluator",
        "lakewright.experiments.boards.files",
    ),
)
LEARNED = (
    "lakewright.experiments.loop.closed_loop",
    "lakewright.experiments.studies.runner",
)  # with the training libraries


def few_rows_a_part(patch: pytest.MonkeyPatch, rows: int = 8) -> None:
    """Makes parts as small as their writing allows."""
    for name in ("FEWEST_ROWS", "SOME_ROWS", "ROWS_A_KIND", "MOST_ROWS"):
        patch.setattr(part_work, name, rows)
    patch.setattr(chunks, "CHUNK_ROWS", rows)
    patch.setattr(chunks, "CHUNK_BYTES", 1)  # a line at a time


def keep_training_at_every_step() -> None:
    """Trainings learn few made-up examples, and can be cut off between any two steps that they may be kept at."""
    importlib.import_module("lakewright.experiments.loop.training.warmup").SYNTHETIC = FEW_MADE_UP
    stage, warmup = (importlib.import_module(f"lakewright.policy.training.{name}") for name in ("callbacks", "warmup"))
    stage.SECONDS = warmup.SECONDS = -1.0
    stage.SHARE, warmup.LONGEST = math.inf, 0.0


def command(line: str) -> int:
    """Runs a command line, in parts of few rows: its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        few_rows_a_part(patch)
        return cli.main(json.loads(line))


def tiny_loop(line: str) -> None:
    """Runs a tiny loop in a folder as the command does."""
    from lakewright.experiments.loop.records.run_folder import RunFolder
    from tests.support.samples.tiny_runs import RULES, run_loop

    folder = RunFolder(Path(line))
    with folder.locked():
        run_loop(RULES, folder)


def tiny_text_loop(line: str) -> None:
    """Runs a tiny loop on problems in text in a folder."""
    from lakewright.experiments.loop.records.run_folder import RunFolder
    from tests.support.samples.text_runs import text_run
    from tests.support.samples.tiny_runs import run_loop

    folder = RunFolder(Path(line))
    with folder.locked():
        run_loop(text_run(), folder)


def endless_build(line: str) -> None:
    """Builds the small benchmark in a folder, and stays for ever in its second cell."""
    from lakewright.experiments.boards.benchmark import builder
    from lakewright.experiments.boards.benchmark.builder import build_benchmark

    draw, begun = builder.draw_cell, []

    def draw_one(*given):
        begun.append(given)
        if len(begun) > 1:
            threading.Event().wait()
        return draw(*given)

    builder.draw_cell = draw_one
    build_benchmark(Path(line), "small", 0)


def training_with_an_engineer(line: str) -> None:
    """Trains with an engineer in a folder: nine steps, three of which decide."""
    from tests.support.samples.engineer_folders import train_with_engineer

    train_with_engineer(Path(json.loads(line)[0]))


def training_with_trials(line: str) -> None:
    """Trains with TRL in a folder: six steps, three of which try proposals; begun again, it resumes."""
    from lakewright.experiments.trainers.trl import EngineerTasks, resume_training
    from tests.support.samples.engineer_folders import begin_engineer
    from tests.support.samples.trl_trainers import FEW_TRIED, make_trainer

    folder = Path(json.loads(line)[0])
    if not (folder / "design.json").exists():
        begin_engineer(folder, settings=FEW_TRIED)
    tasks, out = EngineerTasks(folder, every=2), folder / "trl"
    trainer = make_trainer(tasks, out, max_steps=6, save_strategy="steps", save_steps=1, save_total_limit=3)
    tasks.attach(trainer)
    resume_training(trainer)


def example(line: str) -> None:
    """Runs an example of the docs: its name, and the words of its command line."""
    sys.argv = json.loads(line)
    sys.path.insert(0, str(HOUSE / "docs" / "examples"))  # as Python does for a script
    runpy.run_path(str(HOUSE / "docs" / "examples" / sys.argv[0]), run_name="__main__")


KINDS = {
    "commands": (command, IMPORTED),
    "training commands": (command, (*IMPORTED, *LEARNED)),
    "tiny text loops": (tiny_text_loop, ("tests.support.samples.text_runs",)),
    "tiny loops": (tiny_loop, ("tests.support.samples.tiny_runs",)),
    "trainers with an engineer": (
        training_with_an_engineer,
        ("sklearn.linear_model", "tests.support.samples.engineer_folders"),
    ),
    "examples with trl": (
        example,
        ("sklearn.linear_model", "lakewright.experiments.trainers.trl", "trl.trainer.grpo_trainer"),
    ),
    "examples with turns": (
        example,
        ("sklearn.linear_model", "lakewright.experiments.trainers.trl", "trl.trainer.grpo_trainer"),
    ),
    "trainings with trials": (
        training_with_trials,
        ("sklearn.linear_model", "tests.support.samples.trl_trainers", "trl.trainer.grpo_trainer"),
    ),
    "examples with torch": (
        example,
        ("sklearn.linear_model", "lakewright.experiments.trainers.folder", "torch"),
    ),
    "examples with gymnasium": (
        example,
        ("sklearn.linear_model", "lakewright.experiments.trainers.gymnasium", "lakewright.experiments.trainers.folder"),
    ),
    "examples with verifiers": (example, ("sklearn.linear_model", "lakewright.experiments.trainers.traces")),
    "examples with verl": (example, ("sklearn.linear_model", "lakewright.experiments.trainers.verl")),
    "examples with openenv": (example, ("sklearn.linear_model", "openenv.core", "uvicorn")),
    "endless builds": (endless_build, ("lakewright.experiments.boards.benchmark.builder",)),
}


if __name__ in ("__main__", "__mp_main__"):
    work, modules = KINDS[sys.argv[1]]
    if modules[-1] == LEARNED[-1]:
        keep_training_at_every_step()
if __name__ == "__main__":
    TIERS["small"] = SMALL_TIER  # before the command line reads their names
    for module in modules:
        importlib.import_module(module)
    serve(work)
