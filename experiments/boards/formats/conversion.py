"""Files of boards from one format to another: `lakewright convert`."""

import codecs
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import yaml

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, board_of, write_rows
from lakewright.core_jax.support import refuse_pipe, replacing_folder, write_atomically
from lakewright.experiments.boards.formats import eecbs, lacam, lorr, movingai, multirobot, pogema
from lakewright.experiments.boards.formats.file_readers import (
    LONGEST_NAME,
    ReadFile,
    Reading,
    read_each,
    read_eecbs_file,
    read_lacam_file,
    read_lorr_file,
    read_map_strings,
    read_multirobot_file,
    read_own_rows,
    read_published_rows,
    read_scenario_file,
)
from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting
from lakewright.policy.codecs import PublishedRow, encode_prompt

HEAD = 1 << 16  # bytes that tell one format from another
MULTIROBOT = rb"\{?\s*[\"']?(agents|map|schedule|statistics|roadmap)[\"']? *:"  # how its files begin
ReportCount = Callable[[int], object]


class Format(NamedTuple):
    """read: reads rows. write: writes rows, and reports progress. endings: the extensions of its single files.
    beside: endings of further files of the same name.
    """

    read: ReadFile
    write: Callable[[Sequence[Row], Path, ReportCount], None]
    endings: tuple[str, ...]
    beside: tuple[str, ...] = ()


def convert_files(
    source: Path,
    out: Path,
    given: str | None = None,
    wanted: str | None = None,
    on_progress: ReportCount = lambda rows: None,
    agents: int | None = None,
    bad_rows: list[InputError] | None = None,
) -> int:
    """Writes the boards of `source` to `out` and returns how many there are.

    Args:
        source, out: the files, or folders if the format is a folder.
        given, wanted: names of FORMATS; by default a file's extension decides, or a folder's content.
        on_progress: gets the number of boards done since the last call.
        agents: keep only this many agents of each board, the first; labels hold for all agents, so they are dropped.
        bad_rows: gets the error of each board that is left out; by default the first error is raised.

    Raises InputError, and writes nothing, if no board suits the formats, or the options don't go together.
    """
    if not source.exists():
        raise InputError(f"{source}: no such file or folder; check the path")
    reader = FORMATS[_check_format(given, "--from") if given else _format_of(source)]
    writer = FORMATS[_check_format(wanted, "--to") if wanted else _format_for(out)]
    read: set[Path] = set()
    refused: list[InputError] = []
    rows = _read_distinct(reader, source, agents, read, refused)
    made = [out, *(out.with_suffix(ending) for ending in writer.beside if out.suffix not in ("", ending))]
    refuse_overwriting([("--out", path) for path in made], [("an input", path) for path in sorted(read)])
    if refused and (bad_rows is None or not rows):
        raise refused[0]
    if not rows:
        raise InputError(f"{source}: no board in it; name a file or folder that has some")
    writer.write(rows, out, on_progress)
    if bad_rows is not None:
        bad_rows += refused
    return len(rows)


def _read_distinct(
    reader: Format, source: Path, agents: int | None, read: set[Path], refused: list[InputError]
) -> list[Row]:
    """The good rows of a source, one of each id, with `agents` agents.

    Args:
        reader, source, agents: as in `convert_files`.
        read: a list that gets the files that are read.
        refused: gets the errors of the other rows.
    """
    rows: dict[str, Row] = {}
    for row in reader.read(source, Reading(read, refused.append, agents)):
        if row.id in rows:
            said = f"the id {row.id!r:.60} appears twice; files are named by id, so make ids distinct"
            refused.append(InputError(f"{source}: {said}"))
            continue
        try:
            rows[row.id] = row if agents is None else _take_agents(row, agents)
        except InputError as error:
            refused.append(error)
    return list(rows.values())


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
    """The format of an existing path, by its ending or the endings of a folder's files, and by how it begins."""
    if not source.is_dir():
        return _by_beginning(_by_ending(source.suffix, source, "--from"), source)
    inside = {file.suffix: file for file in sorted(source.iterdir(), reverse=True)}
    for ending in (".txt", ".json", ".yaml", ".scen"):
        if ending in inside:
            return _by_beginning(_by_ending(ending, source, "--from"), inside[ending])
    raise InputError(f"{source}: the folder has no .scen, .txt, .yaml or .json file; name the format with --from")


