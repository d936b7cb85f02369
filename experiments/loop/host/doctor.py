"""Checks that a machine suits a run, before anything is spent: one finding per question.

The packages that a run needs are the pins of this project, and the pins of the extras that its settings use.
"""

import importlib.metadata
import re
from collections.abc import Callable, Iterator

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from lakewright.experiments.loop.host.estimate import GB, Estimate, estimate_of
from lakewright.experiments.loop.host.machine import Machine
from lakewright.experiments.loop.host.memory_arithmetic import HALF, keys_and_values
from lakewright.experiments.loop.host.model_shape import model_shape
from lakewright.experiments.loop.settings.memory_remedies import list_remedies
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.policy.models import explain_no_gpu, is_gguf

PROGRAMS = 3 * GB  # of Python, torch and JAX with their compiled programs, in a process of a run
SHARED_EACH = GB  # of shared memory, for each process that exchanges data with others
LOST = 1e-4  # learning rates below it vanish in bf16 weights: a weight of 0.02 has steps of 0.00012
PROJECT = "lakewright"
# TRL takes this version too, which asks for an older transformers than this project: see docs/gpu-hosts.md.
LIMITS = {"vllm": SpecifierSet("<0.31")}
Versions = Callable[[str], str | None]


class Finding(msgspec.Struct, frozen=True):
    """The result of one check. change: the remedy, empty if it fits."""

    question: str
    found: str
    change: str = ""


def diagnose(settings: RunSettings, machine: Machine, version_of: Versions) -> list[Finding]:
    """The findings for a run on a machine. version_of: the installed version of a package, None if missing.

    Raises InputError if the config of the model cannot be read.
    """
    if settings.device == "auto" and machine.accelerators:
        settings = msgspec.structs.replace(settings, device="cuda")
    used = machine.accelerators[: _count_wanted(settings)]
    shared = settings.grpo.host.vllm == "colocate"  # with vLLM, whose share is of all memory, not of the free memory
    need = estimate_of(settings, min((gpu.memory if shared else gpu.free for gpu in used), default=80 * GB))
    checks = [*_check_packages(settings, version_of)]
    checks += _check_gpus(settings, machine, need) if wants_gpu(settings) else _check_cpu(settings, machine, need)
    if settings.device == "auto" and machine.driver and not wants_gpu(settings):
        question, why, change = msgspec.structs.astuple(_check_cuda(machine))
        checks.append(Finding(question, f"{why}, so the run is on the CPU", f"{change}, or set device=cpu"))
    checks += [
        _check_loading(machine, need),
        _check_disk(machine, need),
        *_check_shared_folder(settings, machine),
        *_check_ports(settings, machine),
    ]
    return [
        *checks,
        *_check_model(settings, machine, need),
        _check_cache(machine),
        *_check_engineer(machine),
        *_check_precision(settings),
    ]


def wants_gpu(settings: RunSettings) -> bool:
    """Whether a run cannot do without a GPU."""
    return settings.device == "cuda" or settings.grpo.host.vllm != "off" or settings.text.decoder == "vllm"


def _check_packages(settings: RunSettings, version_of: Versions) -> Iterator[Finding]:
    wrong = list(misfits(settings, version_of))
    for line in wrong:
        found, _, change = line.partition(": ")
        yield Finding("packages", found, change)
    if not wrong:
        yield Finding("packages", "everything that this run needs, in versions that fit")


def _check_gpus(settings: RunSettings, machine: Machine, need: Estimate) -> Iterator[Finding]:
    here, wanted = len(machine.accelerators), _count_wanted(settings)
    yield _check_cuda(machine)
    if not here:
        yield Finding("GPUs", f"0 here, {wanted} needed", "use a host with GPUs, or a preset for the CPU")
        return
    used = machine.accelerators[:wanted]
    few = f"use {wanted} GPUs, or launch.processes={here * _count_hosts(settings)}" if here < wanted else ""
    yield Finding("GPUs", f"{here} x {used[0].name}, {wanted} needed", few)
    worst, fullest = need.peak, min(used, key=lambda gpu: gpu.free)
    devices = (
        f"{worst.name} needs {worst.total / GB:.1f} GB, {fullest.free / GB:.1f} of {fullest.memory / GB:.1f} GB free"
    )
    changes = ["end what else uses the GPU"] if worst.total <= fullest.memory else []
    changes.append(_suggest_change(settings, worst.name))
    yield Finding("GPU memory", f"{devices} in the GPU", ", or ".join(changes) if worst.total > fullest.free else "")
    if settings.grpo.host.bf16 and not all(gpu.bf16 for gpu in used):
        yield Finding("bf16", f"{used[0].name} does not compute in it", "set grpo.host.bf16=false, or use newer GPUs")
    if settings.grpo.host.vllm == "colocate":
        yield _share_of_vllm(settings, need, min(gpu.memory for gpu in used))


