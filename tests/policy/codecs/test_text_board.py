"""Rows in the published form: the board is read from the text, and a contradiction is reported."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import boards_of, read_rows
from lakewright.policy.codecs import PublishedRow, check_text, encode_prompt, row_of_published
from lakewright.policy.codecs.text_prompt import MAX_AGENTS, draw_lake, read_lake
from tests.support.boards.sample_boards import each, mixed_boards, picture
from tests.support.refusals import refused

THREE = "S F H\nG s A\ng F a"


def published(text: str = THREE, name: str = "3ag_3x3_hr0.1_000", agents: int = 3) -> PublishedRow:
    return PublishedRow(name, agents, text)


@given(seed=st.integers(0, 1 << 30), agents=st.integers(1, MAX_AGENTS), size=st.integers(4, 12))
def test_the_board_of_a_prompt_and_of_a_bare_grid_is_read(seed, agents, size):
    for board in each(mixed_boards(seed, 3, size, agents)):
        for text in (encode_prompt(board), "\n".join(" ".join(row) for row in draw_lake(board))):
            row = row_of_published(published(text, f"{agents}ag_{size}x{size}_hr0.2_001", agents))
            for name in ("holes", "starts", "goals"):
                assert np.array_equal(getattr(boards_of([row]), name)[0], getattr(board, name)), picture(board) + name
            check_text(row, text)


def test_the_grid_is_found_among_legends_fences_and_repetitions():
    text = f"Letters:\nS s A B C\nG g a b c\nThe lake:\n```\n{THREE}\n```\nOnce more:\n{THREE}\nGo!"
    row = row_of_published(published(text))
    assert (row.grid, row.starts, row.goals) == (
        ["..H", "...", "..."],
        [(0, 0), (1, 1), (1, 2)],
        [(1, 0), (2, 0), (2, 2)],
    )


WRONG = {
    "another number of agents": (published(agents=2), "num_agents is 2, but the grid of text has 3 starts"),
    "another size in the id": (published(name="3ag_4x4_hr0.1_000"), "sample_id is '3ag_4x4_hr0.1_000', but the grid"),
    "another number of agents in the id": (published(name="4ag_3x3_hr0.1_000"), "has 3 agents on 3x3"),
    "no grid": (published("Cross the lake."), "text has no grid"),
    "a grid that is not square": (published("S F H\nG F F"), "2 rows of 3 cells; it must be square"),
    "rows of several lengths": (published("S F H\nG F\nF F F"), "3 rows of 2, 3 cells"),
    "two boards": (published(f"{THREE}\n\n{THREE.replace('H', 'F')}"), "2 grids that differ"),
    "a start twice": (published("S S H\nG s F\ng F F"), "has S in 2 cells"),
    "a start without a goal": (published("S F H\nG s F\nF F F"), "no g next to G S s; add it"),
    "a goal without a start": (published("S F H\nG g F\nF F F"), "no s next to G S g; add it"),
    "an agent left out": (published("S F H\nG A F\na F F"), "no s next to A G S a; add it"),
    "nobody": (published("F F\nF H"), "no S next to holes; add it"),
    "a cell in words": (
        published(f"{THREE}\nagent 0: starts at S (0, 1)"),
        "S is at (0, 1), but",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_row_that_contradicts_its_text_is_refused(name):
    row, problems = WRONG[name]
    with refused(problems, kind=ValueError):
        row_of_published(row)


def test_a_row_with_a_board_of_its_own_must_agree_with_its_text():
    row = read_lake("one", THREE)
    with refused("starts", "[(0, 0), ", "text", kind=ValueError):
        check_text(row, "s F H\nG S A\ng F a")


def test_a_bad_line_of_a_published_file_is_reported_by_its_place_and_other_columns_are_ignored(tmp_path):
    good = {**msgspec.to_builtins(published()), "hole_ratio": 0.1, "anything": [1, {"else": None}]}
    lines = [good, {**good, "num_agents": 5}, {**good, "text": None}, {"sample_id": "x"}, good]
    (tmp_path / "rows.jsonl").write_bytes(msgspec.json.Encoder().encode_lines(lines))
    problems: list[InputError] = []
    rows = [
        row
        for chunk in read_rows(tmp_path / "rows.jsonl", PublishedRow, problems.append, row_of_published)
        for row in chunk
    ]
    assert len(rows) == 2
    assert [str(error).removeprefix(f"{tmp_path}/") for error in problems] == [
        "rows.jsonl:2: num_agents is 5, but the grid of text has 3 starts; correct one of them",
        "rows.jsonl:3: text: None does not fit: expected `str`, got `null`",
        "rows.jsonl:4: field 'num_agents' is missing; add it",
    ]
