"""The viewer against hostile text, hostile addresses and hostile files: it shows, refuses, and obeys nothing."""

import os
import re

import msgspec
import pytest

from tests.support.samples.finished_run import board, finish
from tests.support.servers.viewer_client import client, page


@pytest.mark.parametrize(
    "address", ["/", "/run/shown/hostile", "/stage/0/shown/hostile", "/board/run/held-out/0/shown/hostile"]
)
def test_hostile_text_is_shown_and_not_obeyed(site, address):
    found = page(site, address)
    assert "<script>alert" not in found
    assert "\x00" not in found
    assert "\x1b" not in found
    assert re.findall(r"<script[^>]*>", found) == ['<script type="module" src="/static/main.js">']
    assert not re.findall(r"<[^>]+\s(?:style|on\w+)=", found), "a policy without inline style would drop it"


def test_every_reply_forbids_inline_scripts(site):
    for address in ("/", "/nothing", "/static/main.js", "/api/draw"):
        policy = site.get(address).headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_name_that_was_rebound_to_this_machine_is_refused(site, host):
    assert site.get("/", headers={"host": host}).status_code == 421


def test_other_origins_are_refused_and_our_own_is_not(site):
    for origin, status in (("https://evil.example", 403), ("null", 403), ("http://localhost:8000", 200)):
        assert site.get("/", headers={"origin": origin}).status_code == status, origin


def test_nothing_can_be_written(site):
    for method in ("post", "put", "delete", "patch", "options"):
        assert getattr(site, method)("/").status_code == 405


@pytest.mark.parametrize(
    "address",
    [
        "/boards/boards/file/shown/../secret.jsonl",
        "/boards/boards/file/shown/%2e%2e/secret.jsonl",
        "/boards/boards/file/secret.jsonl",
        "/boards/boards/file//etc/passwd",
        "/static/..%2fpages%2froutes.py",
        "/run/shown",
        "/board/boards/file/99/shown/boards.jsonl",
        "/export/nothing/file/0/shown/boards.jsonl?form=row",
    ],
)
def test_no_address_leads_out_of_the_folders(site, address):
    reply = site.get(address)
    assert reply.status_code in (404, 422), reply.text[:300]
    assert "secret" not in reply.text.replace("secret.jsonl", "")
    assert "Traceback" not in reply.text


def test_links_that_lead_out_are_not_followed(folder, tmp_path):
    run = finish(tmp_path / "shown" / "run")
    os.symlink(folder.parent / "secret.jsonl", tmp_path / "shown" / "link.jsonl")
    run.stage(0).evidence.unlink()
    os.symlink(folder.parent / "secret.jsonl", run.stage(0).evidence)
    site = client(tmp_path / "shown")
    assert "link.jsonl" not in page(site, "/")
    reply = site.get("/stage/0/shown/run")
    assert reply.status_code == 404
    assert "points outside the folders" in reply.text


@pytest.mark.parametrize(
    "lines",
    [
        b"not json at all\n",
        b'{"id": "' + b"x" * 65_536 + b'", "grid": ["."], "starts": [[0,0]], "goals": [[0,0]]}\n',
        b'{"id": 1e400, "size": 99999999999999999999999, "grid": ["."], "starts": [[0, 1e99]], "goals": null}\n',
        b'{"id": "half", "grid": ["..",',
        b"\x00\xff\xfe\n",
        b"[]\n\n{}\n",
    ],
)
def test_hostile_files_of_boards_are_reported_on_the_page(tmp_path, lines):
    (tmp_path / "bad*[1].jsonl").write_bytes(msgspec.json.encode(board("good")) + b"\n" + lines)
    reply = client(tmp_path).get(f"/boards/boards/file/{tmp_path.name}/bad%2A%5B1%5D.jsonl")
    assert reply.status_code in (200, 422)
    assert "Traceback" not in reply.text
    assert len(reply.text) < 100_000
