"""Run by the Python of an environment with verl: python verl_client.py FOLDER, of an engineer's folder.

verl's own makers of data sets, loaders and reward managers, in the order of its trainer.
"""

import asyncio
import runpy
import sys
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf
from verl.trainer.ppo.reward import get_custom_reward_fn, load_reward_manager
from verl.trainer.ppo.utils import create_rl_dataset
from verl.utils import tensordict_utils
from verl.utils.dataset.rl_dataset import collate_fn

from lakewright.core_jax.errors import InputError
from lakewright.experiments.trainers.folder import EngineerFolder
from tests.support.processes.commands import HOUSE
from tests.support.samples.engineer_folders import read_groups

asyncio.set_event_loop(asyncio.new_event_loop())
sys.path.insert(0, str(HOUSE / "docs" / "examples"))
example = runpy.run_path(str(HOUSE / "docs" / "examples" / "verl_engineer.py"))
folder = EngineerFolder(Path(sys.argv[1]))
config, tokenizer = example["configure"](folder.path), example["make_tokenizer"]()
manager = load_reward_manager(config, tokenizer)
loop = manager.loop


def score(row, session, step, answer="1"):
    """The score of an answer to a row."""
    data = example["make_data"](row, session, step, tokenizer.encode(answer))
    return loop.run_until_complete(manager.run_single(data))


def rows_of(batch):
    """The rows of a batch, without tensors, as an agent loop gets them."""
    names = [name for name in batch if name != "dummy_tensor"]
    return [{name: batch[name][place] for name in names} for place in range(len(batch["index"]))]


loader = example["make_loader"](config)
batches = iter(loader)
first = next(batches)
tensordict_utils.get_tensordict({**first, "uid": np.array(["u"] * 8, dtype=object)})  # as _fetch_one_gen_batch does
state = loader.state_dict()
for step in (1, 1):  # a step, and the same one again after a resumption
    for row in rows_of(first):
        results = [score(row, session, step) for session in range(4)]
FIGURES = {"score", "acc", "failure/no_number", "failure/wrong"}
assert set(results[0]["reward_extra_info"]) == FIGURES, results
assert [len(lines) for lines in read_groups(folder.path).values()] == [4] * 8, "what was recorded twice counts twice"
folder.next(step=1)
second = next(batches)
assert {row["extra_info"]["version"] for row in rows_of(second)} == {1}, "a change does not reach the next batch"

resumed = example["make_loader"](config)
resumed.load_state_dict(state)
assert [row["extra_info"] for row in rows_of(next(iter(resumed)))] == [row["extra_info"] for row in rows_of(second)]
for row in rows_of(first) + rows_of(second):  # late answers to the first batch
    for session in range(4):
        score(row, session, 2)
versions = [{(line.version, line.key) for line in lines} for lines in read_groups(folder.path).values()]
assert len(versions) == 24
assert all(len(found) == 1 for found in versions), "a group spans two versions"

held_out = create_rl_dataset(f"{folder.path}/held_out", config.data, None, None, is_train=False)
assert [row["raw_prompt"][0]["content"] for row in held_out] == [problem.prompt for problem in folder.held_out()]
for place, problem in enumerate(folder.held_out()):
    row = rows_of(collate_fn([held_out[place]]))[0]
    assert score(row, 0, 1, problem.answer)["reward_score"] == 1.0
assert folder.status().held_out == len(held_out)

custom = {"path": config.data.custom_cls.path, "name": "judge_answer"}
alone = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": custom}}))
row = rows_of(second)[0]
told = {"solution_str": "1", "ground_truth": "", "extra_info": {**row["extra_info"], "num_turns": 2}}
assert alone(data_source="lakewright", **told).keys() == FIGURES
data = example["make_data"](row, 0, 1, [1])
del data.non_tensor_batch["session_id"]
refused = ""
try:
    loop.run_until_complete(manager.run_single(data))
except InputError as error:
    refused = str(error)
assert refused == "verl: session_id is missing; set trainer.use_v1=true", f"an answer without a number: {refused!r}"
print("verl is served")
