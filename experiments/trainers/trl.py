"""TRL's GRPO trainer on the problems of an engineer's folder: data set, reward function and callback.

tasks = EngineerTasks("runs/engineer", every=20)
trainer = GRPOTrainer(model, tasks.reward_funcs, arguments, tasks.train_dataset, callbacks=tasks.callbacks)
tasks.attach(trainer)  # proposals are tried on the policy before one becomes a version
resume_training(trainer)  # or trainer.train()
"""

import json
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import naming_extra
from lakewright.engineer.multi_turn import MultiTurnEnvironment
from lakewright.engineer.problems import Problem
from lakewright.engineer.signal import list_metrics
from lakewright.experiments.trainers.design_edits import IllegalEditError
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.reports import NextReport
from lakewright.experiments.trainers.source import ProblemSource

with naming_extra(__name__, "trl"):
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer import TRAINER_STATE_NAME
    from trl import GRPOTrainer

    from lakewright.experiments.trainers.trl_episodes import PlayedRollout, RolloutFactory
    from lakewright.experiments.trainers.trl_policy import TrainedPolicy, send_from_first
    from lakewright.experiments.trainers.trl_texts import Completion, RowMaker, describe_rows, read_completion_text


class EngineerTasks:
    """The parts of a folder that `GRPOTrainer` needs.

    train_dataset: has `prompt`, `place` and `split`; a row is made when it is first asked for, from the design of then,
    so shuffling hides no change. eval_dataset: the held-out problems; if the trainer evaluates, they guide the
    engineer. reward_funcs: the environment's reward, which is recorded. environment_factory: the episodes of an
    environment of several turns, whose tools the policy calls; else None. callbacks: the first process decides every
    few steps, while the others wait. decided: its decisions.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        every: int = 20,
        first: int | None = None,
        places: int = 100_000,
        chat: bool = False,
        seed: int = 0,
        tool_seconds: float | None = None,
    ) -> None:
        """Opens a folder.

        Args:
            path: the engineer's folder.
            every: optimizer steps between two decisions.
            first: optimizer steps before the first decision, if it should come sooner; each later wait is twice as
                long, up to `every`, as with `grpo.first_steps` in the closed loop.
            places: rows of the data set.
            chat: whether a prompt is a message to a chat model or plain text; with several turns, always a message.
            seed: seed of the problems.
            tool_seconds: the longest time for a call of a tool, of `reset` or of `verdict` of an episode. With it, the
                process has an alarm (SIGALRM) during each call. By default a call may take any time.

        Raises InputError without an engineer, if a number is below 1, if `first` is more than `every`, or if
        `tool_seconds` is not above 0 or problems have one turn.
        """
        self.places = places
        if min(every, places) < 1:
            raise InputError(f"every is {every}, places {places}; choose at least 1")
        if first is not None and not 1 <= first <= every:
            raise InputError(f"first is {first}; choose 1 to {every}, the steps between later decisions")
        if tool_seconds is not None and not tool_seconds > 0:
            raise InputError(f"tool_seconds is {tool_seconds}; choose more than 0, or None for no limit")
        self.folder = EngineerFolder(path)
        environment = self.folder.environment
        self.environment_factory: RolloutFactory | None = None
        if tool_seconds and not isinstance(environment, MultiTurnEnvironment):
            raise InputError(f"tool_seconds is {tool_seconds}, but problems have one turn and no tools; leave it out")
        if isinstance(environment, MultiTurnEnvironment):
            self.environment_factory, chat = RolloutFactory(environment, self.find_problem, tool_seconds), True
        self.every, self.first, self.chat, self.seed = every, first or every, chat, seed
        self.source = ProblemSource(path, seed)
        self.recorder = OutcomeRecorder(path, environment)
        self.held_out = self.source.held_out
        self.decided: list[NextReport] = []
        self.train_dataset = Dataset.from_dict({"place": range(places)}).with_transform(RowMaker(self.source, chat))
        places_held_out = list(range(len(self.held_out)))
        self.eval_dataset = Dataset.from_dict(describe_rows(self.held_out, places_held_out, "held_out", chat=chat))
        self.policy: TrainedPolicy | None = None
        self.members: dict[str, int] = {}  # of a group, by split, once training has begun
        self._silent = True  # until there is an answer, or a warning that there is none
        self._current = True  # until there is a warning that all rows are of an outdated design
        self.reward_funcs: list[Callable[..., list[float]]] = [self.judge_answers]
        self.callbacks: list[TrainerCallback] = [DecideEverySteps(self)]

    def attach(self, trainer: GRPOTrainer, *, answer_tokens: int = 1024) -> None:
        """Has the engineer use the policy under training, by the trainer's own way to generate.

        Proposals are tried on it before one becomes a version, as the folder's settings of `trial` say; and where the
        teacher is `self`, it is the policy that proposes. Before its first step it answers the held-out problems of the
        folder, if any, and the first version is redesigned. Training continues as if nothing had been generated.

        trainer: the trainer of these tasks. answer_tokens: the most tokens of the policy's answer as the engineer.

        Raises InputError if `answer_tokens` is below 1.
        """
        if answer_tokens < 1:
            raise InputError(f"answer_tokens is {answer_tokens}; choose at least 1")
        self.policy = TrainedPolicy(
            trainer,
            self.folder.environment,
            chat=self.chat,
            answer_tokens=answer_tokens,
            rollouts=self.environment_factory,
        )

    def is_due(self, step: int) -> bool:
        """Return True if the engineer decides after this optimizer step."""
        due, wait = 0, self.first
        while due < step:
            due, wait = due + wait, min(2 * wait, self.every)
        return due == step

    def decide(self, step: int) -> None:
        """Decides at an optimizer step: in the first process, while the others wait or generate for it."""
        if _find_rank() == 0:
            self._decide_first(step)
        elif self.policy:
            self.policy.serve_requests()
        if torch.distributed.is_initialized():
            torch.distributed.barrier()

    def begins_here(self, step: int) -> bool:
        """Whether the engineer begins with this training, as the first process sees it.

        So it does with a training that had begun without it: nobody has answered in its folder yet. step: the first
        optimizer step.
        """
        outcomes = self.folder.files.outcomes_path
        return bool(send_from_first(step == 0 or outcomes.stat().st_size == 0))

    def begin_training(self, step: int, members: dict[str, int], batch: int, *, evaluates: bool) -> None:
        """Notes that a training begins, and warns if something would silently keep it from decisions.

        Args:
            step: its first optimizer step.
            members: the size of groups, by split.
            batch: the answers that TRL generates at a time.
            evaluates: whether the trainer evaluates.

        A training that was killed before its first checkpoint begins at step 0 once more, so that is not refused.
        Raises InputError if the data set has fewer rows than a batch, because TRL would then train no step.
        """
        self.members = members
        if batch > self.places * members["train"]:
            needed = batch // members["train"]
            raise InputError(f"places is {self.places}, but a batch of TRL has {needed} problems; choose more")
        if _find_rank() != 0:
            return
        decided = self.folder.files.read_newest().step
        if step == 0 and decided > 0:
            _warn(
                f"{self.folder.path}: has decided up to step {decided}, but this training begins at step 0, so nothing "
                "is decided before, and groups with the same names don't count; choose another folder, or resume "
                "from a checkpoint"
            )
        answered = self.policy or evaluates or self.folder.setup.settings.rollouts
        if self.held_out and not answered:
            _warn(
                f"{self.folder.path}: has {len(self.held_out)} held-out problems that nobody answers; call "
                "tasks.attach(trainer), or evaluate with eval_dataset=tasks.eval_dataset"
            )

    def _decide_first(self, step: int) -> None:
        """Decides, and warns if something keeps decisions from having an effect."""
        try:
            self.decided.append(self._ask_folder(step))
        except IllegalEditError as error:  # a slip of the pen should not cost a training
            _warn(f"step {step}: nothing was decided: {error}")
            return
        if self._silent and step > 0 and not self.decided[-1].counts.answers:
            self._silent = False
            _warn(f"step {step}: no answer was recorded; give GRPOTrainer reward_funcs=tasks.reward_funcs")
        if self._current and self.decided[-1].outdated:
            self._current = False
            _warn(self.decided[-1].complaint)

    def _ask_folder(self, step: int) -> NextReport:
        if not self.policy:
            return self.folder.next(step=step)
        self.policy.step = step
        try:
            return self.folder.next(self.policy.roll_out, self.policy.ask, step=step)
        finally:
            self.policy.end_requests()

    def judge_answers(
        self,
        completions: list[Completion],
        completion_ids: list[list[int]],
        trainer_state: TrainerState,
        place: Sequence[int] = (),
        split: Sequence[str] = (),
        environments: Sequence[PlayedRollout] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **_: Any,
    ) -> list[float]:
        """The reward of each completion, which is recorded.

        Args:
            completions, completion_ids: the completions of this process, as texts or messages, and as tokens.
            trainer_state: TRL's state, whose step names the groups.
            place, split: columns of the data set.
            environments: TRL's environments, if it has an `environment_factory`; their episodes give the verdicts.
            log_metric: TRL's logger, gets the groups' metrics from `list_metrics`, for the trainer's own tracker.

        A step that is repeated, after a trainer resumed from a checkpoint, gives its groups the same names. Raises
        InputError if members of a group have different problems, or an episode did not end; the outcomes of all
        other groups are recorded. So it does on rows of another data set, and in a training without the callbacks.
        """
        self._check_call(place, split, completions, trainer_state)
        if self.environment_factory and environments is None:
            raise InputError("GRPOTrainer has no episodes; give it environment_factory=tasks.environment_factory")
        processor = self.policy.trainer.processing_class if self.policy else None
        pairs = zip(completions, completion_ids, strict=True)
        texts = [read_completion_text(completion, ids, processor) for completion, ids in pairs]
        before, rewards = _find_rank() * len(texts), []
        groups, faults = [], self._find_mixed(place, split, before)
        for (row, which), members in groupby(range(len(texts)), key=lambda at: (place[at], split[at])):
            mine = list(members)
            problem = self.find_problem(row, which)
            lengths = [len(completion_ids[at]) for at in mine]
            try:
                outcomes = [environments[at].verdict for at in mine] if environments else None
            except InputError as error:
                faults.append(f"place {row}: {error}")
                continue
            verdicts = self.recorder.record(
                problem,
                [texts[at] for at in mine],
                outcomes,
                split="held_out" if which == "held_out" else "train",
                tokens=lengths,
                group=self.source.name_group(row, which, trainer_state.global_step),
                first=before + mine[0],
            )
            rewards += [float(verdict.reward) for verdict in verdicts]
            groups.append((problem.cell.stratum, verdicts, lengths))
        if faults:
            raise InputError(faults[0])
        if log_metric:
            for name, value in list_metrics(groups).items():
                log_metric(name, value)
        return rewards

    def _check_call(
        self, place: Sequence[int], split: Sequence[str], completions: Sequence[Completion], state: TrainerState
    ) -> None:
        """Raises InputError on rows of another data set, and in a training of TRL's that the callbacks don't know."""
        self._silent = False
        if not len(place) == len(split) == len(completions):
            raise InputError("the rows have no columns place and split; give GRPOTrainer tasks.train_dataset")
        if not self.members and "train" in split and isinstance(state, TrainerState):
            raise InputError("nobody would decide; give GRPOTrainer callbacks=tasks.callbacks")

    def find_problem(self, place: int, split: str) -> Problem:
        """The problem of a row of the data set or of the held-out problems, which `split` says."""
        return self.source.find_problem(place, split)

    def _find_mixed(self, place: Sequence[int], split: Sequence[str], before: int) -> list[str]:
        """A line on each group of several problems. before: the number of the first answer of this process."""
        found: dict[int, int] = {}
        lines = []
        for at, (row, which) in enumerate(zip(place, split, strict=True)):
            number = (before + at) // self.members.get(which, 1)
            if (first := found.setdefault(number, row)) != row:
                lines.append(
                    f"a group has answers to places {first} and {row}; its members need the same problem: give "
                    "GRPOTrainer train_dataset=tasks.train_dataset"
                )
        return lines


class DecideEverySteps(TrainerCallback):
    """Has the engineer decide in the first process, before the first optimizer step and every few.

    If the trainer evaluates at such a step, the decision waits for it: the answers tell of the policy that this stage
    has trained, so a decision without them would be blamed for the fall of an earlier design.
    """

    def __init__(self, tasks: EngineerTasks) -> None:
        self.tasks = tasks
        self._waiting: int | None = None  # the step whose evaluation is awaited

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decides the first design of training, if there are held-out problems for the policy to answer first."""
        trained = getattr(args, "num_generations", 1)
        members = {"train": trained, "held_out": getattr(args, "num_generations_eval", None) or trained}
        evaluates = getattr(args, "eval_on_start", False) or getattr(args, "eval_strategy", "no") != "no"
        batch = getattr(args, "generation_batch_size", None) or 0
        self.tasks.begin_training(state.global_step, members, batch, evaluates=evaluates)
        self._waiting = None
        if self.tasks.held_out and self.tasks.begins_here(state.global_step):
            self._decide(state.global_step, evaluates=getattr(args, "eval_on_start", False))
        return control

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decides; all processes wait for it."""
        if self.tasks.is_due(state.global_step):
            self._decide(state.global_step, evaluates=control.should_evaluate)
        return control

    def on_evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decides if the step of this evaluation has a decision that waits for it."""
        if self._waiting == state.global_step:
            self._decide(state.global_step, evaluates=False)
        return control

    def _decide(self, step: int, *, evaluates: bool) -> None:
        """Decides at a step, or later if the trainer evaluates first."""
        self._waiting = step if evaluates else None
        if not evaluates:
            self.tasks.decide(step)


def resume_training(trainer: GRPOTrainer) -> None:
    """Trains from the newest whole checkpoint of the trainer's folder, or from the beginning without a checkpoint.

    transformers itself takes the newest one, also if a kill left it half written, and does one more step where the
    last one had been done. Here a training that had reached its end is loaded, and nothing more happens.
    """
    checkpoint = find_checkpoint(trainer.args.output_dir)
    if checkpoint is not None:
        state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        last = trainer.args.max_steps if trainer.args.max_steps > 0 else state.max_steps
        if state.global_step >= last:
            trainer.state = state
            trainer._load_from_checkpoint(str(checkpoint))
            return
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))


def find_checkpoint(folder: str | Path) -> Path | None:
    """The newest checkpoint of a trainer that is whole: its state, which is written last, can be read."""
    named = ((re.fullmatch("checkpoint-([0-9]{1,18})", path.name), path) for path in Path(folder).glob("checkpoint-*"))
    found = sorted(((int(name[1]), path) for name, path in named if name), reverse=True)  # copies have other names
    return next((path for _, path in found if _is_json(path / TRAINER_STATE_NAME)), None)


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _warn(line: str) -> None:
    warnings.warn(line, stacklevel=2)


def _find_rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
