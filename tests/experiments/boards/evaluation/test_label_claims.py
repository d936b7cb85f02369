"""Labels of an evaluation belong to its own benchmark."""

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import write_rows
from lakewright.experiments.boards.evaluation import evaluator
from tests.support.boards.generated_rows import unsolved
from tests.support.refusals import refused
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
        monkeypatch.setattr(evaluator, "solve_columns", lambda rows, on_progress: 1 / 0)
    with pytest.raises((InputError, ZeroDivisionError)):
        run_evaluation(one, tmp_path / "out", Unreachable())
    monkeypatch.undo()
    with pytest.raises(
        InputError, match=r"differs from the board in .*choose another --out|holds another set of labels"
    ):
        run_evaluation(other, tmp_path / "out", CertifiedAnswers())
    assert run_evaluation(one, tmp_path / "out", CertifiedAnswers()).pooled.outcomes.boards == len(ROWS), (
        "the first set continues"
    )


@pytest.mark.parametrize("place", [0, 1])
def test_boards_that_nothing_claims_are_not_taken_for_labels(two_sets, tmp_path, place):
    """They may be anybody's, the benchmark itself among them."""
    with pytest.raises(InputError, match="cannot be reached"):
        run_evaluation(two_sets[0], tmp_path / "out", Unreachable())
    (tmp_path / "out" / "labels.json").unlink()
    kept = (tmp_path / "out" / "boards.jsonl").read_bytes()
    with refused("`lakewright benchmark eval`"):
        run_evaluation(two_sets[place], tmp_path / "out", CertifiedAnswers())
    assert (tmp_path / "out" / "boards.jsonl").read_bytes() == kept


def test_boards_are_not_taken_for_labels_where_an_earlier_version_claimed_them(two_sets, tmp_path):
    """It claimed whatever lay there, without the boards that it would have solved."""
    with pytest.raises(InputError, match="cannot be reached"):
        run_evaluation(two_sets[0], tmp_path / "out", Unreachable())
    (tmp_path / "out" / "boards.without_labels.jsonl").unlink()
    with refused("boards.jsonl:", "`lakewright benchmark eval`"):
        run_evaluation(two_sets[0], tmp_path / "out", CertifiedAnswers())


def test_the_set_itself_is_never_overwritten(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    write_rows(path, ROWS)
    kept = path.read_bytes()
    with refused("verdicts.jsonl", "overwritten", "--out"):
        run_evaluation(path, tmp_path / "elsewhere" / "..", CertifiedAnswers())
    assert path.read_bytes() == kept
    assert [file.name for file in tmp_path.iterdir()] == ["verdicts.jsonl"]


def test_labels_of_the_same_boards_belong_to_one_benchmark_still(two_sets, tmp_path):
    one, _ = two_sets
    with pytest.raises(InputError, match="cannot be reached"):
        run_evaluation(one, tmp_path / "out", Unreachable())
    write_rows(tmp_path / "fewer.jsonl", [unsolved(row) for row in ROWS[:4]])
    with refused("labels.json", "benchmark is '"):
        run_evaluation(tmp_path / "fewer.jsonl", tmp_path / "out", CertifiedAnswers())
