"""The command of the reading test: its folder, its resumption, and models that it cannot ask."""

import json
import xml.dom.minidom

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.reading import FORMS
from lakewright.experiments.cli import main
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.studies.reading.reading_test import CLAIM, ReadingWork, run_reading_test
from tests.support.models.small_language_model import language_checkpoint
from tests.support.refusals import refused
from tests.support.samples.fake_readers import FakeReader

ADDITION = "docs/examples/addition.py:Addition"
CHOSEN = [FORMS["numbers"], FORMS["numbers-one"]]


class KilledError(Exception):
    """The test's own."""


def work_of(pairs=4, seed=1):
    space = load_environment(ADDITION).space
    return ReadingWork(CLAIM.format, ADDITION, space.signature(), pairs, seed, strata=3)


def run_test(folder, reader, work=None, models=("fake",), forms=CHOSEN, tick=lambda answers: None):
    environment = load_environment(ADDITION)
    return run_reading_test(folder, work or work_of(), environment, models, forms, lambda place: reader, tick)


def test_a_test_that_is_killed_continues_with_the_next_answer(tmp_path):
    whole, reader = run_test(tmp_path / "whole", FakeReader()), FakeReader()

    def kill_at(answers):
        if reader.asked > 40:
            raise KilledError

    with pytest.raises(KilledError):
        run_test(tmp_path / "killed", reader, tick=kill_at)
    asked = reader.asked
    assert run_test(tmp_path / "killed", reader) == whole
    alone = FakeReader()
    run_test(tmp_path / "alone", alone)
    assert asked + 1 < reader.asked == alone.asked
    for name in ("results.json", "results.md", "reading.svg", "answers.jsonl"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_models_and_forms_may_be_added_and_progress_counts_all_answers(tmp_path):
    counts = []
    run_test(tmp_path, FakeReader(), forms=CHOSEN[:1])
    found = run_test(tmp_path, FakeReader(-1), models=("fake", "other"), tick=counts.append)
    assert sum(counts) == 2 * 4 * 2 * 2
    assert [(one.model, one.form) for one in found] == [
        ("the rule", ""),
        ("fake", "numbers"),
        ("fake", "numbers-one"),
        ("other", "numbers"),
        ("other", "numbers-one"),
    ]
    assert found[1].score.follows.mean > 0.5 > found[3].score.follows.mean
    drawn = xml.dom.minidom.parse(str(tmp_path / "reading.svg")).documentElement
    assert drawn.tagName == "svg"
    assert "other numbers" in (tmp_path / "reading.svg").read_text()
    assert len(json.loads((tmp_path / "results.json").read_text())) == 5
    assert len((tmp_path / "results.md").read_text().splitlines()) == 7


def test_a_folder_of_another_test_is_refused(tmp_path):
    run_test(tmp_path, FakeReader(), forms=CHOSEN[:1])
    with refused(1, 2):
        run_test(tmp_path, FakeReader(), work=work_of(seed=2))


def test_answers_to_other_evidence_are_refused_though_the_seed_is_the_same(tmp_path, monkeypatch):
    run_test(tmp_path, FakeReader(), forms=CHOSEN[:1])
    monkeypatch.setattr("lakewright.engineer.reading.pairs.PROBLEMS", 30)
    with pytest.raises(InputError, match="holds another reading test: digest is"):
        run_test(tmp_path, FakeReader(), forms=CHOSEN[:1])


def test_the_command_asks_a_language_model_and_prints_a_table(tmp_path, capsys):
    words = ["engineer", "read", str(language_checkpoint()), "--environment", ADDITION, "--out", str(tmp_path)]
    words += ["--pairs", "2", "--threads", "1", "--forms"]
    assert main([*words, "words,words-alone"]) == 0
    table = capsys.readouterr().out
    assert [line.split("|")[2].strip() for line in table.splitlines()[3:]] == ["words", "words-alone"]
    assert main([*words, "words", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["score"]["unread"] for one in found] == [0, 0, 0], "the mask admits nothing else"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--forms", "rhyme"], "form 'rhyme' is unknown; choose from delta"),
        (["--columns", "speed"], "--columns: 'speed' is unknown; choose from share, terms, carry"),
        (["--pairs", "0"], "--pairs is 0; choose 1 to 10000"),
        (["--threads", "0"], "--threads is 0; choose at least 1"),
        (["--environment", "nowhere"], "environment 'nowhere': is unknown"),
    ],
)
def test_bad_options_are_refused_in_one_line(tmp_path, capsys, given, said):
    out = tmp_path / "out"
    assert main(["engineer", "read", "some-model", "--environment", ADDITION, "--out", str(out), *given]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()
