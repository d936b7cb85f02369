"""Small folders of every kind that commands read, made by the commands themselves, each also of another run.

NAME/   a folder      NAME.other/   the same of another seed      NAME.older/   an earlier state of it
"""

import contextlib
import functools
import io
import itertools
import os
import pkgutil
import random
import shutil
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import msgspec

from lakewright.core_jax.support import write_json
from lakewright.experiments import preset_files
from lakewright.experiments.boards.benchmark import builder, tiers
from lakewright.experiments.boards.sweep.runner import sweep
from lakewright.experiments.boards.sweep.spec import read_spec
from lakewright.experiments.jobs.executors.executor import Serial
from lakewright.experiments.jobs.resumable import part_work, parts
from tests.campaigns.corruption.outside import TRACKER, URL, outside_alike, save_language_model

Main: TypeAlias = Callable[[Sequence[str]], int]
"""The program: runs the command that some words say, and returns its exit code."""
Run: TypeAlias = Callable[..., None]
Step: TypeAlias = Callable[[Run, int, str], None]
MADE = ".made.json"  # what each step has made
INTERRUPTED = 128 + signal.SIGINT  # the exit code
TIER = tiers.Tier(teams=((2, 3),), hole_ratios=(0.0, 0.2), wait_ratios=(0.5,), boards=2)
MODEL = (
    *("start=pretrained", "warmup.steps=0", "grpo.steps=1", "grpo.prompts=4", "grpo.group=2", "horizon=16"),
    *("validation.hole_ratios=[0.2]", "validation.wait_ratios=[0.5]", "validation.boards=2", "lessons.rule=rules"),
)
RUN = ("--teacher", "rules", *MODEL, "stages=2", "trial.boards=8", "trial.share=0", "trial.samples=2")
AFTER_TRAINING = (
    *("validation.json", "plans.jsonl", "rollback.json", "difficulty.json", "evidence.json"),
    *("proposal.json", "trial.json", "next.json", "done.json"),
)
STUDY = """budget = 400
baseline = "fixed"
[settings]
start = "pretrained"
teacher = "rules"
stages = 1
horizon = 16
warmup.steps = 0
grpo = {{ steps = 1, prompts = 4, group = 2 }}
validation = {{ hole_ratios = [0.2], wait_ratios = [0.5], boards = 2 }}
trial.enabled = false
[test]
hole_ratios = [0.2]
wait_ratios = [0.5]
boards = 2
seed = {seed}
[arms.fixed]
teacher = "fixed"
[arms.rules]
teacher = "rules"
"""
TRIED = """budget = 4000
baseline = "random"
[settings]
start = "pretrained"
teacher = "random"
stages = 3
horizon = 16
warmup.steps = 0
grpo = {{ steps = 1, prompts = 4, group = 2 }}
validation = {{ hole_ratios = [0.2], wait_ratios = [0.5], boards = 2 }}
trial = {{ boards = 8, samples = 2, share = 0 }}
[test]
hole_ratios = [0.2]
wait_ratios = [0.5]
boards = 2
seed = {seed}
[arms.random]
teacher = "random"
"""
SERVED = ("--price-in", 10, "--price-out", 20, "--max-tokens", 60, "--concurrency", 1, "--retries", 0)
AS_ENGINEER = tuple(
    f"{name}={value}"
    for name, value in {"url": URL, "model": "m", "price_in": 10, "price_out": 20, "max_cost": 5, "retries": 0}.items()
)
ASKED = ("--teacher", "endpoint", *MODEL, "stages=2", "trial.enabled=false", "engineer.key=false",
         *(f"engineer.endpoint.{setting}" for setting in AS_ENGINEER))  # fmt: skip
TINY = ("model.hidden=16", "model.layers=1", "model.heads=2", "model.mlp=16")
WARMING = (*RUN, "stages=1", "start=", "warmup.steps=24", "warmup.batch=4", *TINY)
TRAINING = (*RUN, "stages=1", "grpo.steps=2")
SAMPLED = ("--stage", 0, "--answers", 2, "engineer.answer=24")
SWEEP = "sizes = [3]\nagents = [2]\nhole_ratios = [0.0, 0.4]\nboards = 16\nshard = 8\nseed = {seed}\n"
SIZE = b'{"data_ratio":0.5,"hole_ratio":0.2,"wait_ratio":0.5}'
CONFIG = b'{"sizes":{"3":%s,"4":%s}}' % (SIZE, SIZE)
ALIKE = ("--size", 3, "--agents", 2, "--hole-ratio", 0.2, "--wait-ratio", 0.5)


