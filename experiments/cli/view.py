"""`lakewright view`: runs, studies, sweeps, evaluations, benchmarks and board files in a browser."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import Flag

LAST_PORT = 65535

app = App(
    name="view",
    help="Look at runs, studies, sweeps, evaluations, benchmarks and board files in a browser.",
    help_epilogue="example: lakewright view runs --open",
)


@app.default
def serve(
    paths: Annotated[list[Path], Parameter(name="PATH")],
    /,
    *,
    port: int = 0,
    open_browser: Annotated[Flag, Parameter(name="--open")] = False,
) -> None:
    """Serve the pages on the loopback address until interrupted.

    Args:
        paths: Folders and files to look at.
        port: The port; 0 for any that is free.
        open_browser: Open the browser.
    """
    if not 0 <= port <= LAST_PORT:
        raise InputError(f"--port is {port}; give 1 to {LAST_PORT}, or leave it out")
    _check_paths(paths)
    from lakewright.experiments.viewer.server.routing import serve_pages

    serve_pages(paths, port, open_browser)


@app.command(help_epilogue="example: lakewright view bundle runs/demo --out site")
def bundle(
    paths: Annotated[list[Path], Parameter(name="PATH")],
    /,
    *,
    out: Annotated[Path, Parameter(metavar="DIR")],
) -> None:
    """Write the pages as a static site, to publish anywhere.

    Args:
        paths: Folders and files to show.
        out: The folder of the site.
    """
    _check_paths(paths)
    from lakewright.experiments.viewer.site import write_site

    count = write_site(paths, out)
    print(f"{count} {'page' if count == 1 else 'pages'}: {out / 'index.html'}")


def _check_paths(paths: Sequence[Path]) -> None:
    """Raises InputError on a path that is not there, before anything large is imported."""
    if missing := [path for path in paths if not path.exists()]:
        raise InputError(f"{missing[0]}: does not exist; check the path")
