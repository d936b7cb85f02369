"""Run by the Python of an environment with verifiers: python taskset_client.py FOLDER, of an engineer's folder.

Its own loader, views and wire format on a taskset whose design changes while it is read.
"""

import asyncio
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

from verifiers.v1.configs.select import SelectConfig
from verifiers.v1.task import WireTaskData
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

from lakewright.core_jax.errors import InputError
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.source import ProblemSource
from tests.support.samples.engineer_folders import record_some

CONFIG = taskset_config_type("verifiers-engineer")
folder = EngineerFolder(Path(sys.argv[1]))


def load(**changes):
    """The taskset of the folder."""
    return load_taskset(CONFIG(id="verifiers-engineer", folder=folder.path, **changes))


tasks = iter(load())
taken = list(itertools.islice(tasks, 4))
record_some(folder, [ProblemSource(folder.path)[task.data.place] for task in taken])
assert folder.next().version == 1
taken += itertools.islice(tasks, 4)
assert [task.data.version for task in taken] == [0] * 4 + [1] * 4, "a change does not reach the next task"

again = list(load().take(8))  # as an orchestrator that resumes skips what it had
assert [task.data for task in again] == [task.data for task in taken], "a place has another problem after a restart"
assert len({task.key for task in again}) == 8
assert [task.data.place for task in load().select(SelectConfig(skip=2, limit=3))] == [2, 3, 4]
wire = WireTaskData.model_validate(taken[5].data.model_dump(mode="json", exclude_none=True))
assert wire.model_extra == {
    "folder": str(folder.path.absolute()),
    "seed": 0,
    "place": 5,
    "version": 1,
    "split": "train",
}
assert not load().bounded

held_out = load(held_out=True)
assert held_out.bounded
assert [task.data.prompt for task in held_out] == [problem.prompt for problem in folder.held_out()]
figures = asyncio.run(taken[0].outcome(SimpleNamespace(last_reply="?")))
stratum = ProblemSource(folder.path)[0].cell.stratum
groups = {name: figures.pop(f"engineer/{stratum}/{name}") for name in ("solved", "signal", "out_of_reach")}
wasted, recorded = figures.pop(f"engineer/{stratum}/tokens_without_signal"), folder.status().strata["0"][str(stratum)]
assert list(groups.values()) == [recorded.solved, recorded.signal, recorded.out_of_reach]
assert (sum(groups.values()), wasted) == (1.0, recorded.wasted), "the pools of the folder"
assert figures == {"valid": 0.0, f"engineer/{stratum}/valid": 0.0, "failure/no_number": 1.0, "failure/wrong": 0.0}
assert all(asyncio.run(task.validate(None)) for task in [*held_out, *again])
refused = ""
try:
    load_taskset(CONFIG(id="verifiers-engineer"))
except InputError as error:
    refused = str(error)
assert refused == "folder is missing; give that of an engineer, as in --env.taskset.folder runs/e", refused
print("the taskset is sound")
