"""A static site holds the viewer's pages and leads nowhere else; of long lists of boards it says how many it holds."""

import os
import re
import shutil
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import write_rows
from lakewright.experiments.viewer.catalogue.discovery import Catalogue
from lakewright.experiments.viewer.pages import cards
from lakewright.experiments.viewer.site import write_site
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


def test_many_runs_are_shown_some_at_a_time_and_a_site_holds_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr(cards, "MOST_CARDS", 2)
    first = finish(tmp_path / "runs" / "r0").folder
    for number in range(1, 5):
        shutil.copytree(first, first.with_name(f"r{number}"), symlinks=True)
        os.utime(first.with_name(f"r{number}"), (0, 10**9 - number))
    read, card_of = [], cards.card_of
    monkeypatch.setattr(cards, "card_of", lambda item, catalogue: read.append(item.name) or card_of(item, catalogue))
    page = cards.index_page(Catalogue([tmp_path / "runs"]), {"page": ["1"]})
    assert read == ["runs/r2", "runs/r3"], "of other runs no file is read"
    assert (page.values["counts"]["run"], page.values["total"], page.values["more"]) == (5, 5, True)
    write_site([tmp_path / "runs"], out := tmp_path / "site")
    pages = [(out / part / "index.html").read_text() for part in (".", "page-1", "page-2")]
    assert [re.findall(r"<strong>runs/(r\d)</strong>", text) for text in pages] == [["r0", "r1"], ["r2", "r3"], ["r4"]]
    assert "3 to 4, newest first" in pages[1]
    assert 'rel="next"' not in pages[2]


def test_a_table_is_saved_without_what_a_spreadsheet_would_compute():
    script = (Path(cards.__file__).parents[1] / "static" / "saving.js").read_text()
    formula, number = (re.compile(re.search(rf"const {name} = /(.*)/;", script)[1]) for name in ("FORMULA", "NUMBER"))
    assert "FORMULA.test(text) && !NUMBER.test(text) ? `'${text}`" in script
    for text in (
        "-2+3+cmd|' /C calc'!A0",
        "=1+1",
        "@SUM(1)",
        "+cmd",
        "-cmd",
        "\t=1",
        " =1",
        "-1-1",
        "+1e5e",
        "\uff1d1",
        "-",
    ):
        assert formula.match(text), text
        assert not number.match(text), text
    for text in ("-2", "+0.5", "-.5", "+1,234.5", "-1e-05", "+4 %", "-4%"):
        assert number.match(text), text


def test_a_list_of_boards_continues_from_page_to_page(tmp_path):
    write_site([boards(tmp_path, 30)], tmp_path / "site")
    first = (tmp_path / "site" / BOARDS / "index.html").read_text()
    later = (tmp_path / "site" / BOARDS / "page-1" / "index.html").read_text()
    assert "This site shows all boards" in first
    assert "30 boards; showing 25 to 30" in later
    assert (tmp_path / "site" / "board/boards/file/29/boards.jsonl/index.html").exists()


def test_a_site_says_how_many_boards_of_a_long_list_it_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("lakewright.experiments.viewer.site.SITE_PAGES", 1)
    monkeypatch.setattr("lakewright.experiments.viewer.pages.board_pages.SITE_PAGES", 1)
    write_site([boards(tmp_path, 30)], tmp_path / "site")
    assert "This site shows the first 24 boards" in (tmp_path / "site" / BOARDS / "index.html").read_text()
    assert not (tmp_path / "site" / BOARDS / "page-1").exists()


def test_a_folder_of_something_else_is_not_written_into(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds no site"):
        write_site([boards(tmp_path / "data", 1)], tmp_path)
