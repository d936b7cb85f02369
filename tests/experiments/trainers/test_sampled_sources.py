"""Samplers of a folder: the source chooses problems of the same strata, pins what it chose, and counts the cost."""

import copy
import json
import random

import pytest

from lakewright.engineer.samplers import SamplerSettings
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import FolderSettings
from lakewright.policy.inference import EndpointSettings
from tests.support.processes.commands import assert_refused, lakewright
from tests.support.refusals import refused
from tests.support.samples.engineer_folders import ADDITION, begin_engineer
from tests.support.servers.chat_server import completion, failing, send, serving


def answer(problem, count=8):
    """Sums that carry are answered right at times, others always."""
    chance = random.Random(problem.key)
    return [problem.answer if not problem.cell["carry"] or chance.random() < 0.5 else "0" for _ in range(count)]


def record(folder, source, places):
    recorder = OutcomeRecorder(folder.path, folder.environment)
    for place in places:
        problem = source[place]
        recorder.record(problem, answer(problem), tokens=[2] * 8, group=f"place {place}")


def decide_once(path, sampler="signal", **settings):
    """A folder whose engineer has seen 24 groups."""
    chosen = FolderSettings(sampler=SamplerSettings(sampler, **settings))
    folder = begin_engineer(path, teacher="fixed", settings=chosen)
    record(folder, ProblemSource(folder.path), range(24))
    folder.next(step=1)
    return folder


def strata(problems):
    return [problem.cell.stratum for problem in problems]


def carried(problems):
    return sum(bool(problem.cell["carry"]) for problem in problems)


def test_places_get_the_problems_that_the_model_expects_most_signal_of(tmp_path):
    folder = decide_once(tmp_path / "e")
    source = ProblemSource(folder.path)
    drawn = source.problems(range(24, 88))
    plain = folder.environment.draw(folder.files.read_version(0).design, 64, 0, first=24)
    assert strata(drawn) == strata(plain)
    assert carried(plain) == 32
    assert carried(drawn) > 54, "1 - (1 - 0.5)^4 of 64 are 60"
    done = folder.status().sampling
    assert (folder.status().places, done.scored, done.tokens) == (88, 0, 0)
    assert done.again == sum(mine != other for mine, other in zip(drawn, plain, strict=True)) > 20
    assert ProblemSource(folder.path).problems(range(24, 88)) == drawn, "another process gets the same problems"
    assert ProblemSource(folder.path).find_pinned(87) == drawn[-1]


def test_a_place_has_its_problem_whatever_is_asked_for_beside_it_and_after_a_restart(tmp_path):
    first, second = (decide_once(tmp_path / name) for name in ("a", "b"))
    together = ProblemSource(first.path).problems(range(24, 40))
    alone = [ProblemSource(second.path)[place] for place in reversed(range(24, 40))]
    assert alone[::-1] == together
    record(first, ProblemSource(first.path), range(24, 40))
    first.next(step=2)
    assert ProblemSource(first.path).problems(range(24, 40)) == together, "also once the model knows more"


def test_a_folder_begun_before_there_were_samplers_draws_what_is_new(tmp_path):
    folder = begin_engineer(tmp_path / "e")
    setup = json.loads(folder.files.setup_path.read_text())
    del setup["settings"]["sampler"]
    folder.files.setup_path.write_text(json.dumps(setup))
    (folder.path / "SHA256SUMS").unlink()
    drawn = ProblemSource(folder.path).take(3)
    assert drawn == folder.environment.draw(folder.files.read_version(0).design, 3, 0)
    assert (folder.path / "pins-0.jsonl").read_text().splitlines()[2] == '{"place":2,"version":0}'


class Policy:
    """A way to roll out that keeps its answers, as a loop of one's own does that trains on them."""

    def __init__(self, environment):
        self.environment, self.kept = environment, {}

    def __call__(self, problems, samples, turn):
        self.kept |= {problem.key: answer(problem, samples) for problem in problems}
        return self.environment.groups(problems, [self.kept[one.key] for one in problems]), samples * len(problems)


