"""Engineers that are language models: a tiny one from disk, and one behind a server that answers in every way."""

import contextlib
import functools
import json
import math
import re
import shutil
import time

import jax
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import BoardOutcomes
from lakewright.core_jax.support import locked
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import DifficultySettings
from lakewright.engineer.evidence import EvidenceSettings
from lakewright.engineer.samplers import SamplerSettings
from lakewright.engineer.teachers import Reply, UnansweredError, answer_schema, parse_reply
from lakewright.engineer.teachers.llm import MOST, LlmTeacher
from lakewright.engineer.teachers.llm_prompt import REASON, REASONING
from lakewright.engineer.teachers.self import SelfTeacher
from lakewright.engineer.trial import Lead, Trial
from lakewright.experiments.environments.lake import config_of, design_of
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import read_record
from lakewright.experiments.loop.records.token_budget import count_stage_tokens
from lakewright.experiments.loop.redesign.teacher_models import check_askable
from lakewright.experiments.loop.settings.launch import LaunchSettings
from lakewright.experiments.loop.settings.run_settings import QuestionSettings, load_settings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.studies.engineer_samples import format_samples, sample_engineers
from lakewright.policy.codecs import TextSettings
from lakewright.policy.inference import EndpointSettings, answer_under_grammar
from lakewright.policy.models import build_model, load_model, save_checkpoint
from lakewright.policy.training import GrpoSettings, WarmupSettings
from tests.support.boards.generated_rows import SMALL
from tests.support.deep import count_examples
from tests.support.models.byte_language_model import text_checkpoint
from tests.support.models.tiny_policy import ENV, tiny_model, tiny_run, tokenizer
from tests.support.refusals import refused
from tests.support.samples.evidence import EDIT, GOOD, SPACE, everything, past
from tests.support.samples.tiny_runs import before_the_first_decision, decision, redesign_again, run_loop
from tests.support.servers.chat_server import saying, serving

pytestmark = pytest.mark.usefixtures("quick_endpoint")

OUTCOMES = dict.fromkeys(range(3, 7), BoardOutcomes(100, 60, 40, 50, {"parse_error": 10, "hole": 25}, 20, 4))


def teacher(*answers: str | Exception, **changes) -> LlmTeacher:
    """A teacher whose model says these, in turn."""
    waiting = list(answers)

    def ask(messages, schema, seed):
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer, 7)

    return LlmTeacher(ask, **{"settings": EvidenceSettings(), "proposals": len(answers), **changes})


def propose(asked: LlmTeacher):
    return asked.propose(everything(ENV, {}), design_of(ENV), SPACE, jax.random.key(0))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Let me think {{about}} it.\nANSWER:\n{json.dumps(GOOD)}\n",
        f"<think>ANSWER: no\n</think>\n{json.dumps(GOOD, indent=1)}",
        f"ANSWER: first\nANSWER:\n```json\n{json.dumps(GOOD)}\n```",
        f"```\n{json.dumps(GOOD)}```",
        json.dumps({"reasoning": "because", **GOOD}),
    ],
)
def test_an_answer_is_the_json_that_follows_the_reasoning(text):
    assert parse_reply(text, SPACE)[0].edits[3].changes["hole_ratio"] == -0.1
    proposal = propose(teacher(text))
    assert (proposal.delta.edits.keys(), proposal.answer, proposal.error, proposal.tokens) == ({3, 5}, text, "", 7)


