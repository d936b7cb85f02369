"""`lakewright generate`, `solve`, `verify` and `convert`: files of boards in, files of boards and verdicts out."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import ending
from lakewright.experiments.cli.conventions.options import BOARD_FORMATS, ExecutorOptions, Flag, Json, at_most_one
from lakewright.experiments.cli.conventions.output import print_error, print_summary

if TYPE_CHECKING:
    from lakewright.core_jax.config import EnvConfig
    from lakewright.experiments.jobs.runtime.progress_bars import Watch

PLANS = at_most_one()
HOLE_RATIO, WAIT_RATIO = 0.3, 0.5  # as in the environments of Gymnasium
RejectsFile: TypeAlias = Annotated[Path | None, Parameter(metavar="FILE")]

app = App()


@app.command(
    help_epilogue="example: lakewright generate --size 8 --agents 2 --hole-ratio 0.3 --wait-ratio 0.5 --count 1000 "
    "--out boards.jsonl"
)
def generate(
    *,
    out: Path,
    count: int,
    config: Path | None = None,
    size: int | None = None,
    agents: int | None = None,
    hole_ratio: float | None = None,
    wait_ratio: float | None = None,
    seed: int = 0,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> None:
    """Draw certified boards.

    Args:
        out: The file to write, .jsonl or .parquet.
        count: How many boards.
        config: An EnvConfig, .json or .toml, instead of the four options below.
        size: Cells on a side.
        agents: Agents on a board.
        hole_ratio: Holes / (cells that are neither start nor goal); by default 0.3.
        wait_ratio: Share of boards on which every optimal plan waits; by default 0.5, of one agent 0.
        seed: The same seed gives the same boards.
    """
    ending(out)  # what is wrong with the words is said before anything large is imported
    single = {"size": size, "agents": agents, "hole_ratio": hole_ratio, "wait_ratio": wait_ratio}
    env = make_env_config(config, single)
    from lakewright.core_jax.generator import manifest_path
    from lakewright.experiments.boards.files import generate_file
    from lakewright.experiments.jobs.resumable.overwriting import refuse_overwriting

    if config:
        refuse_overwriting([("the manifest of --out", manifest_path(out))], [("--config", config)])

    begun = time.monotonic()
    with _watch_progress("boards", count, "boards") as watch:
        generate_file(env, seed, count, out, watch, where.chosen())
    seconds = round(time.monotonic() - begun, 3)
    print_summary({"boards": count, "seconds": seconds, "out": str(out)}, json)


@app.command(help_epilogue="example: lakewright solve in.jsonl --out out.jsonl")
def solve(
    rows: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    out: Path,
    makespan_plans: Flag = False,
    rejects: RejectsFile = None,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Label boards with optima and a plan; bad rows are reported and left out.

    Args:
        rows: The rows to label, .jsonl or .parquet.
        out: The file to write, .jsonl or .parquet.
        makespan_plans: Also write a plan that reaches the optimal makespan.
        rejects: A file for bad rows, unchanged, in the format of IN.
    """
    ending(out)
    from lakewright.experiments.boards.files import solve_file

    with _watch_progress("solve", None, "rows") as watch:
        tally = solve_file(rows, out, makespan_plans, watch, rejects, where.chosen())
    return _print_result(tally, ("boards", "undecided", "bad_rows"), out, json)


