"""The reading test: readers that read, that ignore the evidence and that read it the other way round."""

import functools

import msgspec
import pytest

from lakewright.engineer import DesignSpace, Knob
from lakewright.engineer.reading import (
    FORMS,
    RULES,
    FormAnswer,
    Solved,
    answer_by_rule,
    ask_in_form,
    choose_forms,
    draw_pairs,
    encode_changes,
    map_signs,
    score_reader,
    write_question,
)
from lakewright.experiments.environments.registry import load_environment
from tests.support.refusals import refused
from tests.support.samples.fake_readers import FakeReader

ADDITION = "docs/examples/addition.py:Addition"
each_environment = pytest.mark.parametrize("name", [ADDITION, "lake"])


@functools.cache
def questions(name, count=12):
    environment = load_environment(name)
    return environment, draw_pairs(environment, count, seed=5)


def score(name, reader, form="numbers-one"):
    environment, pairs = questions(name)
    answers = []
    for pair in pairs:
        ask = functools.partial(ask_in_form, FORMS[form], reader)
        true, exchanged = (ask(shown, environment.space) for shown in pair.evidence)
        answers.append((true, exchanged))
    return score_reader(pairs, answers, environment)


def shares_only(found):
    """The share that follows, of the changes of shares."""
    return next(iter(found.columns.values()))


@each_environment
@pytest.mark.parametrize("form", ["numbers-one", "numbers"])
def test_a_reader_that_reads_follows_the_evidence_and_its_designs_are_worth_more_by_it(name, form):
    found = score(name, FakeReader(), form)
    assert shares_only(found) > 0.9
    assert found.p_value < 0.01
    assert found.gain.low > 0


@each_environment
@pytest.mark.parametrize("form", ["numbers-one", "numbers"])
def test_a_reader_that_ignores_the_evidence_follows_it_in_exactly_half(name, form):
    found = score(name, FakeReader(sense=0, leaning=1.0), form)
    assert found.follows is not None
    assert (found.follows.mean, found.made) == (0.5, found.deciding if form == "numbers-one" else found.made)
    assert found.p_value > 0.4
    assert found.gain.mean == pytest.approx(0)


@each_environment
def test_a_reader_that_reads_the_other_way_round_opposes_the_evidence(name):
    found = score(name, FakeReader(sense=-1))
    assert shares_only(found) < 0.1
    assert found.gain.high < 0
    assert found.p_value > 0.9


def test_a_leaning_hides_reading_until_it_is_taken_off():
    found = score(ADDITION, FakeReader(leaning=5.0))
    assert found.follows is not None
    assert found.follows.mean == 0.5
    assert found.calibrated is not None
    assert found.calibrated.mean > 0.85


@each_environment
def test_the_rule_itself_follows_in_all_and_its_answers_read_back(name):
    environment, pairs = questions(name)
    answers = [answer_by_rule(pair, environment) for pair in pairs]
    found = score_reader(pairs, answers, environment)
    assert found.follows is not None
    assert (found.follows.low, found.made, found.unread) == (1.0, found.deciding, 0)
    assert found.gain.low > 0
    for pair, (true, _) in zip(pairs, answers, strict=True):
        text = encode_changes(true.delta, pair.design, environment.space)
        reader = Scripted(text)
        again = ask_in_form(FORMS["words"], reader, pair.evidence[0], environment.space)
        signs = [map_signs(delta, pair.design, environment.space) for delta in (true.delta, again.delta)]
        assert signs[0] == signs[1]


class Scripted:
    """Says a text whatever is asked."""

    def __init__(self, text):
        self.text = text

    def write(self, messages, schema):
        return self.text

    def weigh(self, messages, begun, choices):
        return [0.0] * len(choices)


@each_environment
def test_pairs_show_the_same_figures_of_other_strata_and_decide_the_opposite(name):
    environment, pairs = questions(name)
    space = environment.space
    for pair in pairs:
        true, exchanged = pair.evidence
        rows = [tuple(row.values()) for row in pair.design.strata.values()]
        assert len({row[1:] for row in rows}) == 1, "only the evidence tells strata apart"
        shown = "outcomes" if pair.kind == "outcomes" else "forecast"
        assert bool(true.outcomes) == (shown == "outcomes")
        assert (true.forecast is not None) == (shown == "forecast")
        for stratum, tally in true.outcomes.items():
            assert exchanged.outcomes[pair.other.get(stratum, stratum)] == tally
        signs = [
            map_signs(RULES[pair.kind].make_delta(one, pair.design, space), pair.design, space) for one in pair.evidence
        ]
        for place, sign in pair.deciding.items():
            assert (signs[0][place], signs[1][place]) == (sign, -sign)


