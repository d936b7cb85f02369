"""A study: many runs from one warm-up under one budget of tokens, in one folder, resumed after any kill.

study.json   the plan         start/   the warm-up      runs/ARM-sSEED/   the runs      trial.json   configs tried
test.parquet the boards of the final test; test.jsonl the problems of other environments than the lake
results.json table.txt study.svg curves.svg   the results
"""

import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import (
    Count,
    Natural,
    convert,
    first_repeated,
    listed,
    read_config,
    replacing,
    replacing_folder,
)
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.problems import Problem
from lakewright.engineer.trial import Trial, try_designs
from lakewright.experiments.jobs.resumable.claims import Claim
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import read_record
from lakewright.experiments.loop.records.stage_rollouts import read_held_out, read_problems, write_problems
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.settings.older_settings import complete_run, rename_settings
from lakewright.experiments.loop.settings.run_settings import RunSettings, ValidationSettings, merge_tables
from lakewright.experiments.preset_files import read_preset
from lakewright.experiments.studies.random_configs import Configs, random_configs
from lakewright.policy.inference import naming_full_memory

if TYPE_CHECKING:
    from lakewright.experiments.loop.training.trainee import Trainee

# The training room is imported by the functions that need it: it brings torch, and results are read without.

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST_NAME = 100  # letters of an arm, which names files together with its seed
# What comparable runs share.
SHARED = (
    "environment",
    "model",
    "agents",
    "teams",
    "warmup",
    "warmup_design",
    "warmup_agents",
    "lessons",
    "validation",
    "horizon",
    "budget",
)


class StudySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The runs of a study. budget: tokens of each run. settings: settings of every run, in place of the preset's.

    arms: the settings in which each differs, and its `seeds`, if they are not the study's. baseline: the arm
    that the others are compared with, seed by seed. configs: random designs as arms, instead of `arms`.
    first_configs: random designs, one for each seed, that all arms of the seed begin with, as the paper's round 0,
    except arms that set design.
    family: the pairs of arms whose difference is tested, corrected for their number. test: problems on which the last
    policy of each run is judged, separate from the held-out set that the runs see; without, that set.
    """

    budget: Count
    preset: str = "cpu"
    baseline: str = ""
    seeds: tuple[Natural, ...] = (0,)
    settings: dict[str, Any] = {}
    arms: dict[str, dict[str, Any]] = {}
    configs: Configs | None = None
    first_configs: Configs | None = None
    family: tuple[tuple[str, str], ...] = ()
    test: ValidationSettings | None = None

    def __post_init__(self) -> None:
        lake = self.settings.get("environment", "lake") == "lake"
        arms = {name: rename_settings(arm, lake=lake) for name, arm in self.arms.items()}
        msgspec.structs.force_setattr(self, "settings", rename_settings(self.settings, lake=lake))
        msgspec.structs.force_setattr(self, "arms", arms)
        if bool(self.arms) == bool(self.configs):
            raise ValueError("name either arms or configs")
        if strange := [name for name in self.arms if not NAME.fullmatch(name)]:
            raise ValueError(f"arms: {strange[0]!r:.60} cannot be the name of a folder; use letters, digits, - and _")
        if long := [name for name in self.arms if len(name) > LONGEST_NAME]:
            raise ValueError(f"arms: {long[0]!r:.60} has {len(long[0])} letters; choose at most {LONGEST_NAME}")
        _check_seeds(self.seeds)
        if strange := [name for pair in self.family for name in pair if name not in self.arms]:
            raise ValueError(f"family: {strange[0]!r:.60} is not an arm; choose from {', '.join(self.arms)}")
        if self.baseline and self.baseline not in self.arms:
            raise ValueError(f"baseline is {self.baseline!r:.60}; choose from {', '.join(self.arms)}")


class Planned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run of the study."""

    arm: str
    seed: int
    settings: RunSettings

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.arm}-s{self.seed}"


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """study.json: the settings of the warm-up, and of every run."""

    spec: StudySpec
    start: RunSettings
    runs: list[Planned]
    format: int = 1


def complete_plan(recorded: Any) -> Any:
    """JSON values of study.json of earlier versions, in the form of this version."""
    if not isinstance(recorded, dict) or not isinstance(runs := recorded.get("runs"), list):
        return recorded
    start = complete_run({"settings": recorded.get("start")})["settings"]
    return recorded | {"start": start, "runs": list(map(complete_run, runs))}


CLAIM = Claim("study", "study.json", Plan, 1, "lakewright study", complete=complete_plan)


