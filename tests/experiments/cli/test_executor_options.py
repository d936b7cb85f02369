"""Options that say where tasks run: what cannot be done is refused in one line, before anything is loaded or made."""

import pytest

from tests.support.processes.commands import assert_refused

ASKED = ("benchmark", "eval", "b.jsonl", "--out", "o", "--endpoint", "http://localhost:1", "--model-name", "m")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("study", "cpu", "--workers", "0"), "--workers is 0; give at least 1"),
        (("study", "cpu", "--gpus-per-run", "1.5"), "--gpus-per-run is 1.5; give 0, a whole number, or a share of one"),
        (("study", "cpu", "--cores-per-run", "0"), "--cores-per-run is 0; give at least 1"),
        ((*ASKED, "--workers", "2"), "the server of --endpoint answers; give --concurrency instead"),
        (("solve", "rows.jsonl", "--executor", "slurm"), "--executor is 'slurm'; choose from local, ray"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_executor_that_cannot_be_used_is_refused(tmp_path, monkeypatch, capsys, words, line):
    monkeypatch.chdir(tmp_path)
    out = () if "--out" in words or words[0] == "bench" else ("--out", "out")
    assert_refused(capsys, (*words, *out), line)
    assert not list(tmp_path.iterdir())
