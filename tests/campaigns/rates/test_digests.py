"""The share of commands that lists and checks the digests of files."""

import msgspec
import pytest

from tests.campaigns.__main__ import main
from tests.campaigns.rates import digests
from tests.support.samples.finished_run import finish

KIND = ("--size", "3", "--agents", "2", "--hole-ratio", "0.2", "--wait-ratio", "0.5")


@pytest.mark.deep
def test_the_seconds_in_which_files_are_checked_are_a_part_of_those_of_the_command(tmp_path, capsys, monkeypatch):
    run = str(finish(tmp_path / "run").folder)

    def measure_commands(call):
        yield digests._measure(call, "report", ("report", run))
        made = str(tmp_path / "made{}.jsonl")
        yield digests._measure(call, "generate", ("generate", *KIND, "--count", "2", "--out", made))

    monkeypatch.setattr(digests, "_measure_commands", measure_commands)
    assert main(["digests", "--json"]) == 0
    report, generate = msgspec.json.decode(capsys.readouterr().out, type=digests.DigestsBench).costs
    for cost in (report, generate):
        assert 0 < cost.digests < cost.work
        assert cost.digests < cost.process
    table = digests.format_table(digests.DigestsBench({}, [report]))
    assert f"{report.digests / report.process:.2%}" in table
    assert f"{report.digests / report.work:.2%}" in table


@pytest.mark.deep
def test_a_command_that_fails_is_named(monkeypatch):
    words = ("report", "no run")
    monkeypatch.setattr(digests, "_measure_commands", lambda call: iter([digests._measure(call, "report", words)]))
    with pytest.raises(RuntimeError, match="lakewright report no run"):
        main(["digests"])