def _by_beginning(form: str, path: Path) -> str:
    """The format of a file, of several that share its ending."""
    pattern = {"lacam": ("eecbs", rb"\s*Agent \d+:"), "pogema": ("multirobot", MULTIROBOT)}
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
    raise InputError(f"{path}: no format ends with {ending!r:.20}; name it with {option}: {', '.join(FORMATS)}")


def _write_rows(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    write_rows(out, rows)
    on_progress(len(rows))


def _write_movingai(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    _write_files(rows, out, movingai_files, on_progress)


def _write_lacam(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    _write_files(rows, out, lacam_files, on_progress)


def _write_eecbs(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    _write_files(rows, out, eecbs_files, on_progress)


def _write_multirobot(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    _write_files(rows, out, lambda row, name: {".yaml": multirobot.board_text(row)}, on_progress)


def _write_lorr(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    _write_files(rows, out, lorr.problem_files, on_progress, len(".agents"))


def movingai_files(row: Row, name: str) -> dict[str, str]:
    """The files of a board of that name, by their endings."""
    return {".scen": movingai.scenario_text(row, f"{name}.map"), ".map": movingai.map_text(row)}


def lacam_files(row: Row, name: str) -> dict[str, str]:
    """See `movingai_files`."""
    return {".txt": lacam.result_text(row, f"{name}.map"), ".map": movingai.map_text(row)}


def eecbs_files(row: Row, name: str) -> dict[str, str]:
    """See `movingai_files`."""
    return {".txt": eecbs.paths_text(row)} | movingai_files(row, name)


def _write_files(
    rows: Sequence[Row],
    out: Path,
    make: Callable[[Row, str], dict[str, str]],
    on_progress: ReportCount,
    longest: int = len(".scen"),
) -> None:
    """The files of each board: in a new folder, or, of a single board, at `out` and beside it.

    Args:
        rows: the boards to write.
        out: a file, or a new folder.
        make: the texts of a board's files by their endings, from the row and the name of the files.
        on_progress: gets the number of boards done since the last call.
        longest: bytes of their longest ending.
    """
    if out.suffix:
        if len(rows) > 1:
            raise InputError(f"{out}: {len(rows)} boards need one file each; name a folder, without an extension")
        for ending, text in reversed(make(rows[0], out.stem).items()):  # the one that names the others is the last
            write_atomically(out.with_suffix(ending), text.encode())
        on_progress(1)
        return
    if out.exists():
        raise InputError(f"{out} exists already; name a new folder")
    with replacing_folder(out) as folder:
        for row in rows:
            name = _file_name(row, longest)
            for ending, text in make(row, name).items():
                (folder / f"{name}{ending}").write_text(text)
            on_progress(1)


def _file_name(row: Row, longest: int) -> str:
    """A board's id as the name of its files. Raises InputError if no such file is known."""
    name = quote(row.id, safe=" ")
    most = LONGEST_NAME - longest
    if not name or len(name) > most:
        raise InputError(f"the id {row.id!r:.60} cannot be the name of a file; give ids of 1 to {most} bytes")
    return name


def _write_pogema(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
    maps = {row.id: _Block(pogema.map_string(row)) for row in rows}
    write_atomically(out, yaml.dump(maps, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode())
    on_progress(len(rows))


def _write_published(rows: Sequence[Row], out: Path, on_progress: ReportCount) -> None:
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


class _Dumper(yaml.SafeDumper):
    """YAML's own, which knows blocks."""


def _as_block(dumper: yaml.SafeDumper, text: _Block) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


_Dumper.add_representer(_Block, _as_block)

FORMATS: dict[str, Format] = {
    "rows": Format(read_own_rows, _write_rows, (".jsonl", ".parquet")),
    "movingai": Format(read_each(".scen", read_scenario_file), _write_movingai, (".scen", ".map"), (".map", ".scen")),
    "lacam": Format(read_each(".txt", read_lacam_file), _write_lacam, (".txt",), (".map",)),
    "eecbs": Format(read_each(".txt", read_eecbs_file), _write_eecbs, (), (".scen", ".map")),
    "pogema": Format(read_map_strings, _write_pogema, (".yaml", ".yml")),
    "multirobot": Format(read_each(".yaml", read_multirobot_file), _write_multirobot, ()),
    "lorr": Format(read_each(".json", read_lorr_file), _write_lorr, (".json",), (".map", ".agents", ".tasks")),
    "published": Format(read_published_rows, _write_published, ()),
}
