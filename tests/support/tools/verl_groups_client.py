"""Run by the Python of an environment with verl: the figures of groups in a batch of verl's own replay buffers.

verl's TransferQueue, a service of a cluster, is a table in memory here; the rows have the form that verl's agent loops
give them (verl/trainer/ppo/v1/agent_loop_tq.py).
"""

import functools
import inspect

import transfer_queue
from omegaconf import OmegaConf
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.utils.import_utils import load_extern_type
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

ADAPTER = "pkg://lakewright.experiments.trainers.verl_groups"
tags, fields = {"train": {}, "val": {}}, {}


def kv_list(partition_id=None):
    return {name: dict(found) for name, found in tags.items()}


def kv_clear(keys, partition_id):
    for key in keys:
        tags[partition_id].pop(key)


def kv_batch_get(keys, partition_id, select_fields):
    return list_of_dict_to_tensordict([{name: fields[key][name] for name in select_fields} for key in keys])


for function in (kv_list, kv_clear, kv_batch_get):
    given = inspect.signature(getattr(transfer_queue, function.__name__)).parameters
    assert set(inspect.signature(function).parameters) <= set(given), "TransferQueue takes other arguments"
    setattr(transfer_queue, function.__name__, function)


def add_group(name, stratum, scores, *, partition="train", parts=1, source="lakewright/"):
    """A complete group, its answers of `parts` outputs of three tokens each."""
    tags[partition][name] = {"is_prompt": True, "status": "finished", "global_steps": 1}
    for number, score in enumerate(scores):
        for part in range(parts):
            key = f"{name}_{number}_{part}"
            tags[partition][key] = {"status": "success", "response_len": 3, "seq_len": 9, "global_steps": 1}
            judged = {"score": float(score), "acc": float(score == 1), "failure/wrong": float(score < 1)}
            told = {"reward_extra_info": judged} if part == parts - 1 else {}
            fields[key] = {"data_source": source + stratum, "extra_fields": told, "uid": name}


trainer = PPOTrainer.__new__(PPOTrainer.__subclasses__()[0])
for mode, name in (("sync", "EngineerReplayBuffer"), ("separate_async", "EngineerReplayBufferAsync")):
    sampler = {"custom_sampler": {"path": ADAPTER, "name": name}, "max_off_policy_threshold": 9}
    sampler |= {"max_off_policy_strategy": "drop", "sampler_kwargs": {}}
    trainer.config = OmegaConf.create({"trainer": {"v1": {"sampler": sampler, mode: {}}}})
    trainer.trainer_mode = mode
    buffer = trainer._build_replay_buffer()
    assert type(buffer) is load_extern_type(ADAPTER, name)
    assert isinstance(buffer, ReplayBuffer)
    sample = functools.partial(buffer.sample, global_steps=1)

    add_group("a", "sums", [1, 1])
    add_group("b", "sums", [0, 1], parts=2)
    add_group("c", "words", [0, 0])
    add_group("d", "words", [0.25, 0.5])  # graded, and never valid
    add_group("e", "other", [0, 1], source="")
    batch, figures = sample(partition_id="train", batch_size=5)
    assert len(batch.keys) == 12
    assert {key: value for key, value in figures.items() if key.startswith("engineer/")} == {
        "engineer/sums/signal": 0.5,
        "engineer/sums/tokens_without_signal": 6 / 18,
        "engineer/sums/valid": 0.75,
        "engineer/sums/solved": 0.5,
        "engineer/sums/out_of_reach": 0.0,
        "engineer/words/signal": 0.5,
        "engineer/words/tokens_without_signal": 0.5,
        "engineer/words/valid": 0.0,
        "engineer/words/solved": 0.0,
        "engineer/words/out_of_reach": 0.5,
        "engineer/signal": 0.5,
        "engineer/tokens_without_signal": 12 / 30,
    }, figures
    add_group("f", "sums", [0, 1], partition="val")
    assert sample(partition_id="val", batch_size=1)[1] == {}, "validation is logged by data source"
print("groups are measured")
