"""What is fuzzed: for each kind of file a function that reads bytes as the program does, and inputs to begin with."""

import io
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.rows import Row, decode, read_columns
from lakewright.core_jax.rows.chunks import Chunk
from lakewright.core_jax.rows.columns import records_of
from lakewright.core_jax.support import read_config, read_raw
from lakewright.engineer.evidence import read_evidence
from lakewright.experiments.boards.sweep import SweepSpec
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.preset_files import read_preset
from lakewright.experiments.studies.study import StudySpec, plan_study
from tests.support.samples.finished_run import ENV, GRID, board

HOUSE = Path(__file__).parents[3]
Fuzzed = tuple[Callable[[bytes], object], list[bytes]]


def rows() -> Fuzzed:
    """Lines of rows, read in columns and one by one: both must say the same."""

    def read(data: bytes) -> None:
        chunk, seen, careful = Chunk(Path("rows.jsonl"), 1, io.BytesIO(data).readlines()), [], []
        at_once = [
            msgspec.convert(record, Row)
            for record in records_of(read_columns(chunk, lambda _, error: seen.append(error)))
        ]
        assert at_once == list(decode(chunk, Row, careful.append)), "the two ways of reading differ"
        assert list(map(str, seen)) == list(map(str, careful)), "the two ways of reading report other problems"

    row = msgspec.json.encode(board())
    bare = msgspec.json.encode({"id": "b", "size": 3, "agents": 1, "grid": GRID, "starts": [[0, 0]], "goals": [[2, 0]]})
    return read, [row, row + b"\n" + bare + b"\n", b"\n" + bare + b"\r\n\n" + row]


def configs() -> Fuzzed:
    """Configs of boards and of whole runs, as JSON or TOML."""

    def read(data: bytes) -> None:
        path = _written(data)
        read_config(path, EnvConfig if b"sizes" in data[:12] else RunSettings)

    presets = sorted((HOUSE / "experiments" / "presets").glob("*.toml"))
    whole = msgspec.json.encode(read_preset("cpu"))
    return read, [msgspec.json.encode(ENV), whole, *(path.read_bytes() for path in presets)]


def specs() -> Fuzzed:
    """Specs of sweeps and of studies, as JSON or TOML."""

    def read(data: bytes) -> None:
        path = _written(data)
        if b"sizes" in data[:100]:
            read_config(path, SweepSpec)
        elif b"configs" in data:  # draws boards, to know which configs can be drawn
            read_config(path, StudySpec)
        else:
            plan_study(path)

    tomls = [*(HOUSE / "experiments" / "presets" / "sweeps").glob("*.toml")]
    tomls += [HOUSE / "tests" / "experiments" / "studies" / "study.toml"]
    tomls += sorted((HOUSE / "experiments" / "presets" / "studies").glob("*.toml"))
    tomls += sorted((HOUSE / "docs" / "data" / "studies").glob("*/spec.toml"))
    return read, [*(path.read_bytes() for path in tomls), *(msgspec.json.encode(read_raw(path)) for path in tomls)]


def evidence() -> Fuzzed:
    """Evidence as the engineer's commands read it."""

    def read(data: bytes) -> None:
        read_evidence(read_raw(_written(data)), "evidence.json")

    kept = HOUSE / "tests" / "experiments" / "jobs" / "resumable" / "old_folders" / "run" / "stage_00" / "evidence.json"
    return read, [kept.read_bytes(), msgspec.json.encode(msgspec.json.decode(kept.read_bytes()))]


PARTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")


def checkpoints() -> Fuzzed:
    """The JSON files of checkpoints: a digit says which one, the others are whole."""
    from lakewright.policy.model_settings import BoardNetworkSettings, ModelSettings
    from lakewright.policy.models import build_model, load_checkpoint, save_checkpoint
    from tests.support.models.tiny_policy import MODEL, tokenizer

    _be_quiet()
    small = BoardNetworkSettings(channels=4, iterations=1, hidden=8, layers=1)
    kinds = {"qwen3": MODEL, "board": ModelSettings(architecture="board", board=small)}
    whole = {}
    for kind, settings in kinds.items():
        shutil.rmtree(kind, ignore_errors=True)  # of an earlier hunt, whose corpus is gone on with
        save_checkpoint(Path(kind).absolute(), build_model(settings, tokenizer(), 0, "cpu"), tokenizer())
        whole |= {(kind, name): (Path(kind) / name).read_bytes() for name in PARTS}
    names = list(whole)

    def read(data: bytes) -> None:
        if not data[:1].isdigit():
            return
        kind, name = changed = names[int(data[:1]) % len(names)]
        path = Path(kind).absolute() / name
        path.write_bytes(data[1:])
        try:
            load_checkpoint(path.parent, device="cpu")
        finally:
            path.write_bytes(whole[changed])

    return read, [b"%d" % number + whole[name] for number, name in enumerate(names) if len(whole[name]) < 1 << 14]


def ggufs() -> Fuzzed:
    """Headers of GGUF files, before tensors that are whole, as models are loaded from them."""
    from gguf import GGUFReader

    from lakewright.policy.models import gguf_files, load_model
    from tests.support.models.gguf_model import write_gguf

    _be_quiet()
    gguf_files.CONVERTED = Path("kept").absolute()
    path = write_gguf(Path("model.gguf").absolute())
    whole, tensors = path.read_bytes(), int(GGUFReader(path).data_offset)

    def read(data: bytes) -> None:
        path.write_bytes(data + whole[tensors:])
        shutil.rmtree(gguf_files.CONVERTED, ignore_errors=True)
        load_model(path, device="cpu")

    return read, [whole[:tensors]]


def _be_quiet() -> None:
    """Lets the training libraries print nothing about what they read."""
    from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries

    prepare_libraries()
    warnings.simplefilter("ignore")


def _written(data: bytes) -> Path:
    """A file of these bytes, JSON where they begin as JSON."""
    path = Path("input.json" if data[:1] in (b"{", b"[") else "input.toml")
    path.write_bytes(data)
    return path


READERS: dict[str, Callable[[], Fuzzed]] = {
    function.__name__: function for function in (rows, configs, specs, evidence, checkpoints, ggufs)
}
