"""The boards of an evaluation: from a benchmark folder, a file of rows, or a copy of the published benchmark."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Chunk, Row, decode, read_chunks
from lakewright.core_jax.support import first_repeated
from lakewright.policy.codecs import PublishedRow, check_text, row_of_published

NAMES = ("benchmark.jsonl", "benchmark.parquet")


class BoardRow(Row, frozen=True, kw_only=True):
    """A row, perhaps with the columns that a benchmark adds. Raises ValueError if they contradict the board."""

    sample_id: str | None = None
    num_agents: int | None = None
    text: str | None = None
    wait_ratio: float | None = None
    drawn_hole_ratio: float | None = None
    drawn_wait_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_agents not in (None, self.agents):
            raise ValueError(f"num_agents is {self.num_agents}, but agents is {self.agents}; correct one of them")
        if self.text is not None:
            check_text(self, self.text)


class EvaluationSet(msgspec.Struct, frozen=True):
    """Boards with different ids. texts: the prompts in their rows, by id. sha256: digest of the file `path`."""

    rows: list[Row]
    texts: dict[str, str]
    path: Path
    sha256: str


def read_set(place: Path) -> EvaluationSet:
    """The boards of a folder or file, with labels only if the file has them.

    Raises InputError, naming the line, at the first row that is bad or contradicts its own text.
    """
    path = _find_file(place)
    rows: list[Row] = []
    texts: dict[str, str] = {}
    for row, text in _read_rows(path):
        rows.append(row)
        if text is not None:
            texts[row.id] = text
    if not rows:
        raise InputError(f"{path}: holds no row; give a benchmark")
    if (twice := first_repeated(row.id for row in rows)) is not None:
        ids = len({row.id for row in rows})
        raise InputError(f"{path}: {len(rows)} rows have {ids} ids: {twice!r:.60} comes twice; rename one")
    with open(path, "rb") as file:
        return EvaluationSet(rows, texts, path, hashlib.file_digest(file, "sha256").hexdigest())


def spread_rows(rows: list[Row], each: int) -> list[Row]:
    """At most `each` rows of every number of agents and size, evenly over them, in their order."""
    kinds: dict[tuple[int, int], list[int]] = {}
    for place, row in enumerate(rows):
        kinds.setdefault((row.agents, row.size), []).append(place)
    chosen = [places[i] for places in kinds.values() for i in _pick_evenly(len(places), min(each, len(places)))]
    return [rows[place] for place in sorted(chosen)]


def _pick_evenly(count: int, wanted: int) -> Iterator[int]:
    return ((2 * i + 1) * count // (2 * wanted) for i in range(wanted))


def _find_file(place: Path) -> Path:
    if not place.exists():
        raise InputError(f"{place}: does not exist; check the path")
    if not place.is_dir():
        return place
    for name in NAMES:
        if (place / name).exists():
            return place / name
    raise InputError(f"{place}: holds no {NAMES[0]}; give a folder of `lakewright benchmark build`, or a file")


def _read_rows(path: Path) -> Iterator[tuple[Row, str | None]]:
    """Board and text of each row. The first row decides whether rows have boards or, as published, only texts."""
    published: bool | None = None
    for chunk in read_chunks(path):
        if published is None:
            published = "grid" not in _read_columns(chunk)
        if published:
            for row in decode(chunk, PublishedRow, _stop_reading, row_of_published):
                yield row_of_published(row), row.text
        else:
            for board in decode(chunk, BoardRow, _stop_reading):
                yield board, board.text


def _read_columns(chunk: Chunk) -> list[str]:
    """The columns of a chunk; of lines of JSON, the first chunk's."""
    if not isinstance(chunk.raw, list):
        return chunk.raw.schema.names
    try:
        first = msgspec.json.decode(next(line for line in chunk.raw if line.strip()))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, StopIteration):
        return ["grid"]  # decoding reports what is wrong with it
    return list(first) if isinstance(first, dict) else ["grid"]


def _stop_reading(error: InputError) -> None:
    raise error
