"""`lakewright doctor`: what it says of machines that were made up, and of this one as a user runs it."""

import dataclasses
import os
import re
import socket
import types

import msgspec
import pytest
import torch
from packaging.requirements import Requirement

from lakewright.experiments.cli import main
from lakewright.experiments.loop.host.doctor import Finding, diagnose, findings_table, misfits, needed_packages
from lakewright.experiments.loop.host.estimate import GB
from lakewright.experiments.loop.host.machine import (
    WEIGHTS_PORT,
    Accelerator,
    Machine,
    existing,
    installed_version,
    look_at_machine,
    wanted_ports,
)
from lakewright.experiments.loop.settings.run_settings import RunSettings, load_settings
from tests.support.processes.commands import HOUSE

H100 = Accelerator("H100", 80 * GB, free=79 * GB)
EIGHT = Machine(
    cores=96,
    memory=1000 * GB,
    disk=500 * GB,
    shared=64 * GB,
    accelerators=(H100,) * 8,
    driver="580.65",
    cuda="13.0",
    model="hub",
    cache="/home/someone/.cache",
)
THERE = {"vllm": "0.30.0", "aiohttp": "3.14.0", "deepspeed": "0.19.0", "tensorboard": "2.20.0"}


def version_of(package: str) -> str | None:
    """As on a host on which everything is installed."""
    return THERE.get(package) or installed_version(package)


def changes(settings: RunSettings, machine: Machine = EIGHT, **there: object) -> dict[str, Finding]:
    found = diagnose(settings, msgspec.structs.replace(machine, **there), version_of)
    return {one.question: one for one in found if one.change}


def qwen(*overrides: str) -> RunSettings:
    return load_settings("qwen3-4b", list(overrides))


def test_a_host_of_eight_large_gpus_needs_no_change():
    assert changes(qwen()) == {}
    assert findings_table(diagnose(qwen(), EIGHT, version_of)).endswith("\nnothing to change")


@dataclasses.dataclass(frozen=True)
class Lack:
    there: dict
    question: str
    found: str
    change: str
    overrides: tuple[str, ...] = ()


SERVER = ("grpo.host.vllm=server", "grpo.host.vllm_url=http://a:8000")
ADAPTER = ("launch.processes=1", "launch.config=single_gpu", "grpo.host.lora.rank=32")
LACKS = {
    "a build without CUDA": Lack({"cuda": None, "accelerators": ()}, "CUDA", "without CUDA", "of a build with CUDA"),
    "no driver": Lack(
        {"driver": None, "accelerators": ()}, "CUDA", "no driver is installed", "install NVIDIA's driver"
    ),
    "a driver too old": Lack({"accelerators": ()}, "CUDA", "driver 580.65", "a driver that serves CUDA 13.0"),
    "too few GPUs": Lack({"accelerators": (H100,) * 2}, "GPUs", "2 x H100, 8 needed", "launch.processes=2"),
    "small GPUs": Lack(
        {"accelerators": (Accelerator("A10", 24 * GB, 24 * GB),) * 8}, "GPU memory", "24.0 of 24.0 GB", "text.batch=24"
    ),
    "a GPU that something else uses": Lack(
        {"accelerators": (Accelerator("H100", 80 * GB, 9 * GB), *(H100,) * 7)},
        "GPU memory",
        "needs 41.1 GB, 9.0 of 80.0 GB",
        "end what else uses the GPU",
    ),
    "GPUs without bf16": Lack(
        {"accelerators": (Accelerator("V100", 80 * GB, 80 * GB, bf16=False),) * 8}, "bf16", "V100", "bf16=false"
    ),
    "a small share": Lack({}, "vLLM's share", "4.0 GB in each", "raise", ("grpo.host.vllm_memory=0.05",)),
    "little memory": Lack(
        {"memory": 60 * GB},
        "host memory",
        "60.0 GB, and loading the model in every process takes 64.4",
        "lower launch.processes",
    ),
    "a full disk": Lack({"disk": 30 * GB}, "disk", "30.0 GB free", "larger disk"),
    "a container's shared memory": Lack({"shared": 64_000_000}, "shared memory", "0.06 GB free", "--shm-size=8g"),
    "a taken port": Lack({"taken": (29500,)}, "ports", "29500 is taken", "name another port"),
    "no server": Lack({}, "vLLM server", "http://a:8000 does not answer", "trl vllm-serve", SERVER),
    "no model": Lack({"model": ""}, "model", "the hub cannot be reached", "hf download Qwen/Qwen3-4B"),
    "a read-only cache": Lack({"cache_writable": False}, "compiled programs", "cannot be written", "JAX_COMPILATION"),
    "no key": Lack({"askable": "teacher endpoint: no key; set KEY"}, "engineer", "no key", "set KEY"),
    "an engineer in bf16": Lack(
        {}, "engineer in bf16", "updates below 0.0001 are lost", "lora.rank=32", ("teacher=self_trained",)
    ),
    "bf16 alone": Lack({}, "precision", "updates of 1e-06 are lost", "zero2", ("launch.config=multi_gpu",)),
}


