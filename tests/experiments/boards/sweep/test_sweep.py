"""A sweep: its shards hold what its spec says, and stopped at any time it resumes and loses nothing."""

import contextlib
import os
import resource
import signal
import subprocess
import sys

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.generator import content_hash, draw_free, generate, generator, prng
from lakewright.core_jax.solver import solve
from lakewright.core_jax.support import cores
from lakewright.core_jax.types import Status
from lakewright.experiments.boards.sweep import SweepFolder, SweepSpec, shards, sweep
from lakewright.experiments.boards.sweep import folder as folders
from lakewright.experiments.jobs.executors import Serial
from lakewright.experiments.jobs.executors.choice import ExecutorChoice
from tests.support.boards.chi_square import assert_even
from tests.support.boards.generated_rows import none_met
from tests.support.boards.sample_boards import assert_every
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.processes.watching import wait_for
from tests.support.samples.tiny_sweep import SPEC, TOML, data_of, expected, make


@pytest.fixture
def here(monkeypatch):
    """The command works in this process."""
    monkeypatch.setattr(ExecutorChoice, "open", lambda *needs: contextlib.nullcontext(Serial()))


@pytest.fixture
def spec_file(tmp_path):
    (tmp_path / "spec.toml").write_text(TOML)
    return tmp_path / "spec.toml"


def test_free_draws_are_uniform_and_the_same_in_pieces():
    boards = draw_free(3, 2, 2, seed=5, first=0, count=20_000)
    holes = np.nonzero(boards.holes.reshape(-1, 9))[1].reshape(-1, 2)  # exactly two a board
    ends = np.concatenate([boards.starts, boards.goals], axis=1)
    cells = np.concatenate([ends[..., 0] * 3 + ends[..., 1], holes], axis=1)
    assert_every((np.diff(np.sort(cells, axis=1), axis=1) > 0).all(axis=1), boards)
    pairs = {"starts": (0, 1), "goals": (2, 3), "start and goal": (0, 2), "the other": (1, 2)}
    for one, other in pairs.values():
        seen = np.unique(cells[:, one] * 9 + cells[:, other], return_counts=True)[1]
        assert len(seen) == 72
        assert_even(seen)
    assert_even(np.unique(holes[:, 0] * 9 + holes[:, 1], return_counts=True)[1])
    piece = draw_free(3, 2, 2, seed=5, first=4090, count=20)
    for field in ("holes", "starts", "goals"):
        assert (getattr(piece, field) == getattr(boards, field)[4090:4110]).all(), field


def test_cells_have_streams_of_their_own_though_they_have_as_many_holes():
    first, second = SweepSpec(sizes=(3,), agents=(2,), hole_ratios=(0.4, 0.41), boards=64).cells()
    assert first.holes == second.holes
    drawn = [draw_free(3, 2, cell.holes, cell.seed, 0, 64) for cell in (first, second)]
    assert (drawn[0].starts != drawn[1].starts).any()


def test_a_shard_holds_its_cell_and_every_label(tmp_path):
    for shard in make(SPEC, tmp_path):
        table = shard.read()
        cell = next(cell for cell in SPEC.cells() if cell.name == shard.record.cell)
        assert table["cell"].unique().to_pylist() == [cell.name]
        of_cell = {"size": 3, "agents": 2, "hole_ratio": cell.hole_ratio, "wait_ratio": None}
        assert {name: table[name].unique().to_pylist() for name in of_cell} == {k: [v] for k, v in of_cell.items()}
        first, count = shard.record.first, shard.record.count
        assert table["index"].to_pylist() == list(range(first, first + count))
        labels = solve(draw_free(3, 2, cell.holes, cell.seed, first, count))
        solvable = np.asarray(labels.status) == Status.SOLVABLE
        assert table["makespan"].to_numpy()[solvable].tolist() == labels.makespan[solvable].tolist()