class StudyFolder:
    """The files of a study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()  # because code of an environment may change the working folder
        self.plan = folder / "study.json"
        self.start = RunFolder(folder / "start")
        self.trial = folder / "trial.json"
        self.test_boards = folder / "test.parquet"
        self.test_problems = folder / "test.jsonl"
        self.results = folder / "results.json"
        self.table = folder / "table.txt"
        self.plot = folder / "study.svg"
        self.curves = folder / "curves.svg"

    def test_file(self, settings: RunSettings) -> Path:
        """The problems of the final test of runs with these settings."""
        return self.test_boards if settings.lake else self.test_problems

    def test_of(self, run: RunFolder) -> Path:
        """The outcome of the final test of one of its runs, or of the warm-up."""
        return run.folder / "test.json"

    def run(self, planned: Planned) -> RunFolder:
        """The folder of one of its runs."""
        return RunFolder(self.folder / "runs" / planned.name)

    def open(self, plan: Plan) -> None:
        """Starts the study, or checks that the folder holds this one. Raises InputError if it holds another."""
        CLAIM.take_folder(self.folder, plan)

    def held(self, plan: Plan) -> AbstractContextManager[None]:
        """Opens the study and keeps other processes out of its folder.

        Raises InputError if the folder holds another study, which may be deleted if its warm-up is not finished.
        """
        if CLAIM.is_in(self.folder) and not self.start.warmup.done.exists():
            there = CLAIM.read_work(self.folder)
            try:
                CLAIM.refuse_other(self.plan, there, plan)
            except InputError as error:
                raise InputError(f"{error}, or delete {self.folder}, whose warm-up is not finished") from error
        return CLAIM.hold_folder(self.folder, plan)


def plan_study(path: Path) -> Plan:
    """All runs of a spec: a TOML or JSON file, or the name of one that comes with the package.

    Raises InputError naming file, arm, setting, value and remedy.
    """
    from lakewright.experiments.loop.training.trainee import make_trainee

    own = resources.files("lakewright.experiments") / "presets" / "studies"
    known = {file.name.removesuffix(".toml"): file for file in own.iterdir()}
    if not path.suffix and str(path) not in known:
        raise InputError(f"study {str(path)!r:.60} is unknown; give a file, or {suggest(path, sorted(known))}")
    with resources.as_file(known[str(path)]) if str(path) in known else nullcontext(path) as file:
        spec = read_config(file, StudySpec)
    base = merge_tables(read_preset(spec.preset), spec.settings) | {"budget": spec.budget}
    start = convert(base, RunSettings, f"{path}: settings")
    with _name_place(f"{path}: settings"):
        trainee = make_trainee(start)
    arms = spec.arms or _arms_of_configs(spec, trainee)
    runs = [
        planned for name, arm in arms.items() for planned in _plan_runs(name, arm, base, spec, f"{path}: arms.{name}")
    ]
    for planned in runs:
        _check_shares(planned, start, path)
    if spec.first_configs:
        for planned in runs:
            if "design" not in arms[planned.arm]:  # checked before the designs are drawn, which takes long
                _check_count(spec.first_configs.count, planned, path)
        firsts = [design for _, design in random_configs(spec.first_configs, trainee)]
        runs = [
            planned if "design" in arms[planned.arm] else _replace_first_design(firsts, planned) for planned in runs
        ]
    for planned in runs:
        _check_design(planned, trainee, path)
    return Plan(spec, _choose_warmup(start, runs), runs)


def _choose_warmup(start: RunSettings, runs: Sequence[Planned]) -> RunSettings:
    """The settings of the warm-up of all runs: it teaches the engineer's part if an arm asks a policy of bytes.

    The warm-up of a run teaches it if its own teacher is asked; a study's has a teacher that no arm needs.
    """
    asked = [planned.settings for planned in runs if planned.settings.asks_checkpoint]
    if start.codec == "text" or start.teaches_engineer or not asked:
        return start
    return msgspec.structs.replace(start, teacher=asked[0].teacher, teacher_options=asked[0].teacher_options)


def prepare_start(plan: Plan, folder: StudyFolder) -> None:
    """The warm-up of all runs and, if configs are compared, their trial."""
    from lakewright.experiments.loop.closed_loop import prepare_run
    from lakewright.experiments.loop.redesign.run_engineer import start_trial
    from lakewright.experiments.loop.training.stage_validation import take_test
    from lakewright.experiments.loop.training.trainee import make_trainee

    trainee, warmup = make_trainee(plan.start), folder.start.warmup
    folder.start.open(plan.start)
    prepare_run(trainee, folder.start)
    if plan.spec.configs and plan.spec.configs.rounds == 1 and not folder.trial.exists():
        designs = [make_trainee(planned.settings).start for planned in plan.runs]
        trainee.write_record(folder.trial, try_designs(start_trial(trainee, warmup, "configs"), designs))
    if plan.spec.test:
        path = folder.test_file(plan.start)
        draw_final_test(plan.start, plan.spec.test, read_held_out(folder.start), path)
        if not (outcome := folder.test_of(folder.start)).exists():
            with naming_full_memory("test of the warm-up", lambda: list_remedies(plan.start, "validation")):
                take_test(trainee, warmup, read_problems(path), outcome)


def draw_final_test(settings: RunSettings, chosen: ValidationSettings, held_out: Sequence[Problem], path: Path) -> None:
    """Draws the problems of the test and saves them, unless that is done.

    On the lake they are drawn as a held-out set. Of other environments, if there may be few of a kind, all problems
    of the test are different, and not held out already.

    Args:
        settings, held_out: the runs' settings, and their held-out problems.
        chosen: the settings of the test.
        path: the file to save them in.

    Raises InputError if nothing is left.
    """
    from lakewright.experiments.loop.training.trainee import make_trainee

    if path.exists():
        return
    trainee = make_trainee(msgspec.structs.replace(settings, validation=chosen))
    problems = trainee.draw_test({problem.key for problem in held_out})
    if not problems:
        raise InputError("test: all problems of all cells are held out; lower validation.boards")
    write_problems(path, problems)


def begin_run(planned: Planned, folder: StudyFolder) -> RunFolder:
    """The folder of a run, with the study's warm-up in it."""
    run = folder.run(planned)
    run.open(planned.settings)
    for own, shared in ((run.validation, folder.start.validation), (run.held_out, folder.start.held_out)):
        if shared.exists() and not own.exists():
            with listed(own), replacing(own) as beside:
                shutil.copyfile(shared, beside)
    if not run.warmup.folder.exists():
        with replacing_folder(run.warmup.folder) as beside:
            shutil.copytree(folder.start.warmup.folder, beside, copy_function=os.link, dirs_exist_ok=True)
    return run


