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

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import first_repeated, naming_extra
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource

with naming_extra(__name__, "verl"):
    import torch
    from torch.utils.data import Dataset
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

PLACES = 100_000  # rows of a data set that is not limited
SOURCE = "lakewright/"  # begins the data source of a problem, which ends with its stratum
HELD_OUT = "held_out"  # the last part of a path that means the held-out problems
_JUDGING = threading.Lock()  # verl calls reward functions from threads


class EngineerDataset(Dataset[dict[str, Any]]):
    """The rows of folders: a problem of the design of when its row is first asked for, or a held-out problem.

    Rows of several folders alternate, until the shortest has no more. An index beyond the last row is an IndexError.
    """

    def __init__(self, data_files: Any, tokenizer: Any, config: Any, processor: Any = None, max_samples: int = -1):
        """Opens folders, as verl does.

        Args:
            data_files: a folder, or `FOLDER/held_out`, or a list of them.
            tokenizer, processor: not used.
            config: verl's `data`, whose `seed` is the seed of the problems, 0 if it is null.
            max_samples: rows; by default 100,000 from each folder, or all its held-out problems.

        Raises InputError without an engineer or without held-out problems, or on a folder that is named twice.
        """
        paths = [Path(name) for name in ([data_files] if isinstance(data_files, str | Path) else data_files)]
        if not paths or (twice := first_repeated(path.absolute() for path in paths)) is not None:
            raise InputError(f"data_files: {twice if paths else 'none'!s:.200} is given; name each folder once")
        self.seed = int(config.get("seed") or 0)
        self.folders = [self._find_folder(path, max_samples) for path in paths]
        places = np.concatenate([np.arange(rows) for *_, rows in self.folders])
        order = np.argsort(places, kind="stable")[: max_samples if max_samples > 0 else None]
        self._places = places[order]
        self._owners = np.repeat(np.arange(len(paths)), [rows for *_, rows in self.folders])[order]

    def _find_folder(self, path: Path, max_samples: int) -> tuple[str, str, int]:
        """The folder of a path, its split, `train` or `held_out`, and the number of rows."""
        if path.name != HELD_OUT:
            return str(path.absolute()), "train", max_samples if max_samples > 0 else PLACES
        folder = str(path.parent.absolute())
        source, _ = _open_folder(folder, self.seed)
        if not (most := len(source.held_out)):
            raise InputError(f"{path}: held-out problems are missing; begin the engineer with --held-out 200")
        return folder, HELD_OUT, most

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> dict[str, Any]:
        place = int(self._places[row])  # an IndexError ends an iteration
        folder, split, _ = self.folders[self._owners[row]]
        problem = _open_folder(folder, self.seed)[0].find_problem(place, split)
        told = {"index": place, "folder": folder, "seed": self.seed, "split": split, "version": problem.version}
        return {
            "raw_prompt": [{"role": "user", "content": problem.prompt}],
            "data_source": f"{SOURCE}{problem.cell.stratum}",  # verl logs validation by data source
            "reward_model": {"style": "rule", "ground_truth": problem.answer},
            "extra_info": told,
            "index": int(row) % len(self),
            "tools_kwargs": {},
            "interaction_kwargs": {},
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8),  # as verl's own data set has
        }


class EngineerRewardManager(NaiveRewardManager):
    """verl's own reward manager, which tells `compute_score` the step, number and length of the answer."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **further: Any) -> None:
        """Makes a manager, as verl does. compute_score: not used because the folder's environment judges."""
        super().__init__(config, tokenizer, compute_score=judge_answer, **further)

    async def run_single(self, data: DataProto) -> dict[str, Any]:
        """The reward of one answer. Raises InputError if verl doesn't number answers, as before its version 1."""
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
        extra_info: from the data set, with `step`, `answer` and `tokens` from the manager. Without these, as under
            another manager, each call is another answer: steps that are done again after a resumption then count again.

    Returns `score`, the reward, `acc`, 1 if the answer is valid, and `failure/NAME`, 1 if it failed so; verl logs
    their means over its validation.
    """
    place, split = extra_info["index"], extra_info["split"]
    with _JUDGING:
        source, recorder = _open_folder(extra_info["folder"], extra_info["seed"])
        verdict = recorder.record(
            source.find_problem(place, split),
            [solution_str],
            split=split,
            tokens=[extra_info.get("tokens", 0)],
            group=source.name_group(place, split, extra_info.get("step", "unknown")),
            first=extra_info["answer"] if "answer" in extra_info else secrets.randbits(48),
        )[0]
    failures = {f"failure/{name}": float(name == verdict.failure) for name in source.environment.space.failures}
    return {"score": float(verdict.reward), "acc": float(verdict.valid), **failures}


@functools.cache
def _open_folder(path: str, seed: int) -> tuple[ProblemSource, OutcomeRecorder]:
    source = ProblemSource(path, seed)
    return source, OutcomeRecorder(path, source.environment)
