"""Files of boards from one format to another: `lakewright convert`."""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
import yaml

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, board_of, decode, read_all, read_chunks, write_rows
from lakewright.core_jax.support import first_repeated, refuse_pipe, replacing_folder, write_atomically
from lakewright.experiments.boards.formats import eecbs, lacam, lorr, movingai, multirobot, pogema
from lakewright.experiments.boards.formats.cells import pad_to_square
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting
from lakewright.policy.codecs import PublishedRow, encode_prompt, row_of

LARGEST = 64 << 20  # bytes of one text file: a map of 8000 x 8000
LONGEST_NAME = 255  # bytes, of a file
HEAD = 1 << 16  # bytes that tell one format from another
SCHEDULE = ".schedule.yaml"  # how the file of a schedule ends that lies beside its board
Report = Callable[[int], object]


class Format(NamedTuple):
    """read: the rows of a path, adding each file that is read to a set. write: rows to a path, telling how many are
    written. endings: of its single files. beside: endings of further files of the same name.
    """

    read: Callable[[Path, set[Path]], Iterable[Row]]
    write: Callable[[Sequence[Row], Path, Report], None]
    endings: tuple[str, ...]
    beside: tuple[str, ...] = ()


def convert(
    source: Path,
    out: Path,
    given: str | None = None,
    wanted: str | None = None,
    on_progress: Report = lambda rows: None,
    agents: int | None = None,
) -> int:
    """Writes the boards of `source` to `out` and returns how many there are.

    Args:
        source, out: the files, or folders where a format has them.
        given, wanted: names of FORMATS; without one it follows from the ending, of a folder from what lies in it.
        on_progress: gets how many more boards are done.
        agents: how many of each board, its first; by default all. Labels are those of all, so they are left out.

    Raises InputError if a file, a board or a combination is not what the format takes; then nothing is written.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder; check the path")
    reader = FORMATS[_check_format(given, "--from") if given else _format_of(source)]
    writer = FORMATS[_check_format(wanted, "--to") if wanted else _format_for(out)]
    read: set[Path] = set()
    rows = [row if agents is None else _take_agents(row, agents) for row in reader.read(source, read)]
    made = [out, *(out.with_suffix(ending) for ending in writer.beside if out.suffix not in ("", ending))]
    refuse_overwriting([("--out", path) for path in made], [("an input", path) for path in sorted(read)])
    if not rows:
        raise InputError(f"{source}: no board in it; name a file or folder that has some")
    if (twice := first_repeated(row.id for row in rows)) is not None:
        raise InputError(f"{source}: the id {twice!r:.60} comes twice; a file is named by it, so make them distinct")
    writer.write(rows, out, on_progress)
    return len(rows)


def _take_agents(row: Row, agents: int) -> Row:
    """The board with its first agents. Raises InputError if it has fewer."""
    if not 1 <= agents <= row.agents:
        raise InputError(f"{row.id!r:.60} has {row.agents} agents, and --agents is {agents}; give 1 to {row.agents}")
    if agents == row.agents:
        return row
    plan = None if row.plan is None else row.plan[:agents]
    return Row(row.id, row.size, agents, row.grid, row.starts[:agents], row.goals[:agents], plan=plan)


def _check_format(name: str, option: str) -> str:
    if name not in FORMATS:
        raise InputError(f"{option} is {name!r:.40}; choose from {', '.join(FORMATS)}")
    return name


def _format_of(source: Path) -> str:
    """The format of what is there, by its ending or by the endings of the files in a folder, and by how it begins."""
    if not source.is_dir():
        return _by_beginning(_by_ending(source.suffix, source, "--from"), source)
    inside = {file.suffix: file for file in sorted(source.iterdir(), reverse=True)}
    for ending in (".txt", ".json", ".yaml", ".scen"):
        if ending in inside:
            return _by_beginning(_by_ending(ending, source, "--from"), inside[ending])
    raise InputError(f"{source}: the folder has no .scen, .txt, .yaml or .json file; name the format with --from")


def _by_beginning(form: str, path: Path) -> str:
    """The format of a file, of several that share its ending."""
    pattern = {"lacam": ("eecbs", rb"\s*Agent \d+:"), "pogema": ("multirobot", rb"(agents|map|schedule|statistics) *:")}
    if form not in pattern or not path.is_file():
        return form
    other, begins = pattern[form]
    refuse_pipe(path)
    with path.open("rb") as file:
        head = file.read(HEAD).removeprefix(codecs.BOM_UTF8)
    return other if re.match(begins, re.sub(rb"^(\s*(#.*|---)?\n)*", b"", head)) else form


def _format_for(out: Path) -> str:
    return _by_ending(out.suffix, out, "--to") if out.suffix else "movingai"


def _by_ending(ending: str, path: Path, option: str) -> str:
    for name, form in FORMATS.items():
        if ending in form.endings:
            return name
    raise InputError(f"{path}: no format ends with {ending!r:.20}; name it by {option}: {', '.join(FORMATS)}")


def _text(path: Path, read: set[Path]) -> str:
    """The text of a file of any line ends, which is added to `read`.

    Raises InputError if it is none, or too large to be one.
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