def _check_cuda(machine: Machine) -> Finding:
    if machine.accelerators:
        # A container may have the driver without the tool that tells its version.
        return Finding("CUDA", f"driver {machine.driver or 'works'}, torch with CUDA {machine.cuda}")
    return Finding("CUDA", *explain_no_gpu(machine.cuda, machine.driver))


def _suggest_change(settings: RunSettings, phase: str) -> str:
    return ", or ".join(list_remedies(settings, phase)) or "use a host with more memory, or a smaller model"


def _share_of_vllm(settings: RunSettings, need: Estimate, smallest: int) -> Finding:
    """vLLM must hold the weights, and the keys and values of one whole answer."""
    share = settings.grpo.host.vllm_memory * smallest
    longest = need.lengths.prompt + need.lengths.answer
    least = need.checkpoint + keys_and_values(model_shape(settings), longest, HALF)
    found = f"{share / GB:.1f} GB in each GPU, of which weights and one answer take {least / GB:.1f}"
    return Finding("vLLM's share", found, "raise grpo.host.vllm_memory" if least > share else "")


def _check_cpu(settings: RunSettings, machine: Machine, need: Estimate) -> Iterator[Finding]:
    processes = settings.launch.processes
    takes = processes * (need.peak.total + PROGRAMS)
    found = f"{need.peak.name} needs about {takes / GB:.1f} GB, {machine.memory / GB:.1f} GB available"
    yield Finding("memory", found, _suggest_change(settings, need.peak.name) if takes > machine.memory else "")
    cores = "" if processes <= machine.cores else f"set launch.processes={machine.cores}"
    yield Finding("cores", f"{machine.cores} for {processes} process{'es' if processes > 1 else ''}", cores)


def _check_loading(machine: Machine, need: Estimate) -> Finding:
    found = f"{machine.memory / GB:.1f} GB, and loading the model in every process takes {need.loading / GB:.1f}"
    change = "lower launch.processes, or use a host with more memory" if need.loading > machine.memory else ""
    return Finding("host memory", found, change)


def _check_disk(machine: Machine, need: Estimate) -> Finding:
    found = f"{machine.disk / GB:.1f} GB free, checkpoints of the run take {need.disk / GB:.1f}"
    return Finding("disk", found, "free space, or give --out on a larger disk" if need.disk > machine.disk else "")


def _check_shared_folder(settings: RunSettings, machine: Machine) -> Iterator[Finding]:
    """The shared memory that processes exchange data through; containers have 64 MB by default."""
    if machine.shared is None or not (settings.launch.processes > 1 or settings.grpo.host.vllm == "colocate"):
        return
    wanted = SHARED_EACH * _count_wanted(settings)
    found = f"{machine.shared / GB:.2f} GB free, {wanted / GB:.0f} wanted"
    change = f"start the container with --shm-size={wanted // GB}g" if machine.shared < wanted else ""
    yield Finding("shared memory", found, change)


def _check_ports(settings: RunSettings, machine: Machine) -> Iterator[Finding]:
    for port in machine.taken:
        yield Finding("ports", f"{port} is taken", "end what listens there, or name another port")
    if settings.grpo.host.vllm == "server":
        url, model = settings.grpo.host.vllm_url, settings.start
        change = "" if machine.server else f"start it there: trl vllm-serve --model {model}, with --host and --port"
        yield Finding("vLLM server", f"{url} {'answers' if machine.server else 'does not answer'}", change)


def _check_model(settings: RunSettings, machine: Machine, need: Estimate) -> Iterator[Finding]:
    if not settings.start:
        return
    name, size = settings.start, f"{need.checkpoint / GB:.1f} GB"
    places = {"folder": "is there", "cache": "is in the hub's cache", "hub": f"comes from the hub, about {size}"}
    change = "" if machine.model else f"fetch it on a machine with access (hf download {name}), and give start=FOLDER"
    yield Finding("model", f"{name} {places.get(machine.model, 'is not here, and the hub cannot be reached')}", change)


