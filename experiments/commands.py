"""What each command does; options come parsed, bad input is raised as InputError."""

import argparse
import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import msgspec

from core_jax.config import EnvConfig
from core_jax.decoding import read_config
from core_jax.errors import InputError
from core_jax.formats import Row, ending, row_writer, rows_of, write_rows
from experiments.progress import progress

if TYPE_CHECKING:
    from experiments.runs import RunFolder


def generate(options: argparse.Namespace) -> int:
    """Draws certified boards into a file."""
    from core_jax.generator import generate as draw

    ending(options.out)
    config = _env_config(options)
    begun = time.monotonic()
    with progress("boards", options.count, "boards") as bar:
        batches = draw(config, options.seed, options.count, bar.update)
    write_rows(options.out, rows_of(batches, config))
    seconds = time.monotonic() - begun
    _tell(options, {"boards": options.count, "seconds": round(seconds, 3), "out": str(options.out)})
    return 0


def solve(options: argparse.Namespace) -> int:
    """Labels the boards of a file; bad rows are told and left out."""
    from core_jax.formats import read_rows
    from core_jax.labelling import check_solvable_here, solve_rows

    bad = _BadRows()
    boards = 0
    with row_writer(options.out) as write, progress("solve", None, "boards") as bar:
        for rows in read_rows(options.input, Row, bad, check_solvable_here):
            write(solve_rows(rows, bar.update))
            boards += len(rows)
    _tell(options, {"boards": boards, "bad_rows": bad.count, "out": str(options.out)})
    return bad.exit_code


def verify(options: argparse.Namespace) -> int:
    """Replays the plans of a file; bad rows are told and left out."""
    from core_jax.formats import PlanRow, check_plan, read_rows
    from core_jax.labelling import VERDICT_SCHEMA, verify_rows

    bad = _BadRows()
    given: dict[str, list[str]] | None = None
    if options.plans:
        given = {row.id: row.plan for rows in read_rows(options.plans, PlanRow, bad) for row in rows}

    def plan_for(row: Row) -> list[str]:
        plan = row.plan if given is None else given.get(row.id)
        if plan is None:
            raise ValueError(f"no plan for {row.id!r:.60}; add one to the row, or a row of its id to --plans")
        check_plan(plan, row.agents)
        return plan

    plans = valid = 0
    with row_writer(options.out, VERDICT_SCHEMA) as write, progress("verify", None, "plans") as bar:
        for rows in read_rows(options.input, Row, bad, plan_for):
            verdicts = verify_rows(rows, [plan_for(row) for row in rows])
            write(verdicts)
            plans += len(verdicts)
            valid += sum(verdict.valid for verdict in verdicts)
            bar.update(len(verdicts))
    _tell(options, {"plans": plans, "valid": valid, "bad_rows": bad.count, "out": str(options.out)})
    return bad.exit_code


def run(options: argparse.Namespace) -> int:
    """Runs the closed loop in a folder, or goes on with it, and writes its report."""
    from experiments.settings import load_settings

    named = {"teacher": options.teacher, "seed": options.seed}
    overrides = [f"{name}={value}" for name, value in named.items() if value is not None]
    settings = load_settings(options.preset, overrides + options.overrides)
    _prepare_training()
    from experiments.loop import run as run_loop
    from experiments.runs import RunFolder

    folder = RunFolder(options.out)
    with folder.locked():
        run_loop(settings, folder)
        return _show(folder, options.json)


def report(options: argparse.Namespace) -> int:
    """Prints the table of a run and writes report.html."""
    from experiments.runs import RunFolder

    return _show(RunFolder(options.folder), options.json)


def bench(options: argparse.Namespace) -> int:
    """Measures the lake on this machine."""
    from experiments.bench.lake import measure
    from experiments.bench.measurement import table

    with progress("bench", None, "cases") as bar:
        results = measure(bar.update)
    print(msgspec.json.encode(results).decode() if options.json else table(results))
    return 0


def benchmark_build(options: argparse.Namespace) -> int:
    """Builds the evaluation set in a folder, or goes on with it."""
    from experiments.benchmark import TIERS, build

    with progress("benchmark", TIERS[options.tier].count, "boards") as bar:
        manifest = build(options.out, options.tier, options.seed, bar.update)
    _tell(options, {"boards": manifest.boards, "moved": len(manifest.moved), "out": str(options.out)})
    return 0


def _show(folder: "RunFolder", json: bool) -> int:
    from experiments.report import write_report
    from experiments.table import as_json, as_table

    write_report(folder)
    print(msgspec.json.encode(as_json(folder)).decode() if json else f"{as_table(folder)}\nreport: {folder.report}")
    return 0


def _env_config(options: argparse.Namespace) -> EnvConfig:
    single = {name: getattr(options, name) for name in ("size", "agents", "hole_ratio", "wait_ratio")}
    given = [name for name, value in single.items() if value is not None]
    if options.config and given:
        raise InputError(f"--config and --{given[0].replace('_', '-')} exclude each other; leave one out")
    if options.config:
        return read_config(options.config, EnvConfig)
    if missing := [name for name in single if name not in given]:
        raise InputError(f"--{missing[0].replace('_', '-')} is missing; give it, or a --config")
    try:
        return EnvConfig.single(**single)
    except ValueError as error:
        raise InputError(f"command line: {error}") from error


class _BadRows:
    """Tells each bad row in a line and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, error: InputError) -> None:
        self.count += 1
        print(f"lakewright: {error}", file=sys.stderr)

    @property
    def exit_code(self) -> int:
        return 2 if self.count else 0


def _prepare_training() -> None:
    """Settles what must be known before the training libraries are imported: no hub, no chatter of their own."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # a GPU is shared with torch
    warnings.filterwarnings("ignore", category=FutureWarning)
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _tell(options: argparse.Namespace, result: dict[str, Any]) -> None:
    if options.json:
        print(msgspec.json.encode(result).decode())
    elif sys.stderr.isatty():
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.items()), file=sys.stderr)
