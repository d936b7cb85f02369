"""OpenEnv with an engineer: python docs/examples/openenv_engineer.py runs/openenv.

A server draws sums by the arguments of `reset`; a client, whose policy guesses, gives it those of the present design.
"""

import random
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn
from addition import Addition
from openenv.core import GenericEnvClient
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from lakewright.engineer import Verdict
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.openenv import EngineerClient


class Answer(Action):
    """An answer to a sum."""

    text: str


class Shown(Observation):
    """A sum, or what was wrong with the answer."""

    text: str = ""
    failure: str = ""


class Sums(Environment[Answer, Shown, State]):
    """An episode is one sum, drawn as `reset` is asked."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    sums = Addition()

    def reset(self, seed=None, episode_id=None, stratum=1, terms=2, carry=False, **_):
        self._state = State(episode_id=episode_id, step_count=0)
        self._problem = self.sums.draw_one(self.sums.space.cell(stratum, terms=terms, carry=carry), seed or 0, 0)
        return Shown(text=self._problem.prompt)

    def step(self, action, timeout_s=None, **_):
        self._state.step_count += 1
        verdict = self.sums.judge(self._problem, action.text)
        return Shown(done=True, reward=verdict.reward, failure=verdict.failure)

    @property
    def state(self):
        return self._state


def report(total, result):
    """The verdict of an episode, as the server gave it."""
    return Verdict(total == 1, total, result.observation["failure"])


def guess(prompt, rng):
    """The sum, the more often wrong the longer it is."""
    return str(sum(map(int, prompt[:-1].split("+"))) if rng.random() < 3 / len(prompt) else 0)


def serve():
    """Serves sums in a thread; the address and what stops it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    app = create_app(Sums, Answer, Shown, env_name="sums", max_concurrent_envs=4)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    return f"http://127.0.0.1:{port}", server


def train(folder):
    """Plays and redesigns; what the engineer decided."""
    if not (folder / "design.json").exists():
        addition = Path(__file__).with_name("addition.py")
        EngineerFolder.begin(folder, environment=f"{addition}:Addition", teacher="gain")
    engineer, decided = EngineerFolder(folder), []
    url, server = serve()
    with GenericEnvClient(base_url=url).sync() as first, GenericEnvClient(base_url=url).sync() as second:
        clients = [
            EngineerClient(client, folder, report, index=index, count=2, episodes=4)
            for index, client in enumerate((first, second))
        ]
        rng = random.Random(0)
        for step in range(1, 4):
            for client in clients * 32:
                client.step({"text": guess(client.reset().observation["text"], rng)})
            decided.append(engineer.next(step=step))
            print(step, decided[-1].line)
    server.should_exit = True
    return decided


if __name__ == "__main__":
    train(Path(sys.argv[1]))
