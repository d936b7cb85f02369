"""Claims: the same work continues, other work and other processes are refused, older folders are read."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import locked
from lakewright.experiments.jobs.resumable.claims import Claim, describe_difference
from tests.support.deep import count_examples
from tests.support.refusals import refused


class Baking(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What identifies a piece of work in these tests."""

    loaves: int
    flour: dict[str, float] = {}
    ovens: tuple[int, ...] = ()
    format: int = 1


BAKING = Claim("baking", "baking.json", Baking, 1, "bake")
BREAD = Baking(3, {"rye": 0.5}, (1, 2))
SECOND = Claim("baking", "baking.json", Baking, 2, "bake")


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_same_work_continues_in_its_folder(tmp_path):
    BAKING.take_folder(tmp_path / "new", BREAD)
    before = contents(tmp_path / "new")
    BAKING.take_folder(tmp_path / "new", BREAD)
    assert BAKING.read_work(tmp_path / "new") == BREAD
    assert contents(tmp_path / "new") == before


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (Baking(4, {"rye": 0.5}, (1, 2)), "loaves is 3 there and 4 now"),
        (Baking(3, {"rye": 0.25}, (1, 2)), "flour.rye is 0.5 there and 0.25 now"),
        (Baking(3, {"rye": 0.5, "oats": 1.0}, (1, 2)), "flour.oats is None there and 1.0 now"),
        (Baking(3, {"rye": 0.5}, (1, 3)), "ovens.1 is 2 there and 3 now"),
    ],
)
def test_other_work_is_refused_by_its_first_difference(tmp_path, other, named):
    BAKING.take_folder(tmp_path, BREAD)
    before = contents(tmp_path)
    with refused("baking.json:", f"baking: {named}"):
        BAKING.take_folder(tmp_path, other)
    assert contents(tmp_path) == before, "nothing is lost"


def test_a_folder_that_nothing_depends_on_changes_hands(tmp_path):
    BAKING.take_folder(tmp_path, BREAD)
    BAKING.take_folder(tmp_path, Baking(9), replace=True)
    assert BAKING.read_work(tmp_path) == Baking(9)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("a year of work")
    for claim in (lambda: BAKING.take_folder(tmp_path, BREAD), lambda: BAKING.hold_folder(tmp_path, BREAD).__enter__()):
        with refused("baking"):
            claim()
    with refused("baking.json", "bake"):
        BAKING.read_work(tmp_path)
    assert contents(tmp_path) == {"thesis.txt": b"a year of work"}


def test_hidden_files_leave_a_folder_free(tmp_path):
    (tmp_path / ".baking.json.part").write_text("half a rec")  # of a process that was killed
    BAKING.take_folder(tmp_path, BREAD)
    assert BAKING.read_work(tmp_path) == BREAD


def test_a_folder_from_before_formats_is_read(tmp_path):
    (tmp_path / "baking.json").write_text(json.dumps({"loaves": 3, "flour": {"rye": 0.5}, "ovens": [1, 2]}))
    BAKING.take_folder(tmp_path, BREAD)
    assert BAKING.read_work(tmp_path) == BREAD


def test_a_folder_of_another_format_is_refused_with_a_way_out(tmp_path):
    BAKING.take_folder(tmp_path, BREAD)
    with refused("format", 1, 2):
        SECOND.take_folder(tmp_path, BREAD)


@pytest.mark.parametrize("damage", [b"", b"[1]", b"{", b'{"loaves": "three"}', b'{"loaves": 3, "jam": 1}'])
def test_a_damaged_record_is_one_line(tmp_path, damage):
    (tmp_path / "baking.json").write_bytes(damage)
    with pytest.raises(InputError, match=r"baking\.json") as refused:
        BAKING.take_folder(tmp_path, BREAD)
    assert "\n" not in str(refused.value)


def test_a_second_process_is_refused_while_the_first_works(tmp_path):
    with (
        BAKING.hold_folder(tmp_path / "new", BREAD),
        pytest.raises(InputError, match="another process works on this baking"),
    ):
        BAKING.hold_folder(tmp_path / "new", BREAD).__enter__()
    with BAKING.hold_folder(tmp_path / "new", BREAD):
        pass


def test_processes_that_share_the_work_are_let_in_and_no_others(tmp_path):
    with BAKING.hold_folder(tmp_path, BREAD, shared=True), BAKING.hold_folder(tmp_path, BREAD, shared=True):
        with pytest.raises(InputError, match="another process"), locked(tmp_path):
            pass
        with refused("loaves", 3, 4):
            BAKING.hold_folder(tmp_path, Baking(4), shared=True).__enter__()


works = st.builds(
    Baking,
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(["rye", "oats"]), st.floats(allow_nan=False, allow_infinity=False)),
    st.lists(st.integers(0, 2), max_size=3).map(tuple),
)


@settings(deadline=None, max_examples=count_examples(20))
@given(works, works)
def test_a_difference_is_named_exactly_where_there_is_one(one, other):
    assert bool(describe_difference(one, other)) == (one != other), (one, other)
