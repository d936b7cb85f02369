"""What each command does; options come parsed, bad input is raised as InputError."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tqdm import tqdm

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.generator import beside, manifest_of, prng
from core_jax.rows import SCHEMA, PlanRow, Row, check_plan, ending, read_rows, rows_of
from core_jax.support import convert, read_config, write_atomically
from experiments.resumable import Part, Parts, PlanIndex, job_of, parts_of, work_in_parts
from experiments.runtime import prepare_training, progress, say

BOARDS_A_PART = 8192  # of a generated file
WITHOUT_PLAN = ("unsolvable", "undecided")  # rows of which none is asked

if TYPE_CHECKING:
    from experiments.loop.records import RunFolder


def generate(options: argparse.Namespace) -> int:
    """Draws certified boards into a file, with a manifest beside it."""
    from core_jax.generator import generate as draw

    config = _env_config(options)
    drawn_from = {"config": msgspec.to_builtins(config, str_keys=True), "prng": prng()}
    job = job_of("generate", {}, {**drawn_from, "seed": options.seed, "count": options.count})
    begun = time.monotonic()
    with parts_of(options.out, job, SCHEMA) as parts, progress("boards", options.count, "boards") as bar:
        _go_on(bar, parts)
        for first in range(parts.consumed, max(options.count, 1), BOARDS_A_PART):
            count = min(BOARDS_A_PART, options.count - first)
            batches = draw(config, options.seed, count, bar.update, first)
            acceptance = [stratum for batch in batches.values() for stratum in batch.acceptance]
            parts.add(Part(count, acceptance=acceptance), rows_of(batches, config))
        manifest = manifest_of(config, options.seed, options.count, parts.acceptance)
        text = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
        beside(options.out).unlink(missing_ok=True)  # that of another file is worse than none
        parts.assemble(lambda: write_atomically(beside(options.out), text))
    seconds = time.monotonic() - begun
    tell(options, {"boards": options.count, "seconds": round(seconds, 3), "out": str(options.out)})
    return 0


def solve(options: argparse.Namespace) -> int:
    """Labels the boards of a file; bad rows are told and left out."""
    from core_jax.rows import check_solvable_here, solve_rows

    ending(options.input)
    job = job_of("solve", {"input": options.input}, {"makespan_plans": options.makespan_plans})
    with parts_of(options.out, job, SCHEMA) as parts, progress("solve", None, "rows") as bar:

        def label(rows: list[Row]) -> tuple[list[Row], dict[str, int]]:
            solved = solve_rows(rows, options.makespan_plans, bar.update)
            return solved, {"boards": len(solved), "undecided": sum(row.status == "undecided" for row in solved)}

        _go_on(bar, parts)
        work_in_parts(options.input, parts, check_solvable_here, label, _tell_bad_row)
        parts.assemble()
    return _told(options, parts, "boards", "undecided")


def verify(options: argparse.Namespace) -> int:
    """Replays the plans of a file; bad rows are told and left out."""
    from core_jax.rows import VERDICT_SCHEMA, VerdictRow, verify_rows

    inputs = {"input": options.input} | ({"plans": options.plans} if options.plans else {})
    for path in inputs.values():
        ending(path)
    job = job_of("verify", inputs, {"makespan_plans": options.makespan_plans})
    with parts_of(options.out, job, VERDICT_SCHEMA) as parts, progress("verify", None, "rows") as bar:
        given = _index(options.plans, parts) if options.plans else None

        def plan_for(row: Row) -> list[str] | None:
            if given:
                return given.find(row.id)
            return row.makespan_plan if options.makespan_plans else row.plan

        def check(row: Row) -> None:
            plan = plan_for(row)
            if plan is None and row.status not in WITHOUT_PLAN:
                raise ValueError(f"no plan for {row.id!r:.60}; add one to the row, or a row of its id to --plans")
            if plan is not None and given:
                check_plan(plan, row.agents)

        def judge(rows: list[Row]) -> tuple[list[VerdictRow], dict[str, int]]:
            pairs = [(row, plan) for row in rows if (plan := plan_for(row)) is not None]
            verdicts = verify_rows([row for row, _ in pairs], [plan for _, plan in pairs])
            bar.update(len(rows))
            valid = sum(verdict.valid for verdict in verdicts)
            return verdicts, {"plans": len(pairs), "valid": valid, "without_plan": len(rows) - len(pairs)}

        _go_on(bar, parts)
        work_in_parts(options.input, parts, check, judge, _tell_bad_row)
        parts.assemble()
    return _told(options, parts, "plans", "valid", "without_plan")


def run(options: argparse.Namespace) -> int:
    """Runs the closed loop in a folder, or goes on with it, and writes its report."""
    from experiments.loop.settings import load_settings

    named = {"teacher": options.teacher, "seed": options.seed}
    overrides = [f"{name}={value}" for name, value in named.items() if value is not None]
    settings = load_settings(options.preset, overrides + options.overrides)
    prepare_training(settings.start)
    from experiments.loop import check_machine
    from experiments.loop import run as run_loop
    from experiments.loop.records import RunFolder

    check_machine(settings)
    folder = RunFolder(options.out)
    with folder.locked():
        run_loop(settings, folder)
        return _show(folder, options.json)


def report(options: argparse.Namespace) -> int:
    """Prints the table of a run and writes report.html."""
    from experiments.loop.records import RunFolder

    return _show(RunFolder(options.folder), options.json)


def study(options: argparse.Namespace) -> int:
    """Runs a study in a folder, or goes on with it, and prints its table; 1 where a run failed."""
    if options.workers < 1:
        raise InputError(f"--workers is {options.workers}; give at least 1")
    prepare_training()
    from experiments.study import run_study, table

    results, failures = run_study(options.spec, options.out, options.workers)
    print(msgspec.json.encode(results).decode() if options.json else table(results))
    for name, error in failures.items():
        print(f"lakewright: {name}: {error}", file=sys.stderr)
    return 1 if failures else 0


def engineer_show(options: argparse.Namespace) -> int:
    """Prints what the engineer saw and answered after a stage, and what came of it."""
    from experiments.loop.records import RunFolder
    from experiments.view import shown_stage, told

    found = shown_stage(RunFolder(options.folder), options.stage)
    print(msgspec.json.encode(found).decode() if options.json else told(found))
    return 0


def engineer_propose(options: argparse.Namespace) -> int:
    """Asks a teacher after a finished stage, and writes nothing."""
    prepare_training()
    from experiments.loop.records import RunFolder
    from experiments.loop.settings import with_teacher
    from experiments.view import proposed, told_proposal

    folder = RunFolder(options.folder)
    stage = len(folder.finished_stages()) - 1 if options.stage is None else options.stage
    settings = with_teacher(folder.settings(), options.teacher, options.overrides)
    found = proposed(settings, folder, stage)
    print(msgspec.json.encode(found).decode() if options.json else told_proposal(found))
    return 0


def engineer_replay(options: argparse.Namespace) -> int:
    """Asks teachers after every finished stage of runs, and prints their proposals side by side."""
    prepare_training()
    from engineer.teachers import MODELS, TEACHERS
    from experiments.loop.records import RunFolder
    from experiments.loop.settings import with_teacher
    from experiments.view import Replayed, replayed, side_by_side

    names = options.teachers.split(",") if options.teachers else [name for name in TEACHERS if name not in MODELS]
    found: list[Replayed] = []
    configs: dict[tuple[str, int], EnvConfig] = {}
    for path in options.folders:
        folder = RunFolder(path)
        chosen = [with_teacher(folder.settings(), name, options.overrides) for name in names]
        found += list(replayed(chosen, folder))
        stages = enumerate(folder.finished_stages())
        configs |= {(str(path), number): stage.config() for number, stage in stages}
    print(msgspec.json.encode(found).decode() if options.json else side_by_side(found, configs))
    return 0


def bench(options: argparse.Namespace) -> int:
    """Measures the lake, sweeps, sampling, warm-ups or steps of GRPO on this machine."""
    if options.instead:
        import experiments.bench as benches

        bench = getattr(benches, options.instead)
        measured = bench.measure()
        print(msgspec.json.encode(measured).decode() if options.json else bench.table(measured))
        return 0
    from experiments.bench import measure, table

    with progress("bench", None, "cases") as bar:
        results = measure(options.agents, bar.update)
    print(msgspec.json.encode(results).decode() if options.json else table(results))
    return 0


def benchmark_build(options: argparse.Namespace) -> int:
    """Builds the evaluation set in a folder, or goes on with it."""
    from experiments.benchmark import TIERS, build

    with progress("benchmark", TIERS[options.tier].count, "boards") as bar:
        manifest = build(options.out, options.tier, options.seed, bar.update)
    tell(options, {"boards": manifest.boards, "moved": len(manifest.moved), "out": str(options.out)})
    return 0


def benchmark_eval(options: argparse.Namespace) -> int:
    """Evaluates a model or a solver on a benchmark, or goes on with it; 1 where the cost cap left boards unanswered."""
    if (options.model_name is None) != (options.endpoint is None):
        raise InputError("--endpoint URL and --model-name NAME belong together; give both, or neither")
    if options.solver not in (None, "random") and options.samples:
        raise InputError(f"--samples is {options.samples}, but --solver {options.solver} never varies; drop it")
    from experiments.evaluation import EvaluationSettings, as_table, evaluate, write_plots

    answerer, price = _answerer(options)
    settings = convert(
        {
            "greedy": not options.no_greedy,
            **{name: getattr(options, name) for name in ("samples", "temperature", "per_cell", "prompt")},
        },
        EvaluationSettings,
        "command line",
    )
    with progress("evaluation", None, "answers") as bar:

        def on_progress(what: str, done: int, total: int) -> None:
            bar.set_description(what, refresh=False)
            bar.total = total
            bar.update(done)

        summary = evaluate(options.benchmark, options.out, answerer, settings, price, on_progress)
    write_plots(summary, options.out)
    print(msgspec.json.encode(summary).decode() if options.json else as_table(summary))
    if not summary.complete:
        spent = f"{summary.tokens.dollars:.4f} dollars are spent, and another answer may exceed --max-cost"
        print(f"lakewright: {spent}; raise it and run the same command again to go on", file=sys.stderr)
    return 0 if summary.complete else 1


def _answerer(options: argparse.Namespace) -> tuple[Callable[..., Any], Callable[[int, int], float]]:
    """Who answers, made once the answers that are there are known, and what tokens cost."""
    from experiments.evaluation import EndpointAnswerer, PlannerAnswerer
    from policy.inference import EndpointSettings, dollars

    if options.solver:
        return lambda kept: PlannerAnswerer(options.solver, options.seed), lambda tokens_in, tokens_out: 0.0
    if options.model:
        return _model_answerer(options), lambda tokens_in, tokens_out: 0.0
    names = ("max_tokens", "concurrency", "timeout", "retries", "price_in", "price_out", "max_cost")
    given = {name: getattr(options, name) for name in names}
    settings = convert(
        {"url": options.endpoint, "model": options.model_name, **given}, EndpointSettings, "command line"
    )

    def price(tokens_in: int, tokens_out: int) -> float:
        return dollars(settings, tokens_in, tokens_out)

    def asking(kept: Sequence[Any]) -> EndpointAnswerer:
        spent = sum(price(answer.prompt_tokens or 0, answer.completion_tokens or 0) for answer in kept)
        return EndpointAnswerer(settings, spent)

    return asking, price


def _model_answerer(options: argparse.Namespace) -> Callable[..., Any]:
    prepare_training(options.model)
    from experiments.evaluation import ModelAnswerer
    from policy.codecs import TextSettings

    given = {"max_tokens": options.max_tokens, "thinking": not options.no_thinking}
    settings = convert(given, TextSettings, "command line")
    if options.batch is not None and options.batch < 1:
        raise InputError(f"--batch is {options.batch}; give at least 1")
    return lambda kept: ModelAnswerer(options.model, settings, options.device, options.batch, options.seed)


def _show(folder: "RunFolder", json: bool) -> int:
    from experiments.view import as_json, as_table, write_report

    write_report(folder)
    print(msgspec.json.encode(as_json(folder)).decode() if json else f"report: {folder.report}\n{as_table(folder)}")
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


def _index(path: Path, parts: Parts) -> PlanIndex:
    """The plans of a file by id; it is the first part of the work."""
    place = parts.folder / "plans.sqlite"
    if not parts.number:
        place.unlink(missing_ok=True)  # left by a process that was killed
    index = PlanIndex(place)
    if not parts.number:
        bad: list[str] = []
        for _ in read_rows(path, PlanRow, lambda error: bad.append(str(error)), index.add):
            pass
        index.commit()
        parts.add(Part(0, bad), [])
    return index


def _go_on(bar: tqdm, parts: Parts) -> None:
    bar.initial = bar.n = parts.consumed
    if parts.consumed:
        say(f"going on after {parts.consumed} that are done")


def _tell_bad_row(told: str) -> None:
    print(f"lakewright: {told}", file=sys.stderr)


def _told(options: argparse.Namespace, parts: Parts, *counts: str) -> int:
    """Tells the result; the exit code is 1 where rows were left out."""
    result = {name: parts.tally[name] for name in (*counts, "bad_rows")}
    tell(options, {**result, "out": str(options.out)})
    return 1 if result["bad_rows"] else 0


def tell(options: argparse.Namespace, result: dict[str, Any]) -> None:
    """Prints a command's result: as JSON where asked for, else to a person who watches."""
    if options.json:
        print(msgspec.json.encode(result).decode())
    elif sys.stderr.isatty():
        print(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.items()), file=sys.stderr)
