"""GRPO whose answers vLLM samples, through TRL's own code: run by the Python of an environment with vLLM for the CPU.

python -m tests.support.tools.vllm_grpo CHECKPOINT FOLDER [URL] trains on the sample boards. With a URL that server
samples, else vLLM in this process, and then the weights are changed after the first step. Writes to FOLDER what was
sampled, TRL's log of each step, the names of the weights for a server, and the model at the end.
"""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import torch
from trl.generation import vllm_generation
from trl.generation.vllm_client import VLLMClient
from vllm import LLM, _custom_ops

from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TextCodec, TextSettings
from lakewright.policy.models import load_model, save_checkpoint
from lakewright.policy.training import GrpoSettings, train_grpo
from lakewright.policy.training.settings import HostSettings
from tests.support.models.tiny_policy import tasks

sent: list[str] = []


def engine(**given: Any) -> LLM:
    """TRL's engine, with what a CPU cannot do left out: it does not sleep, and compiles nothing."""
    return LLM(**given | {"enable_sleep_mode": False, "enforce_eager": True, "dtype": "float32"})


class Client(VLLMClient):
    """TRL's client, except that no weights are sent: NCCL needs GPUs."""

    def init_communicator(self, device: Any = 0) -> None:
        """All that TRL checks before it asks for a GPU."""
        with contextlib.suppress(NotImplementedError):
            super().init_communicator(device)

    def update_named_params(self, metadata: list, named_params: Iterator[tuple[str, torch.Tensor]]) -> None:
        """Notes the weights that would be sent."""
        sent.extend(name for name, _ in named_params)


def main(checkpoint: str, folder: str, url: str | None = None) -> None:
    """Trains and writes."""
    vllm_generation.LLM, vllm_generation.VLLMClient = engine, Client
    _custom_ops._supports_onednn = False  # which packs weights when they are loaded, so that none can be loaded later
    model, tokenizer = load_model(checkpoint, device="cpu")
    host = HostSettings(vllm="server", vllm_url=url) if url else HostSettings(vllm="colocate")
    settings = GrpoSettings(steps=1 if url else 2, prompts=2, group=3, temperature=0.9, host=host)
    sampled, logs = [], []

    def on_step(log: dict[str, Any]) -> None:
        logs.append(log)
        with torch.no_grad():
            model.lm_head.weight.mul_(2.0 if len(logs) == 1 else 1.0)

    train_grpo(
        model,
        BoardPlay(TextCodec(tokenizer, TextSettings(max_tokens=12)), 8),
        list(tasks()[: settings.boards]),
        settings,
        seed=0,
        scratch=Path(folder) / "scratch",
        on_step=on_step,
        on_answers=sampled.extend,
    )
    groups = [{"board": group.key, "answers": group.answers, "log_probs": group.log_probs} for group in sampled]
    (Path(folder) / "sampled.json").write_bytes(msgspec.json.encode({"groups": groups, "logs": logs, "sent": sent}))
    save_checkpoint(Path(folder) / "trained", model, tokenizer)


if __name__ == "__main__":
    main(*sys.argv[1:])
