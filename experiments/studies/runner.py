"""Runs the unfinished runs of a study and sums up the results."""

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lakewright.core_jax.errors import InputError, is_of_the_disk, system_error
from lakewright.core_jax.support import keep_compiled_programs, write_atomically
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import (
    SERIAL,
    Executor,
    NodeLostError,
    Task,
    WorkerDiedError,
    as_finished,
    is_elsewhere,
)
from lakewright.experiments.jobs.resumable.copies import Copies, check_address, list_results
from lakewright.experiments.jobs.resumable.driver import show_life
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import print_on_terminal, progress, showing_progress
from lakewright.experiments.loop.closed_loop import run as run_loop
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import write_record
from lakewright.experiments.loop.records.stage_rollouts import read_problems
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.training.stage_validation import take_test
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.studies.halving import RoundOver, choose_survivors, count_stages, stop_after
from lakewright.experiments.studies.plot import curves_svg, study_svg
from lakewright.experiments.studies.results import Results, results_of
from lakewright.experiments.studies.results_table import tabulate_results
from lakewright.experiments.studies.run_results import last_policy
from lakewright.experiments.studies.run_task import (
    RunNeeds,
    check_machines,
    describe_task,
    hold_run,
    prepare_process,
    record_machine,
)
from lakewright.experiments.studies.study import CLAIM, Plan, Planned, StudyFolder, begin_run, plan_study, prepare_start
from lakewright.policy.inference import naming_full_memory

FAILURE = "failure.txt"  # the traceback in a run's folder
MOST_SHOWN = 300  # characters of an error


def run_study(
    spec: Path,
    out: Path,
    where: ExecutorChoice = HERE,
    arms: Sequence[str] = (),
    seeds: Sequence[int] = (),
    needs: RunNeeds = RunNeeds(),  # noqa: B008
    copy_to: str = "",
) -> tuple[Results, dict[str, str]]:
    """Runs a study, or resumes it: its results, and the reason for each run that failed, by name.

    A run that fails stops no other run; an error that is no InputError leaves its traceback in the run's folder.

    Args:
        spec: A file, or the name of a spec of the package.
        out: The folder of the study.
        where: The executor of its runs, and how many run at a time.
        arms: The arms to run now, by default all; the others can be run later.
        seeds: The seeds to run now, likewise.
        needs: The resources of each run.
        copy_to: An address of fsspec, to which results and logs are copied; see `resumable.copies`.
    """
    plan, folder = plan_study(spec), StudyFolder(out)
    if copy_to:
        check_address(copy_to)
    chosen = _choose_runs(plan, arms, seeds)
    if where.name == "local":
        check_machines(chosen)
        task = Task("run", needs.cores, needs.gpus, prepare=prepare_process)
    else:
        task = describe_task(chosen, needs)
    with folder.held(plan), show_life(out), where.open(task, out) as executor:
        begin = executor.submit if is_elsewhere(executor) else SERIAL.submit
        begin(partial(_prepare, folder=folder.folder.absolute(), runs=chosen), plan).result()
        work = partial(_run_one, out=folder.folder.absolute(), copy_to=copy_to)
        failures = _run_rounds(plan, chosen, folder, executor, work)
        results = _write_results(plan, folder)
        if copy_to:
            _copy_results(folder, copy_to)
    return results, failures


def sum_up(spec: Path, out: Path) -> Results:
    """The results of the runs that are finished, written next to them; runs nothing, and works while the study runs.

    Raises InputError if the folder holds another study, or the warm-up is not finished.
    """
    plan, folder = plan_study(spec), StudyFolder(out)
    CLAIM.refuse_other(folder.plan, CLAIM.read_work(out), plan)
    if not folder.start.warmup.done.exists():
        raise InputError(f"{out}: the warm-up is not finished; leave out --results-only until it is")
    return _write_results(plan, folder)


def _write_results(plan: Plan, folder: StudyFolder) -> Results:
    results = results_of(plan, folder)
    write_record(folder.results, results)
    write_atomically(folder.table, f"{tabulate_results(results)}\n".encode())
    write_atomically(folder.plot, study_svg(results).encode())
    write_atomically(folder.curves, curves_svg(results).encode())
    return results


