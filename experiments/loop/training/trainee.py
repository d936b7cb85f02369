"""The `Trainee`: the policy of a run, its loading, and the operations on it that the loop needs.

The number of torch's threads: as many as cores are free of other work, measured repeatedly while it trains.

Threads that share a core with other work wait for each other at every operation: with one of two cores busy, a GRPO
step took twice as long on two threads as on one.
"""

import abc
import gc
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import psutil
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import count_cores
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment, Problem
from lakewright.engineer.evidence import vocabulary_of
from lakewright.engineer.guard import check_floor, check_limits
from lakewright.engineer.multi_turn import MultiTurnEnvironment
from lakewright.engineer.proposal import check_space
from lakewright.engineer.samplers import make_sampler
from lakewright.engineer.tally import Drawn
from lakewright.engineer.teachers import check_teacher
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Excluded, SampledRecord, write_record
from lakewright.experiments.loop.records.stage_rollouts import read_problems, write_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.codecs import TextSettings
from lakewright.policy.models import compute_in_bfloat16, load_checkpoint, load_model
from lakewright.policy.play import Play, Tasks, TaskStream
from lakewright.policy.training import Answered, roll_out

T = TypeVar("T")
OTHER_CODECS = {"tokens": TextSettings.__struct_fields__, "bytes": ("thinking", "prompt"), "text": ()}
"""Of each codec the fields of `text` that it does not use."""


