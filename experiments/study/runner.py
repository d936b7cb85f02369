"""Runs the unfinished runs of a study and sums up the results."""

from functools import partial
from pathlib import Path

from core_jax.errors import InputError
from core_jax.support import write_atomically
from experiments.loop import check_machine
from experiments.loop import run as run_loop
from experiments.loop.records import write
from experiments.resumable import work_on
from experiments.runtime import keep_compiled_programs, prepare_training, progress
from experiments.study.plot import study_svg
from experiments.study.results import Results, results_of, table
from experiments.study.study import Plan, Planned, StudyFolder, begin_run, plan_of, prepare_start


def run_study(spec: Path, out: Path, workers: int) -> tuple[Results, dict[str, str]]:
    """Runs a study, or resumes it: its results, and the reason for each run that failed, by name.

    A run that fails does not stop the others.
    """
    plan, folder = plan_of(spec), StudyFolder(out)
    for planned in plan.runs:
        check_machine(planned.settings)
    with folder.held(plan):
        prepare_start(plan, folder)
        failures = _run_all(plan, folder, workers)
        results = results_of(plan, folder)
        write(folder.results, results)
        write_atomically(folder.table, f"{table(results)}\n".encode())
        write_atomically(folder.plot, study_svg(results).encode())
    return results, failures


def _run_all(plan: Plan, folder: StudyFolder, workers: int) -> dict[str, str]:
    failures = {}
    with progress("study", len(plan.runs), "runs") as bar:
        for planned, error in work_on(plan.runs, partial(_run_one, out=folder.folder), workers):
            bar.update()
            if error:
                failures[planned.name] = error
    return failures


def _run_one(planned: Planned, out: Path) -> str:
    """Runs one run to its end, in any process; returns why it failed, if it did."""
    keep_compiled_programs()
    prepare_training()
    try:
        run = begin_run(planned, StudyFolder(out))
        with run.locked():
            run_loop(planned.settings, run)
    except InputError as error:
        return str(error)
    return ""
