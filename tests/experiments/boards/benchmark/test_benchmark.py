"""The benchmark: cells as asked for, certified labels, prompts, and a build that survives its end."""

import hashlib
import os
import shutil
import signal

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import holes_of
from lakewright.core_jax.errors import InputError, TooRareError
from lakewright.core_jax.rows import read_all, read_rows
from lakewright.core_jax.rows.row import BENCHMARK_COLUMNS, Row
from lakewright.experiments.boards.benchmark import builder as benchmark
from lakewright.experiments.boards.benchmark import cells
from lakewright.experiments.boards.benchmark.builder import build_benchmark
from lakewright.experiments.boards.benchmark.cells import BenchmarkRow, draw_cell, find_moved_cell
from lakewright.experiments.boards.benchmark.tiers import HARD, PAPER, TIERS, BenchmarkCell, Tier
from lakewright.experiments.cli import main
from tests.support.boards.generated_rows import shown
from tests.support.boards.prompt_boards import read_board
from tests.support.boards.sample_boards import drawing
from tests.support.boards.search_oracle import optima, play
from tests.support.machines.power_cuts import PowerCutError
from tests.support.processes.killable import begin, server
from tests.support.processes.killable_work import SMALL_TIER
from tests.support.processes.watching import wait_for
from tests.support.refusals import refused
from tests.support.samples.small_benchmark import build_small

FILES = ("benchmark.jsonl", "benchmark.parquet", "manifest.json")


