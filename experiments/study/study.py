"""A study: many runs from one warm-up under one budget of tokens, in one folder, resumed after any kill.

study.json   the plan         start/   the warm-up      runs/ARM-sSEED/   the runs      trial.json   configs tried
test.parquet the boards of the final test
results.json table.txt study.svg curves.svg   the results
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import (
    Count,
    Natural,
    convert,
    first_repeated,
    read_config,
    replacing,
    replacing_folder,
)
from lakewright.experiments.loop import prepare
from lakewright.experiments.loop.records import RunFolder, Trial, read, write
from lakewright.experiments.loop.redesign import try_configs
from lakewright.experiments.loop.settings import RunSettings, ValidationSettings, merged, preset_table
from lakewright.experiments.resumable.claims import Claim
from lakewright.experiments.study.final_evaluation import final_boards, take_final_test
from lakewright.experiments.study.random_configs import Configs, random_configs

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LONGEST_NAME = 100  # letters of an arm, which names files together with its seed
# What comparable runs share.
SHARED = ("model", "teams", "warmup", "warmup_env", "lessons", "validation", "horizon", "budget")


class StudySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The runs of a study. budget: tokens of each run. settings: of every run, in place of those of the preset.

    arms: the settings in which each differs, and its `seeds`, if they are not those of the study. baseline: the arm
    that the others are compared with, seed by seed. configs: random configs as arms, instead of `arms`.
    first_configs: random configs, one for each seed, that all arms of the seed begin with, as the paper's round 0,
    except arms that set env.
    family: the pairs of arms whose difference is tested, corrected for their number. test: boards on which the last
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
        if bool(self.arms) == bool(self.configs):
            raise ValueError("name arms or configs, one of the two")
        if strange := [name for name in self.arms if not NAME.fullmatch(name)]:
            raise ValueError(f"arms: {strange[0]!r:.60} is no name of a folder; use letters, digits, - and _")
        if long := [name for name in self.arms if len(name) > LONGEST_NAME]:
            raise ValueError(f"arms: {long[0]!r:.60} has {len(long[0])} letters; choose at most {LONGEST_NAME}")
        _check_seeds(self.seeds)
        if strange := [name for pair in self.family for name in pair if name not in self.arms]:
            raise ValueError(f"family names {strange[0]!r:.60}, which is no arm; choose from {', '.join(self.arms)}")
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


CLAIM = Claim("study", "study.json", Plan, 1, "lakewright study")


class StudyFolder:
    """The files of a study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = folder / "study.json"
        self.start = RunFolder(folder / "start")
        self.trial = folder / "trial.json"
        self.test_boards = folder / "test.parquet"
        self.results = folder / "results.json"
        self.table = folder / "table.txt"
        self.plot = folder / "study.svg"
        self.curves = folder / "curves.svg"

    def test_of(self, run: RunFolder) -> Path:
        """The outcome of the final test of one of its runs, or of the warm-up."""
        return run.folder / "test.json"

    def run(self, planned: Planned) -> RunFolder:
        """The folder of one of its runs."""
        return RunFolder(self.folder / "runs" / planned.name)

    def open(self, plan: Plan) -> None:
        """Starts the study, or checks that the folder holds this one. Raises InputError if it holds another."""
        CLAIM.take(self.folder, plan)

    def held(self, plan: Plan) -> AbstractContextManager[None]:
        """Opens the study and keeps other processes out of its folder."""
        return CLAIM.held(self.folder, plan)


def plan_of(path: Path) -> Plan:
    """All runs of a spec: a TOML or JSON file, or the name of one that comes with the package.

    Raises InputError naming file, arm, setting, value and remedy.
    """
    known = {file.name.removesuffix(".toml"): file for file in _own_specs().iterdir()}
    if not path.suffix and str(path) not in known:
        raise InputError(f"study {str(path)!r:.60} is unknown; give a file, or choose from {', '.join(sorted(known))}")
    with resources.as_file(known[str(path)]) if str(path) in known else nullcontext(path) as file:
        spec = read_config(file, StudySpec)
    base = merged(preset_table(spec.preset), spec.settings) | {"budget": spec.budget}
    start = convert(base, RunSettings, f"{path}: settings")
    arms = spec.arms or _arms_of_configs(spec, start)
    runs = [
        planned for name, arm in arms.items() for planned in _plan_runs(name, arm, base, spec, f"{path}: arms.{name}")
    ]
    if spec.first_configs:
        firsts = [env for _, env in random_configs(spec.first_configs, start)]
        runs = [planned if "env" in arms[planned.arm] else _beginning_with(firsts, planned, path) for planned in runs]
    for planned in runs:
        _check_shares(planned, start, path)
    return Plan(spec, start, runs)


