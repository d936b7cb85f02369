"""Studies, evaluations and benchmarks; and every page of a folder that is full of hostile text."""

import html
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lakewright.core_jax.rows import write_rows
from lakewright.core_jax.support import write_json
from lakewright.experiments.boards.evaluation.answerers import PlannerAnswerer
from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings, evaluate_on_benchmark
from lakewright.experiments.jobs.resumable.driver import FILE, Driver
from lakewright.experiments.viewer.server.routing import make_application
from tests.support.samples.finished_run import board, finish
from tests.support.samples.other_folders import benchmark, evaluation, study
from tests.support.samples.tiny_sweep import SPEC, make

HOSTILE = "<script>alert(1)</script>\"'&]]>\x00\x1b[31m{{ 7 * 7 }}" + "x" * 65_536


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shown = tmp_path_factory.mktemp("folders") / "shown"
    study(shown / "study")
    evaluation(shown / "evaluation")
    benchmark(shown / "benchmark")
    return shown


@pytest.fixture(scope="module")
def site(folder: Path) -> TestClient:
    return client(folder)


def test_the_page_of_an_empty_folder_says_what_is_looked_for_and_how_to_make_it(tmp_path):
    (tmp_path / "nothing").mkdir()
    found = page(client(tmp_path / "nothing"), "/")
    assert "Nothing to show in <code>nothing</code>" in found
    assert "lakewright generate" in found
    assert "lakewright run" in found


def test_the_page_of_a_folder_of_maps_says_how_they_become_boards(tmp_path):
    maps = tmp_path / "maps"
    maps.mkdir()
    for name in ("one.map", "one.scen", "two.map", "two.scen"):
        (maps / name).touch()
    found = page(client(tmp_path), "/")
    assert f"4 files of other formats, such as <code>{tmp_path.name}/maps/one.map</code>" in found
    assert "lakewright convert" in found


def test_the_only_run_is_shown_by_its_curve(tmp_path):
    finish(tmp_path / "only")
    alone = page(client(tmp_path / "only"), "/")
    assert '<figure class="" data-picture="the run"><svg' in alone
    assert "<title>What is here - Lakewright</title>" in alone
    finish(tmp_path / "other")
    assert "<figure" not in page(client(tmp_path), "/")


def client(*paths: Path) -> TestClient:
    return TestClient(make_application(paths), base_url="http://127.0.0.1:8000")


def page(site: TestClient, address: str) -> str:
    reply = site.get(address)
    assert reply.status_code == 200, f"{address}: {reply.status_code} {reply.text[-500:]}"
    return reply.text


def test_a_study_overlays_its_arms_and_shows_differences_and_runs(site):
    found = page(site, "/study/shown/study")
    assert "4 of 4 runs finished; the baseline is plain" in found
    assert found.count("<polyline") == 2, "a curve for each arm"
    assert "one (2)" in found
    assert "+2.0 ± 3.0" in found
    assert "-1.0 to +5.0" in found
    assert 'href="/run/shown/study/runs/two-s1"' in found
    assert "arms=true" in found


def test_the_arms_have_the_columns_that_the_results_of_their_environment_have(tmp_path):
    study(tmp_path / "study")
    file = tmp_path / "study" / "results.json"
    results = json.loads(file.read_text())
    for arm in results["arms"]:
        arm |= {"forced": None, "optimal": None, "rates": {"carry": 12.5}}
        arm |= {"to_best": {"tokens": 31300.0, "share": 0.41, "reached": 2, "seeds": 2}}
    file.write_text(json.dumps(results))
    found = page(client(tmp_path / "study"), "/study/study")
    assert "carry %" in found
    assert "k tokens to plain's best" in html.unescape(found)
    assert "31.3" in found
    assert "forced %" not in found


def test_the_runs_of_a_study_are_on_its_own_page(site):
    first = page(site, "/")
    assert 'href="/study/shown/study"' in first
    assert "study/runs/one-s0" not in first
    assert "4 runs under one budget" in first


