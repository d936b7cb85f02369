"""The server answers for what lies under the given folders and for nothing else, and shows everything as text."""

import json
import re

import pytest
from starlette.testclient import TestClient

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.boards.evaluation.answerers import PlannerAnswerer
from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings, evaluate_on_benchmark
from tests.support.samples.finished_run import board, finish, redesign
from tests.support.samples.tiny_sweep import SPEC, make
from tests.support.servers.viewer_client import client, page

BOARD = json.dumps({"grid": ["...", ".H.", "..H"], "starts": [[0, 0], [2, 1]], "goals": [[0, 2], [2, 0]]})


def test_the_first_page_names_everything_there_is(site):
    found = page(site, "/")
    for name in ("shown/plain", "shown/hostile", "shown/boards.jsonl"):
        assert name in found
    assert "secret" not in found


def test_a_run_shows_its_stages_and_its_results(site):
    found = page(site, "/run/shown/plain")
    assert "valid plans go from 15.0% to 60.0%" in found
    assert 'href="/stage/1/shown/plain"' in found
    assert "Plans on held-out boards" in found


def test_a_redesign_reads_from_evidence_to_what_came_of_it(site):
    found = page(site, "/stage/0/shown/plain")
    steps = ("evidence", "prompt", "answer", "delta", "guard", "trial", "drawn", "change", "plans")
    places = [found.index(f'id="{step}-0"') for step in steps]
    assert places == sorted(places)
    assert all(f'href="#{step}-0"' in found for step in steps)
    assert "<del>0.50</del> <ins>0.40</ins>" in found
    assert "Stage 0: before the redesign" in found
    assert "+30.0" in found  # 3x3: 16 to 32 of 40 are 40 points, 4x4 20


def test_a_failing_plan_is_shown_next_to_the_certified_one(site):
    titles = re.findall(r"<h4>(.*?)</h4>", page(site, "/stage/0/shown/plain"))
    assert titles == ["board", "board: the certified plan", "board"]


def test_boards_are_filtered_and_paged_by_the_address(site):
    assert "60 boards; showing 1 to 24" in page(site, "/boards/boards/file/shown/boards.jsonl")
    assert "30 boards" in page(site, "/boards/boards/file/shown/boards.jsonl?wait=true")
    assert "showing 49 to 60" in page(site, "/boards/boards/file/shown/boards.jsonl?page=2")
    assert "no matches" in page(site, "/boards/boards/file/shown/boards.jsonl?size=9")


STAGE_BOARDS = "/boards/run/stage-0/shown/plain"


def test_boards_of_a_stage_know_their_rollouts(site):
    found = page(site, f"{STAGE_BOARDS}?learnable=0.1")
    assert "1 board;" in found
    assert "1 of 4 plans valid" in found


@pytest.mark.parametrize(
    ("query", "boards"),
    [
        ("verdict=valid", ["1"]),
        ("verdict=mixed", ["0"]),
        ("verdict=failed", []),
        ("failure=hole", ["0"]),
        ("failure=vertex_conflict", []),
        ("plans=true", ["0"]),
    ],
)
def test_boards_of_a_stage_are_filtered_by_the_outcomes_of_their_plans(site, query, boards):
    assert re.findall(r"<strong>board (\d+)", page(site, f"{STAGE_BOARDS}?{query}")) == boards


def test_the_plans_of_a_group_stand_side_by_side(site):
    found = page(site, "/board/run/stage-0/0/shown/plain")
    assert [f"Plan {n} of 4" in found for n in (1, 2, 3, 4)] == [True] * 4
    assert found.count("ending bad") == 3
    assert "certified plan" in found


def test_held_out_boards_are_filtered_by_the_verdict_on_a_policys_plan(site):
    held_out = "/boards/run/held-out/shown/plain"
    assert "plans of stage 1" in page(site, held_out)
    for query, boards in (
        ("verdict=valid", 1),
        ("verdict=failed", 1),
        ("failure=hole", 1),
        ("failure=swap_conflict", 0),
    ):
        assert page(site, f"{held_out}?{query}&policy=warmup").count("<strong>board ") == boards, query
    assert site.get(f"{held_out}?policy=stage-9").status_code == 404


def test_a_held_out_board_is_shown_over_the_checkpoints(site):
    found = page(site, "/board/run/held-out/0/shown/plain")
    assert found.count("<strong>stage ") == 2
    assert "The certified plan" in found


@pytest.mark.parametrize("query", ["size=x", "wait=maybe", "status=gone", "sort=id", "page=-1", "size=" + "9" * 5000])
def test_an_unknown_filter_is_reported_in_a_line(site, query):
    reply = site.get(f"/boards/boards/file/shown/boards.jsonl?{query}")
    assert reply.status_code == 422
    assert "address: " in reply.text


