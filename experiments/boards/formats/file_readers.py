"""Boards as they are read from files of other tools; a bad one is left out, and the reason is given."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import yaml

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, decode, read_chunks, read_rows
from lakewright.core_jax.support import first_repeated, refuse_pipe
from lakewright.experiments.boards.formats import eecbs, lacam, lorr, movingai, multirobot, pogema
from lakewright.experiments.boards.formats.cells import Square, pad_to_square
from lakewright.policy.codecs import PublishedRow, row_of_published

LARGEST = 64 << 20  # bytes of one text file: a map of 8000 x 8000
LONGEST_NAME = 255  # bytes, of a file
SCHEDULE = ".schedule.yaml"  # how the file of a schedule ends that lies beside its board
Refuse = Callable[[InputError], None]


class Reading(NamedTuple):
    """The second argument of a reader, after a path.

    read: gets each file that is read. refuse: gets the error of each board that is left out. agents: how many of
    each board are wanted, its first, so that nothing is asked of the others; None for all.
    """

    read: set[Path]
    refuse: Refuse
    agents: int | None = None

    def take_agents(self, cells: list[Square]) -> list[Square]:
        """The cells of the first agents, or all cells if there are fewer agents, or no number is wanted."""
        return cells[: self.agents] if self.agents and self.agents > 0 else cells


ReadFile = Callable[[Path, Reading], Iterable[Row]]
"""Reads the rows of a path."""


def read_each(ending: str, read_file: Callable[[Path, Reading], Row]) -> Callable[[Path, Reading], Iterator[Row]]:
    """The reader of a format with a file of that ending for each board, and others that this one names."""

    def read_files(path: Path, reading: Reading) -> Iterator[Row]:
        files = sorted(path.glob(f"*{ending}")) if path.is_dir() else [_with_ending(path, ending)]
        for file in files:
            if path.is_dir() and file.name.endswith(SCHEDULE):
                continue
            try:
                file.name.encode()
                row = read_file(file, reading)
            except UnicodeEncodeError:
                reading.refuse(InputError(f"{path}: {file.name!r:.60} is not UTF-8; rename the file"))
            except InputError as error:
                reading.refuse(error)
            else:
                yield row

    return read_files


def _with_ending(path: Path, ending: str) -> Path:
    """The file of a format that may be named by another one beside it, such as a scenario by its map."""
    return path if ending == ".yaml" else path.with_suffix(ending)


def read_scenario_file(file: Path, reading: Reading) -> Row:
    """The board of a scenario of MovingAI and its map. Like all readers of a file, raises InputError."""
    grid, *ends = _read_scenario(file, reading.read)
    starts, goals = map(reading.take_agents, ends)
    return movingai.make_board(grid, (starts, goals), unquote(file.stem), str(file))


def _read_scenario(file: Path, read: set[Path]) -> tuple[list[str], list[Square], list[Square]]:
    """The map of a scenario, as a square, its starts and its goals."""
    name, starts, goals, sides = movingai.read_scenario(_read_text(file, read), str(file))
    return _read_grid(_beside(file, name), file, sides, read), starts, goals


def _read_grid(map_file: Path, file: Path, sides: tuple[int, int], read: set[Path]) -> list[str]:
    """The map of a scenario, as a square. Raises InputError if it has other sides, (width, height)."""
    grid = movingai.read_rectangle(_read_text(map_file, read), str(map_file))
    if sides != (len(grid[0]), len(grid)):
        raise InputError(
            f"{file}: its map is {sides[0]} by {sides[1]}, but {map_file.name} is {len(grid[0])} by {len(grid)}; "
            "correct one of them"
        )
    return pad_to_square(grid)


def read_eecbs_file(file: Path, reading: Reading) -> Row:
    """The board of the scenario beside it, of its name or the only one, and the paths of EECBS."""
    paths = eecbs.read_paths(_read_text(file, reading.read), str(file))
    scenario, others = file.with_suffix(".scen"), list(file.parent.glob("*.scen"))
    if not scenario.exists() and len(others) == 1:
        scenario = others[0]
    grid, starts, goals = _read_scenario(scenario, reading.read)
    return eecbs.make_row(paths, grid, (starts, goals), unquote(file.stem), str(file))


def read_multirobot_file(file: Path, reading: Reading) -> Row:
    """The board of libMultiRobotPlanning, and the plan of its schedule."""
    beside = file.with_name(f"{file.stem}{SCHEDULE}")
    schedule = _read_yaml(beside, reading.read) if beside.exists() else None
    data = _read_yaml(file, reading.read)
    if isinstance(data, dict) and isinstance(agents := data.get("agents"), list):
        data = data | {"agents": reading.take_agents(agents)}
    return multirobot.read_board(data, schedule, unquote(file.stem), str(file))


def read_lorr_file(file: Path, reading: Reading) -> Row:
    """The board of a problem of the League of Robot Runners."""
    problem = lorr.read_problem(_read_text(file, reading.read), str(file))
    map_file, *ends = (_within(file, name) for name in problem.files)
    grid = movingai.read_rectangle(_read_text(map_file, reading.read), str(map_file), lorr.LETTERS, lorr.BLOCKED)
    starts, goals = (
        reading.take_agents(lorr.read_cells(_read_text(end, reading.read), problem.robots, len(grid[0]), str(end)))
        for end in ends
    )
    return lorr.make_row(grid, starts, goals, unquote(file.stem), str(file))


def read_lacam_file(file: Path, reading: Reading) -> Row:
    """The board and the plan of a result of LaCAM."""
    text = _read_text(file, reading.read)
    map_file = _beside(file, lacam.map_of(text, str(file)))
    grid = movingai.read_map(_read_text(map_file, reading.read), str(map_file))
    return lacam.read_result(text, grid, unquote(file.stem), str(file))


def read_map_strings(path: Path, reading: Reading) -> Iterator[Row]:
    """The boards of a file of POGEMA's map strings: a `ReadFile`. Raises InputError if it is not one."""
    maps = _read_yaml(path, reading.read)
    if not isinstance(maps, dict):
        raise InputError(f"{path}: no map strings by name; give `name: |-` and the lines of a map")
    for name, text in maps.items():
        place = f"{path}: {str(name)!r:.60}"
        try:
            if not isinstance(text, str):
                raise InputError(f"{place} has no text; give `name: |-` and the lines of a map")
            row = pogema.read_map_string(text, str(name), place)
        except InputError as error:
            reading.refuse(error)
        else:
            yield row


