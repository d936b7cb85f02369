"""The training of a stage's policy: GRPO in this process, or in processes that are launched for it."""

import functools
import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from tqdm import tqdm

from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import derive_seed, write_json
from lakewright.experiments.jobs.resumable.journal import line_log, lines_so_far
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Launched, Resumed, find_record
from lakewright.experiments.loop.records.stage_rollouts import read_problems
from lakewright.experiments.loop.settings.launch import launch_stage
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.training.policy_models import FreeCores, free_memory, load_policy
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.inference import naming_full_memory
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import Answered, GrpoSettings, Place, load_place, rank_and_processes, train_grpo

EXAMPLES_A_STEP, MOST_EXAMPLES = 4, 1024  # groups whose answers are saved, of a step and of a stage
REPORTS = "TENSORBOARD_LOGGING_DIR"  # where transformers reads the folder of reporters that write files


def train_stage(trainee: Trainee, stage: Stage, previous: Stage, number: int, tokens: float = math.inf) -> None:
    """Trains a stage's policy by GRPO.

    Args:
        trainee: the run's trainee.
        stage: the stage to train.
        previous: the stage whose policy it begins with.
        number: number of the stage.
        tokens: training ends once this many are generated.

    An interrupted training resumes from a state about a minute old; in several processes it starts over.
    """
    launch = trainee.settings.launch
    if not launch.elsewhere:
        train_here(trainee, stage, previous.onward, number, tokens)
        free_memory()  # a trainer and its model refer to each other, and would stay while the policy is validated
        return
    free_memory()  # the launched processes need what models of this one held
    log = stage.scratch / "launch.log"
    if launch.processes > 1:
        earlier = find_record(stage.launched, Launched)
        write_json(stage.launched, Launched(earlier.times + 1 if earlier else 1))
    grpo = trainee.settings.grpo.of_stage(number)
    place = load_place(_state_file(stage, launch.processes))  # the launched process goes on from there
    with progress("GRPO", grpo.steps, "steps", grpo.minutes, place.seconds) as bar:
        bar.initial = place.step

        def show_steps() -> None:
            steps = lines_so_far(stage.train_log)
            _show_figures(bar, steps[-1:], sum(step["sampled/tokens"] for step in steps))
            bar.update(max(len(steps), place.step) - bar.n)

        launch_stage(launch, stage.folder.parent, number, previous.onward, tokens, log, show_steps)


def _show_figures(bar: tqdm, last: list[dict[str, Any]], tokens: float) -> None:
    for figures in last:
        bar.set_postfix(reward=f"{figures['reward']:.2f}", valid=f"{figures['valid']:.2f}", tokens=f"{tokens:.0f}")


def train_here(trainee: Trainee, stage: Stage, previous: Path, number: int, tokens: float) -> None:
    """Trains in this process, which may be one of several; the first one saves the results.

    Of several processes, groups.jsonl holds the problems of the first.

    Args: trainee, stage, number, tokens: see `train_stage`; previous, the checkpoint to begin with.
    """
    settings, (rank, processes) = trainee.settings, rank_and_processes()
    device = "cpu" if processes > 1 else settings.device  # a trainer of several processes places the weights itself
    work, grpo = f"stage {number}" + f" in process {rank}" * (processes > 1), settings.grpo.of_stage(number)
    full = naming_full_memory(work, lambda: list_remedies(settings, "update", "sampling"))
    with full, reporting_into(stage.folder / "tensorboard"), ExitStack() as opened:
        model, tokenizer = load_policy(settings, previous, device)
        play = trainee.make_play(model, tokenizer)
        stream = opened.enter_context(trainee.stream_problems(stage, number)) if grpo.fresh else None
        tasks = stream or list(map(trainee.make_task, read_problems(trainee.problems_file(stage))))
        saved = _state_file(stage, processes)
        place = load_place(saved)
        if saved:
            write_json(stage.resumed, Resumed(place.step, place.seconds))  # for the viewer alone, so without a digest
        describe = functools.partial(trainee.describe_answers, play=play)
        logger = _StageLogger(stage, describe, place, grpo, tokens, opened)
        model = train_grpo(
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
            notes=logger.write_notes,
        )
    if not rank:  # after the logs are whole: a stage with a checkpoint is not trained again
        if stream:
            trainee.save_problems(stage, stream)
        save_checkpoint(stage.checkpoint, model, tokenizer)


