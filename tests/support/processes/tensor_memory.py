"""The memory of tensors on the CPU, as torch takes and gives it back."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from torch.profiler import ProfilerActivity, profile


class Peak:
    """The most bytes of tensors that were held at once, beyond those at the beginning."""

    bytes = 0


@contextmanager
def peak_of_tensors() -> Iterator[Peak]:
    """Counts every allocation in the block; the peak is known at its end."""
    found = Peak()
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        yield found
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    assert events, "the profiler saw no memory"
    held = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        found.bytes = max(found.bytes, held)