@app.command(help_epilogue="example: lakewright verify in.jsonl --out verdicts.jsonl")
def verify(
    rows: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    out: Path,
    plans: Annotated[Path | None, Parameter(group=PLANS)] = None,
    makespan_plans: Annotated[Flag, Parameter(group=PLANS)] = False,
    rejects: RejectsFile = None,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Replay plans and judge them; bad rows are reported and left out.

    Args:
        rows: The rows whose plans are judged, .jsonl or .parquet.
        out: The file of verdicts to write, .jsonl or .parquet.
        plans: Rows of id and plan to judge instead of the plans in IN.
        makespan_plans: Judge makespan_plan of IN instead of plan.
        rejects: A file for bad rows of IN, unchanged, in the format of IN.
    """
    ending(out)
    from lakewright.experiments.boards.files import verify_file
    from lakewright.experiments.jobs.resumable.parts import MOST_LISTED

    with _watch_progress("verify", None, "rows") as watch:
        tally = verify_file(rows, out, plans, makespan_plans, watch, rejects, where.chosen())
    lost = tally["without_board"]
    if lost > MOST_LISTED:
        print_error(f"{plans}: {lost} plans belong to no board in {rows}; {MOST_LISTED} of them are listed above")
    counts = ("plans", "valid", "without_plan", *(["without_board"] if plans else []), "bad_rows")
    return _print_result(tally, counts, out, json)


@app.command(help_epilogue="example: lakewright convert boards.jsonl --out maps")
def convert(
    source: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    out: Path,
    source_format: Annotated[str | None, Parameter(name="--from", choices=BOARD_FORMATS)] = None,
    out_format: Annotated[str | None, Parameter(name="--to", choices=BOARD_FORMATS)] = None,
    agents: int | None = None,
    json: Json = False,
) -> int:
    """Convert boards, and plans if a format has them, to another format; bad boards are reported and left out.

    Args:
        source: Rows (.jsonl, .parquet), a scenario (.scen), results (.txt), maps (.yaml), a problem (.json), a folder.
        out: The file to write, or a folder with one file for each board.
        source_format: The format of IN, if its extension does not say it.
        out_format: The format to write, if the extension does not say it.
        agents: Take only this many agents of each board, the first; by default all.
    """
    from lakewright.experiments.boards.formats.conversion import convert_files as convert_file
    from lakewright.experiments.jobs.resumable.parts import MOST_LISTED
    from lakewright.experiments.jobs.runtime.progress_bars import progress

    begun, bad = time.monotonic(), list[InputError]()
    with progress("convert", None, "boards") as bar:
        boards = convert_file(source, out, source_format, out_format, bar.update, agents, bad)
    for error in bad[:MOST_LISTED]:
        print_error(str(error))
    if len(bad) > MOST_LISTED:
        print_error(f"{source}: {len(bad) - MOST_LISTED} more boards left out; correct them like these")
    seconds = round(time.monotonic() - begun, 3)
    print_summary({"boards": boards, "bad_rows": len(bad), "seconds": seconds, "out": str(out)}, json)
    return 1 if bad else 0


@contextmanager
def _watch_progress(what: str, total: int | None, unit: str) -> Iterator["Watch"]:
    """Shows the progress of work on a file, on a terminal."""
    from lakewright.experiments.jobs.runtime.progress_bars import Watch, print_on_terminal, progress

    with progress(what, total, unit) as bar:

        def resume(rows: int) -> None:
            bar.initial = bar.n = rows
            if rows:
                print_on_terminal(f"resuming: {rows} rows already done")

        yield Watch(resume, bar.update, print_error)


def _print_result(tally: Mapping[str, int], counts: Sequence[str], out: Path, json: bool) -> int:
    """Prints what was made; the exit code is 1 if rows were left out."""
    print_summary({**{name: tally[name] for name in counts}, "out": str(out)}, json)
    bad, unlisted = tally["bad_rows"], tally["unlisted"]
    if unlisted or (bad and not (json or sys.stderr.isatty())):  # else the summary has said how many
        listed = f", {bad - unlisted} of them listed above" if unlisted else ""
        print_error(f"{out}: {bad} row{'s' * (bad != 1)} left out{listed}; --rejects FILE receives them as they are")
    return 1 if bad else 0


def make_env_config(config: Path | None, single: Mapping[str, float | None]) -> "EnvConfig":
    """The distribution that a file or the options name. Raises InputError on both, and on a missing size or team."""
    from lakewright.core_jax.config import EnvConfig
    from lakewright.core_jax.support import read_config

    given = [name for name, value in single.items() if value is not None]
    if config and given:
        raise InputError(f"--config and --{given[0].replace('_', '-')} exclude each other; remove one")
    if config:
        return read_config(config, EnvConfig)
    if missing := [name for name in ("size", "agents") if name not in given]:
        raise InputError(f"--{missing[0]} is missing; give it, or a --config")
    usual = {"hole_ratio": HOLE_RATIO, "wait_ratio": WAIT_RATIO if single["agents"] != 1 else 0.0}
    try:
        return EnvConfig.single(**usual | {name: single[name] for name in given})  # type: ignore[arg-type]
    except ValueError as error:
        raise InputError(f"command line: {error}") from error