def _state_file(stage: Stage, processes: int) -> Path | None:
    """The file of an interrupted training, which only a single process has."""
    return stage.scratch / "training.safetensors" if processes == 1 else None


@contextmanager
def reporting_into(folder: Path) -> Iterator[None]:
    """Has reporters of the training write into a folder within the block, unless the user has named another."""
    if REPORTS in os.environ:
        yield
        return
    os.environ[REPORTS] = str(folder)
    try:
        yield
    finally:
        del os.environ[REPORTS]


class _StageLogger:
    """Writes the logs of a stage while it is trained, and ends the training once its tokens are spent.

    Of several processes only the first writes.

    Args:
        stage: the stage under training.
        describe: writes the line of a group's answers.
        place: the place of an interruption; its notes are the earlier lines, as `write_notes` gave them.
        grpo: settings of the training.
        tokens: training ends once this many are generated.
        opened: closes logs and progress bar at the end.
    """

    def __init__(
        self,
        stage: Stage,
        describe: Callable[[Answered], dict[str, Any]],
        place: Place,
        grpo: GrpoSettings,
        tokens: float,
        opened: ExitStack,
    ) -> None:
        rank, self._processes = rank_and_processes()
        self._describe, self._tokens, self._cores = describe, tokens, FreeCores()
        self._files = {"steps": stage.train_log, "groups": stage.groups, "rollouts": stage.rollouts}
        noted = msgspec.json.decode(place.notes or "{}", type=dict[str, list[dict[str, Any]]])
        before = {name: noted.get(name, []) for name in self._files}
        bar = progress("GRPO", grpo.steps, "steps", grpo.minutes, place.seconds)
        self._bar = opened.enter_context(nullcontext(tqdm(disable=True)) if rank else bar)
        self._logs = {
            name: opened.enter_context(
                nullcontext(lambda line: None) if rank else line_log(path, shown=path == stage.train_log)
            )
            for name, path in self._files.items()
        }
        for name, lines in before.items():
            for line in lines:
                self._logs[name](line)
        self._spent = sum(round(figures["sampled/tokens"]) for figures in before["steps"])
        self._examples_left = MOST_EXAMPLES - len(before["rollouts"])
        self._bar.initial = len(before["steps"])
        self._bar.update(len(before["steps"]))

    def write_notes(self) -> str:
        """The lines so far, which are saved with the state of the training."""
        return msgspec.json.encode({name: lines_so_far(path) for name, path in self._files.items()}).decode()

    def log_step(self, figures: dict[str, Any]) -> bool:
        """Logs the figures of a step; True ends the training."""
        figures["sampled/tokens"] *= self._processes  # TRL logs the mean of the processes
        self._spent += round(figures["sampled/tokens"])
        _show_figures(self._bar, [figures], self._spent)
        self._bar.update()
        self._logs["steps"](figures)
        self._cores.adapt()
        return self._spent >= self._tokens

    def log_groups(self, groups: list[RolloutGroup]) -> None:
        """Logs every group of a step."""
        for group in groups:
            self._logs["groups"](msgspec.to_builtins(group))

    def log_answers(self, answered: list[Answered]) -> None:
        """Logs the answers of the first groups of a step, as examples: the log stays small in a long stage."""
        for made in answered[: min(EXAMPLES_A_STEP, self._examples_left)]:
            self._logs["rollouts"](self._describe(made))
            self._examples_left -= 1
