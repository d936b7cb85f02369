"""TRL's GRPO trainer on the problems of an engineer's folder: data set, reward function and callback.

tasks = EngineerTasks("runs/engineer", every=20)
GRPOTrainer(model, tasks.reward_funcs, arguments, tasks.train_dataset, callbacks=tasks.callbacks).train()
"""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Problem
from lakewright.experiments.trainers.folder import EngineerFolder, Report
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

Completion = str | list[dict[str, Any]]


class EngineerTasks:
    """The parts of a folder that `GRPOTrainer` needs.

    train_dataset: has `prompt`, `place` and `split`; a row is made when it is first asked for, from the design of then,
    so shuffling hides no change. eval_dataset: the held-out problems; where the trainer evaluates, they guide the
    engineer. reward_funcs: the environment's reward, which is recorded. callbacks: the first process decides every few
    steps, while the others wait. decided: what it decided.
    """

    def __init__(
        self, path: str | Path, *, every: int = 20, places: int = 100_000, chat: bool = False, seed: int = 0
    ) -> None:
        """Opens a folder.

        every: optimizer steps between two decisions. places: rows of the data set. chat: whether a prompt is a message
        to a chat model, or plain text. seed: of the problems.

        Raises InputError without an engineer, or a number is below 1.
        """
        if min(every, places) < 1:
            raise InputError(f"every is {every}, places {places}; choose at least 1")
        self.every, self.chat, self.seed = every, chat, seed
        self.folder = EngineerFolder(path)
        self.source = ProblemSource(path, seed)
        self.recorder = OutcomeRecorder(path, self.folder.environment)
        self.held_out = self.folder.held_out()
        self.decided: list[Report] = []
        self.train_dataset = Dataset.from_dict({"place": range(places)}).with_transform(self._make_rows)
        self.eval_dataset = Dataset.from_dict(self._tell(self.held_out, list(range(len(self.held_out))), "held_out"))
        self.reward_funcs: list[Callable[..., list[float]]] = [self.judge_answers]
        self.callbacks: list[TrainerCallback] = [DecideEverySteps(self)]

    def judge_answers(
        self,
        completions: list[Completion],
        completion_ids: list[list[int]],
        place: list[int],
        split: list[str],
        trainer_state: TrainerState,
        **_: Any,
    ) -> list[float]:
        """The reward of each completion, which is recorded.

        completions, completion_ids: of this process. place, split: columns of the data set. trainer_state: of TRL.

        A step that is done again, as a trainer resumed from a checkpoint does, gives its groups the same names.
        """
        texts = [text if isinstance(text, str) else str(text[-1]["content"]) for text in completions]
        before, rewards = _rank() * len(texts), []
        for (row, which), members in groupby(range(len(texts)), key=lambda at: (place[at], split[at])):
            mine = list(members)
            verdicts = self.recorder.record(
                self.held_out[row] if which == "held_out" else self.source[row],
                [texts[at] for at in mine],
                split="held_out" if which == "held_out" else "train",
                tokens=[len(completion_ids[at]) for at in mine],
                group=f"{which} {self.seed} {row} step {trainer_state.global_step}",
                first=before + mine[0],
            )
            rewards += [float(verdict.reward) for verdict in verdicts]
        return rewards

    def _make_rows(self, rows: dict[str, list[int]]) -> dict[str, list[Any]]:
        return self._tell(self.source.problems(rows["place"]), rows["place"], "train")

    def _tell(self, problems: list[Problem], places: list[int], split: str) -> dict[str, list[Any]]:
        prompts: list[Any] = [problem.prompt for problem in problems]
        if self.chat:
            prompts = [[{"role": "user", "content": prompt}] for prompt in prompts]
        return {"prompt": prompts, "place": list(places), "split": [split] * len(places)}


class DecideEverySteps(TrainerCallback):
    """Has the engineer decide in the first process, every few optimizer steps."""

    def __init__(self, tasks: EngineerTasks) -> None:
        self.tasks = tasks

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        """Decides; no process goes on before."""
        if state.global_step % self.tasks.every == 0:
            if state.is_world_process_zero:
                self.tasks.decided.append(self.tasks.folder.next(step=state.global_step))
            if torch.distributed.is_initialized():
                torch.distributed.barrier()
        return control


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
