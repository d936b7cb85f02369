"""verl's data set and rewards on the problems of an engineer's folder, named in verl's own configuration.

data.custom_cls.path=pkg://lakewright.experiments.trainers.verl data.custom_cls.name=EngineerDataset
data.train_files=runs/e data.val_files=runs/e/held_out data.dataloader_num_workers=0
reward.reward_manager.source=importlib reward.reward_manager.name=EngineerRewardManager
reward.reward_manager.module.path=pkg://lakewright.experiments.trainers.verl
"""

import functools
import secrets
import threading
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

from lakewright.core_jax.errors import InputError
from lakewright.engineer.environment import Problem
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

PLACES = 100_000  # rows of a data set that is not limited
HELD_OUT = "held_out"  # the last part of a path that means the held-out problems
_JUDGING = threading.Lock()  # verl calls reward functions from threads


class EngineerDataset(Dataset[dict[str, Any]]):
    """The rows of a folder: a problem of the design of when its row is first asked for, or a held-out problem."""

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1):
        """Opens a folder, as verl does.

        Args:
            data_files: the folder, or `FOLDER/held_out`.
            tokenizer, processor: not used.
            config: `data` of verl, of which `seed` is the seed of the problems, 0 where it is null.
            max_samples: rows; by default 100,000, or all held-out problems.

        Raises InputError without an engineer or without held-out problems.
        """
        path = Path(data_files if isinstance(data_files, str) else next(iter(data_files)))
        self.held_out = path.name == HELD_OUT
        self.path = str((path.parent if self.held_out else path).absolute())
        self.seed = int(config.get("seed") or 0)
        self.rows = max_samples if max_samples > 0 else PLACES
        if self.held_out:
            most = len(_open_folder(self.path, self.seed).held_out)
            if not most:
                raise InputError(f"{path}: held-out problems are missing; begin the engineer with --held-out 200")
            self.rows = min(self.rows, most) if max_samples > 0 else most

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, place: int) -> dict[str, Any]:
        split = "held_out" if self.held_out else "train"
        problem = _open_folder(self.path, self.seed).find_problem(place, split)
        told = {"index": place, "folder": self.path, "seed": self.seed, "split": split, "version": problem.version}
        return {
            "raw_prompt": [{"role": "user", "content": problem.prompt}],
            "data_source": "lakewright",
            "reward_model": {"style": "rule", "ground_truth": problem.answer},
            "extra_info": told,
            "index": place,
            "tools_kwargs": {},
            "interaction_kwargs": {},
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8),  # as verl's own data set has
        }


class EngineerRewardManager(NaiveRewardManager):
    """verl's own reward manager, which tells `compute_score` what the answer is of: step, number and length."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **further: Any) -> None:
        """Makes a manager, as verl does. compute_score: not used, as the folder's environment judges."""
        super().__init__(config, tokenizer, compute_score=judge_answer, **further)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """The reward of one answer. Raises InputError where verl does not number answers, as before its version 1."""
        data = data[-1:]
        found = {name: data.non_tensor_batch.get(name) for name in ("global_steps", "session_id", "response_len")}
        if missing := [name for name, value in found.items() if value is None]:
            raise InputError(f"verl: {', '.join(missing)} is missing; set trainer.use_v1=true")
        step, number, length = (int(value[0]) for value in found.values() if value is not None)
        told = {**data.non_tensor_batch["extra_info"][0], "step": step, "answer": number, "tokens": length}
        data.non_tensor_batch["extra_info"][0] = told
        return await super().run_single(data)


def judge_answer(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any], **_: Any
) -> dict[str, float]:
    """The reward of an answer, which is recorded: a `compute_score` of verl.

    Args:
        data_source, ground_truth: not used.
        solution_str: the answer.
        extra_info: of the data set, with `step`, `answer` and `tokens` from the manager. Without these, as under
            another manager, each call is another answer: steps that are done again after a resumption then count again.

    Returns `score`, the reward, and `acc`, 1 where the answer is valid.
    """
    place, split = extra_info["index"], extra_info["split"]
    with _JUDGING:
        opened = _open_folder(extra_info["folder"], extra_info["seed"])
        verdict = opened.recorder.record(
            opened.find_problem(place, split),
            [solution_str],
            split=split,
            tokens=[extra_info.get("tokens", 0)],
            group=f"{split} {extra_info['seed']} {place} step {extra_info.get('step', 'unknown')}",
            first=extra_info["answer"] if "answer" in extra_info else secrets.randbits(48),
        )[0]
    return {"score": float(verdict.reward), "acc": float(verdict.valid)}


class OpenedFolder:
    """The objects of a folder that a process needs."""

    def __init__(self, path: str, seed: int) -> None:
        self.source = ProblemSource(path, seed)
        self.recorder = OutcomeRecorder(path, self.source.environment)
        self.held_out = EngineerFolder(path).held_out()

    def find_problem(self, place: int, split: str) -> Problem:
        """The problem of a row."""
        return self.held_out[place] if split == "held_out" else self.source[place]


@functools.cache
def _open_folder(path: str, seed: int) -> OpenedFolder:
    return OpenedFolder(path, seed)
