"""Run by the Python of an environment with verifiers: its own loader on boards that are drawn without end."""

from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

CONFIG = taskset_config_type("verifiers-lakewright")
SMALL = {"id": "verifiers-lakewright", "size": 3, "agents": 2, "hole_ratio": 0.2}


def keys(count: int, **changes) -> list[str]:
    """The keys of the first tasks."""
    return [task.key for task in load_taskset(CONFIG(**(SMALL | changes))).take(count)]


taskset = load_taskset(CONFIG(**SMALL))
assert not taskset.bounded
assert taskset.take(3).bounded
assert len(set(keys(40))) == 40, "a board comes twice"
assert keys(40)[:10] == keys(10), "a board depends on how many are asked for"
assert keys(10, seed=1) != keys(10)
print(len(set(keys(40))), "boards")