class Trainee(abc.ABC, Generic[T]):
    """The policy that a run trains, and the form of its problems for it: tasks of type T.

    environment: draws problems, and says what may be changed. start: the design of the first stage. answers,
    references: what answers and reference answers are called. lake: whether its records have the lake's own form.
    """

    environment: Environment
    start: Design
    answers: str
    references: str
    lake: bool

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in which a small model answers as the engineer."""
        return vocabulary_of(self.environment.space).tokens

    def write_record(self, path: Path, record: msgspec.Struct) -> None:
        """Writes a record of a stage in the form of the environment."""
        write_record(path, record, lake=self.lake)

    def problems_file(self, stage: Stage) -> Path:
        """The file of a stage's problems."""
        return stage.boards if self.lake else stage.problems

    def hold_out(self, folder: RunFolder) -> list[Problem]:
        """The held-out problems of a run, drawn once and saved in its folder."""
        path = folder.validation if self.lake else folder.held_out
        if not path.exists():
            write_problems(path, self.draw_held_out())
        return read_problems(path)

    @abc.abstractmethod
    def draw_held_out(self) -> list[Problem]:
        """The held-out problems of a run."""

    @abc.abstractmethod
    def count_held_out(self) -> int:
        """Approximate number of held-out problems."""

    @abc.abstractmethod
    def draw_problems(
        self, design: Design, count: int, seed: int, first: int, on_progress: Callable[[int], object]
    ) -> tuple[list[Problem], Sequence[Any]]:
        """The problems first .. first + count - 1 of a design and a seed, and the acceptance of attempts at them.

        Args:
            on_progress: gets the number of further problems.
        """

    @abc.abstractmethod
    def count_problems(self, problems: Sequence[Problem], acceptance: Sequence[Any]) -> dict[Stratum, Drawn]:
        """Statistics of the problems that were drawn, by stratum."""

    @abc.abstractmethod
    def make_task(self, problem: Problem) -> T:
        """A problem as a task of the policy."""

    @abc.abstractmethod
    def build_model(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """A model of random weights."""

    def load_start(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """The model that the run begins with."""
        return load_policy(self.settings, self.settings.start) if self.settings.start else self.build_model()

    @abc.abstractmethod
    def make_play(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Play[T]:
        """The prompts for a model, and the judging of its answers."""

    @abc.abstractmethod
    def check_start(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, held_out: Sequence[Problem]
    ) -> None:
        """Raises InputError if the model to begin with cannot answer."""

    @abc.abstractmethod
    def stream_references(self, warmup: Stage, first: int) -> AbstractContextManager[Tasks[T]]:
        """The tasks of the warm-up, from the place `first` in their stream."""

    @abc.abstractmethod
    def stream_problems(self, stage: Stage, number: int) -> AbstractContextManager[TaskStream[T]]:
        """Tasks that are drawn, and recorded, while a stage is trained; in each process others."""

    @abc.abstractmethod
    def list_taken(self, tasks: TaskStream[T]) -> list[Problem]:
        """The problems that were drawn while a stage was trained."""

    def save_problems(self, stage: Stage, tasks: TaskStream[T]) -> None:
        """Saves the problems that were drawn while a stage was trained, and their statistics."""
        problems = self.list_taken(tasks)
        figures = {"fresh": len(problems), "scored": 0, "replayed": 0, "tokens": 0}
        record = SampledRecord(self.count_problems(problems, []), self.settings.sampler.name, figures, {})
        self.write_record(stage.sampled, record)
        write_problems(self.problems_file(stage), problems)
        if self.settings.exclude:  # of the lake alone
            write_record(stage.excluded, Excluded(tasks.replaced))

    @abc.abstractmethod
    def validate_stage(self, stage: Stage, held_out: Sequence[Problem]) -> None:
        """Answers the held-out problems with the policy of a stage, and saves answers and outcomes."""

    @abc.abstractmethod
    def describe_answers(self, answered: Answered, play: Play[T]) -> dict[str, Any]:
        """A group of answers as a line of rollouts.jsonl."""

    def roll_out(
        self,
        checkpoint: Path,
        problems: Sequence[Problem],
        samples: int,
        seed: int,
        on_progress: Callable[[int], None],
    ) -> tuple[list[RolloutGroup], int]:
        """`samples` answers of a checkpoint to each problem: a group for each, and the tokens generated.

        Args:
            checkpoint: the policy.
            problems, samples: what is asked, how often.
            seed: seed for sampling.
            on_progress: gets how many more answers there are.
        """
        model, tokenizer = load_policy(self.settings, checkpoint)
        return roll_out(
            model,
            self.make_play(model, tokenizer),
            list(map(self.make_task, problems)),
            samples,
            temperature=self.settings.grpo.temperature,
            seed=seed,
            on_progress=on_progress,
        )


def check_settings(settings: RunSettings, environment: Environment, start: Design) -> None:
    """Raises InputError if settings do not suit an environment, or would have no effect in it."""
    if isinstance(environment, MultiTurnEnvironment):
        name = f"environment {settings.environment!r:.80}"
        raise InputError(f"{name}: has several turns, and a run trains on one; use it in a trainer, such as TRL")
    usual = RunSettings()
    for name in OTHER_CODECS[settings.codec]:
        if (value := getattr(settings.text, name)) != getattr(usual.text, name):
            said = f"text.{name} is {value!r:.60}, which the codec {settings.codec} does not use"
            raise InputError(f"{said}; leave it out")
    check_floor(settings.guard, len(start.strata), environment.space)
    check_teacher(settings.teacher, settings.teacher_options, environment.space)
    check_limits(settings.guard, environment.space)
    check_space(make_sampler(settings.sampler.name, settings.sampler.options), environment.space)


def make_trainee(settings: RunSettings) -> Trainee:
    """The trainee of a run by its settings. Raises InputError if the environment cannot be used."""
    # Each kind of trainee is a subclass in a file of its own, which imports this one.
    if settings.environment == "lake":
        from lakewright.experiments.loop.training.lake_trainee import LakeTrainee

        return LakeTrainee(settings)
    from lakewright.experiments.loop.training.text_trainee import TextTrainee

    return TextTrainee(settings)


def load_policy(
    settings: RunSettings, place: str | Path, device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The policy in a checkpoint, on `device` or the settings' device. Raises InputError as `load_checkpoint`."""
    model, tokenizer = load_checkpoint(place, settings.codec, _choose_dtype(settings), device or settings.device)
    return _apply_settings(settings, model), tokenizer


def load_engineer(settings: RunSettings, place: str | Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model in a checkpoint of any codec, to be asked as the engineer. Raises InputError as `load_model`."""
    model, tokenizer = load_model(place, _choose_dtype(settings), settings.device)
    return _apply_settings(settings, model), tokenizer


def _apply_settings(settings: RunSettings, model: PreTrainedModel) -> PreTrainedModel:
    if settings.autocast:
        compute_in_bfloat16(model)
    if settings.freeze_embeddings:
        model.get_input_embeddings().requires_grad_(False)
    return model


def _choose_dtype(settings: RunSettings) -> torch.dtype:
    return torch.bfloat16 if settings.grpo.host.bf16 else torch.float32


def free_memory() -> None:
    """Gives up models that nothing but a cycle holds, and the memory of a GPU that torch has freed but still holds."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


INTERVAL = 2.0  # seconds between two measurements


class FreeCores:
    """Adapts torch's threads to the cores that other processes leave free, unless OMP_NUM_THREADS is set."""

    def __init__(self) -> None:
        self._fixed = "OMP_NUM_THREADS" in os.environ
        self._cores = count_cores()
        self._process = psutil.Process()
        self._last = self._measure_use()

    def adapt(self) -> None:
        """Sets torch's threads by the load since the last call; to be called between steps."""
        now = self._measure_use()
        elapsed, others = now[0] - self._last[0], now[1] - self._last[1]
        if self._fixed or elapsed < INTERVAL:
            return
        self._last = now
        torch.set_num_threads(free_cores(self._cores, others / elapsed))

    def _measure_use(self) -> tuple[float, float]:
        """The time, and the processor seconds that others have used so far."""
        system, own = psutil.cpu_times(), self._process.cpu_times()
        idle = system.idle + getattr(system, "iowait", 0.0)
        return time.monotonic(), sum(system[:8]) - idle - own.user - own.system


def free_cores(cores: int, others: float) -> int:
    """Whole cores left by other work that keeps `others` cores busy, at least one."""
    return max(1, min(cores, round(cores - others)))