def test_the_editor_draws_a_board_and_says_what_is_wrong_with_one(site):
    assert page(site, f"/api/draw?board={BOARD}").startswith("<svg")
    for wrong in ("", "{}", "[1]", BOARD.replace("...", "<b>"), BOARD.replace("[0, 2]", "[9, 9]"), "[" * 5000):
        reply = site.get("/api/draw", params={"board": wrong})
        assert reply.status_code == 422
        assert reply.text.startswith("board: ")
        assert reply.headers["content-type"].startswith("text/plain")


def test_the_pretrained_policy_answers_in_the_editor(site):
    assert '<option value="pretrained">' in page(site, "/editor")
    found = page(site, f"/api/checkpoint?board={BOARD}&checkpoint=pretrained")
    assert "The pretrained policy" in found
    assert "Its greedy plan is valid." in found
    assert site.get("/api/checkpoint", params={"board": BOARD, "checkpoint": "other"}).status_code == 404


def solved(site: TestClient, board: str) -> str:
    """What the solver says, once its programs for this kind of board are compiled."""
    while "data-compiling" in (found := page(site, f"/api/solve?board={board}")):
        assert "for 3x3 boards of 2 agents" in found
    return found


def test_the_editor_is_answered_by_the_real_solver(site):
    found = solved(site, BOARD)
    assert 'data-status="solvable"' in found
    assert "the least sum of costs is 3" in found
    walled = BOARD.replace('"..."', '".H."').replace('".H.", ".H."', '".H.", "HH."')
    assert 'data-status="unsolvable"' in solved(site, walled)


def test_boards_are_exported_in_every_form(site):
    row = site.get("/export/boards/file/3/shown/boards.jsonl?form=row")
    assert json.loads(row.text)["id"] == "board-3"
    assert "attachment" in row.headers["content-disposition"]
    assert site.get("/export/boards/file/3/shown/boards.jsonl?form=map").text.splitlines()[4:] == ["...", ".@.", "..@"]
    scene = site.get("/export/boards/file/3/shown/boards.jsonl?form=scen").text.splitlines()
    assert scene[1].split("\t")[4:8] == ["0", "0", "2", "0"]
    assert "animateTransform" in site.get("/export/boards/file/3/shown/boards.jsonl?form=moving").text
    assert site.get("/export/boards/file/3/shown/boards.jsonl?form=exe").status_code == 422


def test_runs_are_compared_with_the_settings_that_differ(tmp_path):
    finish(tmp_path / "arm-s0")
    finish(tmp_path / "arm-s1", horizon=21)
    here = tmp_path.name
    found = page(client(tmp_path), f"/compare?run={here}/arm-s0&run={here}/arm-s1")
    assert "<td>horizon</td>" in found
    assert found.count("<polyline") == 2
    assert page(client(tmp_path), f"/compare?run={here}/arm-s0&run={here}/arm-s1&arms=true").count("<polyline") == 1


def test_a_page_that_did_not_change_is_not_sent_again(site):
    tag = site.get("/run/shown/plain").headers["etag"]
    assert site.get("/run/shown/plain", headers={"if-none-match": tag}).status_code == 304


def test_a_refused_answer_is_on_the_page_too(tmp_path):
    run = finish(tmp_path / "run")
    redesign(run.stage(0), "</pre><img src=x onerror=alert(1)>")
    assert "<img" not in page(client(tmp_path / "run"), "/stage/0/run")


def test_a_sweep_answers_any_statistic_over_any_axis(tmp_path):
    make(SPEC, tmp_path / "sweep")
    site = client(tmp_path / "sweep")
    found = page(site, "/sweep/sweep?statistic=solvable&over=hole_ratio&by=size")
    assert "6 of 6 shards, 160 of 160 boards" in found
    rows = re.findall(r"<tr><td>3</td><td>([\d.]+)</td><td>([\d.]+)</td><td>[\d.]+ to [\d.]+</td><td>(\d+)</td>", found)
    assert [(ratio, boards) for ratio, _, boards in rows] == [("0", "80"), ("0.4", "80")]
    assert rows[0][1] == "100", "without holes every board is solvable"
    assert "makespan over agents" in page(site, "/sweep/sweep?statistic=makespan&over=agents&by=hole_ratio")
    assert site.get("/sweep/sweep?statistic=id").status_code == 422
    assert site.get("/sweep/sweep?over=size)--").status_code == 422


def test_an_evaluation_shows_its_rates_and_every_answer(tmp_path):
    write_rows(tmp_path / "boards.jsonl", [board("good"), board("bad")])
    out = tmp_path / "evaluation"
    evaluate_on_benchmark(
        tmp_path / "boards.jsonl", out, lambda kept: PlannerAnswerer("optimal", 0), EvaluationSettings()
    )
    site = client(tmp_path)
    assert "solver optimal" in page(site, f"/evaluation/{tmp_path.name}/evaluation")
    found = page(site, f"/boards/evaluation/answers/{tmp_path.name}/evaluation?verdict=valid")
    assert "2 boards" in found
    shown = page(site, f"/board/evaluation/answers/0/{tmp_path.name}/evaluation")
    assert shown.index("The certified plan") < shown.index("The plan that was given")
