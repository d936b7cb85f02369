"""Completions a second: the tiny model plans for 6x6 boards, compared with transformers' own `generate`.

lakewright bench --sampling

A short warm-up comes first: the rate depends on the length of the answers, and an untrained model does not end them.
"""

from typing import Any

import msgspec

from core_jax.config import EnvConfig
from core_jax.generator import generate
from experiments.bench.lake import machine
from experiments.bench.measurement import Bench, Measurement, table
from experiments.bench.timing import timed
from experiments.loop.settings import load_settings, seed_for
from experiments.runtime import prepare_training

WARMUP_STEPS = 300
PROMPTS = 512
SIZE, AGENTS = 6, 2
GROUP = 8
LONGEST = 50  # tokens of an answer
CASES = (  # what, answers to a board, answers decoded at once, temperature, by our decoder
    ("groups of 8, 1 024 at once", GROUP, 1024, 1.0, True),
    ("groups of 8, 512 at once", GROUP, 512, 1.0, True),
    ("one greedy answer, 512 at once", 1, 512, 0.0, True),
    ("one greedy answer, 512 at once, transformers' generate", 1, 512, 0.0, False),
)

__all__ = ["measure", "table"]


def measure() -> Bench:
    """Trains shortly, then samples."""
    import torch

    from policy.codecs import TokensCodec
    from policy.inference import sample
    from policy.training import tasks_of

    prepare_training()
    boards = EnvConfig.single(SIZE, AGENTS, hole_ratio=0.3, wait_ratio=0.5)
    tasks = tasks_of(generate(boards, seed_for(0, "bench boards"), PROMPTS))
    model, tokenizer = short_warmup(tasks)
    prompts = [TokensCodec(tokenizer).encode_prompt(task.board) for task in tasks]

    def measured(what: str, copies: int, at_once: int, temperature: float, ours: bool) -> Measurement:
        def answers(seed: int) -> list[list[int]]:
            torch.manual_seed(seed)
            how = {"copies": copies, "max_new_tokens": LONGEST, "temperature": temperature, "batch": at_once}
            return sample(model, tokenizer, prompts, **how, scored=ours).answers  # type: ignore[arg-type]

        found, last = timed(f"sample, {what}", SIZE, AGENTS, PROMPTS * copies, answers, what="completions")
        tokens = sum(map(len, last)) / len(last)
        return msgspec.structs.replace(found, boards=PROMPTS, work=f"{found.work}, {tokens:.0f} tokens each")

    return Bench(machine(), [measured(*case) for case in CASES], {}, [])


def short_warmup(tasks: list) -> tuple[Any, Any]:
    """The tiny model after a few steps on plans of `tasks`, and its tokenizer."""
    from policy.checkpoints import build_model
    from policy.codecs import build_tokenizer
    from policy.training import warm_up

    run, tokenizer = load_settings("cpu", []), build_tokenizer()
    model = build_model(run.model, tokenizer, seed_for(0, "bench model"))
    settings = msgspec.structs.replace(run.warmup, steps=WARMUP_STEPS)
    return warm_up(model, tokenizer, tasks, [], settings, seed=0), tokenizer