def test_a_stratum_is_what_the_generator_draws_and_its_acceptance_is_kept(tmp_path):
    spec = SweepSpec(sizes=(3,), agents=(2,), hole_ratios=(0.2,), wait_ratios=(0.5,), boards=24, shard=16)
    made = make(spec, tmp_path)
    cell = spec.cells()[0]
    assert [shard.path.name for shard in made] == [
        "2ag_3x3_hr0.20_wr0.50_0000000000_16.parquet",
        "2ag_3x3_hr0.20_wr0.50_0000000016_8.parquet",
    ]
    for shard in made:
        drawn = generate(cell.config, cell.seed, shard.record.count, first=shard.record.first)[3]
        assert shard.read()["sum_of_costs"].to_pylist() == drawn.labels.sum_of_costs.tolist()
        assert shard.record.acceptance == list(drawn.acceptance)


def test_shares_make_the_same_files_between_them(tmp_path):
    made = [{shard.path.name for shard in make(SPEC, tmp_path, (i, 2))} for i in (0, 1)]
    assert not made[0] & made[1]
    assert data_of(tmp_path) == expected()
    assert len(make(SPEC, tmp_path)) == len(expected()), "and the whole finds nothing left to do"


def test_columns_may_be_chosen(tmp_path):
    spec = msgspec.structs.replace(SPEC, columns=("wait_required", "makespan"), boards=8)
    names = make(spec, tmp_path)[0].read().column_names
    assert names == ["cell", "size", "agents", "hole_ratio", "wait_ratio", "index", "wait_required", "makespan"]


def test_stopped_anywhere_it_resumes_and_repeats_nothing(tmp_path):
    for made in range(1, len(expected())):
        out = tmp_path / str(made)
        make(SPEC, out, at_most=made)
        files = {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()}
        assert [shard.new for shard in make(SPEC, out)] == [False] * made + [True] * (len(expected()) - made)
        assert files.items() <= {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()}.items()
        assert data_of(out) == expected()


def test_a_shard_without_its_record_or_half_written_does_not_count(tmp_path):
    made = make(SPEC, tmp_path)
    made[0].path.with_suffix(".json").unlink()
    made[1].path.unlink()
    half = tmp_path / "shards" / f".{made[0].path.name}.elsewhere-1.part"
    half.write_bytes(b"PAR1 and no more")
    assert sorted(shard.path.name for shard in make(SPEC, tmp_path) if shard.new) == sorted(
        shard.path.name for shard in made[:2]
    )
    assert not half.exists()
    assert data_of(tmp_path) == expected()


def test_the_command_killed_at_any_time_resumes(tmp_path, capsys, here, spec_file):
    """The whole process group is killed after its first shard."""
    out = tmp_path / "sweep"
    given = ["sweep", str(spec_file), "--out", str(out)]
    command = [sys.executable, "-m", "lakewright.experiments.cli", *given, "--workers", "1"]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as process:
        wait_for(out / "shards" / next(iter(expected())).replace(".parquet", ".json"))
        os.killpg(process.pid, signal.SIGKILL)
    code, printed, _ = lakewright(capsys, *given, "--json")
    assert (code, msgspec.json.decode(printed)["shards"]) == (0, len(expected()))
    assert data_of(out) == expected()


def test_status_shows_how_far_a_sweep_is_while_it_is_made(tmp_path, capsys):
    out = tmp_path / "sweep"
    going = sweep(SPEC, Serial(), out)
    for _ in range(4):
        next(going)
    code, printed, _ = lakewright(capsys, "sweep", "status", out, "--json")
    found = msgspec.json.decode(printed, type=folders.SweepStatus)
    assert (code, found.cells, found.cells_done) == (0, 2, 1)
    assert (found.shards, found.shards_done, found.boards, found.boards_done) == (6, 4, 160, 112)
    assert found.seconds_left == pytest.approx(48 / found.boards_per_second)
    _, printed, _ = lakewright(capsys, "sweep", "status", out)
    assert "1 of 2" in printed
    assert "112 of 160" in printed
    list(going)
    _, printed, _ = lakewright(capsys, "sweep", "status", out, "--json")
    assert msgspec.json.decode(printed)["seconds_left"] == 0