@pytest.mark.parametrize("name", LACKS)
def test_what_is_lacking_is_named_with_what_to_change(name):
    lack = LACKS[name]
    finding = changes(qwen(*lack.overrides), **lack.there)[lack.question]
    assert lack.found in finding.found
    assert lack.change in finding.change


def test_hosts_share_the_processes_and_their_server_must_answer():
    several = qwen(*SERVER, "launch.processes=16", 'launch.more=["--num_machines=2", "--main_process_port=29500"]')
    assert changes(several, server=True) == {}
    assert wanted_ports(several) == [29500, WEIGHTS_PORT]


def test_an_adapter_fits_on_one_gpu_of_80_gb():
    assert changes(qwen(*ADAPTER), accelerators=(H100,)) == {}
    assert changes(qwen(*ADAPTER, "teacher=self_trained"), accelerators=(H100,)) == {}


def test_only_the_gpus_that_the_run_uses_must_be_free():
    taken = Accelerator("H100", 80 * GB, free=GB)
    assert changes(qwen(*ADAPTER), accelerators=(H100, taken)) == {}
    assert "end what" in changes(qwen(*ADAPTER), accelerators=(taken, H100))["GPU memory"].change


@pytest.fixture
def gpu(monkeypatch):
    """A GPU, as torch describes it, on which there is not even room for a context."""

    def refuse(device):
        raise torch.AcceleratorError("CUDA error: out of memory")

    properties = types.SimpleNamespace(name="H100", total_memory=80 * GB, major=9)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch.cuda, "mem_get_info", refuse)
    return monkeypatch


def test_the_free_memory_of_a_gpu_is_looked_up(gpu, tmp_path):
    settings = load_settings("cpu", ["device=auto"])
    assert look_at_machine(settings, tmp_path).accelerators == (Accelerator("H100", 80 * GB, 0),)
    gpu.setattr(torch.cuda, "mem_get_info", lambda device: (9 * GB, 80 * GB))
    assert look_at_machine(settings, tmp_path).accelerators == (Accelerator("H100", 80 * GB, 9 * GB),)


