"""Completions per second: the tiny model plans for 6x6 boards, compared with transformers' own `generate`, and the
pretrained policy for five agents on 10x10.

lakewright bench sampling

A short warm-up comes first: the rate depends on the length of the answers, and an untrained model does not end them.
"""

from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.support import derive_seed
from lakewright.experiments.bench.lake import describe_machine
from lakewright.experiments.bench.measurement import Bench, Measurement, format_table, time_call
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.loop.settings.run_settings import load_settings

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
TEAM_PROMPTS = 256
TEAM_SIZE, TEAM, TEAM_HORIZON = 10, 5, 64
TEAM_CASES = (
    ("`pretrained`, groups of 8, 512 at once", GROUP, 512, 1.0, True),
    ("`pretrained`, one greedy plan, 512 at once", 1, 512, 0.0, True),
)

__all__ = ["format_table", "measure_rates"]


def measure_rates() -> Bench:
    """Trains shortly, then samples; then the pretrained policy plans for teams."""
    prepare_libraries()
    return Bench(describe_machine(), [*_of_tiny_model(), *_of_pretrained()])


def _of_tiny_model() -> list[Measurement]:
    from lakewright.policy.training import tasks_of

    boards = EnvConfig.single(SIZE, AGENTS, hole_ratio=0.3, wait_ratio=0.5)
    tasks = tasks_of(generate(boards, derive_seed(0, "bench boards"), PROMPTS))
    model, tokenizer = short_warmup(tasks)
    return [_measure_sampling(model, tokenizer, tasks, LONGEST, *case) for case in CASES]


def _of_pretrained() -> list[Measurement]:
    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.models import PRETRAINED, load_checkpoint
    from lakewright.policy.training import tasks_of

    model, tokenizer = load_checkpoint(PRETRAINED)
    boards = EnvConfig.single(TEAM_SIZE, TEAM, hole_ratio=0.3, wait_ratio=0.5)
    tasks = tasks_of(generate(boards, derive_seed(0, "bench teams"), TEAM_PROMPTS))
    longest = TokensCodec(tokenizer).answer_length(TEAM_HORIZON, TEAM)
    return [_measure_sampling(model, tokenizer, tasks, longest, *case) for case in TEAM_CASES]


def _measure_sampling(
    model: Any, tokenizer: Any, tasks: list, longest: int, what: str, copies: int, batch: int, heat: float, ours: bool
) -> Measurement:
    import torch

    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.inference import sample

    prompts = [TokensCodec(tokenizer).encode_prompt(task.board) for task in tasks]

    def answers(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        how = {"copies": copies, "max_new_tokens": longest, "temperature": heat, "batch": batch}
        return sample(model, tokenizer, prompts, **how, scored=ours).answers  # type: ignore[arg-type]

    size, agents = tasks[0].size, len(tasks[0].board.starts)
    measured, last = time_call(f"sample, {what}", size, agents, len(prompts) * copies, answers, what="completions")
    tokens = sum(map(len, last)) / len(last)
    return msgspec.structs.replace(measured, boards=len(prompts), work=f"{measured.work}, {tokens:.0f} tokens each")


def short_warmup(tasks: list) -> tuple[Any, Any]:
    """The tiny model after a few steps on plans of `tasks`, and its tokenizer."""
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.codecs import TokensCodec, build_tokenizer
    from lakewright.policy.models import build_model
    from lakewright.policy.training import warm_up

    run, tokenizer = load_settings("cpu", []), build_tokenizer()
    model = build_model(run.model, tokenizer, derive_seed(0, "bench model"))
    settings = msgspec.structs.replace(run.warmup, steps=WARMUP_STEPS)
    play = BoardPlay(TokensCodec(tokenizer), run.horizon)
    return warm_up(model, play, tasks, [], settings, seed=0), tokenizer
