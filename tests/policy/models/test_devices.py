"""Where a model is placed, and what is said if torch cannot use a GPU."""

import warnings

import pytest
import torch

from lakewright.policy.models import check_device, devices, explain_fallback, find_driver, resolve_device
from tests.support.refusals import refused

TORCH_SAYS = "CUDA initialization: The NVIDIA driver on your system is too old.\nPlease update your GPU driver"
CAUSES = {
    "a CPU build": (None, "580.65", ["built without CUDA"]),
    "no driver": ("13.0", None, ["CUDA 13.0", "no driver is installed"]),
    "a driver too old": ("13.0", "470.57", ["driver 470.57", "CUDA 13.0", "a driver that serves CUDA 13.0"]),
}


@pytest.fixture
def machine(monkeypatch):
    """A machine without a GPU that torch can use: sets its CUDA and its driver."""

    def refuse() -> bool:
        warnings.warn(TORCH_SAYS, stacklevel=1)
        return False

    def set_versions(cuda: str | None, driver: str | None) -> None:
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(devices, "find_driver", lambda: driver)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", refuse)
    return set_versions


@pytest.mark.parametrize("cause", CAUSES)
def test_a_gpu_that_torch_cannot_use_is_refused_with_the_reason(machine, cause):
    cuda, driver, parts = CAUSES[cause]
    machine(cuda, driver)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with refused("device is cuda", "no CUDA device", *parts):
            check_device("cuda")
        assert resolve_device("auto") == resolve_device("cpu") == "cpu"


def test_a_run_that_may_choose_says_why_it_is_on_the_cpu(machine, monkeypatch):
    machine("13.0", "470.57")
    assert "driver 470.57, torch with CUDA 13.0" in explain_fallback("auto")
    assert explain_fallback("cpu") == ""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert explain_fallback("auto") == "", "its GPUs are hidden on purpose"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    machine("13.0", None)
    assert explain_fallback("auto") == ""


@pytest.mark.parametrize(("code", "expected"), [(0, "470.57"), (9, None)])
def test_the_driver_is_what_its_own_tool_says_unless_that_fails(tmp_path, monkeypatch, code, expected):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho 470.57\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_driver() == expected
