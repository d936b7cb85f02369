"""The resources of a machine that a run may need: looked up once, before anything is loaded."""

import contextlib
import importlib.metadata
import os
import shutil
import socket
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import psutil
import torch

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import count_cores
from lakewright.experiments.loop.redesign.teacher_models import check_askable
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.models import find_driver, prepare_place

SHARED = Path("/dev/shm")
PATIENCE = 3.0  # seconds to wait for a server
WEIGHTS_PORT = 51216  # on which TRL's client sends weights to a vLLM server


class Accelerator(msgspec.Struct, frozen=True):
    """A GPU. memory, free: bytes in all, and those that nothing uses. bf16: whether it computes in it."""

    name: str
    memory: int
    free: int
    bf16: bool = True


class Machine(msgspec.Struct, frozen=True):
    """The resources that were found. Sizes are bytes.

    driver, cuda: versions of NVIDIA's driver and of the CUDA that torch was built with, None if missing.
    disk: free in the folder of the run. shared: free shared memory, None if the system has no such folder.
    taken: those ports of this machine that something listens on. server: whether the vLLM server answers. model: where
    the run's model is: `folder`, `cache`, `hub`, or nothing. cache: where compiled programs are cached. askable: what
    is missing to ask the engineer.
    """

    cores: int
    memory: int
    disk: int
    shared: int | None
    accelerators: tuple[Accelerator, ...] = ()
    driver: str | None = None
    cuda: str | None = None
    taken: tuple[int, ...] = ()
    server: bool = False
    model: str = "folder"
    cache: str = ""
    cache_writable: bool = True
    askable: str = ""


def look_at_machine(settings: RunSettings, out: Path) -> Machine:
    """This machine, as a run with its folder at `out` would find it."""
    url, cache = settings.grpo.host.vllm_url, os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    return Machine(
        cores=count_cores(),
        memory=psutil.virtual_memory().total,
        disk=shutil.disk_usage(existing(out)).free,
        shared=shutil.disk_usage(SHARED).free if SHARED.exists() else None,
        accelerators=tuple(map(_accelerator, range(torch.cuda.device_count()))),
        driver=find_driver(),
        cuda=torch.version.cuda,
        taken=tuple(port for port in wanted_ports(settings) if _answers("localhost", port)),
        server=bool(url) and _healthy(url or ""),
        model=_place_of_model(settings.start),
        cache=cache,
        cache_writable=not cache or os.access(existing(Path(cache)), os.W_OK),
        askable=_explain_missing(settings),
    )


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if place.exists())


def wanted_ports(settings: RunSettings) -> list[int]:
    """Ports of this machine that the run itself listens on."""
    ports = [word.partition("=")[2] for word in settings.launch.more if word.startswith("--main_process_port=")]
    found = [int(port) for port in ports if port.isdigit() and int(port)]
    return found + ([WEIGHTS_PORT] if settings.grpo.host.vllm == "server" else [])


def installed_version(package: str) -> str | None:
    """The version of a package, None if it isn't installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator(number: int) -> Accelerator:
    found, free = torch.cuda.get_device_properties(number), 0
    with contextlib.suppress(RuntimeError):  # of a GPU that is full or busy, so that this process cannot use it
        free, _ = torch.cuda.mem_get_info(number)
    return Accelerator(found.name, found.total_memory, free, bf16=found.major >= 8)


def _answers(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), PATIENCE):
        return True
    return False


def _healthy(url: str) -> bool:
    parts = urlsplit(url)
    return _is_answering(f"{parts.scheme}://{parts.netloc}/health")


def _place_of_model(start: str) -> str:
    start = prepare_place(start) if start else ""
    if not start or Path(start).exists():
        return "folder" if not start or (Path(start) / "config.json").is_file() else ""
    from huggingface_hub import constants, try_to_load_from_cache

    if isinstance(try_to_load_from_cache(start, "config.json"), str):
        return "cache"
    return "hub" if not constants.HF_HUB_OFFLINE and _is_answering(constants.ENDPOINT) else ""


def _is_answering(url: str) -> bool:
    """Whether a server answers at all; an answer that is an error counts only if it isn't the server's own."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PATIENCE) as answer:
            return bool(answer.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False


def _explain_missing(settings: RunSettings) -> str:
    try:
        check_askable(settings)
    except InputError as error:
        return str(error)
    return ""