def test_a_manifest_says_what_the_shards_depend_on(tmp_path):
    make(SPEC, tmp_path, at_most=1)
    manifest = SweepFolder(tmp_path).manifest()
    assert (manifest.spec, manifest.spec_hash) == (SPEC, content_hash(SPEC))
    assert manifest.cells == {cell.name: cell for cell in SPEC.cells()}
    assert {"jax", "numpy", "lakewright"} <= set(manifest.versions)
    assert manifest.prng == prng()


def test_thousands_of_shards_in_many_shares_are_each_made_once(tmp_path, monkeypatch):
    """The labels are left out: what is tried is the bookkeeping."""
    spec = SweepSpec(sizes=(3, 4), agents=(2, 3), hole_ratios=(0.0, 0.2), boards=3000, shard=12)
    monkeypatch.setattr(shards, "draw", lambda shard: (None, None, []))
    monkeypatch.setattr(shards, "table_of", lambda shard, *given: pa.table({"index": np.arange(shard.count)}))
    monkeypatch.setattr(shards, "features", lambda boards, labels, columns: {})
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    names = []
    for i in range(20):
        names += [shard.path.name for shard in make(spec, tmp_path, (i, 20))]
    assert len(names) == len(set(names)) == len(data_of(tmp_path)) == 2000
    status = SweepFolder(tmp_path).status()
    assert (status.boards, status.boards_done, status.cells_done) == (24_000, 24_000, 8)
    assert sum(pq.read_metadata(path).num_rows for path in (tmp_path / "shards").glob("3ag*.parquet")) == 12_000