def _read_yaml(path: Path, read: set[Path]) -> Any:
    """The plain data of a YAML file, all texts. Raises InputError if it is another."""
    try:
        return yaml.load(_read_text(path, read), _TextLoader)
    except (yaml.YAMLError, RecursionError) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{path}: not YAML ({said:.100}); give `name: |-` and a map string") from error


def read_own_rows(path: Path, reading: Reading) -> Iterator[Row]:
    """Our own rows: a `ReadFile`. Raises InputError if the file cannot be read."""
    reading.read.add(path)
    for rows in read_rows(path, Row, reading.refuse):
        yield from rows


def read_published_rows(path: Path, reading: Reading) -> Iterator[Row]:
    """The rows of the published benchmark: a `ReadFile`. Raises InputError if the file cannot be read."""
    reading.read.add(path)
    for chunk in read_chunks(path):
        for published in decode(chunk, PublishedRow, reading.refuse, row_of_published):
            yield row_of_published(published)


def _read_text(path: Path, read: set[Path]) -> str:
    """The text of a file of any line ends, which is added to `read`.

    Raises InputError if it is not one, or too large to be one.
    """
    read.add(path)
    refuse_pipe(path)
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(
                f"{path}: {path.stat().st_size} bytes, more than the {LARGEST} of the largest map; split it"
            )
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; put the map beside the file that names it") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; this is not a text file") from error


def _beside(path: Path, name: str) -> Path:
    """The file of that name beside `path`, whatever folder the file names: other people's folders are not ours.

    Raises InputError if no file can have that name.
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    if last in ("", ".", "..") or "\0" in last or len(last.encode(errors="replace")) > LONGEST_NAME:
        raise InputError(f"{path}: its map is {name!r:.60}, which cannot be the name of a file; name the map beside it")
    return path.with_name(last)


def _within(path: Path, name: str) -> Path:
    """The file that `path` names, in its folder or in one of those within it; else beside it, as `_beside`."""
    there = (path.parent / name.replace("\\", "/")) if "\0" not in name else path.parent
    inside = there.resolve().is_relative_to(path.parent.resolve())
    return there if inside and there.is_file() else _beside(path, name)


class _TextLoader(yaml.BaseLoader):
    """Reads texts, whatever they look like: no dates, no numbers; and no name twice, of which YAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """See its base."""
        if (twice := first_repeated(str(key.value) for key, _ in node.value)) is not None:
            raise yaml.YAMLError(f"{twice!r:.60} appears twice")
        return super().construct_mapping(node, deep)
