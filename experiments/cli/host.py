"""`lakewright estimate` and `lakewright doctor`: what a run needs of a machine, and whether this one has it."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from lakewright.experiments.cli.conventions.options import Json, Overrides
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.jobs.runtime.library_setup import importing, prepare_libraries
from lakewright.experiments.preset_files import list_presets

app = App()

Gigabytes = Annotated[float, Parameter(metavar="GB")]


@app.command(
    usage="Usage: lakewright estimate [--preset P] [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright estimate --preset qwen3-4b launch.processes=4",
)
def estimate(
    *,
    preset: Annotated[str, Parameter(choices=list_presets())] = "cpu",
    accelerator: Gigabytes = 80.0,
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Print the memory and disk that a run takes, by arithmetic: nothing is loaded or trained.

    With device=auto it is the memory of a GPU if this machine has one.

    Args:
        preset: The settings to start from.
        accelerator: Memory of one GPU in GB; vLLM takes its share of it.
    """
    from lakewright.experiments.loop.settings.run_settings import load_settings

    settings = load_settings(preset, list(overrides))
    prepare_libraries(settings.start)
    with importing():
        from lakewright.experiments.loop.host.estimate import GB, estimate_of
        from lakewright.experiments.loop.host.estimate_table import estimate_table
        from lakewright.policy.models import resolve_device

    if settings.device == "auto":
        settings = msgspec.structs.replace(settings, device=resolve_device("auto"))
    print_found(estimate_of(settings, round(accelerator * GB)), json, estimate_table)


@app.command(
    usage="Usage: lakewright doctor [--preset P] [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright doctor --preset qwen3-4b --out runs/qwen3",
)
def doctor(
    *,
    preset: Annotated[str, Parameter(choices=list_presets())] = "cpu",
    out: Annotated[Path, Parameter(metavar="DIR")] = Path(),
    json: Json = False,
    overrides: Overrides,
) -> int:
    """Check this machine for a run before anything is spent; exit code 2 if something must be changed.

    Args:
        preset: The settings to start from.
        out: The path of the future run folder.
    """
    from lakewright.experiments.loop.settings.run_settings import load_settings

    settings = load_settings(preset, list(overrides))
    prepare_libraries(settings.start)
    with importing():
        from lakewright.experiments.loop.host.doctor import diagnose, findings_table
        from lakewright.experiments.loop.host.machine import installed_version, look_at_machine

    findings = diagnose(settings, look_at_machine(settings, out), installed_version)
    print_found(findings, json, findings_table)
    return 2 if any(finding.change for finding in findings) else 0