def _each(path: Path, ending: str) -> list[Path]:
    """The files of that ending in a folder, or the one of a file. Raises InputError if a name is not text."""
    files = sorted(path.glob(f"*{ending}")) if path.is_dir() else [path.with_suffix(ending)]
    for file in files:
        try:
            file.name.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{path}: {file.name!r:.60} is not UTF-8; rename the file") from error
    return files


def _read_movingai(path: Path, read: set[Path]) -> Iterator[Row]:
    for file in _each(path, ".scen"):
        name, starts, goals, sides = movingai.read_scenario(_text(file, read), str(file))
        grid = _read_grid(_beside(file, name), file, sides, read)
        yield movingai.make_board(grid, (starts, goals), unquote(file.stem), str(file))


def _read_grid(map_file: Path, file: Path, sides: tuple[int, int], read: set[Path]) -> list[str]:
    """The map of a scenario, as a square. Raises InputError if it has other sides, (width, height)."""
    grid = movingai.read_rectangle(_text(map_file, read), str(map_file))
    if sides != (len(grid[0]), len(grid)):
        raise InputError(
            f"{file}: its map is {sides[0]} by {sides[1]}, but {map_file.name} is {len(grid[0])} by {len(grid)}; "
            "correct one of them"
        )
    return pad_to_square(grid)


def _read_eecbs(path: Path, read: set[Path]) -> Iterator[Row]:
    for file in _each(path, ".txt"):
        paths = eecbs.read_paths(_text(file, read), str(file))
        scenario = file.with_suffix(".scen")
        name, starts, goals, sides = movingai.read_scenario(_text(scenario, read), str(scenario))
        grid = _read_grid(_beside(file, name), scenario, sides, read)
        yield eecbs.make_row(paths, grid, (starts, goals), unquote(file.stem), str(file))


def _read_multirobot(path: Path, read: set[Path]) -> Iterator[Row]:
    files = [file for file in _each(path, ".yaml") if not file.name.endswith(SCHEDULE)] if path.is_dir() else [path]
    for file in files:
        beside = file.with_name(f"{file.stem}{SCHEDULE}")
        schedule = _read_yaml(beside, read) if beside.exists() else None
        yield multirobot.read_board(_read_yaml(file, read), schedule, unquote(file.stem), str(file))


def _read_lorr(path: Path, read: set[Path]) -> Iterator[Row]:
    for file in _each(path, ".json"):
        problem = lorr.read_problem(_text(file, read), str(file))
        map_file, *ends = (_within(file, name) for name in problem.files)
        grid = movingai.read_rectangle(_text(map_file, read), str(map_file), lorr.LETTERS)
        starts, goals = (lorr.read_cells(_text(end, read), problem.robots, len(grid[0]), str(end)) for end in ends)
        yield lorr.make_row(grid, starts, goals, unquote(file.stem), str(file))


def _read_lacam(path: Path, read: set[Path]) -> Iterator[Row]:
    for file in _each(path, ".txt"):
        text = _text(file, read)
        map_file = _beside(file, lacam.map_of(text, str(file)))
        grid = movingai.read_map(_text(map_file, read), str(map_file))
        yield lacam.read_result(text, grid, unquote(file.stem), str(file))


def _read_pogema(path: Path, read: set[Path]) -> Iterator[Row]:
    maps = _read_yaml(path, read)
    if not isinstance(maps, dict) or not all(isinstance(text, str) for text in maps.values()):
        raise InputError(f"{path}: no map strings by name; give `name: |-` and the lines of a map")
    for name, text in maps.items():
        yield pogema.read_map_string(text, str(name), f"{path}: {str(name)!r:.60}")


def _read_yaml(path: Path, read: set[Path]) -> Any:
    """The plain data of a YAML file, all texts. Raises InputError if it is another."""
    try:
        return yaml.load(_text(path, read), _TextLoader)
    except (yaml.YAMLError, RecursionError) as error:
        said = str(error).splitlines()[0]
        raise InputError(f"{path}: not YAML ({said:.100}); give `name: |-` and a map string") from error


def _read_rows(path: Path, read: set[Path]) -> list[Row]:
    read.add(path)
    return read_all(path)


def _read_published(path: Path, read: set[Path]) -> Iterator[Row]:
    read.add(path)

    def stop(error: InputError) -> None:
        raise error

    for chunk in read_chunks(path):
        for published in decode(chunk, PublishedRow, stop, row_of):
            yield row_of(published)


