"""A client of the viewer, in this process."""

from pathlib import Path

from starlette.testclient import TestClient

from lakewright.experiments.viewer.server.routing import make_application

HOSTILE = "<script>alert(1)</script>\"'&]]>\x00\x1b[31m"


def client(*paths: Path) -> TestClient:
    """A client of a viewer of `paths`."""
    return TestClient(make_application(paths), base_url="http://127.0.0.1:8000", raise_server_exceptions=True)


def page(site: TestClient, address: str) -> str:
    """A page that is there."""
    reply = site.get(address)
    assert reply.status_code == 200, f"{address}: {reply.status_code} {reply.text[:500]}"
    return reply.text
