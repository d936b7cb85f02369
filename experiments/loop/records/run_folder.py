"""The run folder: what a run writes where, each file whole or not there at all.

    config.json  validation.parquet  warmup/  stage_00/  stage_01/ ...  report.html  spending.jsonl (of an endpoint)

A stage holds env.json, sampled.json, boards.parquet, checkpoint/, train.jsonl, groups.jsonl, validation.json,
rollback.json, difficulty.json, evidence.json, proposal.json unless it was taken back, trial.json where there was
something to try, next.json, what the next stage is drawn from and why, and done.json, the marker that makes it count.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from core_jax.config import EnvConfig
from core_jax.results import Outcomes
from core_jax.rows import Row
from core_jax.support import locked, read_config, write_atomically
from engineer.evidence import SizeStatistics
from engineer.guard import GuardVerdict
from engineer.negotiation import Attempt
from engineer.proposal import Proposal
from engineer.rollback import Comparison
from engineer.trial import Earned, Lead, StratumTrial, Tried
from experiments.loop.settings import RunSettings
from experiments.resumable import Claim

FORMAT = 2
T = TypeVar("T", bound=msgspec.Struct)


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """config.json."""

    format: int
    settings: RunSettings


CLAIM = Claim("run", "config.json", RunConfig, FORMAT, "lakewright run")


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board of the held-out set and the policy's plan for it, in which the letter `?` is a jump."""

    row: Row
    plan: list[str]
    failure: str
    agent: int
    step: int


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """validation.json: the outcomes on the held-out set per map size, and some plans to look at.

    forced: the outcomes on those of the boards that force a wait. valid: a digit for each board in the order of the
    set, 1 where the plan is valid.
    """

    sizes: dict[int, Outcomes]
    examples: list[Example]
    forced: dict[int, Outcomes]
    valid: str


class Sampled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sampled.json: statistics of a stage's boards, the sampler that chose them, and its state afterwards.

    figures: how many boards were newly drawn (`fresh`), rolled out on (`scored`) and used again (`replayed`), and the
    `tokens` of those rollouts.
    """

    sizes: dict[int, SizeStatistics]
    sampler: str
    figures: dict[str, int]
    state: dict[str, Any]


class Rollback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rollback.json: the stage's policy compared with the one it was trained from, and whether it was taken back.

    against: the folder of that policy. weights: the folder of the policy that the run continues with.
    """

    against: str
    comparison: Comparison
    back: bool
    weights: str


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """proposal.json: the teacher's proposal, the guard's verdict on it, and the teacher's state afterwards.

    refused: earlier tries of this stage, each refused.
    """

    teacher: str
    proposal: Proposal
    verdict: GuardVerdict
    teacher_state: dict[str, Any]
    refused: list[Attempt] = []


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """trial.json: the configs that were tried, the current one first; the place of the one chosen; what it cost.

    strata: the valid plans of each board rolled out. leads: of each config over the current one, and how likely it is
    better; none in a trial without a current config, or of an older version.
    """

    candidates: list[Tried]
    chosen: int
    tokens: int
    strata: list[StratumTrial] = []
    leads: list[Lead] = []

    def summary(self) -> str:
        """The outcome in a line."""
        best = self.chosen or max(
            range(1, len(self.candidates)), key=lambda place: self.leads[place].better if self.leads else 0
        )
        scores = f"{self.candidates[best].score:.3f} against {self.candidates[0].score:.3f}"
        sure = f", better with probability {self.leads[best].better:.2f}" if self.leads else ""
        if self.chosen:
            return f"tried, and it gives more signal: {scores}{sure}"
        return f"tried, and not trained on, as it gives less signal: {scores}{sure}"


Source = Literal["proposal", "trial", "rollback", "current"]


