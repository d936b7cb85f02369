"""The device of a model: the GPU if there is one that torch can use, and if not, why."""

import contextlib
import os
import shutil
import subprocess
import warnings
from typing import Literal, cast

import torch
from transformers import PreTrainedModel

from lakewright.core_jax.errors import InputError

PATIENCE = 30.0  # seconds to wait for NVIDIA's tool


def has_gpu() -> bool:
    """Return True if torch can use a GPU; without torch's warning of several lines, see `explain_no_gpu`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.cuda.is_available()


def resolve_device(device: str) -> Literal["cpu", "cuda"]:
    """Return where a model is placed: `auto` and `cuda` are the GPU if there is one, see `check_device`."""
    return "cuda" if device != "cpu" and has_gpu() else "cpu"


def place_on_device(device: str, model: PreTrainedModel) -> PreTrainedModel:
    """Return the model, on the GPU if there is one and `device` allows it."""
    if resolve_device(device) == "cuda":
        cast(torch.nn.Module, model).cuda()
    return model


def check_device(device: str) -> None:
    """Raise InputError, with the reason, if CUDA is requested but isn't available."""
    if device == "cuda" and not has_gpu():
        found, change = explain_no_gpu(torch.version.cuda, find_driver())
        raise InputError(
            f"device is cuda, but torch has no CUDA device ({found}); choose cpu or auto, or {change}; "
            "`lakewright doctor` checks the rest"
        )


def explain_fallback(device: str) -> str:
    """Return a line that says why `auto` is the CPU on a machine with NVIDIA's driver; empty if it isn't, or hidden."""
    if device != "auto" or "CUDA_VISIBLE_DEVICES" in os.environ or has_gpu() or not (driver := find_driver()):
        return ""
    found, change = explain_no_gpu(torch.version.cuda, driver)
    return f"device is auto, which is the CPU here ({found}); to use the GPU, {change}"


def explain_no_gpu(cuda: str | None, driver: str | None) -> tuple[str, str]:
    """Return why torch has no GPU, and what to do about it.

    cuda, driver: versions of the CUDA that torch was built with and of NVIDIA's driver, None if missing.
    """
    if cuda is None:
        return "torch was built without CUDA", "pip install --force-reinstall torch, of a build with CUDA"
    if driver is None:
        return f"torch needs CUDA {cuda}, but no driver is installed", "install NVIDIA's driver"
    change = f"take a driver that serves CUDA {cuda}, or an older build of torch"
    return f"driver {driver}, torch with CUDA {cuda}", change


def find_driver() -> str | None:
    """Return the version of NVIDIA's driver by its own tool, because torch cannot tell whether the two fit."""
    program = shutil.which("nvidia-smi")
    if not program:
        return None
    words = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return answer.stdout.split("\n")[0].strip() or None if answer.returncode == 0 else None
    return None