def _check_cache(machine: Machine) -> Finding:
    if machine.cache_writable:
        return Finding("compiled programs", f"cached in {machine.cache or 'memory only'}")
    change = "set JAX_COMPILATION_CACHE_DIR to a folder that can be written"
    return Finding("compiled programs", f"{machine.cache} cannot be written", change)


def _check_engineer(machine: Machine) -> Iterator[Finding]:
    if machine.askable:
        found, _, change = machine.askable.partition("; ")
        yield Finding("engineer", found, change)


def _check_precision(settings: RunSettings) -> Iterator[Finding]:
    """Weights in bf16 without a copy in full precision, which DeepSpeed and FSDP keep, take no small updates."""
    host, kept = settings.grpo.host, settings.launch.config.startswith(("zero", "fsdp"))
    if host.bf16 and not kept and not host.lora and settings.grpo.learning_rate < LOST:
        found = f"all weights are in bf16 only, where updates of {settings.grpo.learning_rate:g} are lost"
        yield Finding("precision", found, "set launch.config=zero2, or grpo.host.lora.rank=32, or grpo.host.bf16=false")
    if host.bf16 and not host.lora and settings.teacher == "self_trained":
        found = f"the engineer is trained in one process in bf16 only, where updates below {LOST:g} are lost"
        yield Finding("engineer in bf16", found, "set grpo.host.lora.rank=32, or grpo.host.bf16=false")


def _count_wanted(settings: RunSettings) -> int:
    """The GPUs of this host that the run uses, which are the first."""
    return -(-settings.launch.processes // _count_hosts(settings))


def _count_hosts(settings: RunSettings) -> int:
    """The number of hosts that `accelerate launch` is given."""
    found = re.search(r"--num_machines[= ](\d+)", " ".join(settings.launch.more))
    return max(1, int(found[1])) if found else 1


def findings_table(findings: list[Finding]) -> str:
    """One line per finding: whether it fits, and what to change if it doesn't."""
    lines = [
        f"{'change' if one.change else 'fits':8}{one.question:19}{one.found}{': ' * bool(one.change)}{one.change}"
        for one in findings
    ]
    wrong = sum(bool(one.change) for one in findings)
    end = f"{wrong} thing{'s' * (wrong > 1)} to change before this run" if wrong else "nothing to change"
    return "\n".join([*lines, end])


def extras_of(settings: RunSettings) -> list[str]:
    """The extras that a run needs."""
    host = settings.grpo.host
    wanted = {
        "vllm": host.vllm != "off" or settings.text.decoder == "vllm",
        "lora": host.lora is not None,
        "structured": settings.answers_in_json,
        "gguf": is_gguf(settings.start),
        "trackers": host.report_to != "none",
    }
    return [extra for extra, needed in wanted.items() if needed]


def needed_packages(settings: RunSettings) -> list[Requirement]:
    """The packages that must be installed, with those that extras of other packages need (TRL's own, for vLLM)."""
    found = [Requirement(PROJECT), *_of(PROJECT, ["", "lake", *extras_of(settings)])]
    nested = [part for asked in found if asked.extras for part in _of(asked.name, list(asked.extras))]
    if settings.launch.config.startswith("zero"):
        nested.append(Requirement("deepspeed"))
    if settings.grpo.host.report_to != "none":
        found = [part for part in found if part.name not in {"tensorboard", "wandb", "trackio"}]
        nested.append(Requirement(settings.grpo.host.report_to))
    for part in nested:
        part.specifier &= LIMITS.get(part.name, SpecifierSet())
    return [*found, *nested]


def misfits(settings: RunSettings, version_of: Versions) -> Iterator[str]:
    """One line for each package that is missing or of another version, with the words that install it."""
    for needed in needed_packages(settings):
        there = version_of(needed.name)
        wanted = f"{needed.name}{needed.specifier}"
        if there is None:
            yield f"{needed.name} is not installed: pip install '{wanted}'"
        elif not needed.specifier.contains(there, prereleases=True):
            yield f"{needed.name} is {there}: pip install '{wanted}'"


def _of(package: str, extras: list[str]) -> Iterator[Requirement]:
    """The requirements of a package with these extras, "" for no extra; empty if it isn't installed."""
    try:
        lines = importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for asked in map(Requirement, lines):
        marker = asked.marker
        if "" in extras if marker is None else any(marker.evaluate({"extra": extra}) for extra in extras):
            yield asked