class Next(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """next.json: what the next stage is drawn from, where that config comes from, and why.

    source: `proposal`, as the guard left it, where no trial was held; `trial`, the proposal that it chose; `rollback`,
    the config before a stage that was taken back; `current`, which stays as nothing better was proposed. reasons: a
    line each of guard, trial or rollback.
    """

    config: EnvConfig
    source: Source
    reasons: list[str]


class EngineerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of answers of the checkpoint as engineer, what each earned, and the figures of the training on them.

    figures: means over the group of `reward`, `score` and `siblings`; the shares `refused`, `projected` and `distinct`;
    and `loss` and `kl` of the training, where there was one and the answers did not all earn the same.
    """

    answers: list[list[str]]
    earned: list[Earned]
    figures: dict[str, float]


class EngineerTraining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """engineer.json: the groups of answers to one prompt; the first was proposed, the last is of the trained engineer.

    Every group but the last was trained on.
    """

    prompt: list[str]
    groups: list[EngineerGroup]

    @property
    def proposed(self) -> list[list[str]]:
        """The answers that are tried: those of the engineer before the training, and after it."""
        return [*self.groups[0].answers, *self.groups[-1].answers]

    @property
    def tokens(self) -> int:
        """How many were generated beyond the first group, which the proposal counts."""
        return sum(len(answer) for group in self.groups[1:] for answer in group.answers)


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """done.json: how long the work of this attempt took, and the versions of the libraries."""

    seconds: float
    versions: dict[str, str]


class Stage:
    """The files of one stage, or of the warm-up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = folder / "env.json"
        self.sampled = folder / "sampled.json"
        self.boards = folder / "boards.parquet"
        self.checkpoint = folder / "checkpoint"
        self.train_log = folder / "train.jsonl"
        self.groups = folder / "groups.jsonl"
        self.validation = folder / "validation.json"
        self.rollback = folder / "rollback.json"
        self.difficulty = folder / "difficulty.json"
        self.evidence = folder / "evidence.json"
        self.proposal = folder / "proposal.json"
        self.engineer = folder / "engineer.json"
        self.engineer_checkpoint = folder / "engineer"
        self.trial = folder / "trial.json"
        self.next = folder / "next.json"
        self.done = folder / "done.json"
        self.scratch = folder / ".scratch"  # what TRL writes; gone once the stage is done

    @property
    def onward(self) -> Path:
        """The weights that the next stage goes on from: those trained as an engineer too, where there are any."""
        return self.engineer_checkpoint if self.engineer_checkpoint.exists() else self.checkpoint

    def config(self) -> EnvConfig:
        """The config that the stage's boards are drawn from."""
        return read(self.env, EnvConfig)

    def following(self) -> Next:
        """What the next stage is drawn from, and why; of folders without next.json as their other files tell it."""
        if self.next.exists():
            return read(self.next, Next)
        if self.rollback.exists() and read(self.rollback, Rollback).back:
            verdict = read(self.proposal, Decision).verdict
            return Next(verdict.config, "rollback", verdict.reasons)
        return chosen(self)

    def next_config(self) -> EnvConfig:
        """The config that was decided on after the stage."""
        return self.following().config


def chosen(stage: Stage) -> Next:
    """What guard and trial made of the proposal after a stage that stands."""
    verdict = read(stage.proposal, Decision).verdict
    reasons = [f"{verdict.status}: {'; '.join(verdict.reasons)}" if verdict.reasons else verdict.status]
    if stage.trial.exists():
        trial = read(stage.trial, Trial)
        config = trial.candidates[trial.chosen].config
        return Next(config, "trial" if trial.chosen else "current", [*reasons, trial.summary()])
    return Next(verdict.config, "current" if verdict.config == stage.config() else "proposal", reasons)


class RunFolder:
    """The files of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "config.json"
        self.validation = folder / "validation.parquet"
        self.report = folder / "report.html"
        self.spending = folder / "spending.jsonl"
        self.warmup = Stage(folder / "warmup")

    def locked(self) -> AbstractContextManager[None]:
        """Keeps other processes from running in this folder. Raises InputError where one does."""
        return locked(self.folder)

    def stage(self, number: int) -> Stage:
        """The files of stage `number`, from 0."""
        return Stage(self.folder / f"stage_{number:02d}")

    def named(self, name: str) -> Stage:
        """The stage, or the warm-up, of that folder name."""
        return Stage(self.folder / name)

    def standing(self, number: int) -> Stage:
        """The stage, or the warm-up, whose policy the run continues with after stage `number`; -1 is the warm-up."""
        stage = self.stage(number) if number >= 0 else self.warmup
        return self.named(read(stage.rollback, Rollback).weights) if stage.rollback.exists() else stage

    def finished_stages(self) -> list[Stage]:
        """The stages that count, in order."""
        stages = (self.stage(number) for number in range(self.settings().stages))
        return [stage for stage in stages if stage.done.exists()]

    def open(self, settings: RunSettings) -> None:
        """Starts the run, or checks that the folder holds this very run. Raises InputError if it holds another."""
        CLAIM.take(self.folder, RunConfig(FORMAT, settings))

    def settings(self) -> RunSettings:
        """The settings of the run. Raises InputError where there is none, or one of another format."""
        return CLAIM.read(self.folder).settings


def write(path: Path, value: msgspec.Struct) -> None:
    """Writes a record as indented JSON, whole or not at all."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def read(path: Path, kind: type[T]) -> T:
    """Reads a record. Raises InputError naming file, field, value and remedy."""
    return read_config(path, kind)
