"""A headless Chromium and a server for it: one of each for the journeys of a file."""

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import uvicorn

from lakewright.experiments.viewer.server.routing import make_application
from tests.support.servers.chromium_path import chromium_path

QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
PATIENCE = 120_000  # milliseconds; a first program may have to be compiled on a busy machine


@contextlib.contextmanager
def served(paths: Sequence[Path]) -> Iterator[str]:
    """The address of a viewer of `paths`, in a thread of this process."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(make_application(paths), log_level="warning", access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()


@contextlib.contextmanager
def chromium():
    """A headless Chromium that fetches nothing of its own."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", *QUIET]
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=arguments)
        yield browser
        browser.close()
