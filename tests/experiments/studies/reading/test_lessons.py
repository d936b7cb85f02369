"""Lessons of the reading test: what they teach, their training and its resumption, and the teacher that asks."""

import functools
import itertools
import json
from statistics import fmean

import jax
import msgspec
import numpy as np
import pytest
import torch

from lakewright.core_jax.errors import InputError
from lakewright.engineer.difficulty.worth import estimate_worth
from lakewright.engineer.reading import FORMS, KINDS, draw_pairs, draw_question
from lakewright.experiments.cli import main
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.studies.reading.language_readers import ReadingTeacher, load_language_model
from lakewright.experiments.studies.reading.lessons import (
    CLAIM,
    LessonDecision,
    Teaching,
    check_teachable,
    draw_decisions,
    make_worth_loss,
    teach_reader,
    write_lessons,
)
from tests.support.models.small_language_model import language, language_checkpoint
from tests.support.refusals import refused

ADDITION = "docs/examples/addition.py:Addition"


@functools.cache
def addition():
    return load_environment(ADDITION)


def teaching(form="words-one", **changes):
    drawn = {"columns": [], "strata": 3, "lessons": 40, "steps": 24, "batch": 8, "rate": 3e-3, "bf16": False, "seed": 0}
    names = ("tiny", form, ADDITION, addition().space.signature())
    return Teaching(CLAIM.format, *names, **(drawn | changes))


@pytest.mark.parametrize("form", ["words", "numbers-one", "words-alone"])
def test_lessons_are_questions_of_the_form_with_answers_of_the_rule_in_balance(form):
    found = write_lessons(teaching(form, lessons=60), addition(), language())
    assert len(found) == 60
    answers = [language().decode(answer, skip_special_tokens=True) for _, answer in found]
    assert all(answer[-1] == language().eos_token_id for _, answer in found)
    if form == "words":
        assert all(set(json.loads(answer)) <= {"1", "2", "3", "4"} for answer in answers)
    else:
        assert set(answers) == {'more"}', 'less"}'}
        assert 15 < sum(answer == 'more"}' for answer in answers) < 45
        assert all(language().decode(prompt).endswith('{"change":"') for prompt, _ in found)


def test_a_column_alone_may_be_taught():
    prompts = [
        language().decode(prompt) for prompt, _ in write_lessons(teaching(columns=["share"]), addition(), language())
    ]
    assert all("the share of the problems: more or less?" in prompt for prompt in prompts)


class KilledError(Exception):
    """The test's own."""


def teach_tiny(folder, work, on_step=lambda step, loss: None):
    """A training by a clock on which a minute passes whenever it is read, so that each pool of batches is saved."""
    minutes = itertools.count(step=61.0)
    return teach_reader(folder, work, addition(), *tiny(), on_step, clock=lambda: next(minutes))


def tiny():
    return load_language_model(str(language_checkpoint()))


