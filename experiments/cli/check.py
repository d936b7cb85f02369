"""`lakewright check`: whether an environment keeps what every environment promises."""

import contextlib
import functools
import importlib.util
import os
import threading
from typing import Annotated

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import ExecutorOptions, Json
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.jobs.executors.choice import HERE
from lakewright.experiments.jobs.executors.executor import Task, in_order
from lakewright.experiments.jobs.runtime.progress_bars import show_seconds

LOADER = "lakewright.experiments.environments.registry:load_environment"

app = App()


@app.command(help_epilogue="example: lakewright check docs/examples/addition.py:Addition")
def check(
    environment: Annotated[str, Parameter(name="ENVIRONMENT")],
    /,
    *,
    seconds: float = 20.0,
    limit: float = 30.0,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Try the properties of an environment; the exit code is 1 if one does not hold.

    Args:
        environment: lake, reasoning_gym:TASK[,TASK...], FILE.py:CLASS, module:CLASS, or an entry point.
        seconds: How long to search for faults, after drawing every stratum, bound and bin, which may take six times as
            long.
        limit: The longest time for one problem or verdict, in seconds.
    """
    for name, value in (("--seconds", seconds), ("--limit", limit)):
        if not 0 < value < 1e6:
            raise InputError(f"{name} is {value:g}; give more than 0, at most a million")
    if importlib.util.find_spec("hypothesis") is None:
        raise InputError("check needs hypothesis, which is not installed; pip install 'lakewright[testing]'")
    from lakewright.engineer.testing import find_faults, report_text
    from lakewright.experiments.environments.registry import load_environment, resolve_name

    before, maker = set(threading.enumerate()), (LOADER, resolve_name(environment))
    with contextlib.chdir(os.getcwd()):  # which the environment may change; the check names one that does
        loaded, chosen = load_environment(environment), where.chosen()
    with chosen.open(Task("part of the check")) as executor, show_seconds("check") as tick:
        report = find_faults(
            loaded,
            seconds=seconds,
            limit=limit,
            maker=maker,
            name=environment,
            tick=tick,
            share=functools.partial(in_order, executor) if chosen != HERE else None,
        )
    print_found(report, json, report_text)
    code = int(bool(report.faults))
    if any(not thread.daemon for thread in set(threading.enumerate()) - before):  # of the environment, without an end
        os._exit(code)
    return code