@pytest.fixture(autouse=True)
def small_tier(monkeypatch):
    monkeypatch.setitem(TIERS, "small", SMALL_TIER)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A benchmark that nobody disturbed."""
    return build_small(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def rows(whole) -> list[BenchmarkRow]:
    return benchmark_rows(whole / "benchmark.jsonl")


def benchmark_rows(path) -> list[BenchmarkRow]:
    errors = []
    found = [row for chunk in read_rows(path, BenchmarkRow, errors.append) for row in chunk]
    assert not errors
    return found


def contents(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def test_the_papers_tier_has_its_cells_and_boards():
    assert (len(PAPER.teams), PAPER.count) == (21, 3150)
    assert set(PAPER.teams) == {(k, n) for k, least in ((3, 3), (4, 4), (5, 5)) for n in range(least, 11)}


def test_the_hard_tier_goes_beyond_the_papers():
    assert not set(HARD.teams) & set(PAPER.teams)
    assert (max(n for _, n in HARD.teams), max(k for k, _ in HARD.teams)) == (16, 8)


def test_ids_have_the_published_form_and_number_the_wait_ratios_through():
    assert str(BenchmarkCell(3, 3, 0.1)) == "3ag_3x3_hr0.1"


def test_every_cell_has_its_boards_in_order(rows):
    expected = [f"{cell}_{number:03d}" for cell in SMALL_TIER.cells() for number in range(12)]
    assert [row.id for row in rows] == expected
    assert [row.wait_ratio for row in rows] == ([0.25] * 6 + [0.75] * 6) * 4
    assert all((row.sample_id, row.num_agents) == (row.id, row.agents) for row in rows)


def test_labels_and_plans_are_those_of_the_oracle(rows):
    for row in rows:
        board = row.grid, row.starts, row.goals
        assert row.status == "solvable", shown(row)
        assert optima(*board) == (row.makespan, row.sum_of_costs, row.wait_required), shown(row)
        assert play(*board, row.plan)[:1] == ("none",), shown(row)


def test_the_prompt_shows_the_board(rows):
    for row in rows:
        board, shows = drawing(row.grid, row.starts, row.goals), read_board(row.text)
        same = [np.array_equal(getattr(board, name), getattr(shows, name)) for name in ("holes", "starts", "goals")]
        assert all(same), shown(row) + row.text


def test_no_board_comes_twice(rows):
    assert len({(*row.grid, *row.starts, *row.goals) for row in rows}) == len(rows)


def test_ratios_are_met_or_the_row_says_what_was_drawn(rows):
    for row in rows:
        holes = sum(line.count("H") for line in row.grid)
        assert holes == holes_of(row.size, row.agents, row.drawn_hole_ratio), shown(row)
    for cell in SMALL_TIER.cells():
        for ratio in SMALL_TIER.wait_ratios:
            some = [row for row in rows if row.id.startswith(f"{cell}_") and row.wait_ratio == ratio]
            waits, drawn = sum(row.wait_required for row in some), {row.drawn_wait_ratio for row in some}
            assert len(drawn) == 1
            assert abs(waits - 6 * drawn.pop()) < 1, f"{cell} at {ratio}: {waits} forced waits"


def test_a_stratum_that_does_not_exist_is_replaced_by_the_nearest_and_reported(whole, monkeypatch):
    def draw_without_waits(config, seed, count):
        if config.sizes[5].wait_ratio > 0 or holes_of(5, 2, config.sizes[5].hole_ratio) > 2:
            raise TooRareError("too rare")
        return generate(config, seed, count)

    generate = cells.generate
    monkeypatch.setattr(cells, "generate", draw_without_waits)
    tier = Tier(((2, 5),), (0.5,), (0.25,), 3)
    for row in draw_cell(BenchmarkCell(2, 5, 0.5), tier, 0, set()):
        assert (row.hole_ratio, row.wait_ratio, row.id[:-4]) == (0.5, 0.25, "2ag_5x5_hr0.5")
        assert (row.drawn_hole_ratio, row.drawn_wait_ratio) == (round(2 / 21, 4), 0)
        reported = find_moved_cell(row)
        assert (reported.cell, reported.drawn_holes, reported.drawn_wait_ratio) == ("2ag_5x5_hr0.5", 2, 0)


def test_a_cell_that_cannot_be_had_at_all_is_an_error_that_names_it(monkeypatch):
    def never(config, seed, count):
        raise TooRareError("too rare to go on")

    monkeypatch.setattr(cells, "generate", never)
    with pytest.raises(InputError, match=r"^benchmark cell 2ag_5x5_hr0.5, wait ratio 0.25: "):
        draw_cell(BenchmarkCell(2, 5, 0.5), SMALL_TIER, 0, set())


def test_bad_input_is_no_reason_to_draw_other_boards(monkeypatch):
    def refuse(config, seed, count):
        assert config.sizes[5].hole_ratio == 0.5, "another cell was tried"
        raise InputError("not enough memory")

    monkeypatch.setattr(cells, "generate", refuse)
    with pytest.raises(InputError, match=r"^not enough memory$"):
        draw_cell(BenchmarkCell(2, 5, 0.5), SMALL_TIER, 0, set())


def test_the_manifest_counts_and_signs_what_is_there(whole, rows):
    manifest = msgspec.json.decode((whole / "manifest.json").read_bytes(), type=benchmark.BenchmarkManifest)
    assert manifest.boards == SMALL_TIER.count == len(rows)
    assert [(team.agents, team.size, team.boards) for team in manifest.counts] == [(2, 3, 24), (2, 5, 24)]
    assert sum(team.wait_required for team in manifest.counts) == sum(row.wait_required for row in rows)
    assert {moved.cell for moved in manifest.moved} == {row.id[:-4] for row in rows if find_moved_cell(row)}
    for name, file in manifest.files.items():
        assert hashlib.sha256((whole / name).read_bytes()).hexdigest() == file.sha256
    assert manifest.request.versions.keys() >= {"lakewright", "jax"}


def test_parquet_holds_the_same_rows(whole, rows):
    assert benchmark_rows(whole / "benchmark.parquet") == rows


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_other_commands_read_a_benchmark_over_its_own_columns(whole, rows, tmp_path, form):
    given, solved, verdicts = whole / f"benchmark{form}", tmp_path / f"solved{form}", tmp_path / "verdicts.jsonl"
    assert main(["solve", str(given), "--out", str(solved)]) == 0
    assert [unplanned(row) for row in read_all(solved)] == [unplanned(row) for row in rows]
    assert main(["verify", str(given), "--out", str(verdicts)]) == 0
    reported = [msgspec.json.decode(line) for line in verdicts.read_bytes().splitlines()]
    assert [verdict["id"] for verdict in reported if verdict["optimal_sum_of_costs"]] == [row.id for row in rows]


def unplanned(row: Row) -> Row:
    """The row without its plan, which need not be the only one, and without what only the benchmark has."""
    fields = {name: value for name, value in msgspec.structs.asdict(row).items() if name not in BENCHMARK_COLUMNS}
    return Row(**fields | {"plan": None, "certificate": None})


@pytest.mark.parametrize("finished", [0, 1, 3, 4])
def test_a_build_that_is_killed_resumes_and_ends_with_the_same_bytes(whole, tmp_path, monkeypatch, finished):
    drawn = []

    def count(cell, *rest):
        if len(drawn) == finished:
            raise PowerCutError
        drawn.append(cell)
        return draw_cell(cell, *rest)

    def cut(*rest):
        raise PowerCutError

    monkeypatch.setattr(benchmark, "draw_cell", count)
    monkeypatch.setattr(benchmark, "_write_manifest", cut)
    with pytest.raises(PowerCutError):
        build_benchmark(tmp_path, "small", 0)
    assert not (tmp_path / "manifest.json").exists()
    monkeypatch.undo()
    monkeypatch.setitem(TIERS, "small", SMALL_TIER)
    again = []
    monkeypatch.setattr(benchmark, "draw_cell", lambda cell, *rest: again.append(cell) or draw_cell(cell, *rest))
    build_benchmark(tmp_path, "small", 0)
    assert drawn + again == SMALL_TIER.cells()
    assert contents(tmp_path) == contents(whole)
    assert not (tmp_path / "cells").exists()


@pytest.mark.deep
def test_a_killed_process_leaves_whole_cells_only(whole, tmp_path):
    with server("endless builds") as builds:
        child = begin(builds, tmp_path)
        wait_for(tmp_path / "cells" / f"{SMALL_TIER.cells()[0]}.jsonl")
        os.kill(child, signal.SIGKILL)
    (cell,) = tmp_path.glob("cells/2ag*.jsonl")
    assert len(benchmark_rows(cell)) == 12
    build_benchmark(tmp_path, "small", 0)
    assert contents(tmp_path) == contents(whole)


def test_a_finished_benchmark_is_left_alone_and_another_one_refused(whole, tmp_path, monkeypatch):
    folder = shutil.copytree(whole, tmp_path / "copy")
    monkeypatch.setattr(benchmark, "draw_cell", None)
    build_benchmark(folder, "small", 0)
    assert contents(folder) == contents(whole)
    with refused("manifest.json", "seed is 0 there and 1 now"):
        build_benchmark(folder, "small", 1)
    (folder / "benchmark.jsonl").write_bytes(b"")
    with refused("benchmark.jsonl:", "manifest.json"):
        build_benchmark(folder, "small", 0)


def test_another_seed_gives_other_boards(rows):
    others = draw_cell(SMALL_TIER.cells()[-1], SMALL_TIER, 1, set())
    assert not {str(row.grid) for row in others} & {str(row.grid) for row in rows[-12:]}


def test_the_command_builds_and_reports(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(TIERS, "paper", Tier(((2, 3),), (0.2,), (0.5,), 4))
    assert main(["benchmark", "build", "--out", str(tmp_path / "b"), "--json"]) == 0
    reported = msgspec.json.decode(capsys.readouterr().out)
    assert reported == {"boards": 4, "moved": 0, "out": str(tmp_path / "b")}
    assert len(benchmark_rows(tmp_path / "b" / "benchmark.jsonl")) == 4
