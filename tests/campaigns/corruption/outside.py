"""The surroundings of the commands of a campaign, the same each time: a server, a tracker, a language model.

No request leaves the process, and nothing is installed for it.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from lakewright.experiments.loop import trackers
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.trackers import TrackedPoint
from lakewright.policy.inference import ChatRequest, EndpointAnswer, EndpointSettings

URL = "http://127.0.0.1:9/v1"  # where nothing listens
TRACKER = "tensorboard"  # the name under which the tracker here is found
POINTS = "points.jsonl"  # what it got, in the folder of the run
EDIT = {"reason": "too hard", "data_ratio": 0.0, "hole_ratio": -0.1, "wait_ratio": 0.0}
CHANGE = json.dumps({"edits": {"3": EDIT}})  # what the server says as engineer
PLAN = "ANSWER:\nagent 0: RIGHT, RIGHT\nagent 1: DOWN"  # and as policy
WORDS = ("<|end|>", "<|pad|>")
CHAT = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}<assistant>"
SHAPE = {"hidden": 32, "layers": 1, "heads": 2, "mlp": 32, "positions": 16384}


class Lines:
    """A tracker that writes a line for each point."""

    def __init__(self, folder: RunFolder) -> None:
        self._file = open(folder.folder / POINTS, "a")  # noqa: SIM115

    def log(self, point: TrackedPoint) -> None:
        """As `Tracker`."""
        pictures = {name: int(picture.sum()) for name, picture in point.pictures.items()}
        self._file.write(json.dumps([point.step, point.figures, pictures]) + "\n")

    def close(self) -> None:
        """As `Tracker`."""
        self._file.close()


async def answer_question(question: ChatRequest, settings: EndpointSettings, *_: Any) -> EndpointAnswer:
    """The reply of the server: a change if it is asked for JSON, else a plan; 100 tokens in, 50 out."""
    return EndpointAnswer(CHANGE if question.schema else PLAN, 100, 50, "stop")


@contextlib.contextmanager
def outside_alike() -> Iterator[None]:
    """Lets commands find the server, the tracker, and one thread for torch, whatever else the machine does."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with (
            mock.patch("lakewright.policy.inference.endpoint.ask_once", answer_question),
            mock.patch.dict(trackers.TRACKERS, {TRACKER: Lines}),
            mock.patch.object(trackers, "prepare_tracker"),
            mock.patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}),  # which FreeCores respects
        ):
            yield
    finally:
        torch.set_num_threads(threads)


def save_language_model(folder: Path, seed: int) -> None:
    """Saves a language model in miniature: bytes as tokens, a few thousand random weights."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from lakewright.core_jax.support import convert
    from lakewright.policy.model_settings import ModelSettings
    from lakewright.policy.models import TEXT, build_model, save_checkpoint

    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *WORDS]
    core = Tokenizer(models.BPE({word: number for number, word in enumerate(words)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    end, pad = WORDS
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=end, pad_token=pad, chat_template=CHAT)
    model = build_model(convert(SHAPE, ModelSettings, "model"), tokenizer, seed)
    model.config.codec = TEXT
    save_checkpoint(folder, model, tokenizer)
