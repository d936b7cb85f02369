"""Names of codecs, and settings of the prompts and answers of language models."""

from typing import Literal

import msgspec

from lakewright.core_jax.support import Count, Natural

CodecName = Literal["tokens", "text", "bytes"]
PromptForm = Literal["full", "compact"]


class TextSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the prompts and answers of language models."""

    max_tokens: Count = 4096
    """Most tokens of an answer, its reasoning included."""
    thinking: bool = True
    """Whether to think first, for models whose chat template has the choice."""
    batch: Natural = 0
    """Answers that one process decodes together; 0: as many as a GPU's memory holds, or 16 on a CPU."""
    decoder: Literal["own", "vllm"] = "own"
    """What decodes the answers outside updates, such as in validations, trials and by the engineer: this package, or
    vLLM, for long answers of large models on a GPU. For the answers that a stage trains on, see `grpo.host.vllm`."""
    prompt: PromptForm = "full"
    """A prompt that explains the task, or a short prompt for small models trained on it: see
    policy.codecs.text_prompt."""
