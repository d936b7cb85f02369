"""How fast the viewer is and how much memory it takes, by processor time: other work on the machine does not count."""

import http.client
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewright.core_jax.rows import write_rows
from tests.support.samples.finished_run import board, finish
from tests.support.samples.other_folders import benchmark, evaluation, study
from tests.support.samples.tiny_sweep import SPEC, make

pytestmark = pytest.mark.deep
REQUESTS, THREADS = 3000, 4
ROWS = 1_000_000
PER_SECOND = 200  # requests on two cores, of which Python uses one
ROOM = 48 << 20  # bytes by which memory may differ from one moment to another


class Server:
    """`lakewright view` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "lakewright.experiments.cli", "view", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout
        self.address = urlsplit(self.process.stdout.readline().strip())

    def get(self, *addresses: str) -> str:
        """The last of some pages, all asked for over one connection."""
        connection = http.client.HTTPConnection(str(self.address.hostname), self.address.port)
        for address in addresses:
            connection.request("GET", address)
            reply = connection.getresponse()
            text = reply.read().decode()
            assert reply.status == 200, f"{address}: {text[:300]}"
        connection.close()
        return text

    @property
    def processor(self) -> float:
        """Seconds that its threads have worked."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """Bytes that it holds."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def spent(self, *addresses: str) -> float:
        """Seconds of processors for some pages."""
        before = self.processor
        self.get(*addresses)
        return self.processor - before


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Fifty runs, a file of a million boards, and one of each other kind."""
    folder = tmp_path_factory.mktemp("speed") / "shown"
    for number in range(50):
        finish(folder / "runs" / f"run-{number}")
    study(folder / "study")
    evaluation(folder / "evaluation")
    benchmark(folder / "benchmark")
    make(SPEC, folder / "sweep")
    million(folder / "million.parquet")
    found = Server(folder)
    yield found
    found.process.terminate()
    found.process.wait(30)


def million(path: Path) -> None:
    """A thousand boards again and again, each time by another name."""
    some = path.with_name("some.parquet")
    write_rows(some, [board(f"board-{n}", wait_required=n % 2 == 1) for n in range(1000)])
    table = pq.read_table(some)
    tiled = table.take(pa.array(np.arange(ROWS) % len(table)))
    names = pa.array([f"board-{n:07d}" for n in range(ROWS)])
    pq.write_table(tiled.set_column(tiled.schema.get_field_index("id"), "id", names), path)


def pages_of(server: Server) -> list[str]:
    """Every page that can be reached from the first one by three links, and the tools; no exports."""
    found, new = {"/", "/editor", "/compare?run=shown/runs/run-0&run=shown/runs/run-1"}, {"/"}
    for _ in range(3):
        texts = [server.get(address) for address in new]
        links = {link for text in texts for link in re.findall(r'href="(/[^"#?]*)"', text)}
        new = {link for link in links if not link.startswith(("/static", "/export"))} - found
        found |= set(sorted(new)[:150])
        new &= found
    return sorted(found)


def test_the_first_page_of_fifty_runs_and_a_file_of_a_million_boards_open_at_once(server):
    first = server.spent("/")
    boards = "/boards/boards/file/shown/million.parquet"
    opened = server.spent(boards)
    filtered = server.spent(f"{boards}?wait=true&sort=makespan&page=3")
    one = server.spent("/board/boards/file/999999/shown/million.parquet")
    print(f"processor seconds: first page {first:.2f}, {opened:.2f} to open, {filtered:.2f} sorted, {one:.2f} the last")
    assert "1 000 000 boards" in server.get(boards)
    assert first < 1, "the first page of fifty runs takes longer than a second"
    assert opened < 2, "a file of a million boards takes longer than two seconds to open"


def test_every_page_is_served_two_hundred_times_a_second_and_memory_does_not_grow(server):
    pages = pages_of(server)
    server.get(*pages)
    ask_for(server, pages, REQUESTS)
    before, used = server.memory, server.processor
    begun = time.monotonic()
    ask_for(server, pages, REQUESTS)
    seconds, spent, grown = time.monotonic() - begun, server.processor - used, server.memory - before
    rate = REQUESTS / spent
    print(f"{len(pages)} pages, {rate:.0f} requests per processor second ({REQUESTS / seconds:.0f} a second here)")
    print(f"memory {before >> 20} MiB, grown by {grown / (1 << 20):.1f} MiB over {REQUESTS} requests")
    assert rate > PER_SECOND
    assert grown < ROOM


def ask_for(server: Server, pages: list[str], requests: int) -> None:
    """All pages in turn, by several clients at once."""
    each = requests // THREADS
    asked = [[pages[(first * each + n) % len(pages)] for n in range(each)] for first in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as clients:
        list(clients.map(lambda addresses: server.get(*addresses), asked))
