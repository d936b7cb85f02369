"""The training of a stage's policy: GRPO in this process, or in processes that are launched for it."""

import functools
import gc
import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import torch
from tqdm import tqdm
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.results import Group
from lakewright.core_jax.support import derive_seed, write_json
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Resumed
from lakewright.experiments.loop.records.stage_rollouts import read_problems
from lakewright.experiments.loop.settings.launch import launch_stage
from lakewright.experiments.loop.training.trainee import Trainee, load_policy
from lakewright.experiments.resumable.journal import line_log, lines_so_far
from lakewright.experiments.runtime.free_cores import FreeCores
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.models import save_checkpoint
from lakewright.policy.play import Play, Tasks
from lakewright.policy.training import Answered, load_place, rank_and_processes, train_grpo

EXAMPLES_A_STEP, MOST_EXAMPLES = 4, 1024  # groups whose answers are saved, of a step and of a stage
WriteLine = Callable[[dict[str, Any]], None]


def train_stage(trainee: Trainee, stage: Stage, previous: Stage, number: int, tokens: float = math.inf) -> None:
    """Trains a stage's policy by GRPO.

    Args:
        trainee: of the run.
        stage: to be trained.
        previous: the stage whose policy it begins with.
        number: of the stage.
        tokens: training ends once this many are generated.

    An interrupted training resumes from a state about a minute old; in several processes it starts over.
    """
    if trainee.settings.launch.elsewhere:
        _train_in_processes(trainee, stage, previous.onward, number, tokens)
    else:
        train_here(trainee, stage, previous.onward, number, tokens)


def _train_in_processes(trainee: Trainee, stage: Stage, previous: Path, number: int, tokens: float) -> None:
    """Trains in processes that are launched for it, which call `train_here`."""
    settings = trainee.settings
    _free_accelerator()
    log = stage.scratch / "launch.log"
    with progress("GRPO", settings.grpo.of_stage(number).steps, "steps") as bar:
        launch_stage(
            settings.launch,
            stage.folder.parent,
            number,
            previous,
            tokens,
            log,
            lambda: bar.update(len(lines_so_far(stage.train_log)) - bar.n),
        )


def _free_accelerator() -> None:
    """Frees the GPU memory that models of this process hold, for the launched processes."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def train_here(trainee: Trainee, stage: Stage, previous: Path, number: int, tokens: float) -> None:
    """Trains in this process, which may be one of several; the first one saves the results.

    Of several processes, groups.jsonl holds the problems of the first.

    Args: trainee, stage, number, tokens, as for `train_stage`; previous, the checkpoint to begin with.
    """
    settings, (rank, processes) = trainee.settings, rank_and_processes()
    device = "cpu" if processes > 1 else settings.device  # a trainer of several processes places the weights itself
    model, tokenizer = load_policy(settings, previous, device)
    # Where the reporters that write files put them.
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", str(stage.folder / "tensorboard"))
    with _open_tasks(trainee, stage, number) as tasks:
        model = _train_on(trainee, stage, number, tokens, model, tokenizer, tasks)
    if not rank:
        if settings.grpo.fresh:
            trainee.save_problems(stage, tasks)
        save_checkpoint(stage.checkpoint, model, tokenizer)


@contextmanager
def _open_tasks(trainee: Trainee, stage: Stage, number: int) -> Iterator[Tasks]:
    """Those of the stage's file, or tasks drawn while training."""
    if trainee.settings.grpo.fresh:
        with trainee.stream_problems(stage, number) as stream:
            yield stream
    else:
        yield list(map(trainee.make_task, read_problems(trainee.problems_file(stage))))


def _train_on(
    trainee: Trainee,
    stage: Stage,
    number: int,
    tokens: float,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: Tasks,
) -> PreTrainedModel:
    """Trains a model by GRPO, with the stage's logs beside it, and returns it.

    Args:
        trainee, stage, number, tokens: as for `train_stage`.
        model, tokenizer: the policy to be trained.
        tasks: to train on.
    """
    settings, (_, processes) = trainee.settings, rank_and_processes()
    play = trainee.make_play(model, tokenizer)
    saved = stage.scratch / "training.safetensors" if processes == 1 else None
    place = load_place(saved)
    if saved:
        write_json(stage.resumed, Resumed(place.step, place.seconds))  # for the viewer alone, so without a digest
    grpo = settings.grpo.of_stage(number)
    with _open_logger(trainee, stage, play, grpo.steps, _Lines.from_notes(place.notes), tokens) as logger:
        return train_grpo(
            model,
            play,
            tasks,
            grpo,
            seed=derive_seed(settings.seed, f"stage {number} GRPO"),
            scratch=stage.scratch,
            on_step=logger.log_step,
            on_groups=logger.log_groups,
            on_answers=logger.log_answers,
            state_file=saved,
            notes=lambda: _Lines.so_far(stage).write_notes(),
        )


