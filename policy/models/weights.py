"""Checks of a model's weights: they fit into memory, all of them were read, and each is a finite number."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from lakewright.core_jax.errors import InputError
from lakewright.policy.models.folders import find_weights_file

FLOAT_BYTES = 4  # of a weight in float32
REMEDY = "take config and weights from one checkpoint, or fetch or train it again"
Mismatch = tuple[str, Sequence[int], Sequence[int]]  # name of a tensor, its shape in the file and in the model


def read_weights(source: str | Path, place: str | Path | None = None, **given: Any) -> PreTrainedModel:
    """Read a causal model and check all of its weights. Raises InputError as `check_weights`.

    Args:
        source: a folder, or a name on the hub.
        place: the name to use in errors instead, such as a GGUF file.
        given: more arguments of transformers.
    """
    # Without these two, transformers fills what is missing with random numbers, and says so in a log at most.
    checked: dict[str, Any] = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    model, report = AutoModelForCausalLM.from_pretrained(str(source), trust_remote_code=False, **checked, **given)
    check_weights(
        source if place is None else place,
        list_tensors(model),
        missing=_drop_tied(model, report["missing_keys"]),
        unexpected=report["unexpected_keys"],
        mismatched=report["mismatched_keys"],
        owner=f"a {model.config.model_type} model",
    )
    return model


def check_weights(
    place: str | Path,
    tensors: Iterable[tuple[str, torch.Tensor]],
    *,
    missing: Collection[str] = (),
    unexpected: Collection[str] = (),
    mismatched: Collection[Mismatch] = (),
    owner: str = "this model",
    remedy: str = REMEDY,
) -> None:
    """Raise InputError, which names file and tensor, unless all weights were read and are finite numbers.

    Args:
        place: the file, or the model folder, that was read.
        tensors: the tensors that were read, by name.
        missing, unexpected: names that the file lacks, and names that only the file has.
        mismatched: tensors whose shapes differ in the file and in the model.
        owner: the thing that the tensors belong to.
        remedy: the advice to the user.
    """

    def describe_problem(name: str, problem: str) -> InputError:
        return InputError(f"{find_weights_file(place, name)}: tensor {name:.100}{problem}; {remedy}")

    if missing:
        raise describe_problem(min(missing), f"{_count_others(missing)} is missing")
    if mismatched:
        name, there, needed = min(mismatched)
        more = _count_others(mismatched)
        raise describe_problem(name, f"{more} has shape {[*there]}, the model needs {[*needed]}")
    if unexpected:
        raise describe_problem(min(unexpected), f"{_count_others(unexpected)} is not one of {owner}")
    for name, tensor in tensors:
        value = _find_non_finite(tensor)
        if value is not None:
            raise describe_problem(name, f" holds {value}")


def list_tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return parameters and saved buffers by name, a shared one once. Buffers that are computed are not saved."""
    saved = {id(tensor): (name, tensor) for name, tensor in reversed(model.state_dict(keep_vars=True).items())}
    return list(saved.values())


def compare_shapes(there: Mapping[str, Sequence[int]], needed: Mapping[str, Sequence[int]]) -> list[Mismatch]:
    """Return the tensors that are in both, by name, and whose shapes differ."""
    both = [(name, list(there[name]), list(shape)) for name, shape in needed.items() if name in there]
    return [(name, found, wanted) for name, found, wanted in both if found != wanted]


def _drop_tied(model: PreTrainedModel, missing: Collection[str]) -> list[str]:
    """Return the missing names without those that are missing only because the tensor that they share is."""
    shared: dict[str, str] = getattr(model, "all_tied_weights_keys", None) or {}
    return [name for name in missing if shared.get(name) not in missing]


@torch.no_grad()
def _find_non_finite(tensor: torch.Tensor) -> float | None:
    """Return a number of the tensor that is not finite; None if missing."""
    if not tensor.is_floating_point() or not tensor.numel() or tensor.is_meta:
        return None  # packed numbers of a quantised model, or weights that another process holds
    # The ends take one pass without memory, and are nan if any number is. Floats of one byte have no such function.
    ends = torch.aminmax(tensor if tensor.itemsize > 1 else tensor.float())
    return next((end.item() for end in ends if not math.isfinite(end.item())), None)


def _count_others(names: Collection[Any]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def check_weight_memory(place: str, weights: int, each: float = FLOAT_BYTES) -> None:
    """Raise InputError if `weights` weights of `each` bytes are more than the memory of this machine."""
    there = psutil.virtual_memory().total
    if weights * each > there:
        raise InputError(
            f"{place}: {weights:,} weights take {weights * each / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB; choose a smaller model"
        )
