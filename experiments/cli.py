"""The command line: `lakewright COMMAND ...`."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from core_jax.errors import InputError
from experiments import commands, sweep_commands
from experiments.programs import keep_programs

# grpo.steps=10, or --grpo.steps=10: a setting of a run, wherever it stands on the line
OVERRIDE = re.compile(r"^(--[a-z_]+(\.\w+)+|[a-z_]+(\.\w+)*)=")

SWEEP_STEPS = ("run", "status", "plot", "-h", "--help")
WRONG_PATH = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line that says what to do."""

    def error(self, message: str) -> NoReturn:
        """Ends with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command: 0 done, 1 failed or rows left out, 2 bad input."""
    keep_programs()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    overrides = [argument for argument in arguments if OVERRIDE.match(argument)]
    words = [argument for argument in arguments if argument not in overrides]
    options = build_parser().parse_args(_with_step(words))
    try:
        if overrides and options.command is not commands.run:
            raise InputError(f"{overrides[0]!r:.60}: only `lakewright run` takes settings; leave it out")
        options.overrides = [override.removeprefix("--") for override in overrides]
        return options.command(options)
    except InputError as error:
        print(f"lakewright: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"lakewright: {error.filename}: {error.strerror}; check the path and the disk", file=sys.stderr)
        return 2 if isinstance(error, WRONG_PATH) else 1
    except KeyboardInterrupt:
        print("lakewright: interrupted; what was finished is kept, the same command goes on", file=sys.stderr)
        return 1


def _with_step(words: list[str]) -> list[str]:
    """`sweep SPEC` is short for `sweep run SPEC`."""
    short = words[:1] == ["sweep"] and words[1:2] and words[1] not in SWEEP_STEPS
    return ["sweep", "run", *words[1:]] if short else words


def build_parser() -> Parser:
    """All commands with their options."""
    parser = Parser(prog="lakewright", description="A policy that redesigns its own multi-agent FrozenLake boards.")
    add = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _generate(add)
    _solve(add)
    _verify(add)
    _run(add)
    _report(add)
    _bench(add)
    _benchmark(add)
    _sweep(add)
    return parser


def _generate(add: argparse._SubParsersAction) -> None:
    command = _command(
        add,
        "generate",
        commands.generate,
        "draw certified boards",
        "lakewright generate --size 8 --agents 2 --hole-ratio 0.3 --wait-ratio 0.5 --count 1000 --out boards.jsonl",
    )
    command.add_argument("--config", type=Path, help="an EnvConfig, .json or .toml, instead of the four options below")
    command.add_argument("--size", type=int, help="cells a side")
    command.add_argument("--agents", type=int, help="agents on a board")
    command.add_argument("--hole-ratio", type=float, help="holes / (cells that are neither start nor goal)")
    command.add_argument("--wait-ratio", type=float, help="share of boards on which every optimal plan waits")
    command.add_argument("--count", type=int, required=True, help="how many boards")
    command.add_argument("--seed", type=int, default=0, help="same seed, same boards (default 0)")
    _out(command)
    _json(command)


def _solve(add: argparse._SubParsersAction) -> None:
    command = _command(
        add,
        "solve",
        commands.solve,
        "label boards with optima and a plan",
        "lakewright solve in.jsonl --out out.jsonl",
    )
    command.add_argument("input", metavar="IN", type=Path, help="rows, .jsonl or .parquet")
    command.add_argument("--makespan-plans", action="store_true", help="also write a plan that reaches the makespan")
    _out(command)
    _json(command)


def _verify(add: argparse._SubParsersAction) -> None:
    command = _command(
        add,
        "verify",
        commands.verify,
        "replay plans and judge them",
        "lakewright verify in.jsonl --out verdicts.jsonl",
    )
    command.add_argument("input", metavar="IN", type=Path, help="rows, .jsonl or .parquet")
    which = command.add_mutually_exclusive_group()
    which.add_argument("--plans", type=Path, help="rows of id and plan to judge instead of the plans in IN")
    which.add_argument("--makespan-plans", action="store_true", help="judge makespan_plan of IN instead of plan")
    _out(command)
    _json(command)


def _run(add: argparse._SubParsersAction) -> None:
    command = _command(
        add,
        "run",
        commands.run,
        "run the closed loop, or go on with it",
        "lakewright run --out runs/a grpo.steps=20",
    )
    command.usage = "%(prog)s [--preset NAME] --out DIR [--teacher NAME] [--seed N] [--json] [SETTING=VALUE ...]"
    command.add_argument("--preset", default="cpu", help="settings to start from (default cpu)")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run folder")
    command.add_argument("--teacher", help="who redesigns the boards")
    command.add_argument("--seed", type=int, help="of everything random in the run")
    _json(command)


def _report(add: argparse._SubParsersAction) -> None:
    command = _command(
        add, "report", commands.report, "print a run's table and write its report.html", "lakewright report runs/demo"
    )
    command.add_argument("folder", metavar="DIR", type=Path, help="the run folder")
    _json(command)


def _bench(add: argparse._SubParsersAction) -> None:
    command = _command(add, "bench", commands.bench, "measure the lake on this machine", "lakewright bench --json")
    command.add_argument("--agents", type=int, choices=(2, 3, 5), help="only boards of so many agents (default all)")
    command.add_argument("--sweeps", action="store_true", help="sweeps instead: workers, Ray, memory, tiny shards")
    _json(command)


def _benchmark(add: argparse._SubParsersAction) -> None:
    example = "lakewright benchmark build --out benchmark --tier paper"
    function = commands.benchmark_build
    benchmark = _command(add, "benchmark", function, "work with the fixed evaluation set", example)
    steps = benchmark.add_subparsers(title="steps", required=True, metavar="STEP")
    build = _command(steps, "build", function, "build the evaluation set, or go on with it", example)
    build.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the benchmark")
    build.add_argument("--tier", choices=("paper", "hard"), default="paper", help="the paper's cells, or harder ones")
    build.add_argument("--seed", type=int, default=0, help="same seed, same boards (default 0)")
    _json(build)


def _sweep(add: argparse._SubParsersAction) -> None:
    example = "lakewright sweep spec.toml --out sweeps/a --workers 2"
    function = sweep_commands.make
    sweep = _command(
        add, "sweep", function, "measure boards of a grid of cells: `sweep SPEC` is `sweep run SPEC`", example
    )
    steps = sweep.add_subparsers(title="steps", required=True, metavar="STEP")
    run = _command(steps, "run", function, "make a sweep, or go on with it", example)
    run.add_argument("spec", metavar="SPEC", type=Path, help="the axes and how many boards, .toml or .json")
    run.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the sweep")
    run.add_argument("--backend", choices=sweep_commands.BACKENDS, default="local", help="who works (default local)")
    run.add_argument("--workers", type=int, metavar="N", help="processes, one core each (default all cores)")
    share = "make only each n-th shard from the i-th on, i < n, as a task of an array of jobs does"
    run.add_argument("--shard", default="0/1", metavar="i/n", help=share)
    _json(run)
    example = "lakewright sweep status sweeps/a"
    status = _command(steps, "status", sweep_commands.status, "tell how far a sweep is, while it is made", example)
    status.add_argument("folder", metavar="DIR", type=Path, help="the folder of the sweep")
    _json(status)
    example = "lakewright sweep plot sweeps/a"
    plot = _command(steps, "plot", sweep_commands.plot, "sum up the cells of a sweep and draw its pictures", example)
    plot.add_argument("folder", metavar="DIR", type=Path, help="the folder of the sweep")
    _json(plot)


def _command(add: argparse._SubParsersAction, name: str, function, what: str, example: str) -> argparse.ArgumentParser:
    command = add.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=f"example: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=function)
    return command


def _out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, required=True, metavar="F", help="the file to write, .jsonl or .parquet")


def _json(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the result as JSON")


if __name__ == "__main__":
    sys.exit(main())
