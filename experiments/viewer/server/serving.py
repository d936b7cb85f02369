"""The server's life: a free port of the loopback address, the address printed, until it is interrupted."""

import contextlib
import logging
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from lakewright.core_jax.errors import InputError
from lakewright.experiments.jobs.runtime.library_setup import keep_compiled_programs
from lakewright.experiments.viewer.server.routing import make_application

HOST = "127.0.0.1"


def serve_pages(paths: Sequence[Path], port: int = 0, browser: bool = False) -> None:
    """Serves what lies under `paths` until it is interrupted. port: 0 for any that is free.

    Raises InputError if a path is not there or the port is taken.
    """
    keep_compiled_programs()
    app = make_application(paths)
    with contextlib.closing(_open_socket(port)) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}/"
        print(address, flush=True)
        print("lakewright view: read-only; stop it with Ctrl-C", file=sys.stderr)
        if browser:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        logging.basicConfig(level=logging.WARNING)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listener])


def _open_socket(port: int) -> socket.socket:
    try:
        listener = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {port} cannot be used ({error}); choose another, or leave it out") from error
    listener.set_inheritable(True)
    return listener