def test_groups_without_signal_are_drawn_again_by_the_loops_own_policy(tmp_path):
    settings = FolderSettings(sampler=SamplerSettings("redraw", {"turns": 3, "keep": "strata"}, plans=6))
    folder = begin_engineer(tmp_path / "e", settings=settings)
    policy = Policy(folder.environment)
    source = ProblemSource(folder.path, roll_out=policy)
    drawn = source.take(40)
    plain = folder.environment.draw(folder.files.read_version(0).design, 40, 0)
    assert strata(drawn) == strata(plain)
    groups = folder.environment.groups(drawn, [policy.kept[problem.key] for problem in drawn])
    done = folder.status().sampling
    assert sum(group.informative for group in groups) == 40 - done.barren > 30, "what was kept is trained on"
    assert (folder.status().places, done.again, done.tokens) == (
        40,
        sum(map(lambda a, b: a != b, drawn, plain)),
        6 * done.scored,
    )
    asked = len(policy.kept)
    again = ProblemSource(folder.path, roll_out=policy)
    assert again.take(40) == drawn
    assert (len(policy.kept), folder.status().sampling) == (asked, done), "pinned places cost nothing more"
    assert copy.copy(again)[3] == drawn[3]


def begin_served(path, url):
    policy = EndpointSettings(url=url, model="policy", max_tokens=8, retries=0)
    return begin_engineer(path, settings=FolderSettings(rollouts=policy), sampler="redraw")


@pytest.mark.usefixtures("quick_endpoint")
def test_where_a_server_has_the_policy_any_trainer_draws_again(tmp_path, capsys):
    def reply(request, body):
        terms = body["messages"][0]["content"].removesuffix("=").split("+")
        right = max(map(len, terms)) == 1 and body["seed"] % 2
        send(request, completion(str(sum(map(int, terms))) if right else "?"))

    with serving(reply) as server:
        folder = begin_served(tmp_path / "e", server.url)
        drawn = ProblemSource(folder.path).take(8)
    assert strata(drawn) == strata(folder.environment.draw(folder.files.read_version(0).design, 8, 0))
    done = folder.status().sampling
    assert (done.barren, done.scored, done.tokens) == (6, 20, 20 * 4 * 50), "two of the eight are of one digit"
    code, told, _ = lakewright(capsys, "engineer", "status", folder.path)
    assert code == 0
    assert "sampler redraw: 0 of 8 places got another problem, 6 without signal; 20 groups and 4000 tokens" in told


@pytest.mark.usefixtures("quick_endpoint")
def test_a_server_that_does_not_answer_is_one_line_and_pins_nothing(tmp_path):
    with serving(failing(500)) as server:
        folder = begin_served(tmp_path / "e", server.url)
        with refused("endpoint http://", ": answers 500"):
            ProblemSource(folder.path).take(4)
    assert folder.status().places == 0


def test_a_sampler_without_a_policy_and_a_policy_without_a_sampler_are_refused(tmp_path):
    for name, sampler, roll_out, line in (
        ("a", "redraw", None, ["sampler redraw", "roll_out"]),
        ("b", "signal", print, ["roll_out", "sampler signal"]),
    ):
        folder = begin_engineer(tmp_path / name, sampler=sampler)
        with refused(*line):
            ProblemSource(folder.path, roll_out=roll_out)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["--sampler", "dapo"],
            "sampler dapo does not keep the shares of the design; choose from fresh, signal, redraw",
        ),
        (["--sampler", "nobody"], "sampler: 'nobody' is unknown; choose from fresh"),
        (["--sampler", "signal", "sampler.plans=8"], "sampler.plans is 8, but the sampler signal samples no answers"),
        (["sampler.name=redraw", "sampler.options.turns=0"], "turns"),
    ],
)
def test_a_sampler_without_effect_is_refused_where_the_engineer_is_begun(tmp_path, capsys, words, line):
    assert_refused(capsys, ("engineer", "begin", tmp_path / "e", "--environment", ADDITION, *words), line)
    assert not (tmp_path / "e").exists()


def test_the_sampler_is_named_where_the_engineer_is_begun(tmp_path, capsys):
    begin = ("engineer", "begin", tmp_path / "e", "--environment", ADDITION, "--sampler", "signal")
    assert lakewright(capsys, *begin, "sampler.options.pool=8")[0] == 0
    found = EngineerFolder(tmp_path / "e").setup.settings.sampler
    assert found == SamplerSettings("signal", {"pool": 8})
    told = json.loads(lakewright(capsys, "engineer", "status", tmp_path / "e", "--json")[1])
    assert (told["sampler"], told["places"]) == ("signal", 0)
