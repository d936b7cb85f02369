"""`lakewright view`: looking at runs, studies, sweeps, evaluations, benchmarks and board files in a browser."""

from collections.abc import Sequence
from pathlib import Path

from core_jax.errors import InputError

INSTALL = "the viewer is not installed; install it with: pip install 'lakewright[view]'"
MOST_PORTS = 65535


def view(paths: Sequence[Path], port: int = 0, open_browser: bool = False) -> int:
    """Serves what lies under `paths` on the loopback address until it is interrupted.

    port: 0 for any that is free. Raises InputError where a path is not there or the port cannot be used.
    """
    if not 0 <= port <= MOST_PORTS:
        raise InputError(f"--port is {port}; give 1 to {MOST_PORTS}, or leave it out")
    try:
        from experiments.view.server import serve
    except ImportError as error:
        raise InputError(INSTALL) from error
    serve(paths, port, open_browser)
    return 0


def bundle(paths: Sequence[Path], out: Path) -> int:
    """Writes the pages of what lies under `paths` as a static site, to publish anywhere.

    Raises InputError where a path is not there, or `out` holds something else.
    """
    from experiments.view import write_site

    print(f"{write_site(paths, out)} pages: {out / 'index.html'}")
    return 0
