"""Long files: killed at any instant, a command resumes where it was; bad rows are reported and the rest is done."""

import errno
import fcntl
import itertools
import json
import os
import resource
import signal
import tracemalloc
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from lakewright.core_jax.generator import content_hash, versions
from lakewright.core_jax.generator.manifest import FileManifest
from lakewright.core_jax.rows import SCHEMA, Chunk, Row, columns_of, read_all, solving, write_rows
from lakewright.experiments.jobs.resumable import part_work
from lakewright.experiments.jobs.resumable.part_work import MOST_ROWS, ROWS_A_KIND, SOME_ROWS, Pace, work_in_parts
from lakewright.experiments.jobs.resumable.parts import job_of, parts_of
from tests.support.boards.generated_rows import BLOCKED, SMALL, SMALL_COUNT, SMALL_SEED, small_rows, unsolved
from tests.support.machines.power_cuts import PowerCutError, cut_power
from tests.support.processes.commands import lakewright, verdicts
from tests.support.processes.killable import begin, code_of, server
from tests.support.processes.killable_work import few_rows_a_part
from tests.support.processes.watching import wait_for

COMMANDS = ("solve", "verify", "generate")


@pytest.fixture
def few(monkeypatch):
    """Parts of eight rows."""
    few_rows_a_part(monkeypatch)


def arguments(command: str, folder: Path, form: str, out: str = "out") -> list[str]:
    """The command line of a command on SMALL; what it reads is in `folder`."""
    options = ["--out", str(folder / f"{out}{form}"), "--json"]
    if command == "generate":
        (folder / "small.json").write_bytes(msgspec.json.encode(SMALL))
        count = ["--count", str(SMALL_COUNT), "--seed", str(SMALL_SEED)]
        return ["generate", "--config", str(folder / "small.json"), *count, *options]
    if not (folder / f"in{form}").exists():
        write_rows(folder / f"in{form}", small_rows())
    return [command, str(folder / f"in{form}"), *options]


def parts(out: Path) -> dict[str, tuple[int, bytes]]:
    """Time and bytes of all that is kept of an unfinished file."""
    folder = out.with_name(f".{out.name}.parts")
    records = sorted(file.stem for file in folder.glob("[0-9]*.json"))
    rows = ".jsonl" if out.suffix == ".jsonl" else ".arrow"
    files = [folder / f"{name}{ending}" for name in records for ending in (".json", rows)]
    return {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in files}


