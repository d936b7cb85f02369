"""Campaigns of this repository, which the package does not hold: `python -m tests.campaigns --help`."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli import main as run_lakewright
from lakewright.experiments.cli.app import main as run_command
from lakewright.experiments.cli.conventions.options import PLAIN, ExecutorOptions, Json
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import progress

Count = Annotated[int, Parameter(name="N")]

app = App(name="campaigns", help="Long checks and benchmarks of this repository.", default_parameter=PLAIN)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign, with the exit codes and error lines of `lakewright`."""
    return run_command(arguments, lambda: app)


@app.command
def labels(
    boards: Count,
    /,
    *,
    agents: Literal[2, 3, 4, 5] | None = None,
    seed: int = 0,
    journal: Path | None = None,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Check the labels of N fresh boards against another solver; the exit code is 1 if a label is wrong.

    Args:
        boards: How many boards.
        agents: Only boards with this many agents.
        seed: The same seed gives the same boards.
        journal: Keep finished batches in this file, and resume from there.
    """
    from tests.campaigns.labels.campaign import check_labels, format_totals

    if boards < 1:
        raise InputError(f"N is {boards}; give at least 1")
    if seed < 0:
        raise InputError(f"--seed is {seed}; give 0 or more")
    if importlib.util.find_spec("w9_pathfinding") is None:
        raise InputError("labels asks w9-pathfinding, which is not installed; pip install 'lakewright[bench]'")
    with progress("boards", boards, "boards") as bar:
        found = check_labels(boards, seed, journal, bar.update, agents, where.chosen())
    print_found(found, json, format_totals)
    return int(any(total.wrong for total in found))


@app.command
def corruption(
    count: Count,
    /,
    *,
    case: int | None = None,
    commands: str = "",
    seed: int = 0,
    journal: Path | None = None,
    json: Json = False,
) -> int:
    """Damage N files that commands read, one at a time; the exit code is 1 if a command is silently wrong.

    So it is if a command ends in a traceback or not at all.

    Args:
        count: How many files.
        case: Only the case of this number.
        commands: Only commands whose name holds one of these texts, with commas between them.
        seed: The same seed gives the same damages.
        journal: Keep finished cases in this file, and resume from there.
    """
    if count < 1:
        raise InputError(f"N is {count}; give at least 1")
    for name, value in (("--seed", seed), ("--case", case or 0)):
        if value < 0:
            raise InputError(f"{name} is {value}; give 0 or more")
    prepare_libraries()
    from tests.campaigns.corruption.campaign import corrupt_files, format_totals, has_faults

    with progress("corruption", count, "cases") as bar:
        found = corrupt_files(run_lakewright, count, seed, journal, case, bar.update, commands)
    print_found(found, json, format_totals)
    return int(has_faults(found))


@app.command
def environments(*, pogema: Path | None = None, json: Json = False) -> None:
    """Measure the Gymnasium environments: joint moves of random play.

    Args:
        pogema: A Python that has POGEMA, which is measured with them.
    """
    from lakewright.experiments.bench.measurement import format_table
    from tests.campaigns.rates import environments as of_environments  # which needs an extra

    print_found(of_environments.measure_rates(pogema), json, format_table)


@app.command
def peers(*, agents: Literal[2, 3, 4, 5] | None = None, json: Json = False) -> None:
    """Measure our solver and other people's on the same boards; they come with `pip install lakewright[bench]`.

    Args:
        agents: Only boards with this many agents.
    """
    from tests.campaigns.rates import peer_rates

    with progress("peers", None, "cases") as bar:
        found = peer_rates.measure_rates(agents, bar.update)
    print_found(found, json, peer_rates.format_table)


@app.command
def sweeps(*, json: Json = False) -> None:
    """Measure sweeps: workers, Ray, memory, tiny shards."""
    from tests.campaigns.rates import sweeps as of_sweeps

    _print_rates(of_sweeps, json)


@app.command
def files(*, json: Json = False) -> None:
    """Measure commands on files, and the core's own rates."""
    from tests.campaigns.rates import files as of_files

    _print_rates(of_files, json)


@app.command
def trainers(*, json: Json = False) -> None:
    """Measure what an engineer's folder costs a step of a trainer."""
    from tests.campaigns.rates import trainers as of_trainers

    _print_rates(of_trainers, json)


@app.command
def digests(*, json: Json = False) -> None:
    """Measure what share of commands lists and checks the SHA-256 of files."""
    from tests.campaigns.rates import digests as of_digests

    print_found(of_digests.measure_rates(run_lakewright), json, of_digests.format_table)


def _print_rates(measured: ModuleType, json: bool) -> None:
    print_found(measured.measure_rates(), json, measured.format_table)


if __name__ == "__main__":
    sys.exit(main())
