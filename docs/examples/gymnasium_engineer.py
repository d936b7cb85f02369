"""Gymnasium's vector environments with an engineer: python docs/examples/gymnasium_engineer.py runs/gymnasium.

A linear policy that errs at times balances poles in eight environments at once, four times each; after every 128
episodes it is changed by trial and error, and the engineer redesigns the poles. Started again, it plays the same
problems, and their outcomes count once.
"""

import functools
import sys
from pathlib import Path

import gymnasium
import numpy as np
from balance import GOAL
from gymnasium.vector import SyncVectorEnv

from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.gymnasium import EngineerEnv

COUNT, EPISODES, ROUNDS = 8, 128, 4


def make_pole(problem):
    """CartPole, changed as the problem says."""
    environment = gymnasium.make("CartPole-v1", max_episode_steps=GOAL)
    for name, value in problem.data.items():
        setattr(environment.unwrapped, name, value)
    environment.unwrapped.polemass_length = environment.unwrapped.masspole * environment.unwrapped.length
    return environment


def begin(folder):
    """The engineer of a folder, and its environments."""
    if not (folder / "design.json").exists():
        balance = Path(__file__).with_name("balance.py")
        EngineerFolder.begin(folder, environment=f"{balance}:Balance", teacher="gain")
    maker = functools.partial(EngineerEnv, folder, make_pole, count=COUNT, episodes=4)
    return EngineerFolder(folder), SyncVectorEnv([functools.partial(maker, index=index) for index in range(COUNT)])


def train(folder):
    """Plays, learns, and redesigns; what the engineer decided."""
    engineer, environments = begin(folder)
    rng, best, score = np.random.default_rng(0), np.array([0.0, 0.0, 1.0, 0.2]), 0.0
    tried = best
    observations, _ = environments.reset(seed=0)
    decided = []
    for step in range(1, ROUNDS + 1):
        ended, moves = 0, 0
        while ended < EPISODES:
            pushes = observations @ tried + rng.normal(scale=0.2, size=COUNT) > 0
            observations, _, terminated, truncated, _ = environments.step(pushes.astype(int))
            ended, moves = ended + int((terminated | truncated).sum()), moves + COUNT
        if moves / ended >= score:  # longer episodes
            best, score = tried, moves / ended
        tried = best + rng.normal(scale=0.1, size=4)
        decided.append(engineer.next(step=step))
        print(step, f"{moves / ended:.0f} steps an episode", decided[-1].line)
    environments.close()
    return decided


if __name__ == "__main__":
    train(Path(sys.argv[1]))
