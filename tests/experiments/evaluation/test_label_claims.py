"""Labels of an evaluation belong to its own benchmark."""

import msgspec
import pytest

from core_jax.errors import InputError
from core_jax.rows import write_rows
from experiments.evaluation import labels
from tests.support.boards.generated_rows import unsolved
from tests.support.samples.evaluations import ROWS, CertifiedAnswers, Unreachable, run_evaluation


@pytest.fixture
def two_sets(tmp_path):
    """Two benchmarks without labels whose ids coincide and whose boards do not."""
    names = [row.id for row in ROWS]
    boards = [msgspec.structs.replace(unsolved(row), id=name) for row, name in zip(ROWS[::-1], names, strict=True)]
    write_rows(tmp_path / "a.jsonl", list(map(unsolved, ROWS)))
    write_rows(tmp_path / "b.jsonl", boards)
    return tmp_path / "a.jsonl", tmp_path / "b.jsonl"


@pytest.mark.parametrize("cut", ["labelled", "labelling"])
def test_a_benchmark_is_never_scored_on_the_boards_of_another(two_sets, tmp_path, monkeypatch, cut):
    one, other = two_sets
    if cut == "labelling":
        monkeypatch.setattr(labels, "solve_columns", lambda rows, on_progress: 1 / 0)
    with pytest.raises((InputError, ZeroDivisionError)):
        run_evaluation(one, tmp_path / "out", Unreachable())
    monkeypatch.undo()
    with pytest.raises(InputError, match=r"another board than in .*choose another --out|holds another set of labels"):
        run_evaluation(other, tmp_path / "out", CertifiedAnswers())
    assert run_evaluation(one, tmp_path / "out", CertifiedAnswers()).pooled.outcomes.boards == len(ROWS), (
        "the first set continues"
    )


def test_labels_from_before_they_were_claimed_are_read_for_their_own_boards_only(two_sets, tmp_path):
    one, other = two_sets
    with pytest.raises(InputError, match="cannot be reached"):
        run_evaluation(one, tmp_path / "out", Unreachable())
    (tmp_path / "out" / "labels.json").unlink()
    with pytest.raises(InputError, match=rf"boards.*jsonl: '{ROWS[0].id}' is another board than in .*b.jsonl; choose"):
        run_evaluation(other, tmp_path / "out", CertifiedAnswers())
    assert run_evaluation(one, tmp_path / "out", CertifiedAnswers()).pooled.outcomes.boards == len(ROWS)


def test_labels_of_the_same_boards_belong_to_one_benchmark_still(two_sets, tmp_path):
    one, _ = two_sets
    with pytest.raises(InputError, match="cannot be reached"):
        run_evaluation(one, tmp_path / "out", Unreachable())
    write_rows(tmp_path / "fewer.jsonl", [unsolved(row) for row in ROWS[:4]])
    with pytest.raises(InputError, match=r"labels.json: holds another set of labels: benchmark is '.*choose another"):
        run_evaluation(tmp_path / "fewer.jsonl", tmp_path / "out", CertifiedAnswers())
