"""Rows for tests of formats: any that is not refused, one good one and its wrong neighbours."""

import msgspec
import pytest
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, read_chunks, read_columns, read_rows
from lakewright.core_jax.rows.columns import records_of
from lakewright.core_jax.testing import boards

GOOD = Row("a", 3, 2, ["..H", "...", "H.."], [(0, 0), (1, 1)], [(2, 2), (0, 1)], 0.4, plan=["RD", "U"])

each_ending = pytest.mark.parametrize("form", [".jsonl", ".parquet"])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def any_rows(draw) -> Row:
    """Any row that is not refused: solved or not, of any size and one to four agents."""
    board = draw(boards(max_size=20, max_agents=4))
    numbers = st.none() | st.integers(0, 2**31 - 1)
    plans = st.none() | st.lists(st.text("UDLRW", max_size=9), min_size=board.agents, max_size=board.agents)
    return msgspec.structs.replace(
        board,
        id=draw(texts),
        hole_ratio=draw(st.none() | st.floats(0, 1)),
        status=draw(st.none() | st.sampled_from(["solvable", "unsolvable", "undecided"])),
        makespan=draw(numbers),
        sum_of_costs=draw(numbers),
        wait_required=draw(st.none() | st.booleans()),
        plan=draw(plans),
        makespan_plan=draw(plans),
        certificate=draw(st.none() | st.sampled_from(["bound", "flood", "search"])),
    )


def fields(**changes: object) -> dict:
    """GOOD as plain data with some fields changed; None takes a field away."""
    raw = {**msgspec.to_builtins(GOOD), **changes}
    return {name: value for name, value in raw.items() if value is not None}


def read_with_errors(path, kind=Row) -> tuple[list, list[str]]:
    """What is read of a file, and what is reported about the rest; of rows, as columns the same."""
    problems: list[InputError] = []
    found = [row for chunk in read_rows(path, kind, problems.append) for row in chunk]
    said = [str(error) for error in problems]
    assert all("\n" not in line for line in said)
    if kind is Row:
        again: list[InputError] = []
        batches = [read_columns(chunk, lambda _, error: again.append(error)) for chunk in read_chunks(path)]
        assert [str(error) for error in again] == said, "columns are refused as rows are"
        assert [row for batch in batches for row in msgspec.convert(records_of(batch), list[Row])] == found
    return found, said


WRONG_ROWS = {
    "a start in a hole": (fields(starts=[[0, 2], [1, 1]]), "starts[0] is [0, 2], a hole; choose a frozen cell"),
    "a goal in a hole": (fields(goals=[[2, 2], [2, 0]]), "goals[1] is [2, 0], a hole; choose a frozen cell"),
    "a start off the board": (fields(starts=[[0, 0], [3, 1]]), "starts[1] is [3, 1], off the 3x3 board; use 0-based"),
    "a negative cell": (fields(goals=[[-1, 0], [0, 1]]), "goals[0] is [-1, 0], off the 3x3 board; use 0-based"),
    "a start taken twice": (fields(starts=[[0, 0], [0, 0]]), "starts are [[0, 0], [0, 0]]: two agents share a cell"),
    "a goal taken twice": (fields(goals=[[0, 0], [0, 0]]), "goals are [[0, 0], [0, 0]]: two agents share a cell"),
    "a start too many": (
        fields(starts=[[0, 0], [0, 1], [1, 0]]),
        "starts has 3 cells for 2 agents; give one per agent",
    ),
    "a cell of three numbers": (fields(starts=[[0, 0, 0], [0, 1]]), "starts: [[0, 0, 0], [0, 1]] does not fit"),
    "a grid too short": (fields(grid=["...", "..."]), "grid has 2 lines for size 3; give one line per row"),
    "a line too long": (fields(grid=["...", "....", "..."]), "grid[1] is '....', not 3 cells long"),
    "an unknown letter": (fields(grid=["...", ".X.", "..."]), "grid[1] holds 'X'; use '.' for frozen and 'H'"),
    "an unknown move": (fields(plan=["RD", "UQ"]), "plan[1] has the move 'Q'; use U D L R W only"),
    "a plan too few": (fields(plan=["RD"]), "plan has 1 strings for 2 agents; give one string per agent"),
    "an unknown field": (fields(holes=3), "unknown field 'holes' = 3; choose from id, size,"),
    "a missing field": (fields(goals=None), "field 'goals' is missing; add it"),
    "a size of nothing": (fields(size=0), "size is 0; a board has at least 1 cell a side"),
    "a size beyond all": (fields(size=10**30), f"grid has 3 lines for size {10**30}; give one line per row"),
    "an unknown status": (fields(status="done"), "status is 'done'; choose from solvable, unsolvable, undecided, or"),
    "an unknown certificate": (fields(certificate="oath"), "certificate is 'oath'; choose from bound, flood, search"),
    "no certificate in words": (fields(certificate="none"), "certificate is 'none'; choose from bound, flood, search"),
    "a move unknown to both plans": (fields(makespan_plan=["", "?"]), "makespan_plan[1] has the move '?'; use U D L"),
    "a cost below nothing": (fields(sum_of_costs=-1), "sum_of_costs: -1 does not fit: expected `int` >= 0"),
    "a cost beyond the column": (fields(makespan=2**31), f"makespan: {2**31} does not fit: expected `int` <="),
    "no agent": (fields(agents=0), "agents is 0; there must be at least 1"),
    "a size in words": (fields(size="three"), "size: 'three' does not fit: expected"),
    "a makespan in parts": (fields(makespan=1.5), "makespan: 1.5 does not fit: expected"),
    "no object": ([1, 2], "expected an object, got [1, 2]"),
}
