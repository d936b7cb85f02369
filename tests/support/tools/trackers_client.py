"""Run by the Python of an environment with all trackers: reads a published run back by each tracker's own library.

python trackers_client.py RUN EXPECTED, a JSON list of points.
"""

import itertools
import json
import math
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from trackio import Api
from trackio.sqlite_storage import SQLiteStorage
from wandb.proto import wandb_internal_pb2

BLOCK = 1 << 15
folder = Path(sys.argv[1])
expected = json.loads(Path(sys.argv[2]).read_text())
curves = {}
for step, figures, _ in expected:
    for name, value in figures.items():
        curves.setdefault(name, []).append((step, value))
pictures = sorted((name, step) for step, _, names in expected for name in names)


def same(found: dict[str, list[tuple[int, float]]], who: str) -> None:
    """Every curve is there, with its steps and values."""
    for name, curve in curves.items():
        assert [step for step, _ in found.get(name, [])] == [step for step, _ in curve], (
            f"{who}: {name}: {found.get(name)}"
        )
        for (_, value), (step, wanted) in zip(found[name], curve, strict=True):
            assert math.isclose(value, wanted, rel_tol=1e-6), f"{who}: {name} at {step}: {value}, not {wanted}"


def records(data: bytes) -> Iterator[wandb_internal_pb2.Record]:
    """The records of an offline run of W&B, which has no reader in Python: LevelDB's log of its protobufs."""
    whole, place = b"", 7  # after the head of the file
    while place < len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # a whole record, or its last piece
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


board = EventAccumulator(str(folder / "tensorboard" / "loop"))
board.Reload()
same(
    {name: [(event.step, event.value) for event in board.Scalars(name)] for name in board.Tags()["scalars"]},
    "tensorboard",
)
assert sorted((name, event.step) for name in board.Tags()["images"] for event in board.Images(name)) == pictures

logs = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
assert len({log.name for log in logs}) == 1, "the parts of a run are runs of their own"
found: dict[str, list[tuple[int, float]]] = {}
seen, groups = [], set()
for record in itertools.chain(*(records(log.read_bytes()) for log in logs)):
    if record.run.run_group:
        groups.add((record.run.run_group, record.run.display_name, record.run.project))
    for item in record.history.item:
        name, *within = item.nested_key or [item.key]
        if within == ["_type"]:
            seen.append((name, record.history.step.num))
        elif name in curves:
            found.setdefault(name, []).append((record.history.step.num, json.loads(item.value_json)))
same(found, "wandb")
assert sorted(seen) == pictures, seen
assert groups == {(folder.name, folder.name, "lakewright")}, groups

(run,) = Api().runs("lakewright")
assert run.name == folder.name, run
assert run.config["_Group"] == folder.name, run.config
found, seen = {}, []
for line in SQLiteStorage.get_logs("lakewright", run.name):
    for name, value in line.items():
        if isinstance(value, dict):
            seen.append((name, line["step"]))
        elif name in curves:
            found.setdefault(name, []).append((line["step"], value))
same(found, "trackio")
assert sorted(seen) == pictures, seen
print("all trackers agree")
