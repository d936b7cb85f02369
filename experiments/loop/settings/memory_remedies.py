"""Settings that lower the memory of a phase of a run, for the doctor and for the error of a full GPU.

Each has an effect: its value differs from the present one, and neither the model nor another setting excludes it. A
small model, of tokens or bytes, reads a prompt once for all its answers; with checkpointing or an adapter it would not.
"""

from collections.abc import Callable, Iterator

from lakewright.experiments.loop.settings.run_settings import RunSettings

FEW_ANSWERS = 16  # of a language model, decoded together: in place of as many as fit into half of the free memory
SHARDED = ("zero3", "fsdp1", "fsdp2")  # configs of `launch` that exclude an adapter


def list_remedies(settings: RunSettings, *phases: str) -> list[str]:
    """Changes of settings, such as "set warmup.batch=32", each of which lowers the memory of one of the phases.

    phases: by their names in an estimate, or "scores", the rollouts of a sampler, or "trial".
    """
    return list(dict.fromkeys(remedy for phase in phases for remedy in PHASES[phase](settings)))


def _shrink_warmup(settings: RunSettings) -> Iterator[str]:
    if settings.warmup.steps and settings.warmup.batch > 1:
        yield f"set warmup.batch={settings.warmup.batch // 2}"


def _shrink_update(settings: RunSettings) -> Iterator[str]:
    grpo, host = settings.grpo, settings.grpo.host
    if settings.codec == "text" and not host.checkpointing:
        yield "set grpo.host.checkpointing=true"
    share = grpo.prompts * grpo.group // settings.launch.processes
    most = (host.micro_batch or share) // 2
    if smaller := next((count for count in range(most, 0, -1) if share % count == 0), 0):
        yield f"set grpo.host.micro_batch={smaller}"
    yield from _suggest_adapter(settings)


def _shrink_sampling(settings: RunSettings) -> Iterator[str]:
    host, processes = settings.grpo.host, settings.launch.processes
    if host.vllm == "colocate":
        yield f"set grpo.host.vllm_memory={host.vllm_memory / 2:g}"
    elif host.vllm == "off":
        yield from _shrink_answers(settings)
        if settings.codec != "text" and settings.grpo.prompts > processes:
            yield "lower grpo.prompts"
    yield from _suggest_adapter(settings)


def _shrink_validation(settings: RunSettings) -> Iterator[str]:
    yield from _shrink_answers(settings)
    if settings.codec != "text" and settings.validation.boards > 1:
        yield "lower validation.boards"


def _shrink_answers(settings: RunSettings) -> Iterator[str]:
    """Of a language model; other codecs decode a fixed number together, and vLLM as many as fit."""
    if settings.codec == "text" and settings.text.decoder == "own" and settings.text.batch != 1:
        yield f"set text.batch={settings.text.batch // 2 or FEW_ANSWERS}"


def _shrink_engineer(settings: RunSettings) -> Iterator[str]:
    if settings.asked != "self_trained":
        return
    yield from _suggest_adapter(settings)
    yield "lower evidence.budget" if settings.codec == "text" else "lower engineer.group"


def _shrink_trial(settings: RunSettings) -> Iterator[str]:
    if settings.trial.enabled:
        yield "lower trial.boards"
        yield from _shrink_answers(settings)


def _suggest_adapter(settings: RunSettings) -> Iterator[str]:
    excluded = settings.warmup.steps or settings.launch.config in SHARDED
    if settings.codec == "text" and not settings.grpo.host.lora and not excluded:
        yield "train an adapter: grpo.host.lora.rank=32"


PHASES: dict[str, Callable[[RunSettings], Iterator[str]]] = {
    "warm-up": _shrink_warmup,
    "scores": _shrink_answers,
    "sampling": _shrink_sampling,
    "update": _shrink_update,
    "validation": _shrink_validation,
    "engineer": _shrink_engineer,
    "trial": _shrink_trial,
}
