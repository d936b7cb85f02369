"""What the results of a study keep of each run, and how its table shows it."""

from pathlib import Path

import msgspec
import pytest

from lakewright.core_jax.support import read_config
from lakewright.engineer.tally import pool_tallies
from lakewright.experiments.environments.lake import WAIT, lake_space
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.studies.results import Results
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.run_results import RunResult, run_result
from lakewright.experiments.studies.study import Planned
from tests.support.samples.tiny_runs import finished, tiny_run

OLDER = Path(__file__).parents[3] / "docs" / "data" / "studies" / "frontier-forecast" / "results.json"


def result_of(made_by: str, teacher: str) -> RunResult:
    """The result of a finished run, as if its proposals were those of `teacher`."""
    run, settings = finished(made_by), tiny_run()
    judged = read_record(run.stage(1).validation, Validation)
    planned = Planned("arm", 0, msgspec.structs.replace(settings, teacher=teacher))
    return run_result(planned, run, judged, pool_tallies(judged.outcomes.values()), lake_space())


@pytest.mark.deep
def test_an_engineer_that_proposes_what_its_rule_would_does_all_as_taught():
    assert result_of("proportional", "self").as_taught == [1.0, 1.0]
    assert result_of("random", "self").as_taught[0] < 1
    assert result_of("random", "random").as_taught == []


def test_what_each_stage_was_drawn_from_and_each_map_size_are_kept():
    run, found = finished("random"), result_of("random", "random")
    assert found.drawn == [run.stage(number).design().strata for number in (0, 1)]
    outcomes = read_record(run.stage(1).validation, Validation).outcomes
    assert found.sizes == {size: 100 * part.valid / part.problems for size, part in outcomes.items()}
    forced = {size: part.traits[WAIT] for size, part in outcomes.items() if part.traits[WAIT].problems}
    assert found.forced_sizes == {size: 100 * part.valid / part.problems for size, part in forced.items()}


def test_the_table_ends_with_means_by_map_size_where_results_have_them():
    older = read_config(OLDER, Results)
    assert "wait forced" not in tabulate_results(older), "results of earlier versions are read without"
    kept = [run for run in older.runs if (run.arm, run.seed) in (("fixed", 0), ("fixed", 1), ("difficulty", 0))]
    runs = [
        msgspec.structs.replace(run, sizes={3: 90.0 - place, 4: 50.0}, forced_sizes={4: 10.0 * place})
        for place, run in enumerate(sorted(kept, key=lambda run: run.arm))
    ]
    arms = [arm for arm in older.arms if arm.arm in ("fixed", "difficulty")]
    newer = msgspec.structs.replace(older, runs=runs, arms=arms, sizes={3: 88.0, 4: 40.0}, forced_sizes={4: 5.0})
    *_, above, sizes, warm_up, best, fixed, empty, forced, warm_forced, best_forced, fixed_forced = [
        line.split() for line in tabulate_results(newer).splitlines()
    ]
    assert (above, empty) == ([], [])
    assert (sizes[-2:], forced[-1:]) == (["3x3", "4x4"], ["4x4"])
    assert [warm_up, best, fixed] == [
        ["warm-up", "88.0", "40.0"],
        ["difficulty", "90.0", "50.0"],
        ["fixed", "88.5", "50.0"],
    ]
    assert [warm_forced, best_forced, fixed_forced] == [["warm-up", "5.0"], ["difficulty", "0.0"], ["fixed", "15.0"]]


def test_the_table_says_how_far_an_engineer_does_what_it_was_taught():
    older = read_config(OLDER, Results)
    shares = {0: [0.8, 0.5, 0.1], 1: [0.6, 0.3]}
    runs = [
        msgspec.structs.replace(run, as_taught=shares[run.seed])
        for run in older.runs
        if run.arm == "fixed" and run.seed in shares
    ]
    table = tabulate_results(msgspec.structs.replace(older, runs=runs))
    assert [line for line in table.splitlines() if "as taught" in line] == [
        "fixed: % of changes as taught after each stage 70 40"
    ]
