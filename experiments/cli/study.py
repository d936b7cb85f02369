"""`lakewright study`: many runs from one warm-up."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import ExecutorOptions, Json
from lakewright.experiments.cli.conventions.output import print_error, print_found
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import showing_progress

EXAMPLE = "example: lakewright study cpu --out studies/cpu --workers 2"

Some = Parameter(consume_multiple=True, negative=(), show_default=False)

app = App(name="study", help="Compare teachers over many runs.", help_epilogue=EXAMPLE)


@app.default
def study(
    spec: Annotated[Path, Parameter(name="SPEC")],
    /,
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    gpus_per_run: Annotated[float | None, Parameter(metavar="N")] = None,
    cores_per_run: Annotated[int | None, Parameter(metavar="N")] = None,
    arms: Annotated[tuple[str, ...], Some] = (),
    seeds: Annotated[tuple[int, ...], Some] = (),
    copy_to: Annotated[str, Parameter(metavar="ADDRESS", show_default=False)] = "",
    results_only: bool = False,
    json: Json = False,
) -> int:
    """Compare teachers from one warm-up under one budget, or resume.

    Args:
        spec: A spec, .toml or .json, or the name of a built-in one.
        out: The folder of the study.
        gpus_per_run: GPUs for each run, or a share of a GPU. By default, all runs share this machine's GPUs, and on a
            cluster each run has one GPU per training process.
        cores_per_run: Cores for each run; by default an equal share of this machine's cores, and one on a cluster.
        arms: Run only these arms; the same command with other arms, or without this option, runs the others later.
        seeds: Run only these seeds, in the same way.
        copy_to: Also copy results and logs to an address of fsspec, such as s3://bucket/studies/a.
        results_only: Run nothing, and sum up the finished runs, also while the study runs.
    """
    chosen = where.chosen()
    if results_only and (arms or seeds or copy_to):
        raise InputError(
            "--results-only sums up all finished runs; leave out --arms, --seeds and --copy-to, which are for running"
        )
    prepare_libraries()
    from lakewright.experiments.studies.results_table import tabulate_results
    from lakewright.experiments.studies.run_task import RunNeeds
    from lakewright.experiments.studies.runner import run_study, sum_up

    needs = RunNeeds(cores_per_run, gpus_per_run)
    if results_only:
        results, failures = sum_up(spec, out), dict[str, str]()
    else:
        with showing_progress("lines"):
            results, failures = run_study(spec, out, chosen, arms, seeds, needs, copy_to)
    print_found(results, json, tabulate_results)
    for name, error in failures.items():
        print_error(f"{name}: {error}")
    return 1 if failures or results.unable else 0


@app.command(help_epilogue="example: lakewright study check-trials studies/frontier --count 40")
def check_trials(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    count: int = 40,
    boards: int = 800,
    json: Json = False,
) -> None:
    """Try what a study's trials compared again on many more boards: how often were they right?

    Args:
        folder: The folder of a study.
        count: The number of trials, spread over its finished runs.
        boards: About how many boards each config is tried on.
    """
    prepare_libraries()
    from lakewright.experiments.studies.trial_checks import check_trials, reliability_table

    print_found(check_trials(folder, count, boards), json, reliability_table)