def make_fixtures(place: Path, main: Main, needed: Collection[str]) -> Path:
    """The folder of the small folders, those with the names `needed` at least.

    They are made in `place`/work, where commands then run in copies, since some records hold paths; those that an
    earlier process made are not made again.
    """
    run = functools.partial(run_quietly, main)
    done, work = place / "fixtures", place / "work"
    if done.exists():
        shutil.rmtree(work, ignore_errors=True)
        os.rename(done, work)
    work.mkdir(parents=True, exist_ok=True)
    with enter_folder(work), tiny_tier(), outside_alike():
        for (step, makes), (seed, suffix) in itertools.product(STEPS.items(), enumerate(("", ".other"))):
            if not makes.isdisjoint(needed):
                _make_once(step, run, seed, suffix)
    os.rename(work, done)
    return done


def _make_once(step: Step, run: Run, seed: int, suffix: str) -> None:
    """Makes what a step makes in this folder, unless it is made; what a kill left of it is removed before."""
    made, name = Path(MADE), f"{step.__name__}{suffix}"
    steps: dict[str, list[str]] = msgspec.json.decode(made.read_bytes()) if made.exists() else {}
    if name in steps:
        return
    for left in {path.name for path in Path().iterdir()} - {MADE, *itertools.chain(*steps.values())}:
        shutil.rmtree(left) if Path(left).is_dir() else Path(left).unlink()
    before = {path.name for path in Path().iterdir()}
    step(run, seed, suffix)
    steps[name] = sorted({path.name for path in Path().iterdir()} - before - {MADE})
    write_json(made, steps)


