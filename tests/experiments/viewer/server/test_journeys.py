"""What people do in the viewer, done in a real browser. A message on the console of the page fails the journey."""

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from lakewright.core_jax.rows import write_rows
from lakewright.experiments.viewer.site import write_site
from lakewright.policy.models import save_checkpoint
from tests.support.models.tiny_policy import MODEL, tiny_model, tokenizer
from tests.support.samples.finished_run import begin, board, finish, redesign, validate
from tests.support.samples.other_folders import benchmark, evaluation, study
from tests.support.servers.browser import PATIENCE, chromium, served

pytestmark = pytest.mark.browser
BOARDS = "/boards/boards/file/shown/boards.jsonl"
WALLED = {"grid": [".H.", "...", "..."], "starts": [[0, 0], [2, 2]], "goals": [[2, 0], [0, 2]]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a failing plan, one with checkpoints, two arms of two seeds, a file of boards, and the other kinds."""
    shown = tmp_path_factory.mktemp("journeys") / "shown"
    for name in ("demo", "one-s0", "one-s1", "two-s0", "two-s1"):
        finish(shown / name, reason(name), horizon=21 if name.startswith("two") else 20)
    write_rows(shown / "boards.jsonl", [board(f"board-{n}", wait_required=n % 2 == 1) for n in range(60)])
    study(shown / "study")
    evaluation(shown / "evaluation")
    benchmark(shown / "benchmark")
    trained = finish(shown / "trained", model=MODEL, horizon=8)
    for number in (0, 1):
        save_checkpoint(trained.stage(number).checkpoint, tiny_model(number), tokenizer())
    return shown


def reason(name: str) -> str:
    return f"reason of {name}"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(folder):
    with served([folder]) as found:
        yield found


@pytest.fixture
def new_page(browser, address):
    """Makes pages at the server's first address, which must say nothing on their consoles."""
    said: list[str] = []
    contexts = []

    def make(base_url: str = address, width: int = 1100, height: int = 900, **settings: str):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, base_url=base_url, **settings))
        contexts[-1].set_default_timeout(PATIENCE)
        found = contexts[-1].new_page()
        found.on("console", lambda message: said.append(message.text))
        found.on("pageerror", lambda error: said.append(str(error)))
        return found

    yield make
    for context in contexts:
        context.close()
    said = [words for words in said if "status of 404" not in words]  # the browser's own note of a page that is gone
    assert not said, f"a page said on its console: {said}"


@pytest.fixture
def page(new_page):
    return new_page()


def at(page, address: str):
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    return page


def test_a_failing_plan_is_stepped_to_its_conflict(page):
    at(page, "/").get_by_role("link", name="shown/demo").click()
    page.get_by_role("link", name="stage 1").click()
    player = page.locator(".player", has_text="Fails at t = 2").first
    player.focus()
    page.wait_for_function(
        "one => getComputedStyle(one).opacity === '0'", arg=player.locator(".failing").element_handle()
    )
    page.keyboard.press("ArrowRight")
    assert player.locator("output").inner_text() == "t = 1 of 2"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert player.locator("output").inner_text() == "t = 2 of 2"
    page.wait_for_function(
        "one => getComputedStyle(one).opacity === '1'", arg=player.locator(".failing").element_handle()
    )
    moved = player.locator(".agent").first.evaluate("one => one.style.transform")
    assert moved == "translate(60px, 60px)", "A0 stands in the hole at (1, 1)"
    page.keyboard.press("Home")
    assert player.locator("output").inner_text() == "t = 0 of 2"
    assert player.locator(".ending").is_hidden(), "how a plan ends is not said of its beginning"
    assert player.get_by_text("A plan of 2 steps that fails.").is_visible()
    player.press("End")
    assert player.locator(".ending").inner_text().startswith("Fails at t = 2")
    assert player.get_by_text("A plan of 2 steps that fails.").is_hidden()
    player.press("Home")


def test_a_point_near_the_pointer_says_what_it_is(page, folder):
    at(page, "/run/shown/demo")
    shown = page.locator("figure", has_text="Plans on held-out boards")
    near = shown.locator("circle").nth(1).bounding_box()
    page.mouse.move(near["x"] + 9, near["y"] - 6)
    assert page.locator(".tip").inner_text().startswith("valid: after stage 0: 24 of 80 (")
    assert shown.locator("title").count() == 0, "the browser would show its own, too"
    page.mouse.move(5, 5)
    assert page.locator(".tip").is_hidden()
    assert shown.locator("title").count() > 0