def test_equal_seeds_draw_equal_pairs():
    environment, pairs = questions(ADDITION)
    again = draw_pairs(environment, 3, seed=5)
    assert msgspec.json.encode([pair.evidence for pair in again]) == msgspec.json.encode(
        [pair.evidence for pair in pairs[:3]]
    )


@each_environment
@pytest.mark.parametrize("form", [form for form in FORMS.values() if form.asks != "one"], ids=lambda form: form.name)
def test_a_question_names_each_stratum_and_the_schema_each_change(name, form):
    environment, pairs = questions(name)
    for pair in pairs[:2]:
        messages, schema = write_question(form, pair.evidence[0], environment.space)
        edits = schema["properties"].get("edits", schema)["properties"]
        for stratum in pair.design.strata:
            assert environment.space.words.label(stratum) in messages[-1]["content"]
            assert {column.name for column in environment.space.columns} <= set(edits[str(stratum)]["properties"])


def test_answers_that_mean_no_delta_are_counted_and_change_nothing():
    environment, pairs = questions(ADDITION)
    for text in ("", "{", '{"9":{"share":"more"}}', '{"1":{"share":"much"}}', '{"1":{"speed":"more"}}'):
        answer = ask_in_form(FORMS["words"], Scripted(text), pairs[0].evidence[0], environment.space)
        assert answer.delta is None
        assert answer.error.startswith("answer: ")
    found = score_reader(pairs, [(FormAnswer(None, "no"), FormAnswer(None, "no"))] * len(pairs), environment)
    assert (found.unread, found.made, found.follows, found.gain.mean) == (2 * len(pairs), 0, None, 0.0)


@pytest.mark.parametrize("form", ["words", "ranks-one"])
def test_a_stratum_of_which_nothing_is_known_is_named_all_the_same(form):
    environment, pairs = questions(ADDITION)
    asked, first = [], next(iter(pairs[0].design.strata))
    known = {stratum: tally for stratum, tally in pairs[0].evidence[0].outcomes.items() if stratum != first}
    evidence = msgspec.structs.replace(pairs[0].evidence[0], outcomes=known)

    class Recorder(Scripted):
        def write(self, messages, schema):
            asked.append(messages[-1]["content"])
            return super().write(messages, schema)

        def weigh(self, messages, begun, choices):
            asked.append(messages[-1]["content"])
            return super().weigh(messages, begun, choices)

    ask_in_form(FORMS[form], Recorder("{}"), evidence, environment.space)
    assert f"{first}: nothing is known" in asked[0]


def test_examples_come_before_the_question_with_both_answers():
    environment, pairs = questions(ADDITION)
    space = environment.space
    known = [
        Solved(shown, RULES[pair.kind].make_delta(shown, pair.design, space))
        for pair in draw_pairs(environment, 16, seed=6)
        if pair.kind == "outcomes"
        for shown in pair.evidence
    ]
    asked = []

    class Recorder(FakeReader):
        def weigh(self, messages, begun, choices):
            asked.append(messages[-1]["content"])
            return [0.0, 0.0]

    form = FORMS["words-alone-examples"]
    ask_in_form(form, Recorder(), pairs[0].evidence[0], space, known)
    assert [asked[0].count(f'{{"change":"{word}"}}') for word in ("more", "less")] == [form.examples // 2] * 2
    assert len(asked) == len(pairs[0].design.strata) * len(space.columns)


def test_what_cannot_be_tested_is_refused_in_one_line():
    class Single(type(load_environment(ADDITION))):
        space = DesignSpace(("all",), (Knob(name="terms"),))

    with refused("has nothing to exchange"):
        draw_pairs(Single(), 1, seed=0)
    with refused("form 'rhyme'"):
        choose_forms(["words", "rhyme"])
