"""What a device takes on at once, by the free memory of a GPU or constants of a CPU, and what is said if it is full."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from lakewright.policy.inference import naming_full_memory
from lakewright.policy.inference.device_limits import ANSWERS_ON_CPU, fit_answers, fit_rows, should_share_prefix
from lakewright.policy.inference.step_graph import ROOM, StepGraph
from tests.support.refusals import refused

GB = 10**9
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def model_on(device: torch.device, parameters: int = 135_000_000) -> SimpleNamespace:
    """What is asked of a model: SmolLM2's shape."""
    shape = {"num_hidden_layers": 30, "num_key_value_heads": 3, "num_attention_heads": 9, "head_dim": 64}
    config = SimpleNamespace(**shape, vocab_size=49152, hidden_size=576)
    return SimpleNamespace(device=device, config=config, dtype=torch.float32, num_parameters=lambda: parameters)


@pytest.fixture
def free(monkeypatch):
    """A GPU with this much free memory."""

    def set_free(size: int) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (size, 80 * GB))
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 * GB)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 * GB)

    return set_free


def test_rows_fill_half_of_the_free_memory_and_what_torch_has_freed(free):
    free(8 * GB)
    assert fit_rows(GPU, GB // 10, on_cpu=7) == 50
    assert fit_rows(GPU, GB // 10, on_cpu=7, most=20) == 20
    assert fit_rows(GPU, 100 * GB, on_cpu=7) == 1
    assert fit_rows(CPU, 100 * GB, on_cpu=7) == 7


def test_answers_are_decoded_together_as_memory_allows(free):
    assert fit_answers(model_on(CPU), 46, 36, 1) == ANSWERS_ON_CPU
    free(78 * GB)
    short, long = (fit_answers(model_on(GPU), 46, answer, 1) for answer in (36, 8192))
    assert short == 4096
    assert 50 < long < 200
    assert fit_answers(model_on(GPU), 4096, 36, 16) > fit_answers(model_on(GPU), 4096, 36, 1), "groups share a prompt"


def test_a_common_beginning_is_read_once_on_a_cpu_and_on_a_gpu_only_if_it_is_long():
    assert should_share_prefix(model_on(CPU), 4, 4 * 16)
    assert not should_share_prefix(model_on(CPU), 3, 3 * 16)
    assert not should_share_prefix(model_on(GPU), 25, 25 * 128)
    assert should_share_prefix(model_on(GPU, 4_000_000_000), 500, 500 * 64)


def test_a_full_gpu_is_one_line_with_the_setting():
    torch_says = "CUDA out of memory. Tried to allocate 3.38 GiB. GPU 0 has a total capacity of 139.80 GiB"
    with (
        refused("stage 2", "3.38 GiB", "continues", "set grpo.host.micro_batch=4") as told,
        naming_full_memory("stage 2", lambda: ["set grpo.host.micro_batch=4"]),
    ):
        raise torch.OutOfMemoryError(torch_says)
    assert "\n" not in str(told.value)


def test_a_full_gpu_is_one_line_without_a_setting_where_none_has_an_effect():
    with (
        refused("validation", "no room left", "GPU", "continues"),
        naming_full_memory("validation"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory")


UNUSABLE = {
    "CUDA error: out of memory": (torch.AcceleratorError, "memory of the GPU is full"),
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`": (RuntimeError, "GPU is full"),
    "CUDA error: CUDA-capable device(s) is/are busy or unavailable": (torch.AcceleratorError, "GPU is busy"),
}


@pytest.mark.parametrize("torch_says", UNUSABLE)
def test_a_gpu_that_takes_no_other_process_is_one_line(torch_says):
    kind, told = UNUSABLE[torch_says]
    with refused("stage 2", told, "end what else uses the GPU"), naming_full_memory("stage 2"):
        raise kind(torch_says + "\nCUDA kernel errors might be asynchronously reported at some other API call")


def test_a_full_gpu_is_named_also_if_what_follows_it_says_something_else():
    with refused("stage 2", "2.00 GiB"), naming_full_memory("stage 2"):
        try:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        finally:
            raise torch.AcceleratorError("CUDA error: operation failed due to a previous error during capture")


class Graph:
    """A CUDA graph whose end says only that it failed."""

    failed = False

    def capture_begin(self, **_) -> None:
        pass

    def capture_end(self) -> None:
        if Graph.failed:
            raise torch.AcceleratorError("CUDA error: operation failed due to a previous error during capture")


@pytest.fixture
def recording(free, monkeypatch):
    """A GPU that records, with this much free memory; and how often torch's own was given back."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    emptied = []
    fakes = {"CUDAGraph": Graph, "Stream": lambda _: stream, "current_stream": lambda _: stream}
    fakes |= {"stream": lambda _: nullcontext(), "empty_cache": lambda: emptied.append(True)}
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(Graph, "failed", False)
    return free, emptied


def fail(message: str, kind: type[RuntimeError]) -> torch.Tensor:
    Graph.failed = True
    raise kind(message)


def test_a_step_is_recorded_only_if_the_gpu_has_room(recording):
    free, emptied = recording
    free(ROOM)
    assert StepGraph.record(lambda: torch.zeros(1), GPU)
    assert not emptied
    free(ROOM - 1)
    assert StepGraph.record(lambda: 1 / 0, GPU) is None, "the step is not run"
    assert emptied


def test_a_recording_that_fills_the_gpu_is_given_up_and_another_error_is_told(recording):
    free, _ = recording
    free(2 * ROOM)
    assert StepGraph.record(lambda: fail("CUDA out of memory", torch.OutOfMemoryError), GPU) is None
    with pytest.raises(torch.AcceleratorError, match="device-side assert"):
        StepGraph.record(lambda: fail("CUDA error: device-side assert", torch.AcceleratorError), GPU)


def test_other_errors_of_a_gpu_are_not_taken_for_a_full_one():
    with pytest.raises(RuntimeError, match="device-side assert"), naming_full_memory("stage 2"):
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")