def prepare_start(plan: Plan, folder: StudyFolder) -> None:
    """The warm-up of all runs, and where configs are compared their trial."""
    folder.start.open(plan.start)
    prepare(plan.start, folder.start)
    if plan.spec.configs and not folder.trial.exists():
        envs = [planned.settings.env for planned in plan.runs]
        write(folder.trial, try_configs(plan.start, folder.start.warmup, envs, "configs"))
    if plan.spec.test:
        boards = final_boards(plan.start, plan.spec.test, folder.test_boards)
        take_final_test(plan.start, folder.start.warmup, boards, folder.test_of(folder.start))


def begin_run(planned: Planned, folder: StudyFolder) -> RunFolder:
    """The folder of a run, with the study's warm-up in it."""
    run = folder.run(planned)
    run.open(planned.settings)
    if not run.validation.exists():
        with replacing(run.validation) as beside:
            shutil.copyfile(folder.start.validation, beside)
    if not run.warmup.folder.exists():
        with replacing_folder(run.warmup.folder) as beside:
            shutil.copytree(folder.start.warmup.folder, beside, copy_function=os.link, dirs_exist_ok=True)
    return run


def read_prediction(folder: StudyFolder) -> Trial:
    """The trial of a study of configs."""
    return read(folder.trial, Trial)


def _own_specs() -> Traversable:
    return resources.files("lakewright.experiments") / "presets" / "studies"


def _plan_runs(name: str, arm: dict[str, Any], base: dict[str, Any], spec: StudySpec, where: str) -> Iterator[Planned]:
    seeds = convert(arm.get("seeds", spec.seeds), tuple[Natural, ...], where, "seeds")
    try:
        _check_seeds(seeds)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from error
    changes = {key: value for key, value in arm.items() if key != "seeds"}
    for seed in seeds:
        yield Planned(name, seed, convert(merged(base, changes) | {"seed": seed}, RunSettings, where))


def _check_seeds(seeds: Sequence[int]) -> None:
    """Raises ValueError where there is no seed, or one comes twice: both runs would have one folder."""
    if not seeds:
        raise ValueError("seeds is empty; name at least one")
    if (twice := first_repeated(seeds)) is not None:
        raise ValueError(f"seeds has {twice} twice; name it once")


def _beginning_with(firsts: Sequence[EnvConfig], planned: Planned, path: Path) -> Planned:
    """The run with its seed's config. Raises InputError where there are too few."""
    if planned.seed >= len(firsts):
        raise InputError(
            f"{path}: first_configs.count is {len(firsts)}, but there is a seed {planned.seed}; make it larger"
        )
    settings = msgspec.structs.replace(planned.settings, env=firsts[planned.seed])
    return msgspec.structs.replace(planned, settings=settings)


def _check_shares(planned: Planned, start: RunSettings, path: Path) -> None:
    """All runs begin with the same warm-up and have the same held-out set."""
    for name in SHARED:
        if getattr(planned.settings, name) != getattr(start, name):
            raise InputError(f"{path}: arms.{planned.arm}: {name} differs, but all arms share it; set it in settings")
    learned = start.codec == "tokens" and not start.start and planned.settings.asks_checkpoint
    if learned and not start.taught.include(planned.settings.evidence):
        preset = planned.settings.evidence.preset
        raise InputError(
            f"{path}: arms.{planned.arm}: evidence.preset is {preset}, which the warm-up teaches nobody to read; "
            "set lessons.presets in settings, with all presets that arms show"
        )
    if learned and start.lessons.rule == "forecast" and planned.settings.difficulty != start.difficulty:
        raise InputError(
            f"{path}: arms.{planned.arm}: difficulty differs, but the warm-up teaches its engineer to follow forecasts "
            "as settings fit them; set it in settings"
        )
    if planned.settings.env.sizes.keys() != start.env.sizes.keys() or planned.settings.env.agents != start.env.agents:
        raise InputError(f"{path}: arms.{planned.arm}: env has other sizes or agents than settings; give it the same")


def _arms_of_configs(spec: StudySpec, start: RunSettings) -> dict[str, dict[str, Any]]:
    """One arm for each random config: a single stage on its boards."""
    assert spec.configs
    return {
        name: {"env": msgspec.to_builtins(env, str_keys=True), "teacher": "fixed", "stages": 1}
        for name, env in random_configs(spec.configs, start)
    }
