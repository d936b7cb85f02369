"""`lakewright benchmark`: the fixed evaluation set, models and solvers evaluated on it, and its export."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, keep_compiled_programs
from lakewright.experiments.boards.benchmark.tiers import TIERS
from lakewright.experiments.cli.conventions.answerers import AnswererChoice, EndpointOptions, ModelOptions, answerer_of
from lakewright.experiments.cli.conventions.options import ExecutorOptions, Flag, Json
from lakewright.experiments.cli.conventions.output import print_error, print_found, print_summary
from lakewright.experiments.jobs.executors.choice import HERE
from lakewright.experiments.jobs.executors.executor import Task
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import progress

EXAMPLE = "example: lakewright benchmark build --out benchmark --tier paper"

app = App(name="benchmark", help="Build the fixed evaluation set, evaluate on it, or export it.", help_epilogue=EXAMPLE)


@app.command(help_epilogue=EXAMPLE)
def build(
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    tier: Annotated[str, Parameter(choices=tuple(TIERS))] = "paper",
    seed: int = 0,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> None:
    """Build the evaluation set, or resume.

    Args:
        out: The folder of the benchmark.
        tier: The paper's cells, or harder ones.
        seed: The same seed gives the same boards.
    """
    from lakewright.experiments.boards.benchmark.builder import build_benchmark as build_in

    with progress("benchmark", TIERS[tier].count, "boards") as bar:
        manifest = build_in(out, tier, seed, bar.update, where.chosen())
    print_summary({"boards": manifest.boards, "moved": len(manifest.moved), "out": str(out)}, json)


@app.command(help_epilogue="example: lakewright benchmark export benchmark --to hub")
def export(
    benchmark: Annotated[Path, Parameter(name="BENCHMARK")] = Path("benchmark"),
    /,
    *,
    to: Annotated[Path, Parameter(metavar="DIR")],
    json: Json = False,
) -> None:
    """Export a benchmark for Hugging Face datasets: Parquet files and a dataset card.

    Args:
        benchmark: A folder of `benchmark build`.
        to: The folder to write, which must not exist yet.
    """
    from lakewright.experiments.boards.formats.hugging_face import export_benchmark

    print_summary(msgspec.to_builtins(export_benchmark(benchmark, to)), json)


@app.command(
    name="eval",
    help_epilogue="example: lakewright benchmark eval benchmark --solver prioritized --out runs/prioritized",
)
def evaluate(
    benchmark: Annotated[Path, Parameter(name="BENCHMARK")],
    /,
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    who: Annotated[AnswererChoice, Parameter(name="*")] = AnswererChoice(),  # noqa: B008
    samples: Annotated[int, Parameter(metavar="K")] = 0,
    temperature: float = 1.0,
    no_greedy: Flag = False,
    per_cell: int | None = None,
    prompt: Literal["own", "compact", "row"] = "own",
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    model: Annotated[ModelOptions, Parameter(name="*", group="Model")] = ModelOptions(),  # noqa: B008
    endpoint: Annotated[EndpointOptions, Parameter(name="*", group="Endpoint")] = EndpointOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Evaluate a model or a solver on a benchmark, or resume.

    Args:
        benchmark: A folder of `benchmark build`, or a file of rows.
        out: The folder of this evaluation.
        samples: Sampled answers for pass@k, in addition to the greedy one.
        temperature: The temperature of the samples.
        no_greedy: Only sample; rates are then for the first sample.
        per_cell: Use at most this many boards for each number of agents and size.
        prompt: Our own prompt, the compact prompt for models that are trained on it, or the text in the row.
    """
    if who.solver not in (None, "random") and samples:
        raise InputError(f"--samples is {samples}, but --solver {who.solver} never varies; remove it")
    if who.solver and prompt == "row":
        raise InputError("--prompt is row, but a --solver reads no prompt; leave it out")
    from lakewright.experiments.boards.evaluation.evaluator import EvaluationSettings
    from lakewright.experiments.boards.evaluation.evaluator import evaluate_on_benchmark as evaluate_in
    from lakewright.experiments.boards.evaluation.score_table import tabulate_summary
    from lakewright.experiments.viewer.charts.evaluation_plot import write_plots

    if who.endpoint and where.chosen() != HERE:
        raise InputError("--executor and --workers: the server of --endpoint answers; give --concurrency instead")
    given = {"samples": samples, "temperature": temperature, "per_cell": per_cell, "prompt": prompt}
    settings = convert({"greedy": not no_greedy, **given}, EvaluationSettings, "command line")
    with (
        where.chosen().open(_describe_batch(who.model, model.device, where)) as executor,
        progress("evaluation", None, "answers") as bar,
    ):
        answerer = answerer_of(who, model, endpoint, prompt, executor)

        def on_progress(what: str, done: int, total: int) -> None:
            bar.set_description(what, refresh=False)
            bar.total = total
            bar.update(done)

        summary = evaluate_in(benchmark, out, answerer, settings, on_progress)
    write_plots(summary, out)
    print_found(summary, json, tabulate_summary)
    if not summary.complete:
        spent = f"{summary.tokens.dollars:.4f} dollars are spent, and the next answer may exceed --max-cost"
        print_error(f"{spent}; raise it and run the same command again to resume")
    return 0 if summary.complete else 1


def _describe_batch(model: str | None, device: str, where: ExecutorOptions) -> Task:
    """The resources of a batch of answers; on a cluster the weights of the model, and a GPU with --device cuda."""
    if model is None:
        return Task("batch of answers")
    gpus, memory = None, 0
    if where.executor == "ray":
        prepare_libraries(model)
        from lakewright.experiments.loop.host.estimate import estimate_answering

        gpus, memory = (1.0 if device == "cuda" else None), estimate_answering(model)
    return Task("batch of answers", None, gpus, memory, keep_compiled_programs)
