"""A CUDA graph of one step: thousands of small kernels, recorded once and then started together.

A processor core starts a kernel in some ten microseconds, of which a decoded token of a small language model takes a
thousand; replayed as a graph they follow each other at the GPU's own speed.
"""

import contextlib
from collections.abc import Callable
from typing import Self

import torch

from lakewright.policy.inference.device_limits import describe_full_memory

ROOM = 1 << 32  # bytes of the GPU that must be free, beyond what torch holds, before a step is recorded


def uses_graphs(device: torch.device) -> bool:
    """Return True if steps on a device are recorded."""
    return device.type == "cuda"


class StepGraph:
    """The kernels of a function. It is called once, and nothing is computed in that call. See `record`.

    Args:
        step: takes no arguments and works on tensors at fixed addresses; it must not wait for the GPU. A similar call
            must have run before, because a kernel cannot be loaded while one is recorded.
        device: the GPU.
        beside: another recording, whose memory this one may use: results of one must be used before the other
            is replayed.
    """

    def __init__(
        self, step: Callable[[], torch.Tensor], device: torch.device, beside: "StepGraph | None" = None
    ) -> None:
        self._graph = torch.cuda.CUDAGraph()
        pool = beside._graph.pool() if beside else None
        current, recording = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        recording.wait_stream(current)
        with torch.cuda.stream(recording):
            # Not `torch.cuda.graph`, which gives up all memory that torch holds, at every recording.
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self._made = step()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # that the recording failed, as the first error says better
                    self._graph.capture_end()
                raise
            self._graph.capture_end()
        current.wait_stream(recording)

    @classmethod
    def record(
        cls,
        step: Callable[[], torch.Tensor],
        device: torch.device,
        beside: "StepGraph | None" = None,
        whole: bool = False,
    ) -> Self | None:
        """Return the recording of a step; None if the GPU has no room for it.

        Args:
            step, device, beside: see `StepGraph`.
            whole: whether the step may take most of the memory.
        """
        # A recording has memory of its own, for which torch gives up nothing that it has freed but still holds.
        if whole or torch.cuda.mem_get_info(device)[0] < ROOM:
            torch.cuda.empty_cache()
        if torch.cuda.mem_get_info(device)[0] < ROOM:
            return None
        try:
            return cls(step, device, beside)
        except RuntimeError as error:
            if not describe_full_memory(error):
                raise
            return None

    def replay(self) -> torch.Tensor:
        """Run the step, and return what it makes: the same memory at each call."""
        self._graph.replay()
        return self._made
