"""The bench of files: what it measures for each command, and how it is shown."""

from tests.campaigns.rates import files


def test_each_command_is_measured_against_the_core_on_both_forms(tmp_path, monkeypatch):
    for name, value in (("ROWS", 64), ("DRAWN", 32), ("REPEATS", 1)):
        monkeypatch.setattr(files, name, value)
    found = list(files.file_rates(tmp_path, 3))
    wanted = [(work, form) for work in ("generate", "solve", "verify", files.READ) for form in files.FORMS]
    assert [(rate.work, rate.form) for rate in found] == wanted
    assert all(min(rate.rate, rate.core, rate.share, rate.processor) > 0 for rate in found), found
    shown = files.format_table(files.FilesBench({"cores": 2}, found, {2: 1.25}, {2: 7.5}, 9.0, {64: 300.0}))
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in shown.splitlines()]
    assert ["verify", "3x3", ".parquet"] in rows, shown
    assert "first board of 2 agents" in shown
    assert "1.2 s" in shown
    assert "first board of 2 agents, nothing compiled" in shown