def test_a_training_lowers_the_loss_and_continues_after_a_kill(tmp_path):
    def kill(step, loss):
        if step == 12:
            raise KilledError

    work = teaching(steps=16)
    whole = teach_tiny(tmp_path / "whole", work)
    losses = json.loads((tmp_path / "whole" / "losses.json").read_text())
    assert len(losses) == 16
    assert sum(losses[-4:]) < sum(losses[:4])
    with pytest.raises(KilledError):
        teach_tiny(tmp_path / "killed", work, kill)
    assert not (tmp_path / "killed" / "checkpoint").exists()
    again = teach_tiny(tmp_path / "killed", work)
    assert json.loads((tmp_path / "killed" / "losses.json").read_text()) == losses
    assert (again / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert teach_tiny(tmp_path / "killed", work, kill) == again, "what is there is not trained again"
    with refused(0, 1):
        teach_tiny(tmp_path / "killed", teaching(steps=16, seed=1))


def test_the_commands_teach_a_model_and_read_with_it(tmp_path, capsys):
    words = ["engineer", "teach", str(language_checkpoint()), "--environment", ADDITION, "--out", str(tmp_path / "t")]
    words += ["--steps", "2", "--batch", "2", "--lessons", "4", "--threads", "1", "--goal", "worth", "--json"]
    assert main(words) == 0
    checkpoint = json.loads(capsys.readouterr().out)["checkpoint"]
    asked = ["engineer", "read", checkpoint, "--environment", ADDITION, "--out", str(tmp_path / "r"), "--pairs", "2"]
    assert main([*asked, "--forms", "words-one"]) == 0
    assert "words-one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--form", "delta"], "--form delta has no lessons; choose from numbers, words"),
        (["--form", "rhyme"], "form 'rhyme' is unknown"),
        (["--steps", "0"], "--steps is 0; choose 1 or more"),
        (["--rate", "0"], "--rate is 0; choose more than 0"),
        (["--columns", "speed"], "--columns: 'speed' is unknown"),
        (["--goal", "worth", "--form", "words"], "--goal worth: words asks for more than one decision; choose --form"),
    ],
)
def test_bad_lessons_are_refused_in_one_line(tmp_path, capsys, given, said):
    out = tmp_path / "out"
    assert main(["engineer", "teach", "some-model", "--environment", ADDITION, "--out", str(out), *given]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
    with pytest.raises(InputError):
        check_teachable(FORMS["words-alone-examples"])


@pytest.mark.parametrize("form", ["words", "words-one"])
def test_the_teacher_asks_the_model_about_a_round(form):
    true, forecast = (draw_pairs(addition(), 2, seed=0)[place] for place in (0, 1))
    teacher = ReadingTeacher(str(language_checkpoint()), form)
    found = teacher.propose(true.evidence[0], true.design, addition().space, jax.random.key(0))
    assert found.delta is not None or found.error
    assert found.answer
    other = ReadingTeacher(str(language_checkpoint()), form, shuffled=True)
    exchanged = other.propose(true.evidence[0], true.design, addition().space, jax.random.key(0))
    assert form == "words" or exchanged.answer != found.answer, "the odds follow the figures that are shown"
    by_forecast = ReadingTeacher(str(language_checkpoint()), form, "forecast")
    both = msgspec.structs.replace(true.evidence[0], forecast=forecast.truth)
    assert by_forecast.propose(both, forecast.design, addition().space, jax.random.key(0)).answer
    lacking = by_forecast.propose(true.evidence[0], true.design, addition().space, jax.random.key(0))
    assert (lacking.delta, lacking.error) == (None, "the evidence has no forecast")
    with refused("form 'rhyme'"):
        ReadingTeacher(form="rhyme")


def test_the_teacher_may_be_asked_about_some_columns_only():
    true = draw_pairs(addition(), 1, seed=0)[0]
    teacher = ReadingTeacher(str(language_checkpoint()), "words-alone", columns=("share",))
    found = teacher.propose(true.evidence[0], true.design, addition().space, jax.random.key(0))
    changes = [edit.changes for edit in found.delta.edits.values()]
    assert changes
    assert all(change["share"] and not change["terms"] and not change["carry"] for change in changes)
    unknown = ReadingTeacher(str(language_checkpoint()), "words-alone", columns=("height",))
    with refused("teacher_options.columns: 'height'"):
        unknown.propose(true.evidence[0], true.design, addition().space, jax.random.key(0))


def worth(form="words-alone", **changes):
    return teaching(form, **({"columns": ["share"], "goal": "worth"} | changes))


def test_more_of_a_stratum_gains_where_its_problems_are_worth_more_than_the_others():
    work, space = worth(lessons=24), addition().space
    rng, signs = np.random.default_rng([work.seed, 1]), []
    for number, decision in enumerate(draw_decisions(work, addition(), language())):
        shown, truth = draw_question(KINDS[number % 2], addition(), work.strata, rng)
        strata = space.sort_strata(shown.design.strata)
        stratum = strata[int(rng.integers(len(strata)))]
        assert rng.integers(1) == 0, "the one column"
        each = {one: worth_alone(one, shown.design, truth) for one in strata}
        assert np.sign(decision.gain) == np.sign(each[stratum] - fmean(each.values()))
        signs.append(decision.gain > 0)
    assert 4 < sum(signs) < 20


def worth_alone(stratum, design, truth):
    """What the problems of one stratum are worth."""
    mix = {cell: share for cell, share in addition().cells(design).items() if cell.stratum == stratum}
    return estimate_worth(truth.model, mix, addition().space).mean / sum(mix.values())


def test_the_loss_is_what_the_answers_of_the_model_earn_in_units_of_the_mean_gain():
    model, tokenizer = tiny()
    decisions = draw_decisions(worth(lessons=6, form="numbers-one"), addition(), tokenizer)
    batch = [(decision.prompt, [decision.more]) for decision in decisions[:4]]
    loss = make_worth_loss(decisions)(model, batch, tokenizer.pad_token_id).item()
    unit = fmean(abs(decision.gain) for decision in decisions)
    earned = []
    for decision in decisions[:4]:
        with torch.no_grad():
            scores = model(input_ids=torch.tensor([decision.prompt])).logits[0, -1].double()
        more, less = scores[[decision.more, decision.less]].exp().tolist()
        earned.append(more / (more + less) * decision.gain / unit)
    assert loss == pytest.approx(-fmean(earned), rel=1e-4)
    assert tokenizer.decode(decisions[0].more) != tokenizer.decode(decisions[0].less)


def test_questions_in_the_same_words_earn_their_mean_gain():
    model, _ = tiny()
    one = LessonDecision([5, 6, 7], 8, 9, 2.0)
    loss_of = make_worth_loss([one, one._replace(gain=-1.0), one._replace(prompt=[6, 6], gain=3.0)])
    alone = make_worth_loss([one._replace(gain=0.25), one._replace(prompt=[6, 6], gain=1.75)])
    batch = [(one.prompt, [8])]
    assert loss_of(model, batch, 0).item() == pytest.approx(alone(model, batch, 0).item())


def test_a_training_on_what_answers_are_worth_earns_more_and_continues_after_a_kill(tmp_path):
    def kill(step, loss):
        if step == 12:
            raise KilledError

    work = worth("words-one", lessons=4, steps=40, rate=1e-2)
    whole = teach_tiny(tmp_path / "whole", work)
    decisions = draw_decisions(work, addition(), language())
    batch, loss_of = [(decision.prompt, [decision.more]) for decision in decisions], make_worth_loss(decisions)
    before, after = (loss_of(load_language_model(str(place))[0], batch, 0) for place in (language_checkpoint(), whole))
    assert after < before - 0.05
    with pytest.raises(KilledError):
        teach_tiny(tmp_path / "killed", work, kill)
    again = teach_tiny(tmp_path / "killed", work)
    assert (again / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    with refused("goal", "'worth'", "'rule'"):
        teach_tiny(tmp_path / "killed", worth("words-one", lessons=4, steps=40, rate=1e-2, goal="rule"))