def test_boards_are_filtered_and_the_address_holds_the_filter(page, address):
    at(page, BOARDS).get_by_label("Wait").select_option("true")
    page.wait_for_url("**/shown/boards.jsonl?wait=true")
    assert "30 boards" in page.locator("#count").inner_text()
    page.get_by_role("link", name="next →").click()
    page.wait_for_url("**wait=true**")
    assert "25 to 30" in page.locator("#count").inner_text()
    page.locator(".tile a").first.click()
    expect(page.get_by_text("The certified plan")).to_be_visible()


@pytest.mark.deep
def test_a_board_is_edited_into_an_unsolvable_one(page):
    at(page, f"/editor?board={json.dumps(WALLED)}")
    page.locator("[data-status=solvable]").wait_for()
    page.get_by_role("gridcell", name="row 1, column 1: ice").click()
    page.get_by_role("gridcell", name="row 1, column 0: ice").press("Enter")
    page.locator("[data-status=unsolvable]").wait_for()
    assert "no plan brings every agent" in page.locator("[data-answer]").inner_text()
    page.get_by_role("radio", name="A0").click()
    page.get_by_role("gridcell", name="row 2, column 1").click()
    page.locator("[data-status=solvable]").wait_for()
    assert '"starts":[[2,1]' in page.evaluate("decodeURIComponent(location.search)").replace("+", "")


@pytest.mark.deep
def test_a_redesign_is_followed_step_by_step(page):
    at(page, "/stage/0/shown/demo")
    for step in ("prompt", "raw answer", "delta", "guard's verdict", "trial", "boards drawn", "held-out change"):
        page.locator(".next a", has_text=step).first.click()
        assert page.locator(".step:target").is_visible()
    assert "+30.0" in page.locator(".step:target").inner_text()


@pytest.mark.deep
def test_two_arms_are_compared_and_the_address_holds_the_comparison(page):
    at(page, "/compare")
    for name in ("one-s0", "one-s1", "two-s0", "two-s1"):
        page.get_by_label(f"shown/{name}").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**run=shown%2Fone-s0**")
    assert page.locator("figure polyline").count() == 4
    page.get_by_label("seeds of an arm").check()
    page.wait_for_url("**arms=true**")
    assert page.locator("figure polyline").count() == 2
    assert "horizon" in page.locator("[data-table='settings that differ']").inner_text()


@pytest.mark.deep
def test_a_run_is_watched_while_it_is_written(page, folder):
    run = begin(folder / "growing")
    expect(at(page, "/run/shown/growing").get_by_text("Nothing is finished yet")).to_be_visible()
    validate(run.warmup, 8)
    expect(page.get_by_text("After the warm-up 15.0% of plans are valid")).to_be_visible()
    redesign(run.stage(0))
    validate(run.stage(0), 16)
    expect(page.get_by_text("valid plans go from 15.0% to 30.0%")).to_be_visible()
    shutil.rmtree(run.folder)
    expect(page.get_by_text("not found; return to the index")).to_be_visible()


@pytest.mark.deep
def test_a_plan_plays_by_itself_and_pauses(page):
    player = at(page, "/stage/1/shown/demo").locator(".player").first
    player.get_by_label("Speed").select_option("150")
    player.get_by_role("button", name="Play", exact=True).click()
    expect(player.locator("output")).to_have_text(re.compile("^t = 2"))
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible()


@pytest.mark.deep
def test_pictures_and_tables_are_saved(page):
    at(page, "/run/shown/demo")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save chart 1 as SVG").click(force=True)
    assert "<svg" in Path(saved.value.path()).read_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save results as CSV").click()
    assert Path(saved.value.path()).read_text().splitlines()[1].startswith("warm-up,15.0")


@pytest.mark.deep
def test_the_plans_of_a_group_are_played_side_by_side(page):
    at(page, "/boards/run/stage-0/shown/demo").get_by_label("plans saved").check()
    page.wait_for_url("**plans=true**")
    page.locator(".tile a").click()
    page.get_by_text("Plan 4 of 4").wait_for()
    players = page.locator(".player[data-ready]")
    assert players.count() == 5, "four plans and the certified one"
    players.nth(2).focus()
    page.keyboard.press("End")
    assert players.nth(2).locator("output").inner_text() == "t = 2 of 2"
    assert players.nth(1).locator("output").inner_text() == "t = 0 of 2", "each player has a time of its own"


