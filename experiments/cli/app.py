"""The command line: `lakewright COMMAND ...`."""

import argparse
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from core_jax.errors import InputError
from experiments.cli import commands, sweep_commands
from experiments.runtime import Parser, keep_compiled_programs

# grpo.steps=10, or --grpo.steps=10: a setting of a run, wherever it stands on the line
OVERRIDE = re.compile(r"^(--[a-z_]+(\.\w+)+|[a-z_]+(\.\w+)*)=")

INTERRUPTED = 128 + signal.SIGINT  # the exit code that shells know
SWEEP_STEPS = ("run", "status", "plot", "-h", "--help")
KEYS = ("LAKEWRIGHT_API_KEY", "OPENAI_API_KEY")  # of endpoints
TAKE_SETTINGS = (commands.run, commands.engineer_propose, commands.engineer_replay)
WRONG_PATH = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command: 0 done, 1 failed or rows left out, 2 bad input, 130 interrupted."""
    keep_compiled_programs()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    overrides = [argument for argument in arguments if OVERRIDE.match(argument)]
    words = [argument for argument in arguments if argument not in overrides]
    options = build_parser().parse_args(_with_step(words))
    try:
        if overrides and options.command not in TAKE_SETTINGS:
            raise InputError(
                f"{overrides[0]!r:.60}: only `lakewright run` takes settings, or engineer propose; leave it out"
            )
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
        return INTERRUPTED


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
    _engineer(add)
    _study(add)
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


def _engineer(add: argparse._SubParsersAction) -> None:
    example = "lakewright engineer show runs/demo --stage 0"
    engineer = _command(add, "engineer", commands.engineer_show, "look at the engineer's work", example)
    steps = engineer.add_subparsers(title="steps", required=True, metavar="STEP")
    show = _command(
        steps, "show", commands.engineer_show, "print a stage's evidence, prompt, answer, verdict and trial", example
    )
    show.add_argument("folder", metavar="DIR", type=Path, help="the run folder")
    show.add_argument("--stage", type=int, required=True, help="a finished stage, from 0")
    _json(show)
    propose = _command(
        steps,
        "propose",
        commands.engineer_propose,
        "ask a teacher after a finished stage, and write nothing",
        "lakewright engineer propose runs/demo --teacher rules",
    )
    propose.add_argument("folder", metavar="DIR", type=Path, help="the run folder")
    propose.add_argument("--teacher", required=True, help="who is asked")
    propose.add_argument("--stage", type=int, help="a finished stage, from 0 (default the last)")
    _json(propose)
    replay = _command(
        steps,
        "replay",
        commands.engineer_replay,
        "ask teachers about recorded evidence, side by side",
        "lakewright engineer replay runs/a runs/b --teachers rules,sec,self",
    )
    replay.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="run folders")
    replay.add_argument("--teachers", help="names with commas between (default all that ask no model)")
    _json(replay)


def _study(add: argparse._SubParsersAction) -> None:
    command = _command(
        add,
        "study",
        commands.study,
        "compare teachers from one warm-up under one budget, or go on with it",
        "lakewright study cpu --out studies/cpu --workers 2",
    )
    command.add_argument("spec", metavar="SPEC", type=Path, help="a spec, .toml or .json, or the name of one of ours")
    command.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the study")
    command.add_argument("--workers", type=int, default=1, help="runs at a time, each in its process (default 1)")
    _json(command)


def _bench(add: argparse._SubParsersAction) -> None:
    command = _command(add, "bench", commands.bench, "measure the lake on this machine", "lakewright bench --json")
    command.add_argument("--agents", type=int, choices=(2, 3, 5), help="only boards of so many agents (default all)")
    instead = command.add_mutually_exclusive_group()
    others = {
        "files": "files instead: drawn, solved and verified beside the core, start-up, memory",
        "sweeps": "sweeps instead: workers, Ray, memory, tiny shards",
        "sampling": "sampling instead: completions a second of the tiny model",
        "warmups": "warm-ups instead: ours beside TRL's SFTTrainer",
        "updates": "steps of GRPO instead: prompts read once, or for every answer",
    }
    for name, told in others.items():
        instead.add_argument(f"--{name}", action="store_const", dest="instead", const=name, help=told)
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
    _benchmark_eval(steps)


def _benchmark_eval(steps: argparse._SubParsersAction) -> None:
    evaluate = _command(
        steps,
        "eval",
        commands.benchmark_eval,
        "evaluate a model or a solver on a benchmark, or go on with it",
        "lakewright benchmark eval benchmark --solver prioritized --out runs/prioritized",
    )
    add = evaluate.add_argument
    add("benchmark", metavar="BENCHMARK", type=Path, help="a folder of `benchmark build`, or a file of rows")
    add("--out", type=Path, required=True, metavar="DIR", help="the folder of this evaluation")
    who = evaluate.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", metavar="PATH", help="a checkpoint folder, or a model's name on the hub")
    who.add_argument("--endpoint", metavar="URL", help="an OpenAI-compatible server, such as http://localhost:8000/v1")
    who.add_argument("--solver", choices=("optimal", "prioritized", "greedy", "random"), help="no model: a planner")
    add("--model-name", metavar="NAME", help="the model that the endpoint is asked for")
    add("--samples", type=int, default=0, metavar="K", help="answers for pass@k, beside the greedy one (default 0)")
    add("--temperature", type=float, default=1.0, metavar="T", help="of the samples (default 1)")
    add("--no-greedy", action="store_true", help="samples only; rates are then of the first")
    add("--per-cell", type=int, metavar="N", help="at most N boards for each number of agents and size")
    add("--prompt", choices=("own", "row"), default="own", help="our words, or the row's text (default own)")
    add("--seed", type=int, default=0, help="of samples and of --solver random (default 0)")
    add("--max-tokens", type=int, default=16384, metavar="N", help="the longest answer in words (default 16384)")
    model = evaluate.add_argument_group("model")
    model.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: a GPU if there is one"
    )
    model.add_argument("--batch", type=int, metavar="N", help="answers decoded together (default 512, in words 16)")
    model.add_argument("--no-thinking", action="store_true", help="for models whose chat template knows the choice")
    endpoint = evaluate.add_argument_group("endpoint", f"the key: {' or '.join(KEYS)} in the environment")
    endpoint.add_argument("--concurrency", type=int, default=8, metavar="N", help="requests at once (default 8)")
    endpoint.add_argument("--timeout", type=float, default=600, metavar="S", help="seconds of silence (default 600)")
    endpoint.add_argument("--retries", type=int, default=8, metavar="N", help="tries after the first (default 8)")
    endpoint.add_argument("--price-in", type=float, default=0, metavar="X", help="dollars for a million prompt tokens")
    endpoint.add_argument("--price-out", type=float, default=0, metavar="X", help="dollars for a million answer tokens")
    endpoint.add_argument("--max-cost", type=float, metavar="X", help="dollars never to exceed, earlier ones included")
    _json(evaluate)


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
