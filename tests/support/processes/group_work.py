"""Tasks for a placement group of two bundles: they call functions in the other one, which may die."""

import os
import signal
from pathlib import Path

from lakewright.experiments.jobs.executors.ray_group import find_group


def ask_nodes(_: object) -> list[str]:
    """The node of each bundle of this task's placement group."""
    group = find_group()
    return [node_of(), *group.results([group.submit(place, node_of) for place in range(1, group.count)])]


def node_of() -> str:
    """The node of this process in a Ray cluster."""
    import ray

    return ray.get_runtime_context().get_node_id()


def die_once(marker: Path) -> str:
    """The answer of another bundle, whose worker dies the first time."""
    group = find_group()
    return group.results([group.submit(1, _die_unless, marker)])[0]


def die_always(folder: Path) -> str:
    """As `die_once`, but its worker dies every time."""
    return die_once(folder / "never" / "written")


def _die_unless(marker: Path) -> str:
    if marker.exists():
        return "alive"
    if marker.parent.exists():
        marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return ""
