"""Architectures beside each other: what each learns in the same processor time, on the same boards.

lakewright bench --architectures

Each network begins with random weights, is warmed up on the same fixed set of boards until it has used so many seconds
of the processor, and then plans greedily for the same held-out boards of two and three agents. One thread: processor
seconds are then those of one core, whatever else the machine does.
"""

import time
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from lakewright.core_jax.config import with_teams
from lakewright.core_jax.generator import generate_in_turn
from lakewright.core_jax.types import Failure
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.loop.settings import load_settings, seed_for
from lakewright.experiments.runtime.library_setup import prepare_training
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.models import ModelSettings
from lakewright.policy.networks import BoardNetworkSettings

SECONDS = 42.0  # of the processor, for each
TEAMS = (2, 3)
BOARDS, HELD_OUT = 16000, 600
HORIZON = 32
NETWORKS: Mapping[str, ModelSettings] = {
    "qwen3": ModelSettings(),
    "board": ModelSettings(architecture="board"),
    **{
        f"board, {name}": ModelSettings(architecture="board", board=shape)
        for name, shape in {
            "collisions and repetitions allowed": BoardNetworkSettings(keeps_rules=False, never_repeats=False),
            "repetitions allowed": BoardNetworkSettings(never_repeats=False),
            "distances learned, 20 iterations": BoardNetworkSettings(cost_to_go=False, iterations=20),
            "8 iterations": BoardNetworkSettings(iterations=8),
            "5 rounds of messages": BoardNetworkSettings(layers=5),
            "48 channels, hidden 144": BoardNetworkSettings(channels=48, hidden=144),
        }.items()
    },
}


class Learned(msgspec.Struct, frozen=True):
    """What an architecture learned. valid: shares of held-out boards with a valid greedy plan, by number of agents."""

    network: str
    parameters: int
    steps: int
    seconds: float
    valid: dict[int, float]


def measure() -> list[Learned]:
    """Trains each network, and lets it plan for the same held-out boards."""
    import torch

    from lakewright.policy.training import tasks_of

    prepare_training()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    run = load_settings("cpu-30", [])
    configs = with_teams(run.env, TEAMS)
    with progress("boards", BOARDS + HELD_OUT, "boards") as bar:
        tasks = tasks_of(*generate_in_turn(configs, seed_for(0, "bench boards"), BOARDS, bar.update))
        held_out = tasks_of(*generate_in_turn(configs, seed_for(0, "bench held-out boards"), HELD_OUT, bar.update))
    try:
        return [_learned(name, shape, tasks, held_out, run.warmup) for name, shape in NETWORKS.items()]
    finally:
        torch.set_num_threads(threads)


def table(found: list[Learned]) -> str:
    """The benchmark as Markdown."""
    header = ("network", "parameters", "steps", "seconds of the processor", *(f"valid, {k} agents" for k in TEAMS))
    rows = [
        (row.network, f"{row.parameters:,}", f"{row.steps:,}", f"{row.seconds:.0f}", *map(_percent, row.valid.values()))
        for row in found
    ]
    return "\n".join(format_markdown(header, rows))


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _learned(name: str, shape: ModelSettings, tasks: list, held_out: list, warmup: Any) -> Learned:
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec, build_tokenizer
    from lakewright.policy.evaluation import evaluate
    from lakewright.policy.models import build_model
    from lakewright.policy.training import warm_up

    tokenizer = build_tokenizer()
    model = build_model(shape, tokenizer, seed_for(0, "bench model"), "cpu")
    settings = msgspec.structs.replace(warmup, fresh=False, minutes=SECONDS / 60, steps=10**6, decay=0.99)
    play, losses = BoardPlay(TokensCodec(tokenizer), HORIZON), list[float]()
    begun = time.process_time()
    with progress(name, None, "steps") as bar:

        def on_step(step: int, loss: float) -> None:
            losses.append(loss)
            bar.update()

        model = warm_up(model, play, tasks, [], settings, 0, on_step, clock=time.process_time)
    seconds = time.process_time() - begun
    verdicts, _ = evaluate(model, play, held_out)
    valid, agents = np.asarray(verdicts.failure) == Failure.NONE, np.array([len(task.moves) for task in held_out])
    parameters = sum(weight.numel() for weight in model.parameters())
    return Learned(name, parameters, len(losses), seconds, {k: float(valid[agents == k].mean()) for k in TEAMS})