def test_a_study_in_progress_shows_the_runs_so_far(tmp_path):
    study(tmp_path / "study")
    (tmp_path / "study" / "results.json").unlink()
    (tmp_path / "study" / "runs" / "two-s1" / "stage_01" / "done.json").unlink()
    found = page(client(tmp_path / "study"), "/study/study")
    assert "3 of 4 runs finished" in found
    assert "data-live" in found
    assert "1 of 2 stages" in found


def test_a_study_whose_driver_is_on_another_machine_runs_there(tmp_path):
    study(tmp_path / "study")
    write_json(tmp_path / "study" / FILE, Driver("far-away", 1))
    for address in ("/", "/study/study"):
        found = page(client(tmp_path / "study"), address)
        assert "running on far-away, last sign of life " in found
        assert "chip running" in found
    os.utime(tmp_path / "study" / FILE, (0, 0))
    (tmp_path / "study" / "results.json").unlink()
    found = page(client(tmp_path / "study"), "/")
    assert "last seen on far-away" in found
    assert "chip stopped" in found


def test_a_benchmark_counts_its_boards_and_leads_to_them(site):
    found = page(site, "/benchmark/shown/benchmark")
    assert "2 certified boards" in found
    assert "2 boards; showing 1 to 2" in page(site, "/boards/benchmark/file/shown/benchmark")


def test_an_evaluation_leads_from_its_rates_to_every_answer(site):
    assert "Answers of plain to 2 boards" in page(site, "/evaluation/shown/evaluation/answers")
    assert page(site, "/boards/evaluation/answers/shown/evaluation/answers?verdict=valid").count('class="verdict"') == 2


def test_no_page_obeys_what_it_shows(tmp_path):
    hostile = tmp_path / "<b onclick=alert(1)>&'"
    study(hostile / "study", HOSTILE, HOSTILE, arms=1)
    evaluation(hostile / "evaluation", HOSTILE)
    benchmark(hostile / "benchmark", HOSTILE)
    write_rows(hostile / "boards.jsonl", [board(HOSTILE)])
    make(SPEC, hostile / "sweep")
    site, seen, waiting = client(hostile), set(), ["/", "/compare", "/editor"]
    while waiting:
        address = waiting.pop()
        if address not in seen:
            seen.add(address)
            found = page(site, address)
            assert_harmless(found, address)
            waiting += [link.replace("&amp;", "&") for link in re.findall(r'href="(/(?!static|export)[^"#]*)"', found)]
    kinds = {address.split("/")[1].partition("?")[0] for address in seen}
    assert kinds == {
        "",
        "board",
        "boards",
        "run",
        "stage",
        "study",
        "sweep",
        "evaluation",
        "benchmark",
        "compare",
        "editor",
    }


class Tags(HTMLParser):
    """What a browser would obey: the scripts of a page, and attributes that hold scripts or styles."""

    def __init__(self, found: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.obeyed: list[str] = []
        self.feed(found)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        self.obeyed += [f"{tag} {name}" for name, _ in attrs if name.startswith("on") or name == "style"]
        self.obeyed += [tag] if tag in ("iframe", "object", "embed", "base", "img") else []


def assert_harmless(found: str, address: str) -> None:
    """Our own script only, no attribute that would be one, and no control characters."""
    tags = Tags(found)
    assert tags.scripts == ["/static/main.js"], address
    assert not tags.obeyed, address
    assert not re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", found), address


def test_boards_of_an_evaluation_are_found_from_any_working_folder(tmp_path, monkeypatch):
    shown = tmp_path / "shown"
    shown.mkdir()
    write_rows(shown / "boards.jsonl", [board("one")])
    monkeypatch.chdir(shown)
    evaluate_on_benchmark(
        Path("boards.jsonl"), Path("evals/a"), lambda kept: PlannerAnswerer("optimal", 0), EvaluationSettings()
    )
    monkeypatch.chdir(tmp_path)
    assert "1 board; showing 1 to 1" in page(client(shown), "/boards/evaluation/answers/shown/evals/a")
