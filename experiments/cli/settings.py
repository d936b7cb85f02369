"""`lakewright settings`: every setting of a run."""

from typing import Annotated

from cyclopts import App, Parameter

from lakewright.experiments.cli.conventions.options import Json
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.loop.settings import presets

app = App()


@app.command(
    usage="Usage: lakewright settings [PREFIX] [OPTIONS]",
    help_epilogue="example: lakewright settings grpo --preset h100",
)
def settings(
    prefix: Annotated[str, Parameter(name="PREFIX", show_default=False)] = "",
    /,
    *,
    preset: Annotated[str, Parameter(choices=presets())] = "cpu",
    json: Json = False,
) -> None:
    """List the settings of a run: name, type, default and meaning.

    Set one by `lakewright run SETTING=VALUE`.

    Args:
        prefix: Only settings whose name starts so, such as grpo or grpo.host.
        preset: The preset whose values are the defaults.
    """
    from lakewright.experiments.loop.settings import list_settings, settings_table

    print_found(list_settings(preset, prefix), json, settings_table)