def read_prediction(folder: StudyFolder) -> Trial:
    """The trial of a study of configs."""
    return read_record(folder.trial, Trial)


def _plan_runs(name: str, arm: dict[str, Any], base: dict[str, Any], spec: StudySpec, where: str) -> Iterator[Planned]:
    seeds = convert(arm.get("seeds", spec.seeds), tuple[Natural, ...], where, "seeds")
    with _name_place(where):
        _check_seeds(seeds)
    changes = {key: value for key, value in arm.items() if key != "seeds"}
    for seed in seeds:
        yield Planned(name, seed, convert(merge_tables(base, changes) | {"seed": seed}, RunSettings, where))


def _check_seeds(seeds: Sequence[int]) -> None:
    """Raises ValueError without a seed, or if a seed is repeated: both runs would have one folder."""
    if not seeds:
        raise ValueError("seeds is empty; name at least one")
    if (twice := first_repeated(seeds)) is not None:
        raise ValueError(f"seeds lists {twice} twice; list it once")


def _check_count(count: int, planned: Planned, path: Path) -> None:
    """Raises InputError if there are too few first designs for the seed of a run."""
    if planned.seed >= count:
        raise InputError(
            f"{path}: first_configs.count is {count}, too few for seed {planned.seed}; set at least {planned.seed + 1}"
        )


def _replace_first_design(firsts: Sequence[Design], planned: Planned) -> Planned:
    """The run with its seed's design."""
    settings = msgspec.structs.replace(planned.settings, design=_name_rows(firsts[planned.seed]))
    return msgspec.structs.replace(planned, settings=settings)


def _name_rows(design: Design) -> dict[str, dict[str, float]]:
    """The rows of a design as settings have them."""
    return {str(stratum): {name: float(value) for name, value in row.items()} for stratum, row in design.strata.items()}


def _check_shares(planned: Planned, start: RunSettings, path: Path) -> None:
    """All runs begin with the same warm-up and have the same held-out set."""
    for name in SHARED:
        if getattr(planned.settings, name) != getattr(start, name):
            raise InputError(f"{path}: arms.{planned.arm}: {name} differs, but all arms share it; set it in settings")
    learned = start.codec != "text" and not start.start and planned.settings.asks_checkpoint
    if learned and not start.taught.includes(planned.settings.evidence):
        preset = planned.settings.evidence.preset
        raise InputError(
            f"{path}: arms.{planned.arm}: evidence.preset is {preset}, which the warm-up does not teach; "
            "set lessons.presets in settings, with all presets that arms show"
        )
    if learned and start.lessons.rule == "forecast" and planned.settings.difficulty != start.difficulty:
        raise InputError(
            f"{path}: arms.{planned.arm}: difficulty differs, but the warm-up teaches its engineer to follow forecasts "
            "fitted by settings; set it in settings"
        )


def _check_design(planned: Planned, trainee: "Trainee", path: Path) -> None:
    """Raises InputError if the first design of a run doesn't fit the environment, or has other strata."""
    space, given = trainee.environment.space, planned.settings.design
    with _name_place(f"{path}: arms.{planned.arm}"):
        design = space.design(by_stratum(given), **trainee.start.given) if given else trainee.start
    if design.strata.keys() != trainee.start.strata.keys():
        raise InputError(f"{path}: arms.{planned.arm}: design and settings have different strata; give both the same")


@contextmanager
def _name_place(where: str) -> Iterator[None]:
    """The place that begins the message of a fault."""
    try:
        yield
    except (InputError, ValueError) as error:
        raise InputError(f"{where}: {error}") from error


def _arms_of_configs(spec: StudySpec, trainee: "Trainee") -> dict[str, dict[str, Any]]:
    """One arm for each random design: a single stage on its problems, or as many as successive halving has, as long."""
    assert spec.configs
    arms, stages = {}, 2 ** (spec.configs.rounds - 1)
    shorter = {"grpo": {"steps": math.ceil(trainee.settings.grpo.steps / stages)}} if stages > 1 else {}
    for name, design in random_configs(spec.configs, trainee):
        arms[name] = {"design": _name_rows(design), "teacher": "fixed", "stages": stages, **shorter}
    return arms
