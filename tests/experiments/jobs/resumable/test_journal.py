"""A journal keeps its lines, mends a torn one, and leaves files of others alone."""

import hashlib

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.jobs.resumable.journal import LineJournal, line_log


class Line(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: int = 0


WHOLE = b'{"name":"a","count":1}\n{"name":"b","count":2}\n'


@pytest.mark.parametrize("torn", [b"", b"{", b'{"na', b'{"name":"c","cou', b'{"name":"c","count":3}'])
@pytest.mark.parametrize("whole", [b"", WHOLE])
def test_a_line_that_a_kill_left_unfinished_is_removed_and_the_others_stay(tmp_path, whole, torn):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(whole + torn)
    with LineJournal(path, Line) as journal:
        assert [line.name for line in journal] == ["a", "b"][: 2 * bool(whole)]
        journal.add(Line("d", 4))
    seal = hashlib.sha256(whole + b'{"name":"d","count":4}').hexdigest()[:16]
    assert path.read_bytes() == whole + b'{"name":"d","count":4,"sha256":"%s"}\n' % seal.encode()


def journal_of_three(path):
    with LineJournal(path, Line) as journal:
        journal.add(Line("a", 1), Line("b", 2))
    with LineJournal(path, Line) as journal:
        journal.add(Line("c", 3))
    return path


@pytest.mark.parametrize("old", [b"", WHOLE])
def test_lines_are_read_back_whether_earlier_ones_have_digests_or_not(tmp_path, old):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(old)
    with LineJournal(journal_of_three(path), Line) as journal:
        assert [line.count for line in journal] == [1, 2] * bool(old) + [1, 2, 3]


CHANGES = [(b'"count":1', b'"count":7'), (b'"name":"a"', b'"name":"x"'), (b'"sha256"', b'"sha257"')]


@pytest.mark.parametrize(("there", "changed"), CHANGES)
def test_a_line_that_was_changed_is_refused_with_all_that_follow(tmp_path, there, changed):
    path = journal_of_three(tmp_path / "journal.jsonl")
    path.write_bytes(path.read_bytes().replace(there, changed, 1))
    with pytest.raises(InputError, match=r"journal.jsonl:[12]?: .*remove"), LineJournal(path, Line) as journal:
        list(journal)


def test_lines_of_another_journal_are_refused(tmp_path):
    path = journal_of_three(tmp_path / "journal.jsonl")
    repeated = path.read_bytes().splitlines(keepends=True)
    changed = r"was changed or belongs to another folder; remove this line and all after it"
    with (
        LineJournal(path, Line, "another") as journal,
        pytest.raises(InputError, match=rf"journal.jsonl:1: .*{changed}"),
    ):
        list(journal)
    path.write_bytes(b"".join([*repeated, repeated[0]]))
    with LineJournal(path, Line) as journal, pytest.raises(InputError, match=rf"journal.jsonl:4: .*{changed}"):
        list(journal)


def test_a_log_that_grows_is_shown_at_its_own_path_and_whole_ones_stay(tmp_path):
    path = tmp_path / "train.jsonl"
    with line_log(path, shown=True) as log:
        log({"step": 1})
        assert path.read_bytes() == b'{"step":1}\n'
    assert not path.is_symlink()
    with line_log(path, shown=True) as log:
        log({"step": 2})
        assert path.read_bytes() == b'{"step":1}\n', "the whole log of an earlier training"
    assert path.read_bytes() == b'{"step":2}\n'


@pytest.mark.parametrize("ended", [True, False])
def test_the_log_of_a_training_that_failed_or_was_killed_is_no_whole_log(ended, tmp_path):
    path = tmp_path / "train.jsonl"
    if ended:
        with pytest.raises(TypeError), line_log(path, shown=True) as log:
            log({"step": object})
        assert not path.exists()
        assert not path.is_symlink()
    else:  # a kill leaves the part and the link
        (tmp_path / ".train.jsonl.part").write_bytes(b'{"step":1}\n{"st')
        path.symlink_to(".train.jsonl.part")
    with line_log(path, shown=True) as log:
        log({"step": 5})
        assert path.read_bytes() == b'{"step":5}\n'
    assert path.read_bytes() == b'{"step":5}\n'
    assert sorted(file.name for file in tmp_path.iterdir()) == ["SHA256SUMS", "train.jsonl"]
