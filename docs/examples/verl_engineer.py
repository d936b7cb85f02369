"""verl's data set and rewards with an engineer: python docs/examples/verl_engineer.py runs/verl.

They are called as verl 0.9 does: by its makers of data sets, samplers, data loaders and reward managers, in the order
of its trainer. The policy guesses, and nothing is trained, as verl's own loop needs GPUs.
"""

import asyncio
import random
import sys
from pathlib import Path

import numpy as np
import torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from torchdata.stateful_dataloader import StatefulDataLoader
from transformers import PreTrainedTokenizerFast
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager
from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
from verl.utils.dataset.rl_dataset import collate_fn

from lakewright.experiments.trainers.folder import EngineerFolder

GROUP = 4
ADAPTER = "pkg://lakewright.experiments.trainers.verl"


def configure(folder):
    """What a user sets in verl, beside all that is as ever."""
    return OmegaConf.create(
        {
            "data": {
                "train_files": str(folder),
                "custom_cls": {"path": ADAPTER, "name": "EngineerDataset"},
                "dataloader_num_workers": 0,
                "shuffle": True,
                "seed": 1,
            },
            "reward": {
                "reward_manager": {
                    "source": "importlib",
                    "name": "EngineerRewardManager",
                    "module": {"path": ADAPTER},
                }
            },
        }
    )


def make_loader(config):
    """As verl/trainer/ppo/v1/trainer_base.py, _init_dataloader."""
    dataset = create_rl_dataset(config.data.train_files, config.data, None, None)
    sampler = create_rl_sampler(config.data, dataset)
    return StatefulDataLoader(
        dataset, batch_size=8, num_workers=0, drop_last=True, collate_fn=collate_fn, sampler=sampler
    )


def make_tokenizer():
    """A tokenizer of digits."""
    letters = Tokenizer(models.WordLevel({letter: place for place, letter in enumerate("0123456789.")}, unk_token="."))
    letters.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    letters.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=letters, eos_token=".", pad_token=".")


def guess(prompt, rng):
    """The sum, the more often wrong the longer it is."""
    return str(sum(map(int, prompt[:-1].split("+"))) if rng.random() < 3 / len(prompt) else 0)


def make_data(row, session, step, answer):
    """One answer, as verl/experimental/agent_loop/agent_loop.py gives it to a reward manager, in _compute_score."""
    ids = torch.tensor([answer])
    tensors = TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
    told = {**row, "session_id": session, "global_steps": step, "__num_turns__": 2, "response_len": len(answer)}
    others = {name: np.array([value]) for name, value in told.items()}
    return DataProto(batch=tensors, non_tensor_batch=others | {"tool_extra_fields": np.array([{}], dtype=object)})


def train(folder):
    """Answers and redesigns; what the engineer decided."""
    if not (folder / "design.json").exists():
        addition = Path(__file__).with_name("addition.py")
        EngineerFolder.begin(folder, environment=f"{addition}:Addition", teacher="gain")
    config, tokenizer, rng, decided = configure(folder), make_tokenizer(), random.Random(0), []
    batches = iter(make_loader(config))
    rewards = load_reward_manager(config, tokenizer)
    for step in range(1, 7):
        batch = next(batches)
        for place in range(8):
            row = {name: values[place] for name, values in batch.items() if name != "dummy_tensor"}
            for session in range(GROUP):
                answer = tokenizer.encode(guess(row["raw_prompt"][0]["content"], rng))
                rewards.loop.run_until_complete(rewards.run_single(make_data(row, session, step, answer)))
        if step % 2 == 0:
            decided.append(EngineerFolder(folder).next(step=step))
            print(step, decided[-1].line)
    return decided


if __name__ == "__main__":
    asyncio.set_event_loop(asyncio.new_event_loop())
    train(Path(sys.argv[1]))
