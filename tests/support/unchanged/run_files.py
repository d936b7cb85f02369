"""What the JSON files of a run of the lake are like: names and types, and the values that no training changes.

    python -m tests.support.unchanged.run_files      records them again, where a change is meant

The run is the tiny one of the teacher `random`; files of its warm-up and of its first stage.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from lakewright.core_jax.rows import board_key, read_all
from lakewright.experiments.loop.records.run_folder import RunFolder

RECORDED = Path(__file__).with_name("run_files.json")
FILES = (
    *("validation.json", "examination.json", "done.json", "env.json", "sampled.json", "rollback.json"),
    *("difficulty.json", "evidence.json", "proposal.json", "trial.json", "next.json"),
)


def shape_of(value: Any) -> Any:
    """Names and types; a list has the types of its parts, and a table by map size those of its values."""
    if isinstance(value, dict):
        if value and all(name.isdigit() for name in value):
            return {"SIZE": join_shapes([shape_of(part) for part in value.values()])}
        return {name: shape_of(part) for name, part in value.items()}
    if isinstance(value, list):
        return [join_shapes([shape_of(part) for part in value])] if value else []
    return "null" if value is None else type(value).__name__


def join_shapes(shapes: list[Any]) -> Any:
    """The shapes of several values as one: alike, or the names of the types."""
    if all(isinstance(shape, dict) for shape in shapes):
        names = dict.fromkeys(name for shape in shapes for name in shape)
        return {name: join_shapes([shape[name] for shape in shapes if name in shape]) for name in names}
    if all(isinstance(shape, list) for shape in shapes):
        parts = [part for shape in shapes for part in shape]
        return [join_shapes(parts)] if parts else []
    return "|".join(sorted({shape if isinstance(shape, str) else json.dumps(shape) for shape in shapes}))


def describe_files(run: RunFolder) -> dict[str, Any]:
    """The shape of every file, by its name."""
    parts = [run.warmup.folder, run.stage(0).folder]
    paths = [part / name for part in parts for name in FILES if (part / name).exists()]
    return {str(path.relative_to(run.folder)): shape_of(json.loads(path.read_text())) for path in paths}


def list_values(run: RunFolder) -> dict[str, Any]:
    """What generator, seeds, teacher and guard decide alone."""
    stage = run.stage(0)
    proposal = json.loads(stage.proposal.read_text())
    keys = {path.name: [board_key(row) for row in read_all(path)] for path in (run.validation, stage.boards)}
    return {
        "format": json.loads(run.config.read_text())["format"],
        "env.json": json.loads(stage.design_file.read_text()),
        "sampled.json": json.loads(stage.sampled.read_text()),
        "proposal": {name: proposal["proposal"][name] for name in ("delta", "error", "candidates", "tokens")},
        "verdict": proposal["verdict"],
        **{name: hashlib.sha256("".join(found).encode()).hexdigest() for name, found in keys.items()},
    }


def describe_run(run: RunFolder) -> dict[str, Any]:
    """What is recorded of a run."""
    return {"files": describe_files(run), "values": list_values(run)}


if __name__ == "__main__":
    from tests.support.samples.tiny_runs import finished

    RECORDED.write_text(json.dumps(describe_run(finished("random")), separators=(",", ":")) + "\n")
