"""A static site holds the viewer's pages and leads nowhere else; of long lists of boards it says how many it holds."""

import re
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import write_rows
from lakewright.experiments.view.site import write_site
from tests.support.samples.finished_run import board, finish

BOARDS = "boards/boards/file/boards.jsonl"


def boards(folder: Path, count: int) -> Path:
    folder.mkdir(exist_ok=True)
    write_rows(folder / "boards.jsonl", [board(f"board-{n}") for n in range(count)])
    return folder / "boards.jsonl"


def test_every_link_of_a_site_leads_to_a_file_of_it(tmp_path):
    run = finish(tmp_path / "run")
    out = tmp_path / "site"
    assert write_site([run.folder, boards(tmp_path, 30)], out) == len(list(out.rglob("index.html")))
    for page in out.rglob("index.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)"', page.read_text()):
            assert (page.parent / link).resolve().is_file(), f"{page.relative_to(out)}: {link}"


def test_a_list_of_boards_continues_from_page_to_page(tmp_path):
    write_site([boards(tmp_path, 30)], tmp_path / "site")
    first = (tmp_path / "site" / BOARDS / "index.html").read_text()
    later = (tmp_path / "site" / BOARDS / "page-1" / "index.html").read_text()
    assert "This site holds them all" in first
    assert "30 boards; shown are 25 to 30" in later
    assert (tmp_path / "site" / "board/boards/file/29/boards.jsonl/index.html").exists()


def test_a_site_says_how_many_boards_of_a_long_list_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("lakewright.experiments.view.site.SITE_PAGES", 1)
    monkeypatch.setattr("lakewright.experiments.view.pages.board_pages.SITE_PAGES", 1)
    write_site([boards(tmp_path, 30)], tmp_path / "site")
    assert "This site holds the first 24 of them" in (tmp_path / "site" / BOARDS / "index.html").read_text()
    assert not (tmp_path / "site" / BOARDS / "page-1").exists()


def test_a_folder_of_something_else_is_not_written_into(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no site"):
        write_site([boards(tmp_path / "data", 1)], tmp_path)
