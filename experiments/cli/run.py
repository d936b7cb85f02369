"""`lakewright run`, `report`, `track` and `settings`: the closed loop in a folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from lakewright.experiments.cli.conventions.options import TRACKERS, Json, Overrides, TeacherName
from lakewright.experiments.cli.conventions.output import encode_line, print_found, print_result, print_summary
from lakewright.experiments.jobs.runtime.library_setup import importing, prepare_libraries
from lakewright.experiments.preset_files import list_presets

if TYPE_CHECKING:
    from lakewright.experiments.loop.records.run_folder import RunFolder

app = App()


@app.command(
    usage="Usage: lakewright run --out DIR [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="`lakewright settings` lists the settings.\n\nexample: lakewright run --out runs/a grpo.steps=20",
)
def run(
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
    preset: Annotated[str | None, Parameter(choices=list_presets())] = None,
    environment: str | None = None,
    teacher: TeacherName | None = None,
    seed: int | None = None,
    dry_run: bool = False,
    track: Annotated[tuple[str, ...], Parameter(choices=TRACKERS, show_default=False)] = (),
    quiet: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Run the closed loop, or resume it.

    Args:
        out: The run folder.
        preset: The settings to start from; cpu for the lake, text for other environments.
        environment: The environment that draws problems: lake, reasoning_gym:TASK[,TASK...], FILE.py:Class,
            module:Class, or an entry point.
        teacher: Who redesigns the problems: a name (see `lakewright settings teacher`), module:Class or FILE.py:Class.
        seed: The seed of everything random in the run.
        dry_run: Check settings and machine, print what the run would do, and start nothing; except on the lake, the
            held-out problems are drawn and checked.
        track: A tracker that gets the figures of each finished stage; may be repeated.
        quiet: Print no progress. By default there are bars on a terminal; elsewhere, a line for each stage and one per
            minute.
    """
    from lakewright.experiments.loop.settings.run_settings import load_settings

    named = {"environment": environment, "teacher": teacher, "seed": seed}
    given = [f"{name}={value}" for name, value in named.items() if value is not None]
    usual = "cpu" if environment in (None, "lake") else "text"
    settings = load_settings(preset or usual, [*given, *overrides])
    prepare_libraries(settings.start)
    with importing():
        from lakewright.experiments.jobs.runtime.progress_bars import showing_progress
        from lakewright.experiments.loop.closed_loop import run as run_loop
        from lakewright.experiments.loop.dry_run import check_machine, describe_plan, describe_run
        from lakewright.experiments.loop.records.run_folder import RunFolder
        from lakewright.experiments.loop.trackers import Publisher

    check_machine(settings)
    folder = RunFolder(out)
    if dry_run:
        folder.check_settings(settings)
        print_found(describe_run(settings), json, describe_plan)
        return
    publisher = Publisher(folder, track)
    with folder.locked(), showing_progress("silent" if quiet else "lines"):
        run_loop(settings, folder, publisher.publish)
        _print_report(folder, json)


@app.command(help_epilogue="example: lakewright track runs/demo --to tensorboard")
def track(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    to: Annotated[tuple[str, ...], Parameter(choices=TRACKERS)],
    json: Json = False,
) -> None:
    """Publish the finished stages of a run to trackers, each stage once.

    Args:
        folder: The run folder.
        to: The tracker; may be repeated.
    """
    from lakewright.experiments.loop.records.run_folder import RunFolder
    from lakewright.experiments.loop.trackers import Publisher

    run_folder = RunFolder(folder)
    run_folder.settings()  # raises InputError if the folder holds no run
    print_summary(Publisher(run_folder, to).publish(), json)


@app.command(help_epilogue="example: lakewright report runs/demo")
def report(folder: Annotated[Path, Parameter(name="DIR")], /, *, json: Json = False) -> None:
    """Print a run's table and write its report.html.

    Args:
        folder: The run folder.
    """
    from lakewright.experiments.loop.records.run_folder import RunFolder

    _print_report(RunFolder(folder), json)


def _print_report(folder: "RunFolder", json: bool) -> None:
    from lakewright.experiments.viewer.run_table import as_json, tabulate_run
    from lakewright.experiments.viewer.site import write_report

    write_report(folder)
    folder.link_best()  # of runs of versions that had none
    text = f"report: {folder.report}\n{tabulate_run(folder)}\nevery stage in a browser: lakewright view {folder.folder}"
    print_result(encode_line(as_json(folder)) if json else text)


@app.command(
    usage="Usage: lakewright settings [PREFIX] [OPTIONS]",
    help_epilogue="example: lakewright settings grpo --preset h100",
)
def settings(
    prefix: Annotated[str, Parameter(name="PREFIX", show_default=False)] = "",
    /,
    *,
    preset: Annotated[str, Parameter(choices=list_presets())] = "cpu",
    json: Json = False,
) -> None:
    """List the settings of a run: name, type, default and meaning.

    Set one by `lakewright run SETTING=VALUE`.

    Args:
        prefix: List only settings whose names start with this, such as grpo or grpo.host.
        preset: The preset whose values are the defaults.
    """
    from lakewright.experiments.loop.settings.setting_list import format_settings, list_settings

    print_found(list_settings(preset, prefix), json, format_settings)
