"""verifiers with an engineer, in the order of prime-rl: python docs/examples/taskset_engineer.py runs/taskset.

Tasks are taken one by one from the taskset without end, four episodes of a task are a group, and each is written to
`traces.jsonl` as prime-rl's file monitor writes it. The policy guesses; a trained one needs a server with a GPU. Killed
and started again, it plays the same episodes, which have the same names and so count once.
"""

import asyncio
import json
import random
import sys
from pathlib import Path

import verifiers.v1 as vf
from verifiers.v1.configs.agent import WireAgentConfig
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.traces import record_traces

GROUP = 4


def guess(prompt, rng):
    """The sum, the more often wrong the longer it is."""
    return str(sum(map(int, prompt[:-1].split("+"))) if rng.random() < 3 / len(prompt) else 0)


async def play(task, group, number):
    """An episode on a task, scored by the task."""
    trace = vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash),
        agent=vf.AgentInfo(config=WireAgentConfig()),
    )
    trace.root_reply = guess(task.data.prompt, random.Random(f"{group} {number}"))
    await task.score(trace)
    trace.ok = True
    name = f"{group} episode {number}"
    return vf.Episode(id=name, task=trace.task, group=vf.GroupInfo(id=group), traces=[trace], ok=True)


def write(episode, run, step):
    """Appends an episode, as `prime_rl/monitors/file.py` does."""
    file = run / "rollouts" / f"step_{step}" / "train" / "all" / "traces.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(episode.to_record()) + "\n")


def train(folder):
    """Plays and redesigns; what the engineer decided."""
    engineer, run = folder / "engineer", folder / "run"
    if not (engineer / "design.json").exists():
        addition = Path(__file__).with_name("addition.py")
        EngineerFolder.begin(engineer, environment=f"{addition}:Addition", teacher="gain")
    config = taskset_config_type("verifiers-engineer")(id="verifiers-engineer", folder=engineer)
    tasks, decided = iter(load_taskset(config)), []
    for step in range(1, 4):
        for place in range(16):
            task = next(tasks)
            for number in range(GROUP):
                write(asyncio.run(play(task, f"group {step} {place}", number)), run, step)
        print(record_traces(engineer, run))
        decided.append(EngineerFolder(engineer).next(step=step))
        print(step, decided[-1].line)
    return decided


if __name__ == "__main__":
    train(Path(sys.argv[1]))
