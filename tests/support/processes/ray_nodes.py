"""A Ray cluster of several nodes on this machine, of which a test may kill any."""

import random
from typing import Any, Self

from ray.cluster_utils import Cluster


class Nodes:
    """A head that does no work, and nodes of one core each."""

    def __init__(self, count: int, seed: int) -> None:
        self._cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        self._nodes: list[Any] = [self._cluster.add_node(num_cpus=1) for _ in range(count)]
        self._random = random.Random(seed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._cluster.shutdown()

    @property
    def address(self) -> str:
        """What RAY_ADDRESS is to be."""
        return self._cluster.address

    def kill_one(self) -> None:
        """Kills one with all that it works on, and adds another."""
        self._replace(self._random.randrange(len(self._nodes)))

    def _replace(self, place: int) -> None:
        lost = self._nodes.pop(place)
        self._cluster.remove_node(lost, allow_graceful=False)
        self._nodes.append(self._cluster.add_node(num_cpus=1))

    def kill_head(self) -> None:
        """Kills the head, and with it the cluster."""
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)
