"""Ten thousand boards through every MAPF format and back, and the plans of another solver through LaCAM's."""

import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import Row, read_all, rows_of, verify_rows, write_rows
from lakewright.core_jax.types import DELTAS, MOVES
from lakewright.experiments.boards.formats.conversion import convert_files
from lakewright.experiments.boards.formats.movingai import map_text
from tests.support.boards.generated_rows import shown, small_rows

BOARDS = 10_000
FOLDERS_AND_FILES = {
    "movingai": "maps",
    "lacam": "results",
    "eecbs": "paths",
    "pogema": "maps.yaml",
    "multirobot": "instances",
    "lorr": "problems",
    "published": "benchmark.jsonl",
}
WITH_PLANS = ("lacam", "eecbs", "multirobot")


def random_board(rng: np.random.Generator, number: int) -> Row:
    """A board of any size and team, with a plan of legal steps that need not lead anywhere."""
    size = int(rng.integers(3, 17))
    agents = int(rng.integers(1, min(8, size * size // 2) + 1))
    cells = [(int(cell) // size, int(cell) % size) for cell in rng.permutation(size * size)]
    starts, goals, rest = cells[:agents], cells[agents : 2 * agents], cells[2 * agents :]
    holes = set(rest[: int(rng.integers(len(rest) + 1))])
    grid = ["".join(".H"[(line, column) in holes] for column in range(size)) for line in range(size)]
    plan = [random_walk(rng, grid, start, int(rng.integers(12))) for start in starts]
    return Row(
        f"{agents}ag_{size}x{size}_hr{len(holes) / size**2:.2f}_{number:05d}",
        size,
        agents,
        grid,
        starts,
        goals,
        plan=plan,
    )


def random_walk(rng: np.random.Generator, grid: list[str], start: tuple[int, int], steps: int) -> str:
    """Moves that stay on frozen cells; the last is no wait, which formats of cells cannot tell from the end."""
    moves, here = "", start
    for move in rng.integers(len(MOVES), size=steps):
        there = (here[0] + DELTAS[move][0], here[1] + DELTAS[move][1])
        if all(0 <= place < len(grid) for place in there) and grid[there[0]][there[1]] == ".":
            moves, here = moves + MOVES[move], there
    return moves.rstrip("W")


@pytest.mark.deep
@pytest.mark.parametrize("form", FOLDERS_AND_FILES)
def test_ten_thousand_boards_come_back_from_every_format(tmp_path, form):
    rng = np.random.default_rng(17)
    rows = [random_board(rng, number) for number in range(BOARDS)]
    write_rows(tmp_path / "rows.jsonl", rows)
    there = tmp_path / FOLDERS_AND_FILES[form]
    assert convert_files(tmp_path / "rows.jsonl", there, wanted=form) == BOARDS
    assert convert_files(there, tmp_path / "back.jsonl", given=form) == BOARDS
    back = {row.id: row for row in read_all(tmp_path / "back.jsonl")}
    for row in rows:
        kept = row.plan if form in WITH_PLANS else None
        expected = Row(row.id, row.size, row.agents, row.grid, row.starts, row.goals, plan=kept)
        assert back[row.id] == expected, shown(row)


def some_boards_of_three_agents() -> list[Row]:
    config = EnvConfig.single(6, 3, 0.2, 0.5)
    return rows_of(generate(config, 3, 1000), config)


@pytest.mark.parametrize("drawn", [small_rows, pytest.param(some_boards_of_three_agents, marks=pytest.mark.deep)])
def test_plans_of_w9_pathfinding_are_read_from_result_files_and_judged(tmp_path, drawn):
    pytest.importorskip("w9_pathfinding", reason="peers are installed by the extra `bench`")
    rows = drawn()
    folder = tmp_path / "solved"
    folder.mkdir()
    for row in rows:
        (folder / f"{row.id}.map").write_text(map_text(row))
        (folder / f"{row.id}.txt").write_text(solved_by_w9(row))
    convert_files(folder, tmp_path / "rows.jsonl")
    theirs = {row.id: row for row in read_all(tmp_path / "rows.jsonl")}
    verdicts = verify_rows(rows, [theirs[row.id].plan or [] for row in rows])
    for row, verdict in zip(rows, verdicts, strict=True):
        assert (theirs[row.id].starts, theirs[row.id].goals) == (row.starts, row.goals)
        assert verdict.valid, f"{verdict.failure}{shown(theirs[row.id])}"
        assert verdict.optimal_sum_of_costs, f"{verdict.sum_of_costs} beside {row.sum_of_costs}{shown(theirs[row.id])}"


def solved_by_w9(row: Row) -> str:
    """w9-pathfinding's optimal plan as a result file, written by nothing of ours: its cells are (column, row) too."""
    from w9_pathfinding.envs import Grid
    from w9_pathfinding.mapf import MultiAgentAStar

    grid = Grid([[-1 if cell == "H" else 1 for cell in line] for line in row.grid], edge_collision=True)
    starts, goals = ([(column, line) for line, column in cells] for cells in (row.starts, row.goals))
    paths = MultiAgentAStar(grid).mapf(starts, goals, max_time=60)
    lines = [f"agents={row.agents}", f"map_file=maps/{row.id}.map", "solver=w9-pathfinding", "solved=1"]
    for name, cells in (("starts", starts), ("goals", goals)):
        lines.append(f"{name}=" + "".join(f"({x},{y})," for x, y in cells))
    lines.append("solution=")
    longest = max(map(len, paths))
    for time in range(longest):
        cells = [path[min(time, len(path) - 1)] for path in paths]
        lines.append(f"{time}:" + "".join(f"({x},{y})," for x, y in cells))
    return "\n".join(lines) + "\n"
