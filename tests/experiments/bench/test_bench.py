"""The benchmark measures what it says: drawing, solving and verifying boards."""

import msgspec
import numpy as np
import pytest

from lakewright.core_jax.config import holes_of
from lakewright.core_jax.support import REST
from lakewright.experiments.bench import lake, measurement, sampling
from lakewright.experiments.bench.measurement import Bench, format_table
from lakewright.experiments.cli import main


@pytest.fixture(scope="module")
def found() -> Bench:
    """The whole benchmark, with hardly any boards."""
    few = {"CASES": ((3, 2),), "BOARDS": {2: 64}, "DRAWN": {2: 32}}
    few_steps = {"PLANS": 128, "ENVIRONMENTS": 16, "STEPS": 4}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "REPEATS", 2)
        for name, value in (few | few_steps).items():
            patch.setattr(lake, name, value)
        return lake.measure_rates()


def test_every_kind_of_work_has_a_rate(found):
    works = {row.work.split(",")[0] for row in found.measurements}
    assert works == {"generate", "solve", "floods alone", "verify", "environment"}
    assert all(row.rate > 0 for row in found.measurements)


def test_a_solved_case_says_where_its_time_goes(found):
    (profile,) = found.profiles
    floods = {"floods of sums of costs", "floods of makespans", "plans"}
    assert set(profile.seconds) == {"distances", "certificates", *floods, REST}
    assert all(seconds > 0 for seconds in profile.seconds.values())
    shares = [float(profile.share(phase).rstrip("%")) for phase in profile.seconds]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_a_solved_case_says_how_its_boards_were_decided(found):
    solved = next(row for row in found.measurements if row.work == "solve")
    assert solved.undecided == 0
    assert sum(solved.certificates.values()) == sum(solved.stages.values()) == 64
    assert set(solved.stages) == {"certificate", "flood"}


def test_the_benchmark_is_read_by_programs_and_by_people(found, capsys, monkeypatch):
    monkeypatch.setattr("lakewright.experiments.bench.lake.measure_rates", lambda agents, on_progress: found)
    assert main(["bench", "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Bench) == found
    assert main(["bench"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [len([line for line in lines if line.startswith(f"| {work} ")]) for work in ("solve", "verify", "plans")]
    assert rows == [1, 1, 1]


def test_completions_per_second_are_measured_against_transformers(capsys, monkeypatch):
    few = {"WARMUP_STEPS": 1, "PROMPTS": 4, "LONGEST": 6}
    teams = {"TEAM_PROMPTS": 4, "TEAM_SIZE": 6, "TEAM": 2, "TEAM_HORIZON": 8}
    for name, value in (few | teams).items():
        monkeypatch.setattr(sampling, name, value)
    monkeypatch.setattr(measurement, "REPEATS", 2)
    assert main(["bench", "sampling"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| sample")]
    assert [" completions " in row for row in rows] == [True] * 6, rows
    assert sum("`pretrained`" in row for row in rows) == 2, rows
    assert [row for row in rows if "transformers' generate" in row], rows


def test_a_table_without_phases_ends_with_the_measurements(found):
    lines = format_table(msgspec.structs.replace(found, profiles=[])).splitlines()
    assert lines[-1].startswith("| ")
    assert sum(line.startswith("|-") for line in lines) == 1, "an empty table is shown"
    assert sum(line.startswith("|-") for line in format_table(found).splitlines()) == 2


def test_the_same_random_boards_come_each_time_with_the_holes_asked_for():
    boards, again = (lake.random_boards(5, 3, 40) for _ in range(2))
    assert np.array_equal(boards.starts, again.starts)
    assert (boards.holes.sum(axis=(1, 2)) == holes_of(5, 3, lake.HOLE_RATIO)).all()
    ends = np.concatenate([boards.starts, boards.goals], axis=1)
    assert all(len({tuple(cell) for cell in board}) == 6 for board in ends.tolist())
    assert not boards.holes[np.arange(40)[:, None], ends[..., 0], ends[..., 1]].any()
