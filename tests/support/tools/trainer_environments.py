"""Environments with the packages of other trainers, whose dependencies clash with ours."""

from pathlib import Path

from tests.support.tools.own_environments import installed_here, own_environment

VERSIONS = {"verifiers": "0.4.0", "openenv": "0.10.0"}  # as in tests/experiments/boards/gym/test_guests.py
VERL = [
    *("verl==0.9.1", "tensordict==0.10.0", "torchdata==0.11.0", "aiohttp==3.13.2"),
    *("TransferQueue==0.1.11", "cachetools==8.0.2", "fastapi==0.165.0"),
]
NOT_CALLED = {"accelerate", "peft", "pylatexenc", "pybind11"}  # of what verl asks for


def make_python(name: str) -> Path:
    """The Python of an environment with a package; of what verl asks for, ours is used where we have it."""
    if name == "verl":
        asked = {requirement.partition("==")[0] for requirement in VERL}
        return own_environment("verl", *VERL, without=sorted((installed_here() | NOT_CALLED) - asked))
    return own_environment(name, f"{name}=={VERSIONS[name]}")
