"""Boards of more than 64 cells a side have no picture anywhere: a link leads to the row instead."""

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.rows import Row, read_all, write_rows
from lakewright.experiments.boards.episodes.pictures import as_pixels
from lakewright.experiments.loop.records.stage_records import Validation, read_record, write_record
from lakewright.experiments.viewer.pictures.board_pictures import draw_frames, strip_svg
from lakewright.experiments.viewer.pictures.played_plans import draw_played, make_example, moving_svg, still_svg
from lakewright.experiments.viewer.site import write_report, write_site
from tests.support.refusals import refused
from tests.support.samples.finished_run import finish
from tests.support.servers.viewer_client import client, page


def large(side: int, name: str = "large") -> Row:
    """A solved board with one agent that moves once."""
    return Row(name, side, 1, ["." * side] * side, [(0, 0)], [(0, 1)], status="solvable", plan=["R"])


@pytest.fixture
def boards(tmp_path):
    """A file of a board of 65 cells a side, one of 64, and one of 400."""
    path = tmp_path / "boards.jsonl"
    write_rows(path, [large(65, "too-large"), large(64, "just-drawn"), large(400, "huge")])
    return path


LIST = "/boards/boards/file/boards.jsonl"
BOARD = "/board/boards/file/{}/boards.jsonl"
EXPORT = "/export/boards/file/{}/boards.jsonl?form={}"


def test_a_list_shows_no_picture_of_a_large_board_but_a_link_to_its_row(boards):
    found = page(client(boards), LIST)
    assert found.count('class="board" role="img"') == 1
    assert 'aria-label="board just-drawn"' in found
    for place, side in ((0, 65), (2, 400)):
        assert f"{side} x {side} cells; pictures show at most 64 x 64" in found
        assert f'href="{EXPORT.format(place, "row")}"' in found
    assert len(found) < 64 * 64 * 300


def test_the_page_of_a_large_board_is_its_labels_and_a_link_to_its_row(boards):
    site = client(boards)
    found = page(site, BOARD.format(2))
    assert 'class="board" role="img"' not in found
    assert "400 x 400 cells; pictures show at most 64 x 64" in found
    assert f'href="{EXPORT.format(2, "row")}"' in found
    assert len(found) < 20_000, "neither the row nor the editor's address is in it"
    assert msgspec.json.decode(site.get(EXPORT.format(2, "row")).content, type=Row) == read_all(boards)[2]
    assert "data-player" in page(site, BOARD.format(1))


@pytest.mark.parametrize("form", ["svg", "moving"])
def test_no_picture_of_a_large_board_is_exported(boards, form):
    reply = client(boards).get(EXPORT.format(0, form))
    assert reply.status_code == 422
    assert "65 cells a side, and pictures are drawn up to 64" in reply.text


def test_a_site_of_large_boards_is_small(boards, tmp_path):
    write_site([boards], tmp_path / "site")
    pages = list((tmp_path / "site").rglob("*.html"))
    assert sum(file.stat().st_size for file in pages) < 4_000_000
    text = (tmp_path / "site" / BOARD.format(2)[1:] / "index.html").read_text()
    assert "pictures show at most 64 x 64" in text
    assert "row 2 of boards.jsonl" in text


def test_no_other_picture_is_drawn_of_a_large_board():
    example = make_example(large(65), ["R"])
    for draw in (draw_frames, moving_svg, draw_played, strip_svg):
        with refused(65, "pictures", 64):
            draw(example)
    with refused("65 cells"):
        still_svg(large(65))
    with refused("65 cells"):
        as_pixels(np.zeros((65, 65), bool), np.zeros((1, 2), int), np.ones((1, 2), int))


def test_a_run_on_large_boards_is_shown_without_their_pictures(tmp_path):
    run = finish(tmp_path / "run")
    stage = run.finished_stages()[-1]
    found = read_record(stage.validation, Validation)
    examples = [make_example(large(65), ["R"]), make_example(large(65), ["L"], "illegal_move", 0, 1)]
    write_record(stage.validation, msgspec.structs.replace(found, examples=examples))
    write_report(run)
    assert "pictures show at most 64 x 64" in run.report.read_text()
    number = len(run.finished_stages()) - 1
    assert "pictures show at most 64 x 64" in page(client(run.folder), f"/stage/{number}/run")
