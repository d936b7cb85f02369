"""The rate of the Gymnasium environments, and of POGEMA's beside it."""

import sys

import pytest

from lakewright.core_jax.errors import InputError
from tests.campaigns.__main__ import main
from tests.campaigns.rates import environments
from tests.support.tools.own_environments import own_environment


@pytest.fixture(autouse=True)
def short(monkeypatch):
    for name, value in {"SIZE": 3, "AGENTS": 2, "AT_ONCE": (1, 4), "ROUNDS": 2, "SECONDS": 0.05}.items():
        monkeypatch.setattr(environments, name, value)


def test_ours_and_the_peer_take_turns_and_are_compared(tmp_path, monkeypatch):
    script = tmp_path / "play.py"
    script.write_text("""print('{"version": "9", "rate": 10.0}')""")
    monkeypatch.setattr(environments, "SCRIPT", script)
    found = {row.solver: row for row in environments.measure_rates(sys.executable).measurements}
    assert list(found)[:3] == ["make_vec, 1 at once", "make_vec, 4 at once", "POGEMA 9, 1 at once"]
    one = found["make_vec, 4 at once"]
    assert len(one.rates) == 2
    fastest = max(row.rate for row in found.values() if row.solver.startswith("POGEMA"))
    assert one.times_fastest_peer == pytest.approx(one.rate / fastest)


def test_without_a_peer_only_ours_are_measured_and_the_command_prints_a_table(capsys):
    assert main(["environments"]) == 0
    printed = capsys.readouterr().out
    assert "make_vec, 4 at once" in printed
    assert "POGEMA" not in printed


def test_a_python_without_pogema_and_one_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match="No module named 'pogema'; pip install pogema there"):
        environments.measure_rates(sys.executable)
    with pytest.raises(InputError, match="cannot be run"):
        environments.measure_rates(tmp_path / "python")


@pytest.mark.deep
def test_pogema_itself_is_measured():
    found = environments.measure_rates(own_environment("pogema", "pogema==1.4.0")).measurements
    peers = [row for row in found if row.solver.startswith("POGEMA 1.4.0")]
    assert peers
    assert all(row.rate > 100 for row in peers), peers
