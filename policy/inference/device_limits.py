"""The limits of a device by its memory and speed: answers that are decoded or read together, and whether what prompts
have in common is read in a pass of its own.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakewright.core_jax.errors import InputError

if TYPE_CHECKING:  # an estimate needs the arithmetic, and loads neither torch nor transformers
    import torch
    from transformers import PreTrainedModel

MEMORY_SHARE = 0.5  # of the free memory of a GPU that one batch may take
SCORES = (
    4  # arrays of float32 as large as the scores of the next token: scores, probabilities, and what draws from them
)
ANSWERS_ON_CPU = 16  # answers that a CPU decodes together, whose speed hardly depends on it
MOST_ANSWERS = 4096  # answers that a GPU decodes together: with more no step is faster for each of them
LEAST_SHARED = 4  # tokens that a CPU reads once rather than for each row; it waits for no kernel to start
OPERATIONS = 160  # of a layer in a forward and a backward pass, and their
START = 3e-5  # seconds until an operation has started, as measured beside an H200, and
SPEED = 2e14  # operations of bfloat16 in a second: half of what an H100 does at best
BUSY = "the GPU is busy or unavailable"
UNUSABLE = re.compile("out of memory|STATUS_ALLOC_FAILED|busy or unavailable")  # in errors of CUDA and its libraries


def count_free_bytes(device: "torch.device") -> int:
    """Return the memory of a GPU that nothing holds, with torch's freed memory."""
    import torch

    free, _ = torch.cuda.mem_get_info(device)
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def fit_rows(device: "torch.device", bytes_each: int, on_cpu: int, most: int = MOST_ANSWERS) -> int:
    """Return how many rows to process together: as many as fit into half of a GPU's free memory.

    Args:
        device: the model's device.
        bytes_each: bytes of a row.
        on_cpu: the answer for a CPU.
        most: the most rows on a GPU.
    """
    if device.type != "cuda":
        return on_cpu
    return max(1, min(most, int(MEMORY_SHARE * count_free_bytes(device)) // bytes_each))


def fit_answers(model: "PreTrainedModel", prompt: int, answer: int, copies: int) -> int:
    """Return how many answers are decoded together.

    Args:
        model: the policy.
        prompt, answer: tokens of the longest.
        copies: answers to each prompt, which share its keys and values.
    """
    if model.device.type != "cuda":
        return ANSWERS_ON_CPU
    return fit_rows(model.device, answer_bytes(model, prompt, answer, copies), ANSWERS_ON_CPU)


def answer_bytes(model: "PreTrainedModel", prompt: int, answer: int, copies: int) -> int:
    """Return the memory of one of the answers that are decoded together.

    Args: model, prompt, answer, copies: see `fit_answers`.
    """
    config: Any = model.config
    heads: int = getattr(config, "num_key_value_heads", 0) or getattr(config, "num_attention_heads", 1)
    width: int = getattr(config, "head_dim", 0) or getattr(config, "hidden_size", 1) // heads
    pairs = 2 * getattr(config, "num_hidden_layers", 1) * heads * width * model.dtype.itemsize
    return count_answer_bytes(pairs, config.vocab_size, prompt, answer, copies)


def count_answer_bytes(pairs: int, words: int, prompt: int, answer: int, copies: int) -> int:
    """Like `answer_bytes`, by arithmetic.

    Args:
        pairs: bytes of the keys and values of a token.
        words: the vocabulary's words.
        prompt, answer, copies: see `fit_answers`.
    """
    return pairs * (answer + prompt // copies) + SCORES * 4 * words


def describe_full_memory(error: BaseException) -> str:
    """Return a line that says that a GPU has too little memory or takes no process; empty after any other error.

    It may have been raised while another was handled: what ends a failed recording says nothing of memory.
    """
    seen: BaseException | None = error
    while seen is not None:
        # Only some are torch.OutOfMemoryError; CUDA and its libraries raise others.
        if isinstance(seen, RuntimeError) and (found := UNUSABLE.search(str(seen))):
            wanted = re.search(r"Tried to allocate [\d.]+ \w+", str(seen))
            problem = wanted[0].replace("Tried to allocate", "no room for another") if wanted else "no room left"
            busy = found[0].startswith("busy")
            return BUSY if busy else f"the memory of the GPU is full ({problem})"
        seen = seen.__cause__ or seen.__context__
    return ""


def training_bytes(model: "PreTrainedModel", number: int, read: int, scored: int) -> int:
    """Return the memory of a row in a forward and a backward pass, about: what layers save, and scores of all words.

    Args:
        model: Qwen3 or Llama.
        number: bytes of a number in its products; numbers of 2 bytes are rounded, and some are saved before, too.
        read, scored: tokens of the row that are read, and those that have scores.
    """
    config: Any = model.config
    heads = config.num_attention_heads
    attention = heads * (getattr(config, "head_dim", 0) or config.hidden_size // heads)
    layer = count_layer_bytes(config.hidden_size, attention, config.intermediate_size, number)
    return read * config.num_hidden_layers * layer + SCORES * 4 * scored * config.vocab_size


def count_layer_bytes(width: int, attention: int, mlp: int, number: int) -> int:
    """Return what a layer saves of a token for the backward pass, in bytes, about.

    Args:
        width, attention, mlp: the sizes of a state, of all heads together, and of the inner layer.
        number: see `training_bytes`.
    """
    rounded = (4 * width + 16 * attention) * (number == 2)
    return (6 * width + 8 * attention + 4 * mlp) * number + rounded


@contextmanager
def naming_full_memory(work: str, find_remedies: Callable[[], Sequence[str]] = tuple) -> Iterator[None]:
    """Raise InputError in place of torch's error if a GPU has too little memory for the block, or takes no process.

    Args:
        work: the name of the block's work.
        find_remedies: gives changes of settings that have an effect, such as "set warmup.batch=32"; a folder with other
            settings is another run.
    """
    try:
        yield
    except RuntimeError as error:
        if not (state := describe_full_memory(error)):
            raise
        suggested = "" if state == BUSY else ", or ".join(find_remedies())
        changed = f", or in a new folder {suggested}" if suggested else ""
        raise InputError(
            f"{work}: {state}; end what else uses the GPU and give the same command, which continues from the saved "
            f"state{changed}"
        ) from error


def should_share_prefix(model: "PreTrainedModel", shared: int, saved: int) -> bool:
    """Return True if the common beginning of prompts should be read in a pass of its own.

    On a GPU the pass costs the time of starting its kernels, and saves the operations of the tokens.

    Args:
        model: the model under training.
        shared: number of tokens that prompts have in common.
        saved: number of tokens that need not be read again.
    """
    if model.device.type != "cuda":
        return shared >= LEAST_SHARED
    starting = OPERATIONS * getattr(model.config, "num_hidden_layers", 1) * START
    return saved * 6 * model.num_parameters() / SPEED > starting
