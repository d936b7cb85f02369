"""Folders that the viewer shows, and a client that asks for them."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lakewright.core_jax.rows import write_rows
from tests.support.samples.finished_run import board, finish
from tests.support.servers.viewer_client import HOSTILE, client


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs and a file of boards, one of its lines no board, and a secret next to it."""
    base = tmp_path_factory.mktemp("view")
    (base / "secret.jsonl").write_text(board("secret").id)
    shown = base / "shown"
    finish(shown / "plain")
    finish(shown / "hostile", HOSTILE, HOSTILE)
    write_rows(shown / "boards.jsonl", [board(f"board-{n}", wait_required=n % 2 == 1) for n in range(60)])
    return shown


@pytest.fixture(scope="session")
def site(folder: Path) -> TestClient:
    """A client that no test changes."""
    return client(folder)