def test_a_full_disk_is_reported_and_costs_nothing_that_is_finished(tmp_path, capsys, here, spec_file):
    out = tmp_path / "sweep"
    make(SPEC, out, at_most=2)
    kept = data_of(out)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(map(len, kept.values())) // 2, hard))
    try:
        code, printed, reported = lakewright(capsys, "sweep", spec_file, "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (code, printed, len(reported)) == (2, "", 1), reported
    assert ".parquet: File too large; free disk space and run the same command again" in reported[0]
    assert data_of(out) == kept, "whole shards only"
    assert lakewright(capsys, "sweep", spec_file, "--out", out)[0] == 0
    assert data_of(out) == expected()


WRONG_SPECS = {
    "an unknown axis": (TOML + "slips = [0.1]\n", ["unknown field 'slips'", "choose from sizes, agents, hole_ratios"]),
    "a missing axis": (TOML.replace("sizes = [3]\n", ""), ["field 'sizes' is missing", "add it"]),
    "no TOML": ("sizes = [", ["not TOML", "correct the file"]),
    "an empty axis": (TOML.replace("[3]", "[]"), ["sizes", "[] does not fit", "length >= 1"]),
    "a value twice": (TOML.replace("[3]", "[3, 3]"), ["sizes lists 3 twice"]),
    "a size that is not supported": (TOML.replace("[3]", "[17]"), ["sizes", "<= 16"]),
    "a ratio above one": (TOML.replace("0.4", "1.4"), ["hole_ratios", "<= 1"]),
    "no boards": (TOML.replace("80", "0"), ["boards", ">= 1"]),
    "more boards than there are numbers": (TOML.replace("80", str(2**33)), ["hr0.00_free", "at most 4294967296"]),
    "boards for others": (TOML.replace("= 80", "= {3 = 80}"), ["boards and agents", "only one of them lists 2"]),
    "no room": (TOML.replace("[2]", "[5]"), ["cell 5ag_3x3_hr0.00_free", "leave out size 3 or 5 agents"]),
    "one agent that waits": (
        TOML.replace("[2]", "[1]") + "wait_ratios = [0.5]\n",
        ["cell 1ag_3x3_hr0.00_wr0.50 is empty", "leave out 1 agent or set 0"],
    ),
    "a stratum with too many holes": (
        TOML.replace("0.4", "0.6") + "wait_ratios = [0.5]\n",
        ["cell 2ag_3x3_hr0.60_wr0.50", "choose 0 to 0.5", "free draws may have more"],
    ),
    "an unknown column": (TOML + "columns = ['colour']\n", ["'colour' is not a statistic", "choose from", "makespan"]),
}


@pytest.mark.parametrize("name", WRONG_SPECS)
def test_a_wrong_spec_is_reported(tmp_path, capsys, here, spec_file, name):
    text, parts = WRONG_SPECS[name]
    spec_file.write_text(text)
    assert_refused(capsys, ("sweep", spec_file, "--out", tmp_path / "out"), *parts)
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_a_stratum_that_is_not_found_is_reported_before_any_board_is_drawn(
    tmp_path, capsys, here, spec_file, monkeypatch
):
    monkeypatch.setattr(generator, "make_attempts", none_met)
    spec_file.write_text(TOML + "wait_ratios = [0.5]\n")
    parts = "cell 2ag_3x3_hr0.00_wr0.50 is empty", "only 0 of 4096", "change wait_ratio or hole_ratio of size 3"
    assert_refused(capsys, ("sweep", spec_file, "--out", tmp_path / "out"), *parts)
    assert not list((tmp_path / "out").rglob("*.parquet"))


def test_boards_that_workers_cannot_hold_are_reported_before_any_is_drawn(tmp_path, capsys, spec_file):
    spec_file.write_text(TOML.replace("[3]", "[16]").replace("[2]", "[8]"))
    given = ("sweep", spec_file, "--out", tmp_path / "out", "--workers", 10_000)
    assert_refused(capsys, given, "cell 8ag_16x16_hr0.00_free", "10000 workers take about", "use --workers")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--shard", "2/2"), ["--shard is '2/2'", "0 <= i < n", "0/100"]),
        (("--shard", "half"), ["--shard is 'half'", "i/n"]),
        (("--workers", "0"), ["--workers is 0", "at least 1"]),
        (("--executor", "slurm"), ["slurm", "--help"]),
    ],
)
def test_a_wrong_option_is_reported(tmp_path, capsys, spec_file, options, parts):
    assert_refused(capsys, ("sweep", spec_file, "--out", tmp_path / "out", *options), *parts)


def test_a_folder_of_something_else_is_reported_and_nothing_is_lost(tmp_path, capsys, here, spec_file):
    out = tmp_path / "sweep"
    make(msgspec.structs.replace(SPEC, seed=4), out)
    there = data_of(out)
    assert_refused(capsys, ("sweep", spec_file, "--out", out), "another sweep", "spec.seed is 4 there and 3 now")
    assert data_of(out) == there
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.txt").write_text("ten years of work")
    assert_refused(capsys, ("sweep", spec_file, "--out", tmp_path / "thesis"), "holds no sweep", "choose another")
    assert_refused(capsys, ("sweep", "status", tmp_path / "thesis"), "holds no sweep", "give a folder made by")


def test_two_processes_make_one_sweep_only_as_shares(tmp_path, capsys, here, spec_file):
    out = tmp_path / "sweep"
    with SweepFolder(out).working(SPEC, shared=True):
        assert_refused(
            capsys, ("sweep", spec_file, "--out", out), "another process works on this sweep", "choose another folder"
        )
        assert lakewright(capsys, "sweep", spec_file, "--out", out, "--shard", "0/2")[0] == 0


@pytest.mark.parametrize("step", [(), ("run",), ("status",)])
def test_every_step_has_help_with_an_example(capsys, step):
    code, out, reported = lakewright(capsys, "sweep", *step, "--help")
    assert (code, reported) == (0, [])
    assert "example: lakewright sweep" in out


def test_a_process_is_kept_to_one_core_by_what_xla_heeds(monkeypatch):
    monkeypatch.setenv("NPROC", "1")
    assert cores() == 1
