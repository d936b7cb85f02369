"""Damage to the tensors of a safetensors file, which stays a whole and readable file."""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

Tensors = dict[str, torch.Tensor]
Damage = Callable[[Tensors], object]


def damage_file(file: Path, damage: Damage) -> None:
    """Changes the tensors of a file in place; its metadata stays."""
    with safe_open(file, "pt") as opened:
        tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118 - no dictionary
        metadata = opened.metadata()
    damage(tensors)
    save_file(tensors, file, metadata)


def damage_copy(folder: Path, to: Path, damage: Damage, file: str = "model.safetensors") -> Path:
    """A copy of a model folder with damaged weights."""
    shutil.copytree(folder, to)
    damage_file(to / file, damage)
    return to


def drop(name: str) -> Damage:
    """Removes a tensor."""
    return lambda tensors: tensors.pop(name)


def put(name: str, tensor: torch.Tensor) -> Damage:
    """Adds or replaces a tensor."""
    return lambda tensors: tensors.update({name: tensor})


def poison(name: str, value: float) -> Damage:
    """Replaces the last number of a tensor."""
    return lambda tensors: tensors[name].view(-1)[-1:].fill_(value)