class _Lines(msgspec.Struct, frozen=True):
    """The lines of the logs of a stage, saved with the state of the training."""

    steps: list[dict[str, Any]] = []
    groups: list[dict[str, Any]] = []
    rollouts: list[dict[str, Any]] = []

    @classmethod
    def from_notes(cls, notes: str) -> "_Lines":
        return msgspec.json.decode(notes, type=cls) if notes else cls()

    @classmethod
    def so_far(cls, stage: Stage) -> "_Lines":
        return cls(*map(lines_so_far, (stage.train_log, stage.groups, stage.rollouts)))

    def write_notes(self) -> str:
        return msgspec.json.encode(self).decode()


class _StageLogger:
    """Writes the logs of a stage while it is trained, and ends the training once its tokens are spent.

    Args:
        describe: the line of a group's answers.
        bar: the progress bar.
        write_step, write_group, write_rollout: write a line of each log.
        before: the lines from before an interruption, which are in the logs already.
        tokens: training ends once this many are generated.
    """

    def __init__(
        self,
        describe: Callable[[Answered], dict[str, Any]],
        bar: tqdm,
        write_step: WriteLine,
        write_group: WriteLine,
        write_rollout: WriteLine,
        before: _Lines,
        tokens: float,
    ) -> None:
        self._describe, self._bar = describe, bar
        self._write_step, self._write_group, self._write_rollout = write_step, write_group, write_rollout
        self._tokens, self._processes = tokens, rank_and_processes()[1]
        self._spent = sum(round(figures["sampled/tokens"]) for figures in before.steps)
        self._examples_left = MOST_EXAMPLES - len(before.rollouts)
        self._cores = FreeCores()
        bar.update(len(before.steps))

    def log_step(self, figures: dict[str, Any]) -> bool:
        """Logs the figures of a step; True ends the training."""
        figures["sampled/tokens"] *= self._processes  # TRL logs the mean of the processes
        self._spent += round(figures["sampled/tokens"])
        self._bar.update()
        self._bar.set_postfix(reward=f"{figures['reward']:.2f}", valid=f"{figures['valid']:.2f}")
        self._write_step(figures)
        self._cores.adapt()
        return self._spent >= self._tokens

    def log_groups(self, groups: list[Group]) -> None:
        """Logs every group of a step."""
        for group in groups:
            self._write_group(msgspec.structs.asdict(group))

    def log_answers(self, answered: list[Answered]) -> None:
        """Logs the answers of the first groups of a step, as examples: the log stays small in a long stage."""
        for made in answered[: min(EXAMPLES_A_STEP, self._examples_left)]:
            self._write_rollout(self._describe(made))
            self._examples_left -= 1


@contextmanager
def _open_logger(
    trainee: Trainee, stage: Stage, play: Play, steps: int, before: _Lines, tokens: float
) -> Iterator[_StageLogger]:
    """The logger of a stage; only that of the first process writes.

    Args: trainee, stage, tokens, as for `train_stage`; play, who answers; steps, in all; before, the lines so far.
    """
    rank, _ = rank_and_processes()
    with (
        _open_bar(steps, rank) as bar,
        _open_log(stage.train_log, rank, before.steps) as write_step,
        _open_log(stage.groups, rank, before.groups) as write_group,
        _open_log(stage.rollouts, rank, before.rollouts) as write_rollout,
    ):
        describe = functools.partial(trainee.describe_answers, play=play)
        yield _StageLogger(describe, bar, write_step, write_group, write_rollout, before, tokens)


def _open_bar(steps: int, rank: int) -> AbstractContextManager[tqdm]:
    """The progress bar of the first process."""
    return nullcontext(tqdm(disable=True)) if rank else progress("GRPO", steps, "steps")


@contextmanager
def _open_log(path: Path, rank: int, before: list[dict[str, Any]]) -> Iterator[WriteLine]:
    """The log of the first process, with the lines from before an interruption."""
    with nullcontext(lambda figures: None) if rank else line_log(path) as log:
        for figures in before:
            log(figures)
        yield log
