"""Runs the unfinished runs of a study and sums up the results."""

import traceback
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import write_atomically
from lakewright.experiments.loop.closed_loop import run as run_loop
from lakewright.experiments.loop.dry_run import check_machine
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import write_record
from lakewright.experiments.loop.records.stage_rollouts import read_problems
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.resumable.pool import work_on
from lakewright.experiments.runtime.library_setup import keep_compiled_programs, prepare_training
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.experiments.runtime.system_errors import is_of_the_disk, system_error
from lakewright.experiments.study.curves import curves_svg
from lakewright.experiments.study.final_evaluation import take_final_test
from lakewright.experiments.study.plot import study_svg
from lakewright.experiments.study.results import Results, results_of
from lakewright.experiments.study.results_table import as_table
from lakewright.experiments.study.run_results import last_policy
from lakewright.experiments.study.study import CLAIM, Plan, Planned, StudyFolder, begin_run, plan_of, prepare_start

FAILURE = "failure.txt"  # the traceback in a run's folder
MOST_SHOWN = 300  # characters of an error


def run_study(
    spec: Path, out: Path, workers: int, arms: Sequence[str] = (), seeds: Sequence[int] = ()
) -> tuple[Results, dict[str, str]]:
    """Runs a study, or resumes it: its results, and the reason for each run that failed, by name.

    A run that fails stops none of the others; an error that is no InputError leaves its traceback in the run's folder.

    Args:
        spec: A file, or the name of a spec of the package.
        out: The folder of the study.
        workers: How many runs there are at a time.
        arms: Those to run now, by default all; the others can be run later.
        seeds: Those to run now, likewise.
    """
    plan, folder = plan_of(spec), StudyFolder(out)
    chosen = _choose_runs(plan.runs, arms, seeds)
    for planned in chosen:
        check_machine(planned.settings)
    with folder.held(plan):
        prepare_start(plan, folder)
        failures = _run_all(chosen, folder, workers)
        results = _summed_up(plan, folder)
    return results, failures


def sum_up(spec: Path, out: Path) -> Results:
    """The results of the runs that are finished, written next to them; runs nothing, and works while the study runs.

    Raises InputError where the folder holds another study, or the warm-up is not finished.
    """
    plan, folder = plan_of(spec), StudyFolder(out)
    CLAIM.refuse_other(folder.plan, CLAIM.read_work(out), plan)
    if not folder.start.warmup.done.exists():
        raise InputError(f"{out}: the warm-up is not finished; leave out --results-only until it is")
    return _summed_up(plan, folder)


def _summed_up(plan: Plan, folder: StudyFolder) -> Results:
    results = results_of(plan, folder)
    write_record(folder.results, results)
    write_atomically(folder.table, f"{as_table(results)}\n".encode())
    write_atomically(folder.plot, study_svg(results).encode())
    write_atomically(folder.curves, curves_svg(results).encode())
    return results


def _choose_runs(runs: Sequence[Planned], arms: Sequence[str], seeds: Sequence[int]) -> list[Planned]:
    """The runs of these arms and seeds, where none are named of all. Raises InputError on an unknown one."""
    _check_known("--arms", arms, [run.arm for run in runs])
    _check_known("--seeds", seeds, [run.seed for run in runs])
    return [run for run in runs if (not arms or run.arm in arms) and (not seeds or run.seed in seeds)]


def _check_known(option: str, named: Sequence[object], known: Sequence[object]) -> None:
    for one in named:
        if one not in known:
            listed = ", ".join(map(str, dict.fromkeys(known)))
            raise InputError(f"{option} names {str(one)!r:.60}, which no run has; choose from {listed}")


def _run_all(runs: Sequence[Planned], folder: StudyFolder, workers: int) -> dict[str, str]:
    """Runs what is not finished."""
    failures = {}
    ordered = in_order(runs)
    with progress("study", len(ordered), "runs") as bar:
        for planned, reason in work_on(ordered, partial(_run_one, out=folder.folder), workers):
            bar.update()
            if reason:
                failures[planned.name] = str(reason)
    return failures


def in_order(runs: Sequence[Planned]) -> list[Planned]:
    """The arms of most seeds first, on which conclusions rest, and among them all runs of a seed before the next."""
    seeds = Counter(planned.arm for planned in runs)
    return sorted(runs, key=lambda planned: (-seeds[planned.arm], planned.seed))


def _run_one(planned: Planned, out: Path) -> str:
    """Runs one run to its end, in any process; returns why it failed, if it did."""
    run = StudyFolder(out).run(planned)
    try:
        keep_compiled_programs()
        prepare_training()
        begin_run(planned, StudyFolder(out))
        with run.locked():
            (run.folder / FAILURE).unlink(missing_ok=True)
            run_loop(planned.settings, run)
            _take_test(planned, run, StudyFolder(out))
    except InputError as error:
        return str(error)
    except Exception as error:  # whatever it is, it concerns this run only, and the others continue
        return _describe_error(error, run)
    return ""


def _describe_error(error: Exception, run: RunFolder) -> str:
    """An error in one line; unless the disk is at fault, its traceback goes to the run's folder, if it has begun."""
    if isinstance(error, OSError) and is_of_the_disk(error):
        error.filename = error.filename or str(run.folder)
        return system_error(error)
    line = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_SHOWN]
    if not run.config.exists():  # other files would keep it from beginning
        return line
    try:
        trace = "".join(traceback.format_exception(error))
        write_atomically(run.folder / FAILURE, trace.encode(errors="backslashreplace"))
    except OSError as unwritten:  # the disk may be what is wrong
        return f"{line} (no traceback: {unwritten.strerror})"
    return f"{line}; its traceback is in {run.folder / FAILURE}"


def _take_test(planned: Planned, run: RunFolder, folder: StudyFolder) -> None:
    """The final test of a finished run, in a study that has one."""
    path = folder.test_file(lake=planned.settings.lake)
    if path.exists():
        trainee = make_trainee(planned.settings)
        take_final_test(trainee, last_policy(run), read_problems(path), folder.test_of(run))
