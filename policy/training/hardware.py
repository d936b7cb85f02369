"""The use of machines in training: precision, adapters, vLLM, several processes, and reports to other tools."""

import importlib.util
import os
from pathlib import Path
from typing import Any, cast

from transformers import PreTrainedModel

from lakewright.core_jax.errors import InputError
from lakewright.policy.inference.sampling import Samples
from lakewright.policy.models.loading import read_model
from lakewright.policy.training.settings import HostSettings

ROOM = 4096  # tokens of the longest prompt that vLLM keeps room for


def rank_and_processes() -> tuple[int, int]:
    """Return the number of this process, from 0, and how many there are: launchers set both in the environment."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def check_host(settings: HostSettings) -> None:
    """Raise InputError if a setting needs a package that is not installed."""
    if settings.vllm != "off" and not _is_installed("vllm"):
        raise InputError(
            f"grpo.host.vllm is {settings.vllm}, but vLLM is not installed; pip install 'lakewright[vllm]' if there "
            "is a GPU, or set it to off"
        )
    if settings.lora and not _is_installed("peft"):
        raise InputError("grpo.host.lora is set, but peft is not installed; pip install 'lakewright[lora]'")
    if settings.report_to != "none" and not _is_installed(settings.report_to):
        name = settings.report_to
        raise InputError(
            f"grpo.host.report_to is {name}, which is not installed; pip install {name}, or set it to none"
        )


def share_batch(prompts: int, group: int, settings: HostSettings) -> dict[str, Any]:
    """Return TRL's batch sizes for `prompts` groups a step, whole groups in each process.

    Raises InputError if they cannot be divided evenly.
    """
    _, processes = rank_and_processes()
    if prompts % processes:
        raise InputError(f"grpo.prompts is {prompts}, not a multiple of {processes} processes; make it a multiple")
    share = prompts * group // processes
    micro = settings.micro_batch or share
    if share % micro:
        raise InputError(
            f"grpo.host.micro_batch is {micro}, not a divisor of the {share} answers of a process; make it a divisor"
        )
    return {
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": share // micro,
        "generation_batch_size": prompts * group,
    }


def build_host_arguments(settings: HostSettings, length: int, autocast: bool = False) -> dict[str, Any]:
    """Return TRL's arguments for a host.

    `length` is the longest answer's length, in tokens; `autocast` computes in bfloat16.
    """
    given: dict[str, Any] = {
        "bf16": settings.bf16 or autocast,
        "activation_checkpointing": settings.checkpointing,
        "report_to": settings.report_to,
    }
    if settings.vllm != "off":
        given |= {"use_vllm": True, "vllm_mode": settings.vllm, "vllm_max_model_length": length + ROOM}
    if settings.vllm == "colocate":
        given |= {"vllm_gpu_memory_utilization": settings.vllm_memory, "vllm_enable_sleep_mode": True}
    if settings.vllm == "server":
        given["vllm_server_base_url"] = settings.vllm_url
    return given


def build_adapter(settings: HostSettings) -> Any:
    """Return peft's config of the adapter; None if the settings ask for no adapter."""
    if not settings.lora:
        return None
    from peft import LoraConfig

    lora = settings.lora
    return LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM")


def prepare_training(model: PreTrainedModel, settings: HostSettings) -> PreTrainedModel:
    """Return the model as one process trains it: with an adapter, and with activations that are computed again."""
    if settings.checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    if not settings.lora:
        return model
    from peft import get_peft_model

    return cast(PreTrainedModel, get_peft_model(model, build_adapter(settings)))


def merge_adapter(model: Any, settings: HostSettings) -> PreTrainedModel:
    """Return the model with its adapter, if it has one, merged into the weights."""
    return model.merge_and_unload() if settings.lora else model


def is_split(trainer: Any) -> bool:
    """Return True if optimizers see pieces of the weights: FSDP, or any ZeRO."""
    return bool(trainer.is_fsdp_enabled or trainer.accelerator.state.deepspeed_plugin is not None)


def is_sharded(trainer: Any) -> bool:
    """Return True if no process holds all weights: FSDP, or ZeRO 3."""
    plugin = trainer.accelerator.state.deepspeed_plugin
    return bool(trainer.is_fsdp_enabled or (plugin is not None and plugin.zero_stage == 3))


def gather_model(trainer: Any, scratch: Path, settings: HostSettings) -> PreTrainedModel:
    """Return the trained model with all its weights, an adapter merged into it.

    Sharded weights are gathered in the folder `scratch`, and only the first process returns the whole model.
    """
    if is_sharded(trainer):
        trainer.save_model(str(scratch))
        if not trainer.accelerator.is_main_process:
            return cast(PreTrainedModel, trainer.model)
        return read_model(scratch)
    return merge_adapter(trainer.accelerator.unwrap_model(trainer.model), settings)


class TrainerAnswers:
    """The answers of the vLLM of a trainer (TRL's), in its process or behind a server: an `AnswerSampler`.

    trainer: has sent its weights, and was given the temperature and length of answers.
    """

    def __init__(self, trainer: Any) -> None:
        self._generation = trainer.vllm_generation

    def sample(self, prompts: list[list[int]], *, copies: int = 1, **_: Any) -> Samples:
        """See `AnswerSampler`: always with log-probabilities. Every process must call it equally often."""
        repeated = [prompt for prompt in prompts for _ in range(copies)]
        made = self._generation.generate(prompts=repeated, images=None, num_generations=copies)
        _, answers, scores, _ = made
        return Samples(answers, [[score[0] for score in row] for row in scores])


def _is_installed(package: str) -> bool:
    """Return True if a package can be imported."""
    return importlib.util.find_spec(package) is not None
