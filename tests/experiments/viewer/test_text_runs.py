"""Runs on problems in text: every page has the strata, knobs and words of their environment, and texts stay texts."""

import html
import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lakewright.core_jax.support import listed
from lakewright.experiments.cli import main
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.viewer.catalogue.run_space import find_space
from lakewright.experiments.viewer.run_table import as_json, tabulate_run
from lakewright.experiments.viewer.site import write_report, write_site
from tests.support.samples.finished_run import finish
from tests.support.samples.finished_text_run import ADDITION, finish_text
from tests.support.servers.viewer_client import HOSTILE, client, page

TWO_LEVELS = """
from addition import Addition
from lakewright.engineer import DesignSpace, Knob

class Two(Addition):
    knobs = (Addition.terms, Knob(name="pace", high=0.01), Addition.carry)
    space = DesignSpace((2, 3), knobs, failures=("no_number", "wrong"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run on sums and one on boards."""
    shown = tmp_path_factory.mktemp("text") / "shown"
    finish_text(shown / "sums")
    finish(shown / "lake")
    return shown


@pytest.fixture(scope="module")
def site(folder: Path) -> TestClient:
    """A client that no test changes."""
    return client(folder)


def words_of(found: str) -> str:
    """A page without its tags, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())


def test_the_page_of_a_run_speaks_of_its_environment(site):
    words = words_of(page(site, "/run/shown/sums"))
    assert "valid answers go from 20.0% to 80.0%, and with carry, from " in words
    assert f"Environment {ADDITION}:Addition, stratum 1, 2, 3 or 4." in words
    assert "Terms: the most numbers that are added." in words
    assert "valid, with carry %" in words
    for name in ("board", "hole", "map size", "forced"):
        assert name not in words.split("All settings")[0] + words.split("Results on held-out problems")[1]


def test_the_page_of_a_stage_says_what_is_trained_on_next_and_why(site):
    found = page(site, "/stage/0/shown/sums")
    words = words_of(found)
    assert "drawn from the proposal that gave the most signal in the trial: the design in the guard's verdict" in words
    assert "tried, and it gives more signal" in words
    assert '<th scope="col">stratum</th><th scope="col">share</th><th scope="col">terms</th>' in found
    assert "<del>2</del> <ins>3</ins>" in found
    assert "P(valid), no carry" in words
    assert "no idea" in words


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("held-out/shown/sums", 40),
        ("held-out/shown/sums?verdict=valid", 32),
        ("held-out/shown/sums?verdict=valid&policy=stage-0", 16),
        ("held-out/shown/sums?stratum=3&page=0", 20),
        ("stage-0/shown/sums", 8),
        ("stage-0/shown/sums?verdict=mixed", 4),
    ],
)
def test_problems_and_answers_are_listed_and_filtered(site, address, count):
    words = words_of(page(site, f"/problems/{address}"))
    assert f"{count} problems; showing 1 to {min(count, 24)}" in words


@pytest.mark.parametrize(("verdict", "shown"), [("failed", True), ("valid", False)])
def test_the_correct_answer_is_shown_beside_an_answer_that_differs(site, verdict, shown):
    words = words_of(page(site, f"/problems/held-out/shown/sums?verdict={verdict}"))
    assert ("Correct answer:" in words) == shown


def test_a_problem_shows_how_many_of_its_answers_are_valid(site):
    words = words_of(page(site, "/problems/stage-0/shown/sums?verdict=mixed"))
    assert words.count("1 of 2 answers valid") == 4
    assert words.count("no number no idea") == 4


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("stage-7/shown/sums", "problems.jsonl of stage-7 does not exist yet"),
        ("nothing/shown/sums", "has no problems called 'nothing'; choose held-out or stage-0"),
        (
            "held-out/shown/sums?policy=stage-9",
            "no policy 'stage-9' is validated; choose from warmup, stage-0, stage-1",
        ),
        ("held-out/shown/sums?verdict=odd", "verdict is 'odd'; choose from valid, failed, mixed"),
        ("held-out/shown/lake", "has boards, and no problems in text"),
    ],
)
def test_what_is_not_there_is_refused_in_a_line(site, address, line):
    reply = site.get(f"/problems/{address}")
    assert reply.status_code in (404, 422)
    assert line in words_of(reply.text)


def test_a_damaged_file_is_named(tmp_path):
    run = finish_text(tmp_path / "run")
    run.stage(0).groups.write_bytes(b"{}\n")
    reply = client(tmp_path).get(f"/problems/stage-0/{tmp_path.name}/run")
    assert reply.status_code == 422
    assert "groups.jsonl: not lines of JSON" in reply.text


def test_runs_of_different_environments_are_compared(site):
    found = page(site, "/compare?run=shown/sums&run=shown/lake&measure=valid")
    assert "Valid answers on held-out problems" in found
    assert "valid, with carry %" in found
    assert "valid, wait forced %" in found
    assert "measure is 'carry'; choose from valid" in words_of(site.get("/compare?run=shown/lake&measure=carry").text)
    assert "valid, with carry" in page(site, "/compare?run=shown/sums&measure=carry")


def test_hostile_answers_are_shown_and_not_obeyed(tmp_path):
    run = finish_text(tmp_path / "run", wrong=HOSTILE)
    write_report(run)
    viewer, name = client(run.folder), run.folder.name
    pages = [page(viewer, f"/{kind}/{name}") for kind in ("problems/stage-0", "stage/1")]
    pages.append(page(viewer, f"/problems/held-out/{name}?verdict=failed"))
    for found in (*pages, run.report.read_text()):
        assert "<script>alert" not in found
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found
        assert "\x00" not in found


def test_every_link_of_a_site_leads_to_a_file_of_it(folder, tmp_path):
    write_site([folder / "sums"], tmp_path / "site")
    assert (tmp_path / "site" / "problems" / "held-out" / "sums" / "page-1" / "index.html").exists()
    for found in (tmp_path / "site").rglob("index.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)"', found.read_text()):
            assert (found.parent / link).resolve().is_file(), link


def test_the_table_and_the_json_have_the_names_of_the_environment(folder):
    run = RunFolder(folder / "sums")
    header, *lines = tabulate_run(run).splitlines()
    assert header.split() == ["valid", "%", "valid,", "with", "carry", "%", "problems", "drawn", "from"]
    assert "2: share 0.50, terms 2, carry 0.50 · 3: share 0.50, terms 2, carry 0.50" in lines[2]
    assert "reference answers" in lines[0]
    found = as_json(run)["stages"][1]
    assert found["strata"].keys() == {"2", "3"}
    assert found["design"]["strata"]["2"]["terms"] == 2
    assert found["rolled_back"] is False


def test_a_stage_is_shown_in_the_terminal(folder, capsys):
    assert main(["engineer", "show", str(folder / "sums"), "--stage", "0"]) == 0
    out = capsys.readouterr().out
    assert "drawn from the proposal that gave the most signal in the trial: 2 share -0.1 terms +1" in out
    assert "per stratum p(1-p)" in out
    assert main(["engineer", "show", str(folder / "sums"), "--stage", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["next_design"]["strata"]["2"] == {"share": 0.4, "terms": 3, "carry": 0.5}
    assert found["source"] == "trial"


def test_a_teacher_is_asked_about_any_environment(folder, capsys):
    assert main(["engineer", "propose", str(folder / "sums"), "--teacher", "rules"]) == 0
    assert "next design  2: share " in capsys.readouterr().out


def test_without_the_file_of_the_environment_the_pages_show_what_the_records_hold(tmp_path):
    copy = tmp_path / "gone.py"
    shutil.copy(ADDITION, copy)
    run = finish_text(tmp_path / "run", f"{copy}:Addition")
    about = find_space(run, run.settings())
    copy.unlink()
    viewer = client(run.folder)
    for address in ("/run/run", "/stage/0/run", "/problems/held-out/run"):
        words = words_of(page(viewer, address))
        assert "gone.py is not a file; check the path. The run's records are shown." in words
    known = find_space(run, run.settings())
    assert [knob.name for knob in known.space.knobs] == ["terms", "carry"]
    assert known.space.knobs[0].whole
    assert known.space.knobs[1].trait
    assert known.space.failures == about.space.failures
    assert "gone.py is not a file" in tabulate_run(run)


def test_an_environment_with_other_knobs_by_now_is_not_used(tmp_path):
    copy = tmp_path / "changed.py"
    shutil.copy(ADDITION, copy)
    run = finish_text(tmp_path / "run", f"{copy}:Addition")
    raw = run.stage(0).design_file.read_text()
    with listed(run.stage(0).design_file):
        run.stage(0).design_file.write_text(raw.replace('"terms"', '"length"'))
    assert "use the version that the run was made with" in find_space(run, run.settings()).problem


def test_the_forecast_of_several_levels_is_a_table(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ADDITION.parent)
    (tmp_path / "two_levels.py").write_text(TWO_LEVELS)
    run = finish_text(tmp_path / "run", f"{tmp_path / 'two_levels.py'}:Two")
    found = page(client(run.folder), "/stage/0/run")
    assert '<th scope="col">pace</th><th scope="col">carry</th><th scope="col">P(valid) %</th>' in found
    assert "by terms and pace" in found