def _copy_results(folder: StudyFolder, address: str) -> None:
    """Copies the results of a study and the logs of its warm-up; its runs were copied by those who ran them."""
    copies = Copies(address, folder.plan)
    copies.add(list_results(folder.start.folder), folder.folder)
    copies.add([folder.table, folder.plot, folder.curves, folder.results], folder.folder, again=True)


def _choose_runs(plan: Plan, arms: Sequence[str], seeds: Sequence[int]) -> list[Planned]:
    """The runs of these arms and seeds, by default all. Raises InputError on an unknown one."""
    if plan.spec.configs and plan.spec.configs.rounds > 1 and (arms or seeds):
        raise InputError("--arms and --seeds choose runs, but the rounds of configs compare them all; leave them out")
    runs = plan.runs
    _check_known("--arms", arms, [run.arm for run in runs])
    _check_known("--seeds", seeds, [run.seed for run in runs])
    return [run for run in runs if (not arms or run.arm in arms) and (not seeds or run.seed in seeds)]


def _check_known(option: str, named: Sequence[object], known: Sequence[object]) -> None:
    for one in named:
        if one not in known:
            listed = ", ".join(map(str, dict.fromkeys(known)))
            raise InputError(f"{option} names {str(one)!r:.60}, but no run has it; choose from {listed}")


def _prepare(plan: Plan, folder: Path, runs: Sequence[Planned]) -> None:
    """Makes the start that all runs share, on a machine such as theirs."""
    check_machines(runs)
    prepare_libraries()
    prepare_start(plan, StudyFolder(folder))


def _run_rounds(
    plan: Plan, runs: Sequence[Planned], folder: StudyFolder, executor: Executor, work: Callable[..., str]
) -> dict[str, str]:
    """Runs what is not finished: in a study of configs round by round, each with the better half of the last."""
    rounds, failures = plan.spec.configs.rounds if plan.spec.configs else 1, dict[str, str]()
    for number in range(rounds - 1):
        failures |= _run_all(runs, executor, partial(work, stages=count_stages(number)))
        runs = choose_survivors(runs, folder, number)
    return failures | _run_all(runs, executor, work)


def _run_all(runs: Sequence[Planned], executor: Executor, work: Callable[[Planned], str]) -> dict[str, str]:
    """Runs what is not finished; why the runs that failed did."""
    failures, ordered = {}, in_order(runs)
    finishing = as_finished(executor, work, ordered)
    with progress("study", len(ordered), "runs") as bar, contextlib.closing(finishing):
        for planned, done in finishing:
            try:
                reason = done.result()
            except WorkerDiedError as error:
                reason = str(error)
            bar.update()
            print_on_terminal(f"{planned.name}: {'failed' if reason else 'done'}, {bar.n} of {len(ordered)} runs")
            if reason:
                failures[planned.name] = reason
    return failures


def in_order(runs: Sequence[Planned]) -> list[Planned]:
    """The arms of most seeds first, on which conclusions rest, and among them all runs of a seed before the next."""
    seeds = Counter(planned.arm for planned in runs)
    return sorted(runs, key=lambda planned: (-seeds[planned.arm], planned.seed))


def _run_one(planned: Planned, out: Path, copy_to: str, stages: int | None = None) -> str:
    """Runs one run to its end, or its first `stages`, in any process; returns why it failed, if it did."""
    run = StudyFolder(out).run(planned)
    try:
        keep_compiled_programs()
        prepare_libraries()
        with hold_run(run), showing_progress("bars"):  # no lines of stages: other runs may be working here, too
            begin_run(planned, StudyFolder(out))
            record_machine(run)
            (run.folder / FAILURE).unlink(missing_ok=True)
            run_loop(planned.settings, run, *([partial(stop_after, run, stages)] if stages else []))
            _take_test(planned, run, StudyFolder(out))
            if copy_to:
                Copies(copy_to, StudyFolder(out).plan).add(list_results(run.folder), out)
    except RoundOver:
        return ""
    except (NodeLostError, WorkerDiedError):  # of a part elsewhere: the run begins again
        raise
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
    path, outcome = folder.test_file(planned.settings), folder.test_of(run)
    if path.exists() and not outcome.exists():
        with naming_full_memory("test", lambda: list_remedies(planned.settings, "validation")):
            take_test(make_trainee(planned.settings), last_policy(run), read_problems(path), outcome)