@contextlib.contextmanager
def enter_folder(folder: Path) -> Iterator[None]:
    """Works in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def tiny_tier() -> contextlib.AbstractContextManager[object]:
    """Lets `benchmark build` have four boards only."""
    return mock.patch.dict(tiers.TIERS, {"paper": TIER})


def run_quietly(main: Main, *words: object, code: int = 0) -> None:
    """Runs a command of the program `main`. Raises RuntimeError if it does not end with that exit code."""
    said, problems = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(problems):
        ended = main(list(map(str, words)))
    if ended != code:
        raise RuntimeError(f"{' '.join(map(str, words))}: ended with {ended}: {problems.getvalue()[-500:]}")


def _make_boards(run: Run, seed: int, suffix: str) -> None:
    boards = Path(f"boards{suffix}")
    boards.mkdir()
    for name in ("in.jsonl", "in.parquet"):
        run("generate", *ALIKE, "--count", 4, "--seed", seed, "--out", boards / name)
    rows = [msgspec.json.decode(line) for line in (boards / "in.jsonl").read_bytes().splitlines()]
    plans = [{name: row[name] for name in ("id", "plan")} for row in rows]
    (boards / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(plans))
    (boards / "config.json").write_bytes(CONFIG.replace(b"0.2", b"0.25") if seed else CONFIG)
    run("convert", boards / "in.jsonl", "--out", boards / "maps.yaml")
    run("convert", boards / "in.jsonl", "--out", boards / "maps.jsonl")
    _make_parts(run, boards, Path(f"parts{suffix}"))
    shutil.copytree(preset_files.FOLDER, f"presets{suffix}")
    if seed:
        Path(f"presets{suffix}", "cpu.toml").write_bytes((preset_files.FOLDER / "cpu-30.toml").read_bytes())


def _make_parts(run: Run, boards: Path, out: Path) -> None:
    """Commands on files that end just before their output is there, as after a kill."""
    out.mkdir()
    shutil.copy2(boards / "in.jsonl", out / "in.jsonl")
    shutil.copy2(boards / "plans.jsonl", out / "plans.jsonl")
    with (out / "in.jsonl").open("ab") as rows:
        rows.write(b"no row\n")
    given = (out / "in.jsonl", "--rejects")
    for command, words in {
        "solve": ("solve", *given, out / "left.jsonl"),
        "verify": ("verify", out / "in.jsonl", "--plans", out / "plans.jsonl"),
        "generate": ("generate", *ALIKE, "--count", 4),
    }.items():
        with (
            mock.patch.object(part_work, "FEWEST_ROWS", 2),
            mock.patch.object(parts.Parts, "assemble", side_effect=KeyboardInterrupt),
        ):
            run(*words, "--out", out / f"{command}.jsonl", code=INTERRUPTED)


def _make_sweeps(run: Run, seed: int, suffix: str) -> None:
    Path(f"sweep{suffix}.toml").write_text(SWEEP.format(seed=seed))
    for _ in sweep(read_spec(Path(f"sweep{suffix}.toml")), Serial(), Path(f"sweep{suffix}")):
        pass


def _make_benchmarks(run: Run, seed: int, suffix: str) -> None:
    """A benchmark, the same before its files were written, and an evaluation on it."""
    built = ("benchmark", "build", "--tier", "paper", "--seed", seed, "--out")
    with mock.patch.object(builder, "_write_parts", side_effect=KeyboardInterrupt):
        run(*built, f"cells{suffix}", code=INTERRUPTED)
    run(*built, f"benchmark{suffix}")
    asked = ("benchmark", "eval", f"benchmark{suffix}", "--solver", "prioritized", "--seed", seed)
    run(*asked, "--out", f"evaluation{suffix}")
    _make_older(Path(f"evaluation{suffix}"), "answers.jsonl")


def _make_rules(run: Run, seed: int, suffix: str) -> None:
    """The folder of an engineer with rules."""
    _make_engineer(run, Path(f"engineer{suffix}"), seed, "--teacher", "rules")


def _make_served(run: Run, seed: int, suffix: str) -> None:
    """The folder of an engineer that asks a server."""
    served = ("--teacher", "endpoint", *(f"endpoint.{setting}" for setting in AS_ENGINEER))
    _make_engineer(run, Path(f"served{suffix}"), seed, *served)


def _make_older(folder: Path, *logs: str) -> None:
    """A copy of a folder in which logs have their first two lines only."""
    older = Path(shutil.copytree(folder, f"{folder}.older", symlinks=True))
    for log in logs:
        (older / log).write_bytes(b"".join((older / log).read_bytes().splitlines(keepends=True)[:2]))


def _make_engineer(run: Run, path: Path, seed: int, *teacher: object) -> None:
    """The folder of an engineer of words, two decisions on. teacher: the options that choose it."""
    from lakewright.experiments.trainers.folder import EngineerFolder
    from lakewright.experiments.trainers.recorder import OutcomeRecorder
    from lakewright.experiments.trainers.source import ProblemSource

    if not Path("starter.py").exists():
        run("new", "environment", "starter")
    run("engineer", "begin", path, "--environment", "starter.py:Starter", *teacher, "--seed", seed)
    folder, chance = EngineerFolder(path), random.Random(seed)
    recorder, source = OutcomeRecorder(path, folder.environment), ProblemSource(path)
    for step in range(3):
        for problem in source.take(6):
            answers = [problem.answer if chance.random() < 0.7 else "?" for _ in range(2)]
            recorder.record(problem, answers, group=f"{step} {problem.key}")
        if step < 2:
            shutil.rmtree(f"{path}.older", ignore_errors=True)
            shutil.copytree(path, f"{path}.older")
            folder.next(step=step)


def _make_runs(run: Run, seed: int, suffix: str) -> None:
    """A finished run, the same before its second stage was validated and before it was decided, and in a tracker."""
    finished = f"run{suffix}"
    run("run", "--out", finished, *RUN, "--seed", seed)
    for name, gone in {"trained": AFTER_TRAINING, "validated": AFTER_TRAINING[2:]}.items():
        shutil.copytree(finished, f"{name}{suffix}", symlinks=True)
        for file in gone:
            (Path(f"{name}{suffix}") / "stage_01" / file).unlink(missing_ok=True)
    _make_tracked(run, suffix)


def _make_study(run: Run, seed: int, suffix: str) -> None:
    Path(f"study{suffix}.toml").write_text(STUDY.format(seed=7 + seed))
    run("study", f"study{suffix}.toml", "--out", f"study{suffix}")


def _make_interrupted(run: Run, seed: int, suffix: str) -> None:
    """Runs that are interrupted in their warm-up and in the training of a stage, when their state is saved again."""
    for name, words, times in (("warming", WARMING, 2), ("training", TRAINING, 1)):
        folder = Path(f"{name}{suffix}")
        with _interrupt_after(times, folder):
            run("run", "--out", folder, *words, "--seed", seed, code=INTERRUPTED)


@contextlib.contextmanager
def _interrupt_after(times: int, folder: Path) -> Iterator[None]:
    """Saves trainings in the folder of a run after every step, and interrupts them once that is done some times."""
    from lakewright.policy import training

    module = f"{training.__name__}.training_state"
    state = pkgutil.resolve_name(f"{module}:TrainingState")
    save, saved = state.save, 0

    def save_and_stop(self: Any, *given: Any) -> None:
        nonlocal saved
        save(self, *given)
        saved += 1
        if saved == times:
            raise KeyboardInterrupt
        shutil.copytree(folder, f"{folder}.older", symlinks=True, dirs_exist_ok=True)

    with (
        mock.patch.object(state, "save", save_and_stop),
        mock.patch(f"{module}.SECONDS", -1.0),
        mock.patch(f"{module}.SHARE", 1e9),
    ):
        yield


def _make_asked(run: Run, seed: int, suffix: str) -> None:
    """An evaluation of a server, which a cap on its cost ended."""
    asked = ("benchmark", "eval", f"boards{suffix}/in.jsonl", "--endpoint", URL, "--model-name", "m", *SERVED)
    run(*asked, "--max-cost", 0.0215, "--out", f"asked{suffix}", code=1)
    _make_older(Path(f"asked{suffix}"), "answers.jsonl", "spending.jsonl")


def _make_told(run: Run, seed: int, suffix: str) -> None:
    """A run whose engineer is a server, before its second stage was decided."""
    told = Path(f"told{suffix}")
    run("run", "--out", told, *ASKED, "--seed", seed)
    for file in AFTER_TRAINING[2:]:
        (told / "stage_01" / file).unlink(missing_ok=True)
    _make_older(told, "spending.jsonl")


def _make_samples(run: Run, seed: int, suffix: str) -> None:
    """A language model, and a folder of its answers as engineer, of which half are there."""
    save_language_model(Path(f"llm{suffix}"), seed)
    run("engineer", "sample", f"run{suffix}", *SAMPLED, "--models", f"llm{suffix}", "--out", f"samples{suffix}")
    Path(f"samples{suffix}", "answers-1.json").unlink()


def _make_tried(run: Run, seed: int, suffix: str) -> None:
    """A study of which one trial is checked."""
    Path(f"tried{suffix}.toml").write_text(TRIED.format(seed=7 + seed))
    run("study", f"tried{suffix}.toml", "--out", f"tried{suffix}")
    run("study", "check-trials", f"tried{suffix}", "--count", 1, "--boards", 8 + seed)


def _make_tracked(run: Run, suffix: str) -> None:
    """A finished run of which a tracker has the warm-up, then the first stage too."""
    tracked, later = Path(shutil.copytree(f"run{suffix}", f"tracked{suffix}", symlinks=True)), []
    for number in (1, 0):
        done = tracked / f"stage_{number:02d}" / "done.json"
        later.append(done.rename(done.with_name("later.json")))
    for done in reversed(later):
        run("track", tracked, "--to", TRACKER)
        if not (older := Path(f"{tracked}.older")).exists():
            shutil.copytree(tracked, older, symlinks=True)
        done.rename(done.with_name("done.json"))


# What makes folders, and the names of those that commands use.
STEPS: dict[Step, frozenset[str]] = {
    _make_boards: frozenset({"boards", "parts", "presets"}),
    _make_sweeps: frozenset({"sweep", "sweep.toml"}),
    _make_benchmarks: frozenset({"cells", "benchmark", "evaluation"}),
    _make_rules: frozenset({"engineer"}),
    _make_served: frozenset({"served"}),
    _make_runs: frozenset({"run", "trained", "validated", "tracked"}),
    _make_study: frozenset({"study", "study.toml"}),
    _make_interrupted: frozenset({"warming", "training"}),
    _make_asked: frozenset({"asked"}),
    _make_told: frozenset({"told"}),
    _make_samples: frozenset({"llm", "samples"}),
    _make_tried: frozenset({"tried"}),
}
