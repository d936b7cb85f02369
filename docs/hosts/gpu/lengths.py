"""Decoding and updates of a language model of random weights, at the lengths of the preset, without the way there.

    python docs/hosts/gpu/lengths.py 4b 48 4096

The shape (see `random_model.py`), the answers that are decoded together, the tokens of the longest. To decode as
many tokens takes minutes; here the buffers of answers grow as in decoding, and a few steps are timed at each length.
Then the adapter of `qwen3-4b` is trained on answers of random words of that length, except where a fourth word follows.
Prints JSON, a line at a time. Needs a GPU.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from random_model import NAMED, WORDS, make_model, make_tokenizer

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.experiments.loop.settings.run_settings import load_settings
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec
from lakewright.policy.inference.decoders import TransformerDecoder
from lakewright.policy.inference.sampling import Samples, _pad_prompts, choose_tokens
from lakewright.policy.models.building import set_mode
from lakewright.policy.training import rollouts, tasks_of, train_grpo

GB, GROUP, TIMED = 10**9, 8, 20
LENGTHS = (64, 256, 512, 1024, 2048, 4096)
SETTINGS = ("grpo.host.vllm=off", "launch.processes=1", "launch.config=none", "grpo.learning_rate=1e-5")
ADAPTER = ("grpo.host.lora.rank=32", "grpo.host.lora.alpha=64")


def say(**found: Any) -> None:
    """Prints figures with the peak since the last line."""
    torch.cuda.synchronize()
    peaks = {"allocated": torch.cuda.max_memory_allocated() / GB, "reserved": torch.cuda.max_memory_reserved() / GB}
    print(json.dumps(found | {kind: round(peak, 3) for kind, peak in peaks.items()}), flush=True)
    torch.cuda.reset_peak_memory_stats()


@torch.inference_mode()
def decode(model: Any, prompts: list[list[int]], pad: int, longest: int) -> None:
    """Times steps of decoding at some lengths of the answers: GROUP to each prompt."""
    decoder = TransformerDecoder(model, GROUP, longest)
    begun = time.perf_counter()
    with set_mode(model):
        logits = decoder.read_prompts(*_pad_prompts(prompts, pad, model.device))
        say(reading=len(prompts), tokens=max(map(len, prompts)), seconds=round(time.perf_counter() - begun, 3))
        for length in [one for one in LENGTHS if one <= longest]:
            while (room := decoder._answers[0][0].shape[3]) < length:
                decoder._make_room(room + 1)
            decoder.rewind(length - TIMED - 3)
            tokens = choose_tokens(logits, 1.0)[0]
            for _ in range(2):  # the second of them is recorded
                decoder.add_tokens(tokens)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(TIMED):
                tokens = choose_tokens(decoder.add_tokens(tokens), 1.0)[0]
            torch.cuda.synchronize()
            step = (time.perf_counter() - begun) / TIMED
            rows = len(prompts) * GROUP
            say(length=length, rows=rows, step_ms=round(1000 * step, 2), tokens_a_second=round(rows / step))


def update(model: Any, tokenizer: Any, longest: int, micro: int) -> None:
    """Trains an adapter for two steps on answers of random words, of which half of each group is rewarded."""
    given = [*SETTINGS, *ADAPTER, f"text.max_tokens={longest}", f"grpo.host.micro_batch={micro}", "grpo.steps=2"]
    settings = load_settings("qwen3-4b", [*given, "grpo.prompts=2", "grpo.guided=true"])
    tasks = tasks_of(generate(EnvConfig.single(10, 2, hole_ratio=0.25, wait_ratio=0.5), 0, settings.grpo.boards))
    drawn: list[float] = []

    def random_answers(
        model: Any, tokenizer: Any, prompts: list, *, copies: int, max_new_tokens: int, **_: Any
    ) -> Samples:
        shape = (len(prompts) * copies, max_new_tokens)
        drawn.append(time.perf_counter())
        return Samples(torch.randint(1000, NAMED, shape).tolist(), [[] for _ in range(shape[0])])

    rollouts.sample = random_answers  # type: ignore[assignment]
    play = BoardPlay(TextCodec(tokenizer, settings.text), settings.horizon)

    def on_step(figures: dict[str, Any]) -> None:
        answers = settings.grpo.prompts * settings.grpo.group
        say(update=figures["step"], answers=answers, micro_batch=micro, longest=longest, loss=figures["loss"],
            grad_norm=figures["grad_norm"], seconds=round(time.perf_counter() - drawn[-1], 2))  # fmt: skip

    with tempfile.TemporaryDirectory() as scratch:
        train_grpo(model, play, tasks, settings.grpo, seed=0, scratch=Path(scratch), on_step=on_step)
    say(merged=True)


def main() -> None:
    """Decodes, then trains."""
    shape, rows, longest = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tokenizer = make_tokenizer(NAMED)
    model = make_model(shape, tokenizer, WORDS)
    say(shape=shape, weights=model.num_parameters(), device=torch.cuda.get_device_name())
    boards = EnvConfig.single(10, 2, hole_ratio=0.25, wait_ratio=0.5)
    settings = load_settings("qwen3-4b", [f"text.max_tokens={longest}"])
    codec = TextCodec(tokenizer, settings.text)
    prompts = [codec.encode_prompt(task.board) for task in tasks_of(generate(boards, 1, rows // GROUP))]
    decode(model, prompts, tokenizer.pad_token_id, longest)
    torch.cuda.empty_cache()
    if len(sys.argv) < 5:
        update(model, tokenizer, longest, micro=2)


if __name__ == "__main__":
    main()
