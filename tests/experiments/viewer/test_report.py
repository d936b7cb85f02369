"""The report of a run holds its numbers and every stage, lets no text out of its place, and needs no finished run."""

import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.rollback import Comparison
from lakewright.experiments.environments.lake import design_of, lake_space
from lakewright.experiments.loop.records.history import read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import DecisionRecord, Rollback, write_record
from lakewright.experiments.viewer.catalogue.board_table import ask_database
from lakewright.experiments.viewer.site import write_report
from tests.support.refusals import refused
from tests.support.samples.finished_run import ENV, begin, validate
from tests.support.samples.tiny_runs import finished
from tests.support.tools.demo_pictures import write_pictures

HOSTILE = "<script>alert(1)</script>\"'&]]>\x00"


def finish(stage: Stage, valid: int, log: list[dict], name: str = "board") -> None:
    stage.folder.mkdir(parents=True, exist_ok=True)
    stage.train_log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in log))
    validate(stage, valid, name)


def decide(stage: Stage, text: str, error: str = "") -> None:
    delta = None if error else Delta({3: make_edit(lake_space(), text, {"data_ratio": 0.1, "hole_ratio": -0.05})})
    verdict = GuardVerdict("refused" if error else "projected", [text], design_of(ENV))
    write_record(stage.design_file, design_of(ENV))
    write_record(stage.proposal, DecisionRecord("self", Proposal(text, text, delta, error), verdict, {}))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run of two stages on which nothing is done yet."""
    return begin(tmp_path / "run")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of a finished run."""
    run = begin(tmp_path_factory.mktemp("finished") / "run")
    finish_all(run)
    return written(run)


def finish_all(run: RunFolder, text: str = "too hard") -> None:
    finish(run.warmup, 8, [{"step": 0, "loss": 1.0}])
    log = [{"step": step, "reward": 0.1 * step, "valid": None, "frac_reward_zero_std": 0.5} for step in (1, 2, 3)]
    for number, valid in enumerate((16, 32)):
        decide(run.stage(number), text)
        finish(run.stage(number), valid, log, text)


def written(run: RunFolder) -> str:
    write_report(run)
    return run.report.read_text()


class Text(HTMLParser):
    """The visible words of a page, and the names of its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.tags = "", set()
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.words += data

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)


def test_a_stage_that_was_rolled_back_is_not_the_result(folder):
    finish_all(folder)
    write_record(folder.stage(1).rollback, Rollback("stage_00", Comparison(1, 9, 0.011), True, "stage_00"))
    words = Text(written(folder)).words
    assert "From warm-up to stage 0, valid plans go from 15.0% to 30.0%" in words
    assert "Rolled back: stage 1." in words
    assert "stage 1 (rolled back)" in words


def test_the_training_of_the_engineer_and_the_forecasts_of_the_difficulty_model_are_drawn(tmp_path):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self_trained").folder, run.folder)
    page = written(run)
    words = Text(page).words
    for title in ("Reward of proposals", "% of a group", "Valid plans: expected and observed", "Brier score"):
        assert title in words or title in page, title
    assert "different answers" in page


def test_the_headline_names_the_run_and_its_result(page):
    words = Text(page).words
    assert "valid plans go from 15.0% to 60.0%, and where the board forces a wait, from 5.0% to 30.0%." in words
    assert "Teacher self, seed 7, 2 of 2 stages finished." in words


def test_every_stage_is_there_with_its_numbers_and_its_proposal(page):
    for line in ("warm-up</td><td>15.0", "stage 0</td><td>30.0</td><td>15.0</td><td>7.5", "stage 1</td><td>60.0"):
        assert line in page
    assert len(re.findall(r'<h2 id="stage-\d">After stage ', page)) == 2
    assert page.count('class="status projected">projected<') == 2
    assert page.count("3x3</td><td>+0.1</td><td>-0.05</td><td>0</td>") == 2
    assert page.count('<td class="text">too hard</td>') == 2
    assert len(re.findall(r"<pre[^>]*>too hard</pre>", page)) == 4  # prompts and answers


def test_a_redesign_before_the_first_stage_comes_first(folder):
    finish_all(folder)
    decide(folder.warmup, "too hard")
    titles = re.findall(r'<h2 id="stage-+\d">(After [^<]+)', written(folder))
    assert titles == ["After the warm-up", "After stage 0", "After stage 1"]


def test_curves_and_boards_are_inline(page):
    for title in ("Plans on held-out boards", "Valid plans by map size", "Failed plans by type", "Mean reward"):
        assert title in page
    assert "t = 3 · at goals" in page
    assert "A0 steps into the hole at (1, 1)" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_page_loads_nothing(page):
    assert not Text(page).tags & {"script", "link", "img", "iframe", "object", "image"}
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert all(link.startswith("#") for link in links)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_hostile_text_is_shown_and_not_obeyed(folder):
    finish_all(folder, HOSTILE)
    decide(folder.stage(1), HOSTILE, error=HOSTILE)
    page = written(folder)
    parsed = Text(page)
    assert "script" not in parsed.tags
    assert parsed.words.count("<script>alert(1)</script>\"'&]]>\ufffd") >= 10
    assert "\x00" not in page


def test_a_run_that_has_only_begun_has_a_report(folder):
    assert "Nothing is finished yet" in written(folder)


def test_a_run_after_its_warm_up_has_a_report(folder):
    finish(folder.warmup, 8, [])
    page = written(folder)
    assert "After the warm-up 15.0% of plans are valid, and 5.0% where the board forces a wait." in page
    assert "0 of 2 stages finished" in page
    assert "What the engineer proposed" not in page


def test_a_stage_without_its_marker_does_not_count(folder):
    finish_all(folder)
    folder.stage(1).done.unlink()
    page = written(folder)
    assert "1 of 2 stages finished" in page
    assert "After stage 1" not in page


def test_a_refused_answer_is_reported_with_its_error(folder):
    finish_all(folder)
    decide(folder.stage(0), "what?", error="answer: not JSON")
    page = written(folder)
    assert "refused" in page
    assert '<p class="bad">answer: not JSON</p>' in page


def test_the_report_of_a_run_is_the_same_each_time(folder, page):
    finish_all(folder)
    assert written(folder) == page


def test_a_broken_log_is_named(folder):
    finish_all(folder)
    folder.stage(0).train_log.write_bytes(b'{"step": 1\n')
    with refused("train.jsonl:", "JSON"):
        read_chapters(folder)


def test_pictures_are_whole_svg_files(folder, tmp_path):
    finish_all(folder)
    write_pictures(folder, tmp_path / "images")
    for name in ("board.svg", "curves.svg"):
        assert ElementTree.parse(tmp_path / "images" / name).getroot().tag.endswith("svg")


def test_pictures_need_a_plan_to_draw(folder, tmp_path):
    with pytest.raises(InputError, match="no valid plan with a forced wait"):
        write_pictures(folder, tmp_path)


def test_a_report_is_written_where_duckdb_is_missing_and_tables_of_boards_name_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    run = begin(tmp_path / "run")
    validate(run.warmup, 8)
    write_report(run)
    assert run.report.exists()
    with pytest.raises(InputError, match=r"needs duckdb, which is not installed; pip install"):
        ask_database("SELECT 1", [])
