"""Tasks of several processes on several nodes of a Ray cluster: a placement group with a bundle for each process.

The task runs in the first bundle. From there it calls functions in the others, such as one that starts a process:

    if group := find_group():
        references = [group.submit(place, function) for place in range(1, group.count)]
"""

import math
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lakewright.experiments.jobs.executors.executor import DIED, NodeLostError, Task, WorkerDiedError
from lakewright.experiments.jobs.executors.node import Home, enter_node, entered

PATIENCE = 30.0  # seconds in which Ray notices that a node is lost
R = TypeVar("R")


class RayGroup:
    """The placement group that this process works in, as a task in the first bundle. count: its bundles."""

    def __init__(self, ray: Any, group: Any) -> None:
        self._ray, self._group = ray, group
        self.count = int(group.bundle_count)

    @property
    def address(self) -> str:
        """The address of this node, as the other nodes know it."""
        return self._ray.util.get_node_ip_address()

    def submit(self, place: int, function: Callable[..., R], *items: object) -> Any:
        """The reference to the result of `function(*items)` in the bundle of this place, which it takes whole."""
        bundle = {"CPU": 0, "GPU": 0, "memory": 0} | self._group.bundle_specs[place]
        takes = {"num_cpus": bundle["CPU"], "num_gpus": bundle["GPU"], "memory": bundle["memory"] or None}
        call = self._ray.remote(max_retries=0, **takes)(_call_entered)
        return call.options(scheduling_strategy=place_in(self._group, place)).remote(entered(), function, items)

    def results(self, references: Sequence[Any], patience: float | None = None) -> list[Any]:
        """The results so far, in any order. patience: seconds to wait for all of them; None: until all are.

        Raises what a function raised, NodeLostError if its node is gone, and WorkerDiedError.
        """
        errors = self._ray.exceptions
        done, _ = self._ray.wait(list(references), num_returns=len(references), timeout=patience)
        try:
            return self._ray.get(done)
        except errors.RayTaskError as error:
            raise error.cause from error
        except errors.NodeDiedError as error:
            raise NodeLostError("a node with a process of this task is lost") from error
        except errors.RayError as error:
            raise WorkerDiedError(DIED) from error

    def cancel(self, references: Sequence[Any]) -> None:
        """Ends what is not finished."""
        for reference in references:
            self._ray.cancel(reference, force=True)


def find_group() -> RayGroup | None:
    """The group of the task that this process works on, if it has one. Ray is not imported to find out."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return None
    group = ray.util.get_current_placement_group()
    return RayGroup(ray, group) if group else None


def find_port() -> int:
    """A port of this machine that is free now."""
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def _call_entered(home: Home | None, function: Callable[..., R], items: Sequence[object]) -> R:
    if home:
        enter_node(home)
    return function(*items)


def place_in(group: Any, place: int) -> Any:
    """The scheduling strategy of a task in the bundle of this place."""
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    return PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=place)


def divide_task(task: Task) -> dict[str, float]:
    """The part of a task's resources that each of its processes takes: all take the same."""
    cores, gpus = -(-(task.cores or 1) // task.processes), (task.gpus or 0) / task.processes
    return {
        "CPU": cores,
        "GPU": math.ceil(gpus) if gpus > 1 else gpus,  # more than one cannot be shared
        "memory": task.memory // task.processes,
    }


def count_room(nodes: Sequence[Mapping[str, float]], part: Mapping[str, float]) -> int:
    """The number of parts that nodes hold together. nodes: what each has, by the name of the resource."""
    needs = {name: need for name, need in part.items() if need}
    return sum(min(int(node.get(name, 0) / need) for name, need in needs.items()) for node in nodes)