def _write_rows(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    write_rows(out, rows)
    on_progress(len(rows))


def _write_movingai(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    _write_files(rows, out, movingai_files, on_progress)


def _write_lacam(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    _write_files(rows, out, lacam_files, on_progress)


def _write_eecbs(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    _write_files(rows, out, eecbs_files, on_progress)


def _write_multirobot(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    _write_files(rows, out, lambda row, name: {".yaml": multirobot.board_text(row)}, on_progress)


def _write_lorr(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    _write_files(rows, out, lorr.problem_files, on_progress, len(".agents"))


def movingai_files(row: Row, name: str) -> dict[str, str]:
    """The files of a board of that name, by their endings."""
    return {".scen": movingai.scenario_text(row, f"{name}.map"), ".map": movingai.map_text(row)}


def lacam_files(row: Row, name: str) -> dict[str, str]:
    """As `movingai_files`."""
    return {".txt": lacam.result_text(row, f"{name}.map"), ".map": movingai.map_text(row)}


def eecbs_files(row: Row, name: str) -> dict[str, str]:
    """As `movingai_files`."""
    return {".txt": eecbs.paths_text(row)} | movingai_files(row, name)


def _write_files(
    rows: Sequence[Row],
    out: Path,
    make: Callable[[Row, str], dict[str, str]],
    on_progress: Report,
    longest: int = len(".scen"),
) -> None:
    """The files of each board: in a new folder, or, of a single board, at `out` and beside it.

    Args:
        rows: the boards.
        out: a file, or a new folder.
        make: the texts of a board's files by their endings, from the row and the name of the files.
        on_progress: gets how many more boards are done.
        longest: bytes of their longest ending.
    """
    if out.suffix:
        if len(rows) > 1:
            raise InputError(f"{out}: {len(rows)} boards need a file each; name a folder, without an ending")
        for ending, text in reversed(make(rows[0], out.stem).items()):  # the one that names the others is the last
            write_atomically(out.with_suffix(ending), text.encode())
        on_progress(1)
        return
    if out.exists():
        raise InputError(f"{out} is there already; name a folder that is not")
    with replacing_folder(out) as folder:
        for row in rows:
            name = _file_name(row, longest)
            for ending, text in make(row, name).items():
                (folder / f"{name}{ending}").write_text(text)
            on_progress(1)


def _file_name(row: Row, longest: int) -> str:
    """A board's id as the name of its files. Raises InputError if it can be none."""
    name = quote(row.id, safe=" ")
    most = LONGEST_NAME - longest
    if not name or len(name) > most:
        raise InputError(f"the id {row.id!r:.60} cannot be the name of a file; give ids of 1 to {most} bytes")
    return name


def _write_pogema(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    maps = {row.id: _Block(pogema.map_string(row)) for row in rows}
    write_atomically(out, yaml.dump(maps, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode())
    on_progress(len(rows))


def _write_published(rows: Sequence[Row], out: Path, on_progress: Report) -> None:
    lines = []
    for row in rows:
        try:
            text = encode_prompt(board_of(row))
        except ValueError as error:
            raise InputError(f"{row.id!r:.60}: {error}") from error
        lines.append(msgspec.json.encode(PublishedRow(row.id, row.agents, text)))
        on_progress(1)
    write_atomically(out, b"\n".join(lines) + b"\n")


class _Block(str):
    """A text that YAML writes as a block of lines."""


class _TextLoader(yaml.BaseLoader):
    """Reads texts, whatever they look like: no dates, no numbers; and no name twice, of which YAML keeps the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """As its base."""
        if (twice := first_repeated(str(key.value) for key, _ in node.value)) is not None:
            raise yaml.YAMLError(f"{twice!r:.60} appears twice")
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """YAML's own, which knows blocks."""


def _as_block(dumper: yaml.SafeDumper, text: _Block) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(_Block, _as_block)

FORMATS: dict[str, Format] = {
    "rows": Format(_read_rows, _write_rows, (".jsonl", ".parquet")),
    "movingai": Format(_read_movingai, _write_movingai, (".scen", ".map"), (".map", ".scen")),
    "lacam": Format(_read_lacam, _write_lacam, (".txt",), (".map",)),
    "eecbs": Format(_read_eecbs, _write_eecbs, (), (".scen", ".map")),
    "pogema": Format(_read_pogema, _write_pogema, (".yaml", ".yml")),
    "multirobot": Format(_read_multirobot, _write_multirobot, ()),
    "lorr": Format(_read_lorr, _write_lorr, (".json",), (".map", ".agents", ".tasks")),
    "published": Format(_read_published, _write_published, ()),
}
