"""A CUDA graph of one step: thousands of small kernels, recorded once and then started together.

A processor core starts a kernel in some ten microseconds, of which a decoded token of a small language model takes a
thousand; replayed as a graph they follow each other at the GPU's own speed.
"""

from collections.abc import Callable

import torch

ROOM = 1 << 32  # bytes of the GPU that must be free, beyond what torch holds, before a step is recorded


def uses_graphs(device: torch.device) -> bool:
    """Return True if steps on a device are recorded."""
    return device.type == "cuda"


class StepGraph:
    """The kernels of a function. It is called once, and nothing is computed in that call.

    Args:
        step: takes no arguments and works on tensors at fixed addresses; it must not wait for the GPU. A similar call
            must have run before, because a kernel cannot be loaded while one is recorded.
        device: the GPU.
        beside: another recording, whose memory this one may use: results of one must be used before the other
            is replayed.
        whole: whether the step may take most of the memory.
    """

    def __init__(
        self,
        step: Callable[[], torch.Tensor],
        device: torch.device,
        beside: "StepGraph | None" = None,
        whole: bool = False,
    ) -> None:
        # A recording has memory of its own, for which torch gives up nothing that it has freed but still holds.
        if whole or torch.cuda.mem_get_info(device)[0] < ROOM:
            torch.cuda.empty_cache()
        self._graph = torch.cuda.CUDAGraph()
        pool = beside._graph.pool() if beside else None
        current, recording = torch.cuda.current_stream(device), torch.cuda.Stream(device)
        recording.wait_stream(current)
        with torch.cuda.stream(recording):
            # Not `torch.cuda.graph`, which gives up all memory that torch holds, at every recording.
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self._made = step()
            finally:
                self._graph.capture_end()
        current.wait_stream(recording)

    def replay(self) -> torch.Tensor:
        """Run the step, and return what it makes: the same memory at each call."""
        self._graph.replay()
        return self._made