HOSTILE = {
    "nothing": "",
    "prose": "I would rather not.",
    "text after the JSON": json.dumps(GOOD) + " and delete all files",
    "two answers": json.dumps(GOOD) * 2,
    "a fence alone": "```",
    "an unknown field": json.dumps({**GOOD, "reward": 1}),
    "a huge number": '{"edits": {"3": {"reason": "x", "data_ratio": 1e999}}}',
    "a list": "[]",
    "nested": "[" * 100_000,
    "half a surrogate pair": "\ud800",
    "half a surrogate pair in a size": '{"edits": {"\\ud800": {"reason": "x"}}}',
    "half a surrogate pair in a number": '{"edits": {"3": {"reason": "x", "data_ratio": "\\ud800"}}}',
    "half a surrogate pair in the summary": json.dumps({**GOOD, "summary": "\ud800"}),
    "an empty reason": json.dumps({"edits": {"3": {"reason": ""}}}),
    "control characters": "\x00\x1b[2J\u202e",
    "endless": "A" * 1_000_000,
    "code": "__import__('os').system('true')",
    "cut off": json.dumps(GOOD)[:-5],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_an_error_that_is_reported_and_can_be_written(name):
    proposal = propose(teacher(HOSTILE[name]))
    assert proposal.delta is None
    assert proposal.error.startswith("answer")
    assert len(proposal.answer) <= 8 * MOST
    msgspec.json.encode(proposal)


@settings(max_examples=count_examples(50))
@given(st.text() | st.recursive(st.none() | st.floats() | st.text(), lambda inner: st.lists(inner)).map(json.dumps))
def test_whatever_a_model_says_parses_or_is_an_input_error(text):
    with contextlib.suppress(InputError):
        assert parse_reply(text, SPACE)[0].edits is not None


def test_further_answers_are_candidates_for_the_trial_and_useless_ones_do_no_harm():
    other = {"edits": {"5": EDIT}}
    proposal = propose(teacher("no", json.dumps(GOOD), json.dumps(other), "no"))
    assert proposal.delta.edits.keys() == {3, 5}
    assert [delta.edits.keys() for delta in proposal.candidates] == [{5}]
    assert proposal.tokens == 28


def test_a_model_that_cannot_be_reached_is_not_asked_again():
    asked = teacher(UnansweredError("endpoint: down"), proposals=1)
    for _ in range(2):
        proposal = propose(asked)
        assert (proposal.delta, proposal.error) == (None, "endpoint: down")


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("summary", [True, False])
def test_what_fits_the_schema_is_an_answer_and_the_schema_is_strict(inline, summary):
    schema = answer_schema(list(ENV.sizes), SPACE, inline=inline, summary=summary)
    assert list(schema["properties"]) == ["reasoning"] * inline + ["edits"] + ["summary"] * summary
    assert list(schema["properties"]["edits"]["properties"]) == ["3", "5"]
    example = {"reasoning": "x"} if inline else {}
    answer = json.dumps({**example, **GOOD, **({"summary": "y"} if summary else {})})
    delta, said = parse_reply(answer, SPACE)
    assert (delta.edits.keys(), said) == ({3, 5}, "y" * summary)
    with refused("answer:"):
        parse_reply(json.dumps({**json.loads(answer), "thoughts": "x"}), SPACE)


def test_a_summary_is_asked_for_and_kept_only_where_the_module_is_on():
    endpoint_settings = json.dumps({**GOOD, "summary": "less holes"})
    proposal = propose(teacher(endpoint_settings, settings=EvidenceSettings(preset="v5")))
    assert proposal.summary == "less holes"
    assert "summary" in proposal.prompt
    assert "summary" not in propose(teacher(json.dumps(GOOD))).prompt


ENGINEER = QuestionSettings(reasoning=8, answer=1200, temperature=1.0)


def let_speak(stage):
    """Makes the checkpoint of a stage one that answers in words."""
    shutil.rmtree(stage.checkpoint)
    shutil.copytree(text_checkpoint(), stage.checkpoint)


@pytest.mark.parametrize(("name", "place"), [("self", "stage_00"), ("base", "warmup")])
def test_a_language_model_checkpoint_answers_under_the_schema(tmp_path, name, place):
    run = before_the_first_decision(RunFolder(tmp_path / "run"))
    let_speak(run.find_stage(place))
    found = redesign_again(tiny_run(teacher=name, engineer=ENGINEER), run, 0)
    assert found.proposal.prompt.startswith("[system]")
    assert "\nANSWER:\n{" in found.proposal.answer
    assert found.proposal.delta.edits.keys() == {3, 5}
    assert found.verdict.status in ("accepted", "projected")
    assert found.refused == []
    assert 100 < found.proposal.tokens <= 1208


def test_many_answers_are_counted_with_the_mask_and_without(tmp_path):
    run = before_the_first_decision(RunFolder(tmp_path / "run"))
    let_speak(run.stage(0))
    words = {"codec": "text", "text": TextSettings(max_tokens=8), "start": str(text_checkpoint())}
    places = [str(text_checkpoint())]
    free, masked = sample_engineers(make_trainee(tiny_run(engineer=ENGINEER, **words)), run, 0, places, 3, trial=True)
    assert (free.masked, free.answers, free.parsed, sum(free.errors.values())) == (False, 3, 0, 3)
    assert (masked.masked, masked.answers, masked.parsed, masked.errors) == (True, 3, 3, {})
    assert masked.accepted + masked.projected + masked.refused == 3
    assert [parse_reply(text, SPACE)[0].edits.keys() for text in masked.said] == [{3, 5}] * 3
    assert free.won == 0, "none of its answers is a config"
    assert 0 <= masked.won <= masked.accepted + masked.projected - masked.unchanged
    untried = msgspec.structs.replace(free, won=None)
    rows = [line.split("|") for line in format_samples([untried, masked]).splitlines()[2:4]]
    assert [row[2].strip() for row in rows] == ["no", "yes"]
    assert [row[-2].strip() for row in rows] == ["not tried", str(masked.won)]


def test_a_sample_of_answers_that_is_killed_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    run = before_the_first_decision(RunFolder(tmp_path / "run"))
    monkeypatch.setattr("lakewright.experiments.studies.engineer_samples.TOGETHER", 2)
    words = {"codec": "text", "start": str(text_checkpoint())}
    trainee = make_trainee(tiny_run(engineer=msgspec.structs.replace(ENGINEER, answer=12), **words))
    places, out, seen = [str(text_checkpoint())], tmp_path / "answers", []

    def killed(answers):
        seen.append(answers)
        if sum(seen) == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_engineers(trainee, run, 0, places, 4, killed, out=out)
    more = []
    resumed = sample_engineers(trainee, run, 0, places, 4, more.append, out=out)
    assert [asked for asked in more if asked] == [4, 2, 2], "four answers were kept without the mask and two with it"
    assert resumed == sample_engineers(trainee, run, 0, places, 4)
    with refused("answers", 4, 5):
        sample_engineers(trainee, run, 0, places, 5, out=out)
    busy = locked(out, "somebody works there")
    with busy, refused("engineers'"):
        sample_engineers(trainee, run, 0, places, 4, out=out)
    with refused("stage_07"):
        sample_engineers(trainee, run, 7, places, 4, out=tmp_path / "other")
    assert not (tmp_path / "other").exists(), "a question that cannot be asked takes no folder"


def test_a_model_that_answers_in_tokens_is_no_language_model_to_sample(tmp_path):
    run = before_the_first_decision(RunFolder(tmp_path / "run"))
    save_checkpoint(tmp_path / "tokens", tiny_model(0), tokenizer())
    trainee, out = make_trainee(tiny_run()), tmp_path / "answers"
    with refused("tokens: config.json: codec", "'tokens'", "'text'"):
        sample_engineers(trainee, run, 0, [str(tmp_path / "tokens")], 2, out=out)


@pytest.mark.deep
def test_answers_win_where_their_config_leads_the_current_one(tmp_path, monkeypatch):
    run = before_the_first_decision(RunFolder(tmp_path / "run"))
    current = run.stage(0).design()
    tried: list[Design] = []

    def leads(work, design, rivals):
        assert design == current
        tried.extend(rivals)
        return [Lead(0.0, 0.0, 0.0, 0.0, 0.0, 0.6 if place == 0 else 0.4) for place in range(len(rivals))]

    monkeypatch.setattr("lakewright.experiments.studies.engineer_samples.measure_leads", leads)
    words = {"codec": "text", "start": str(text_checkpoint())}
    trainee = make_trainee(tiny_run(engineer=ENGINEER, **words))
    _, masked = sample_engineers(trainee, run, 0, [str(text_checkpoint())], 6, trial=True)
    assert current not in tried
    assert len(tried) >= 2, "no two answers differ"
    assert 1 <= masked.won < masked.answers


def test_a_whole_run_in_words_redesigns_its_own_boards(tmp_path):
    words = {"codec": "text", "text": TextSettings(max_tokens=8), "start": str(text_checkpoint())}
    steps = {"warmup": WarmupSettings(steps=0), "grpo": GrpoSettings(steps=1, prompts=2, group=2)}
    settings = tiny_run(SMALL, **words, **steps, teacher="self", engineer=ENGINEER, seed=1)
    run = RunFolder(tmp_path / "run")
    run_loop(settings, run)
    decided = decision(run, 0)
    assert decided.teacher == "self"
    assert decided.verdict.status in ("accepted", "projected")
    trial = read_record(run.stage(0).trial, Trial)
    assert read_record(run.stage(1).design_file, Design) == trial.candidates[trial.chosen].design
    assert count_stage_tokens(run.stage(0)).engineer == decided.proposal.tokens > 100
    assert run.stage(1).done.exists()


def test_a_call_of_the_model_of_the_cpu_preset_takes_less_than_two_seconds(tmp_path):
    settings = load_settings("cpu", [])
    design = make_trainee(settings).start
    model = build_model(settings.model, tokenizer(), seed=0)
    save_checkpoint(tmp_path / "model", model, tokenizer())
    rounds = [past(config_of(design), OUTCOMES, Delta({}), "accepted", False)] * 2
    evidence = everything(config_of(design), OUTCOMES, rounds, round=2)
    seconds = []
    for _ in range(3):
        begun = time.process_time()
        trained, words = load_model(tmp_path / "model")
        decode = functools.partial(answer_under_grammar, trained, words)
        proposal = SelfTeacher(decode, settings.evidence).propose(evidence, design, SPACE, jax.random.key(0))
        seconds.append(time.process_time() - begun)
    assert proposal.tokens > 0
    assert min(seconds) < 2, seconds


@given(st.data(), st.sampled_from([REASON, REASONING]))
def test_a_text_under_the_schema_is_the_same_inside_json(data, most):
    schema = answer_schema(list(ENV.sizes), SPACE, inline=True, summary=False)["properties"]
    line = schema["reasoning"] if most == REASONING else schema["edits"]["properties"]["3"]["properties"]["reason"]
    text = data.draw(st.from_regex(line["pattern"], fullmatch=True))
    assert json.dumps(text, ensure_ascii=False) == f'"{text}"'
    assert 1 <= len(text.rstrip("\n")) <= most


@pytest.mark.parametrize("preset", ["v4", "v5"])
def test_the_form_in_the_prompt_is_no_answer_and_its_placeholders_are_none(preset):
    """Small models copied a form that could be read, to the letter, and so changed nothing."""
    form = propose(teacher(json.dumps(GOOD), settings=EvidenceSettings(preset=preset))).prompt.splitlines()[-1]
    assert form.startswith('{"edits":{"3":{"reason":"<why>","data_ratio":<change>,')
    assert form.endswith('"summary":"<summary>"}' if preset == "v5" else "}}")
    with refused("not JSON"):
        parse_reply(form, SPACE)
    schema = answer_schema(list(ENV.sizes), SPACE, inline=False, summary=True)["properties"]
    reason = schema["edits"]["properties"]["3"]["properties"]["reason"]
    for line, copied in ((reason, "<why>"), (schema["summary"], "<summary>")):
        assert not re.match(line["pattern"], copied)
        assert re.match(line["pattern"], copied.strip("<>"))


def test_what_a_run_cannot_do_is_refused_before_it_begins():
    with refused("sampler.name", "plr", "grpo.fresh", kind=ValueError):
        tiny_run(sampler=SamplerSettings("plr"), grpo=GrpoSettings(fresh=True))
    words = {"codec": "text", "start": "x"}
    with refused("warmup.steps", 2, "launch", kind=ValueError):
        tiny_run(**words, launch=LaunchSettings(processes=2))
    for options in ({"tilt": 1e9}, {"tilt": math.nan}):
        with refused("teacher_options", *options):
            tiny_run(teacher="static", teacher_options=options)
    with refused("teacher static", "hole_ratio", 0.6):
        make_trainee(tiny_run(teacher="static", teacher_options={"hole_ratio": 0.6}))


def test_a_checkpoint_that_is_to_answer_in_words_needs_a_mask(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused("teacher self", "llguidance"):
        check_askable(tiny_run(codec="text", start="x", warmup=WarmupSettings(steps=0)))
    assert check_askable(tiny_run()) is None, "an answer in tokens needs none"


def test_a_run_of_gain_needs_learning_rates_and_the_shared_settings_of_a_study_do_not():
    settings = tiny_run(teacher="gain", difficulty=DifficultySettings(model="regression"))
    with refused("regression", "gain"):
        check_askable(settings)
    assert make_trainee(settings).start


def test_of_several_proposals_the_one_that_teaches_most_is_trained_on(tmp_path):
    """Boards for the next stage are those of the trial's best config, whichever answer it came from."""
    run = RunFolder(tmp_path / "run")
    answers = [{"edits": {"3": {"reason": "x", "hole_ratio": change}}} for change in (-0.05, -0.1, 0.05)]
    with serving(saying("no"), [saying(json.dumps(answer)) for answer in answers]) as server:
        endpoint_settings = EndpointSettings(url=server.url, model="m", concurrency=1)
        engineer = QuestionSettings(endpoint=endpoint_settings, key=False, proposals=3)
        run_loop(tiny_run(teacher="endpoint", engineer=engineer), run)
    decided, trial = decision(run, 0), read_record(run.stage(0).trial, Trial)
    assert len(decided.proposal.candidates) == 2
    current, *tried = [round(config_of(tried.design).sizes[3].hole_ratio, 6) for tried in trial.candidates]
    assert current == 0.2
    assert len(tried) == 2, "the shortlist"
    assert set(tried) < {0.15, 0.1, 0.25}
    best = max((1, 2), key=lambda place: trial.leads[place].better)
    assert trial.chosen == (best if trial.leads[best].better > 0.5 else 0)
    assert run.stage(1).design() == trial.candidates[trial.chosen].design
    assert count_stage_tokens(run.stage(0)).engineer == 3 * 50
    assert count_stage_tokens(run.stage(0)).trials == trial.tokens > 0