@pytest.mark.deep
def test_held_out_boards_are_filtered_by_what_a_policy_made_of_them(page):
    at(page, "/boards/run/held-out/shown/demo").get_by_label("Failure").select_option("hole")
    page.wait_for_url("**failure=hole**")
    assert page.locator(".tile").count() == 1
    page.get_by_label("Plans of").select_option("warmup")
    page.wait_for_url("**policy=warmup**")
    page.locator(".tile a").click()
    assert page.locator(".checkpoints li").all_inner_texts() == ["warmup failed", "stage 0 failed", "stage 1 failed"]
    page.get_by_role("button", name="To the end").last.click()
    expect(page.get_by_text("A0 steps into the hole").last).to_be_visible()


@pytest.mark.deep
def test_a_checkpoint_answers_for_a_board_of_the_editor(page):
    at(page, f"/editor?board={json.dumps(WALLED)}")
    page.get_by_label("Also ask").select_option("stage-1/shown/trained")
    page.locator("[data-policy] [data-answered]").wait_for()
    assert "The checkpoint of stage 1" in page.locator("[data-policy]").inner_text()
    page.locator("[data-answer] [data-status=solvable]").wait_for()


@pytest.mark.deep
def test_the_checkpoints_of_a_run_answer_for_one_of_its_boards(page):
    at(page, "/board/run/held-out/0/shown/trained").get_by_label("ask all checkpoints").check()
    page.get_by_role("button", name="Ask for its greedy plan").click()
    page.locator("[data-answers] [data-answered]").nth(1).wait_for()
    titles = page.locator("[data-answers] h2").all_inner_texts()
    assert titles == ["The checkpoint of stage 0", "The checkpoint of stage 1"]


@pytest.mark.deep
def test_a_study_is_looked_through_from_its_arms_to_a_run(page):
    at(page, "/study/shown/study")
    assert page.locator("[data-picture=arms] polyline").count() == 2
    page.get_by_role("link", name="Compare other measures").click()
    page.wait_for_url("**arms=true**")
    page.get_by_label("Measure").select_option("forced")
    page.wait_for_url("**measure=forced**")
    page.go_back()
    page.go_back()
    page.get_by_role("link", name="runs/one-s0").click()
    expect(page.get_by_text("valid plans go from 15.0% to 60.0%")).to_be_visible()


EVERY_KIND = (
    *("/", "/run/shown/demo", "/stage/0/shown/demo", BOARDS, "/board/boards/file/3/shown/boards.jsonl", "/editor"),
    *("/board/run/stage-0/0/shown/demo", "/compare?run=shown/demo", "/study/shown/study", "/benchmark/shown/benchmark"),
    "/evaluation/shown/evaluation/answers",
)


@pytest.mark.deep
@pytest.mark.parametrize("where", EVERY_KIND)
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_fit_a_phone_in_dark_and_light(new_page, where, scheme):
    page = at(new_page(width=360, height=740, color_scheme=scheme), where)
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    ink, paper = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    assert wide <= 0, f"{where} is {wide} pixels wider than a phone"
    assert ink != paper


@pytest.mark.deep
def test_everything_on_a_page_that_can_be_used_has_a_name(page):
    for where in EVERY_KIND:
        at(page, where)
        nameless = page.evaluate(
            "[...document.querySelectorAll('a, button, input, select, [tabindex=\"0\"]')].filter(one => "
            "!(one.innerText || one.getAttribute('aria-label') || one.labels?.length)).map(one => one.outerHTML)"
        )
        assert not nameless, f"{where}: {nameless[:3]}"


@pytest.mark.deep
def test_the_static_site_plays_plans_too(new_page, folder, tmp_path):
    import http.server
    import threading
    from functools import partial

    write_site([folder / "demo"], tmp_path / "site")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = new_page(f"http://127.0.0.1:{server.server_port}")
        page.goto("/")
        page.get_by_role("link", name="demo", exact=True).click()
        page.get_by_role("link", name="stage 0").click()
        page.locator(".player[data-ready]").first.focus()
        page.keyboard.press("End")
        assert page.locator("output").first.inner_text() == "t = 2 of 2"
        server.shutdown()
