"""A journal keeps its lines, mends a torn one, and leaves files of others alone."""

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.resumable.journal import Journal


class Line(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: int = 0


WHOLE = b'{"name":"a","count":1}\n{"name":"b","count":2}\n'


@pytest.mark.parametrize("torn", [b"", b"{", b'{"na', b'{"name":"c","cou', b'{"name":"c","count":3}'])
@pytest.mark.parametrize("whole", [b"", WHOLE])
def test_a_line_that_a_kill_left_unfinished_is_removed_and_the_others_stay(tmp_path, whole, torn):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(whole + torn)
    with Journal(path, Line) as journal:
        assert [line.name for line in journal] == ["a", "b"][: 2 * bool(whole)]
        journal.add(Line("d", 4))
    assert path.read_bytes() == whole + b'{"name":"d","count":4}\n'


FOREIGN = [b'{"precious":1}', b'{"precious":1}\n', b'{"name":"c","colour":1}', b"notes", b"notes\n{", b"\xff", b"\n"]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"notes.txt:1: is not a line of a Line journal; remove it or choose"):
        Journal(path, Line)
    assert path.read_bytes() == text
