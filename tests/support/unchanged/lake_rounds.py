"""Four rounds of the lake, in its form on disk, and how outputs are told so that they can be recorded."""

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from lakewright.core_jax.support import convert
from lakewright.engineer.cells import Cell
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import (
    DifficultyModel,
    DifficultySettings,
    HeldOutCell,
    Observation,
)
from lakewright.engineer.evidence import (
    Evidence,
    read_evidence,
)
from lakewright.experiments.loop.records.lake_form import FORMS, from_lake, to_lake
from lakewright.experiments.loop.records.stage_records import DecisionRecord
from tests.support.samples.evidence import RoomyLake

FOLDER = Path(__file__).parents[2] / "engineer" / "lake"
RAW = json.loads((FOLDER / "inputs.json").read_text())
ROUNDS = list(RAW)
FITTED = {"rel": 1e-6, "abs": 2e-6}  # tolerance on what is fitted; values of designs are on a grid of 1e-6
DRAWN = {"abs": 5e-4}
"""The tolerance on what is drawn from a fit. Processors differ in the last digits of a nearly singular covariance, from
whose root `alp_gmm` draws: by 1.4e-4 in a change, between an AMD EPYC and an Intel Xeon."""


class Known(NamedTuple):
    """A round: its evidence, and what its difficulty model is fitted to."""

    evidence: Evidence
    observations: list[Observation]
    held_out: list[HeldOutCell]
    settings: DifficultySettings
    lake: RoomyLake

    @property
    def design(self) -> Design:
        """What the round's boards were drawn from."""
        return self.evidence.design


@functools.cache
def known(name: str) -> Known:
    """A round of `inputs.json`."""
    raw = RAW[name]
    evidence = read_evidence(from_lake(raw["evidence"], Evidence), name)
    lake = RoomyLake(int(evidence.design.given["agents"]), raw["evidence"]["teams"])
    held_out = [convert(from_lake(part, HeldOutCell), HeldOutCell, name) for part in raw["held_out"]]
    settings = convert({"model": "regression", **raw["difficulty"]}, DifficultySettings, name)
    return Known(evidence, [observation(one) for one in raw["observations"]], held_out, settings, lake)


def observation(raw: Mapping[str, Any]) -> Observation:
    size, hole_ratio, forced = raw["cell"]
    cell = Cell(size, (hole_ratio, forced), (raw["agents"],))
    return Observation(cell, *(raw[name] for name in ("groups", "success", "variance", "age")))


def plain(value: Any) -> Any:
    """A record in the lake's form, as JSON values."""
    return json.loads(msgspec.json.encode(to_lake(value)))


def plain_state(state: dict[str, Any]) -> Any:
    """The state of a teacher as a run of the lake records it."""
    return plain(FORMS[DecisionRecord].to_lake({"teacher_state": state}))["teacher_state"]


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def sure(model: DifficultyModel) -> DifficultyModel:
    """The model as if it had no doubt."""
    return msgspec.structs.replace(model, covariance=[[0.0] * len(model.weights) for _ in model.weights])


def label(name: str, options: Mapping[str, Any]) -> str:
    return " ".join([name, *(f"{option}={value}" for option, value in options.items())])


def assert_close(found: Any, recorded: Any, where: str = "", tolerance: dict[str, float] = FITTED) -> None:
    """Asserts that two trees of JSON values are equal, numbers within what fits may differ by."""
    if isinstance(recorded, dict):
        assert found.keys() == recorded.keys(), where
        for name, value in recorded.items():
            assert_close(found[name], value, f"{where}.{name}", tolerance)
    elif isinstance(recorded, list):
        assert len(found) == len(recorded), where
        for place, (one, other) in enumerate(zip(found, recorded, strict=True)):
            assert_close(one, other, f"{where}[{place}]", tolerance)
    elif isinstance(recorded, float):
        assert found == pytest.approx(recorded, **tolerance), where
    else:
        assert found == recorded, where