def test_a_run_that_may_choose_is_checked_for_the_gpu_if_there_is_one(gpu, capsys):
    found = {one.question for one in diagnose(load_settings("cpu", ["device=auto"]), EIGHT, version_of)}
    assert "GPU memory" in found
    assert "cores" not in found
    printed = []
    for device in ("auto", "cuda", "cpu"):
        assert main(["estimate", "--preset", "cpu", f"device={device}"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "1 process on a GPU" in printed[0]
    assert "1 process on the CPU" in printed[2]


def test_a_run_that_may_choose_is_told_that_it_does_not_use_the_gpu():
    settings = load_settings("cpu", ["device=auto"])
    told = changes(settings, accelerators=())["CUDA"]
    assert "driver 580.65, torch with CUDA 13.0" in told.found
    assert "device=cpu" in told.change
    assert "CUDA" not in changes(settings, accelerators=(), driver=None)


def test_packages_that_are_missing_or_of_another_version_are_named():
    def versions(package: str) -> str | None:
        return {"vllm": "0.32.0", "deepspeed": None, "transformers": "5.19.0"}.get(package, version_of(package))

    lines = list(misfits(qwen(), versions))
    assert lines[0].startswith("transformers is 5.19.0: pip install 'transformers")
    assert lines[1].startswith("vllm is 0.32.0: pip install 'vllm"), "TRL names the versions that it talks to"
    assert lines[2] == "deepspeed is not installed: pip install 'deepspeed'"
    assert len(lines) == 3


def test_the_version_of_vllm_that_the_docs_exclude_is_not_recommended():
    page = " ".join((HOUSE / "docs" / "gpu-hosts.md").read_text().split())
    assert "vLLM 0.31 needs an older transformers" in page
    for there in (None, "0.31.0"):
        [line] = misfits(qwen(), lambda package, there=there: there if package == "vllm" else version_of(package))
        [advised] = re.findall("pip install '(.+)'", line)
        limits = Requirement(advised).specifier
        assert limits.contains("0.30.0")
        assert not limits.contains("0.31.0")


IN_WORDS = ("codec=text", "start=some/model")


@pytest.mark.parametrize(
    ("overrides", "needed"),
    [
        (("teacher=self_trained", *IN_WORDS), True),
        (("teacher=base", *IN_WORDS), True),
        (("teacher=matched_random", "teacher_options.match=self", *IN_WORDS), True),
        (("teacher=difficulty", *IN_WORDS), False),
        (("teacher=self_trained",), False),
    ],
)
def test_a_checkpoint_that_answers_in_json_needs_llguidance(overrides, needed):
    settings = load_settings("cpu", [*overrides, *(["warmup.steps=0"] if "codec=text" in overrides else [])])
    assert settings.answers_in_json == needed
    assert ("llguidance" in {asked.name for asked in needed_packages(settings)}) == needed


def test_a_start_that_is_a_gguf_file_needs_gguf(tmp_path):
    file = tmp_path / "tiny.gguf"
    file.touch()
    settings = load_settings("cpu", ["codec=text", "warmup.steps=0", f"start={file}", "teacher=difficulty"])
    lines = list(misfits(settings, lambda name: None if name == "gguf" else version_of(name)))
    assert lines == ["gguf is not installed: pip install 'gguf>=0.17'"]
    assert not [line for line in misfits(load_settings("cpu", []), lambda _: None) if line.startswith("gguf")]


def test_the_packages_of_an_extra_are_needed_where_the_settings_use_it():
    names = {asked.name for asked in needed_packages(load_settings("cpu", []))}
    assert {"torch", "trl", "jax"} <= names
    assert not {"vllm", "peft", "deepspeed", "pytest"} & names
    reported = qwen(*ADAPTER, "grpo.host.report_to=tensorboard")
    assert {"vllm", "peft", "tensorboard"} <= {asked.name for asked in needed_packages(reported)}


def test_a_run_on_the_cpu_is_checked_for_memory_and_cores():
    settings = load_settings("cpu", ["launch.processes=4", "grpo.prompts=32"])
    small = Machine(cores=2, memory=4 * GB, disk=GB, shared=GB)
    found = changes(settings, small)
    assert "4.0 GB available" in found["memory"].found
    assert found["cores"].change == "set launch.processes=2"
    assert changes(load_settings("cpu", []), small) == {}


def test_a_run_of_another_environment_is_checked_like_any_other():
    environment = f"environment={HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
    small = Machine(cores=2, memory=4 * GB, disk=GB, shared=GB)
    assert changes(load_settings("text", [environment]), small) == {}
    assert "3.0 GB available" in changes(load_settings("text", [environment]), small, memory=3 * GB)["memory"].found


def test_bf16_weights_lose_the_updates_that_are_said_to_be_lost():
    weight = torch.nn.Parameter(torch.full((64,), 0.02, dtype=torch.bfloat16))
    before, optimizer = weight.detach().clone(), torch.optim.AdamW([weight], lr=1e-6, weight_decay=0.0)
    for _ in range(20):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    assert torch.equal(weight, before), "twenty steps in one direction leave every weight as it was"


def test_a_port_that_something_listens_on_is_seen(tmp_path):
    with socket.create_server(("localhost", 0)) as listening:
        port = listening.getsockname()[1]
        machine = look_at_machine(qwen(f'launch.more=["--main_process_port={port}"]'), tmp_path / "not" / "there")
    assert machine.taken == (port,)
    assert machine.model == "", "there is no hub here"
    assert machine.cores == len(os.sched_getaffinity(0))
    assert existing(tmp_path / "not" / "there") == tmp_path


def test_this_machine_has_what_the_demo_needs_and_says_so_as_json(capsys, tmp_path):
    assert main(["doctor", "--out", str(tmp_path), "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=list[Finding])
    assert {one.question for one in found} >= {"packages", "memory", "cores", "disk", "compiled programs"}
    assert not any(one.change for one in found)


def test_a_machine_without_gpus_is_reported_plainly_and_the_command_ends_with_two(capsys, tmp_path):
    assert main(["doctor", "--preset", "qwen3-4b", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert any(line.startswith("change  GPUs               0 here, 8 needed: use a host with") for line in lines)
    assert lines[-1].endswith("to change before this run")
    assert printed.err == ""
