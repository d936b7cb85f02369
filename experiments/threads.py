"""How many threads torch may use."""

import os

import psutil
import torch


def use_free_cores() -> None:
    """Gives torch as many threads as cores are idle now, at least one; OMP_NUM_THREADS, where set, is left in charge.

    Threads that share a core with other work wait for each other at every operation: with one busy core of two, a GRPO
    step took 2 times as long on two threads as on one.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    cores = len(os.sched_getaffinity(0))
    idle = 1 - psutil.cpu_percent(interval=1.0) / 100
    torch.set_num_threads(max(1, round(cores * idle)))