def litter(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_cut_off_at_every_renaming_ends_as_if_it_had_not_been(tmp_path, capsys, few, command, form):
    assert lakewright(capsys, *arguments(command, tmp_path, form, "whole"))[0] == 0
    out, kept, cuts = tmp_path / f"out{form}", {}, 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            cut_power(patch, renamings=1 + cuts % 4, before=bool(cuts % 3))
            try:
                code, said, _ = lakewright(capsys, *arguments(command, tmp_path, form))
                break
            except PowerCutError:
                cuts += 1
        if not out.exists():
            now = parts(out)
            assert {name: now[name] for name in kept} == kept, "a finished part is not made again"
            kept = now
        assert cuts < 40, "the command does not get on"
    assert code == 0
    assert cuts > 5
    assert out.read_bytes() == (tmp_path / f"whole{form}").read_bytes()
    assert msgspec.json.decode(said)[{"verify": "plans"}.get(command, "boards")] == SMALL_COUNT
    assert not litter(tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_commands_that_are_killed_resume(tmp_path, capsys, workers):
    with server("commands") as commands:
        for command in COMMANDS:
            given = [*arguments(command, tmp_path, ".jsonl", command), *workers]
            out = tmp_path / f"{command}.jsonl"
            child = begin(commands, json.dumps(given))
            wait_for(tmp_path / f".{command}.jsonl.parts" / "000002.json")
            os.killpg(child, signal.SIGKILL)
            assert code_of(commands) == -signal.SIGKILL, f"{command} ended before it was killed"
            assert not out.exists(), f"half of what {command} writes has the name of the whole"
            kept = len(parts(out)) // 2
            assert kept >= 3
            begin(commands, json.dumps(given))
            assert code_of(commands) == 0
    for command in COMMANDS:
        assert lakewright(capsys, *arguments(command, tmp_path, ".jsonl", "whole"))[0] == 0
        assert (tmp_path / f"{command}.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not litter(tmp_path)


def interrupted_at(monkeypatch, call: int) -> None:
    """Control and C are pressed at a call of the solver."""
    calls, real = 0, solving.solve

    def solve(boards, makespan_plans):
        nonlocal calls
        calls += 1
        if calls == call:
            signal.raise_signal(signal.SIGINT)
        return real(boards, makespan_plans)

    monkeypatch.setattr(solving, "solve", solve)
    # Where the tests run in the background, their process ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def with_bad_rows(path: Path, rows: list[Row], bad: list[int]) -> None:
    """The rows, those numbered from 1 in `bad` with a size in words."""
    lines = [msgspec.to_builtins(row) | ({"size": "eight"} if n in bad else {}) for n, row in enumerate(rows, 1)]
    path.write_bytes(msgspec.json.Encoder().encode_lines(lines))


def test_ten_bad_rows_of_many_are_reported_and_the_rest_is_done(tmp_path, capsys):
    rows = [msgspec.structs.replace(unsolved(row), id=f"{n}") for n in range(20) for row in small_rows()]
    bad = list(range(7, len(rows), len(rows) // 10))[:10]
    with_bad_rows(tmp_path / "in.jsonl", rows, bad)
    for out in ("out.jsonl", "out.parquet"):
        code, said, lines = lakewright(capsys, "solve", tmp_path / "in.jsonl", "--out", tmp_path / out, "--json")
        assert (code, msgspec.json.decode(said)["boards"]) == (1, len(rows) - 10)
        problem = "size: 'eight' does not fit: expected `int`, got `str`"
        assert lines == [f"lakewright: {tmp_path}/in.jsonl:{n}: {problem}" for n in bad]
        assert [row.id for row in read_all(tmp_path / out)] == [row.id for n, row in enumerate(rows, 1) if n not in bad]


def test_an_interruption_keeps_the_parts_and_their_bad_rows_are_reported_again(tmp_path, capsys, few, monkeypatch):
    with_bad_rows(tmp_path / "in.jsonl", small_rows(), [2, 30])
    given = ("solve", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--json")
    with monkeypatch.context() as patch:
        interrupted_at(patch, call=3)
        code, said, lines = lakewright(capsys, *given)
    assert (code, said, len(lines)) == (130, "", 2)
    assert "in.jsonl:2: size" in lines[0]
    assert lines[1] == "lakewright: interrupted; finished work is saved, and the same command resumes"
    assert not (tmp_path / "out.jsonl").exists()
    assert len(parts(tmp_path / "out.jsonl")) == 4
    code, said, lines = lakewright(capsys, *given)
    assert (code, len(lines)) == (1, 2)
    assert msgspec.json.decode(said) == {
        "boards": SMALL_COUNT - 2,
        "undecided": 0,
        "bad_rows": 2,
        "out": f"{tmp_path}/out.jsonl",
    }
    assert not litter(tmp_path)


def test_parts_that_an_earlier_version_saved_as_columns_become_lines(tmp_path, capsys, few, monkeypatch):
    given = arguments("solve", tmp_path, ".jsonl")
    with monkeypatch.context() as patch:
        interrupted_at(patch, call=3)
        lakewright(capsys, *given)
    (tmp_path / ".out.jsonl.parts" / "SHA256SUMS").unlink()
    for lines in (tmp_path / ".out.jsonl.parts").glob("[0-9]*.jsonl"):
        with pa.ipc.new_file(lines.with_suffix(".arrow"), SCHEMA) as columns:
            columns.write(columns_of(read_all(lines), SCHEMA))
        lines.unlink()
    assert lakewright(capsys, *given)[0] == 0
    assert lakewright(capsys, *arguments("solve", tmp_path, ".jsonl", "whole"))[0] == 0
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_the_parts_of_another_command_are_not_lost_and_not_mixed_in(tmp_path, capsys, few, monkeypatch):
    given = arguments("solve", tmp_path, ".jsonl")
    with monkeypatch.context() as patch:
        interrupted_at(patch, call=3)
        lakewright(capsys, *given)
    kept = parts(tmp_path / "out.jsonl")
    place, remedy = f"{tmp_path}/.out.jsonl.parts", "repeat that command, or remove the folder"
    for other, difference in (
        (arguments("verify", tmp_path, ".jsonl"), "command is 'solve' there and 'verify' now"),
        ([*given, "--makespan-plans"], "options.makespan_plans is False there and True now"),
    ):
        code, _, lines = lakewright(capsys, *other)
        assert (code, len(lines)) == (2, 1)
        assert f"an unfinished `lakewright solve` is saved in {place}" in lines[0]
        assert f"({difference}); {remedy}" in lines[0]
    os.utime(tmp_path / "in.jsonl", (1, 1))
    assert "inputs.input.modified is" in lakewright(capsys, *given)[2][0]
    assert parts(tmp_path / "out.jsonl") == kept


def test_a_command_that_finished_no_part_leaves_nothing_behind(tmp_path, capsys, few, monkeypatch):
    given = arguments("solve", tmp_path, ".jsonl")
    with monkeypatch.context() as patch:
        interrupted_at(patch, call=1)
        assert lakewright(capsys, *given)[0] == 130
    assert not litter(tmp_path)


def test_two_commands_do_not_write_one_file(tmp_path, capsys):
    folder = tmp_path / ".out.jsonl.parts"
    folder.mkdir()
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    code, _, lines = lakewright(capsys, *arguments("verify", tmp_path, ".jsonl"))
    os.close(lock)
    said = f"lakewright: {tmp_path}/out.jsonl: another process is writing it; wait for it, or choose another --out"
    assert (code, lines) == (2, [said])
    assert lakewright(capsys, *arguments("verify", tmp_path, ".jsonl"))[0] == 0


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_a_disk_without_space_is_reported_and_nothing_is_lost(tmp_path, capsys, few, form):
    given = arguments("solve", tmp_path, form)
    assert lakewright(capsys, *arguments("solve", tmp_path, form, "whole"))[0] == 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (tmp_path / f"whole{form}").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size * 99 // 100, before[1]))  # enough for a part, not for the whole
    try:
        code, _, lines = lakewright(capsys, *given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (code, len(lines)) == (2, 1), lines
    assert f"{tmp_path}/.out{form}.parts/" in lines[0]
    assert lines[0].endswith("; free disk space and run the same command again; finished parts are reused")
    assert len(parts(tmp_path / f"out{form}")) == 10, "all parts are kept"
    assert lakewright(capsys, *given)[0] == 0
    assert (tmp_path / f"out{form}").read_bytes() == (tmp_path / f"whole{form}").read_bytes()


def test_plans_are_found_by_id_and_a_second_of_one_id_is_reported(tmp_path, capsys, few):
    rows = small_rows()
    write_rows(tmp_path / "in.jsonl", [*rows, rows[0]])
    lines = [{"id": row.id, "plan": row.plan} for row in [*reversed(rows), rows[0]]]
    (tmp_path / "plans.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    given = ("verify", tmp_path / "in.jsonl", "--plans", tmp_path / "plans.jsonl", "--out", tmp_path / "out.jsonl")
    code, _, lines = lakewright(capsys, *given)
    problem = f"id is {rows[0].id!r}, which has a plan in an earlier line; remove one of them"
    left_out = f"{tmp_path}/out.jsonl: 1 row left out; --rejects FILE receives them as they are"
    found = [f"lakewright: {tmp_path}/plans.jsonl:{len(rows) + 1}: {problem}", f"lakewright: {left_out}"]
    assert (code, lines) == (1, found)
    assert [found.valid for found in verdicts(tmp_path / "out.jsonl")] == [True] * (len(rows) + 1)


def test_rows_without_a_solution_are_asked_no_plan(tmp_path, capsys):
    lost = msgspec.structs.replace(BLOCKED, status="unsolvable")
    write_rows(tmp_path / "in.jsonl", [lost, small_rows()[0]])
    code, said, lines = lakewright(capsys, "verify", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--json")
    assert (code, lines) == (0, [])
    counts = {"plans": 1, "valid": 1, "without_plan": 1, "bad_rows": 0}
    assert msgspec.json.decode(said) == counts | {"out": f"{tmp_path}/out.jsonl"}


def test_plans_that_reach_the_makespan_are_judged_where_asked(tmp_path, capsys):
    row = small_rows()[0]
    rows = [msgspec.structs.replace(row, makespan_plan=plan) for plan in (row.plan, ["W", "W"])]
    write_rows(tmp_path / "in.jsonl", rows)
    given = ("verify", tmp_path / "in.jsonl", "--makespan-plans", "--out", tmp_path / "out.jsonl")
    assert lakewright(capsys, *given) == (0, "", [])
    assert [found.valid for found in verdicts(tmp_path / "out.jsonl")] == [True, False]


def test_a_generated_file_has_a_manifest_of_what_it_was_made_from(tmp_path, capsys, few):
    assert lakewright(capsys, *arguments("generate", tmp_path, ".jsonl"))[0] == 0
    written = (tmp_path / "out.jsonl.manifest.json").read_bytes()
    manifest = msgspec.json.decode(written, type=FileManifest, strict=True)
    assert (manifest.config, manifest.seed, manifest.count) == (SMALL, SMALL_SEED, SMALL_COUNT)
    assert (manifest.versions, manifest.config_hash) == (versions(), content_hash(SMALL))
    assert set(manifest.versions) == {"lakewright", "jax", "jaxlib", "numpy", "python", "python-sat"}
    assert "threefry" in manifest.prng
    waiting = sum(row.wait_required for row in small_rows())
    met = {stratum.wait: stratum.met for stratum in manifest.acceptance}
    assert met == {True: waiting, False: SMALL_COUNT - waiting}, "pooled over all parts"


def test_the_hash_of_a_config_is_that_of_its_content():
    assert content_hash({"b": 1, "a": {10: 1, 9: 2}}) == content_hash({"a": {9: 2, 10: 1}, "b": 1})
    assert content_hash({"a": 1}) != content_hash({"a": 2})


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_a_file_five_times_as_long_takes_no_more_memory(tmp_path, form, monkeypatch):
    for name in ("SOME_ROWS", "ROWS_A_KIND"):  # parts do not grow either
        monkeypatch.setattr(part_work, name, 512)
    for name, value in (("CHUNK_BYTES", 1 << 16), ("CHUNK_ROWS", 512)):
        monkeypatch.setattr(f"lakewright.core_jax.rows.chunks.{name}", value)
    monkeypatch.setattr("lakewright.core_jax.rows.writers.ROW_GROUP", 1024)
    few, many = (most_memory(tmp_path / f"{count}{form}", count) for count in (2048, 10240))
    assert many < 1.2 * few, f"{few} bytes, then {many}"


def most_memory(path: Path, count: int) -> int:
    """Bytes that Python and Arrow have at most while every row of a file goes into another one."""
    write_rows(path, (BLOCKED for _ in range(count)))
    out, arrow = path.with_stem("out"), [pa.total_allocated_bytes()]

    def copy(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, int]]:
        arrow.append(pa.total_allocated_bytes())
        return rows, {"rows": len(rows)}

    tracemalloc.start()
    with parts_of(out, job_of("copy", {"input": path}, {}), SCHEMA) as parts:
        work_in_parts(path, parts, lambda rows: {}, copy, print)
        parts.assemble()
    most = tracemalloc.get_traced_memory()[1] + max(arrow) - arrow[0]
    tracemalloc.stop()
    assert parts.tally["rows"] == count
    return most


def test_what_a_full_disk_refuses_when_a_file_is_closed_is_named(tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write_rows(path, [next(iter(small_rows()))])

    def copy_until_full() -> None:
        with parts_of(out, job_of("copy", {"input": path}, {}), SCHEMA) as parts:
            parts.whole_file.symlink_to("/dev/full")  # which refuses what has waited until the file is closed
            work_in_parts(path, parts, lambda rows: {}, lambda rows: (rows, {}), print)
            raise OSError(errno.ENOSPC, "there is no room for something else", str(tmp_path / "else"))

    with pytest.raises(OSError, match="No space left") as full:
        copy_until_full()
    assert full.value.filename == str(tmp_path / ".out.jsonl.parts" / "whole.jsonl")


def test_parts_grow_while_they_are_quick_and_by_the_kinds_of_boards_in_them():
    pace, chunk = Pace(), Chunk(Path(), 1, [b"row"] * 16)
    sizes = []
    for seconds, kinds in [(0.1, 1)] * 8 + [(0.1, 20)] * 3 + [(0.1, 1000)] * 3 + [(60.0, 1000)] * 2:
        sizes.append(sum(map(len, pace.take_chunks(itertools.repeat(chunk, MOST_ROWS)))))
        pace.adapt(seconds, kinds)
    assert sizes[7] == SOME_ROWS
    assert sizes[10] == ROWS_A_KIND * 20
    assert sizes[13:] == [MOST_ROWS, MOST_ROWS, MOST_ROWS // 2]
