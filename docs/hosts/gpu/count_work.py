"""Counts the work that `generate` and `sweep` give an accelerator and its host, without one.

    python docs/hosts/gpu/count_work.py                  # programs called, copies to the host and their bytes
    pip install jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12      # of the version of jax that is installed
    python docs/hosts/gpu/count_work.py --kernels        # kernels of each program, compiled for an H100

The first form runs the code for accelerators on the processor, on a few blocks of boards. The second compiles by XLA
for a described GPU, which need not be there, and prints each loop of a program with its kernels, copies and rounds.
"""

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from board_digests import pretend_gpu
from jax.experimental import topologies

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import device_attempts, device_maps, draw_free, generate
from lakewright.core_jax.solver import solve_on_device
from lakewright.core_jax.solver.accelerator import plan_walks, team_floods
from lakewright.core_jax.statistics import measure_draws
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.programs import Program

RATIO, WAITS, SEED = 0.3, 0.75, 7
H100 = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000
l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
cuda_compute_capability { major: 9 minor: 0 } registers_per_core_limit: 65536 registers_per_block_limit: 65536 }
platform_name: "CUDA" dnn_version_info { major: 9 minor: 1 patch: 1 } device_description_str: "NVIDIA H100" """
NO_KERNELS = ("parameter", "constant", "get-tuple-element", "tuple", "bitcast", "iota", "while", "call")


class Counts:
    """Programs that are called, and arrays of JAX that the host reads, with their bytes, in the process so far."""

    def __init__(self) -> None:
        self.programs: Counter[str] = Counter()
        self.copies = self.bytes = 0
        kind = type(jnp.zeros(()))
        self._wrap(Program, "__call__", self._count_call)
        self._wrap(np, "asarray", self._count_copy)
        self._wrap(kind, "__int__", self._count_copy)
        self._wrap(kind, "__bool__", self._count_copy)

    @staticmethod
    def _wrap(owner: Any, name: str, count: Callable[..., None]) -> None:
        inner = getattr(owner, name)

        def call(*given: Any, **more: Any) -> Any:
            count(*given)
            return inner(*given, **more)

        setattr(owner, name, call)

    def _count_call(self, program: Any, *given: Any) -> None:
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given)):
            self.programs[program.__name__] += 1

    def _count_copy(self, array: Any, *_: Any) -> None:
        if isinstance(array, jax.Array):
            self.copies, self.bytes = self.copies + 1, self.bytes + array.nbytes

    def measure(self, name: str, function: Callable[[], object], boards: int, blocks: int) -> None:
        """Prints what a call takes, after a first one that compiles."""
        function()
        self.programs.clear()
        self.copies = self.bytes = 0
        function()
        called, copied = sum(self.programs.values()) / blocks, self.copies / blocks
        print(f"{name}: {called:.1f} programs and {copied:.1f} copies a block, {self.bytes / boards:.1f} bytes a board")
        print("   ", ", ".join(f"{program} {calls / blocks:g}" for program, calls in self.programs.items()))


def count_transfers(size: int, block: int, blocks: int) -> None:
    """What `generate`, a sweep's statistics and `solve_on_device` call and copy for some blocks of boards."""
    counts, boards, holes = Counts(), block * blocks, holes_of(size, 2, RATIO)
    pretend_gpu(block)
    config = EnvConfig.single(size, 2, RATIO, WAITS)
    counts.measure("generate", lambda: generate(config, SEED, boards), boards, blocks)
    counts.measure("sweep", lambda: measure_draws(size, holes, SEED, 0, boards), boards, blocks)
    drawn = draw_free(size, 2, holes, SEED, 0, boards)
    counts.measure("solve", lambda: solve_on_device(drawn), boards, blocks)


def count_kernels(size: int, block: int) -> None:
    """The kernels of the programs that draw boards and flood them, in each loop."""
    described = topologies.get_topology_desc("1x1x1", platform="cuda", target_config=H100, topology="1x1x1")
    there = jax.sharding.SingleDeviceSharding(described.devices[0])

    def shape(*sizes: int, kind: Any = jnp.int32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, kind, sharding=there)

    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))
    keys = jax.ShapeDtypeStruct(keys.shape, keys.dtype, sharding=there)
    depth, deeper = device_maps.flood_depth(size), device_maps.DEPTH_FACTOR
    stream = device_attempts.Stream(shape(), keys, shape(block, kind=bool), shape(block, kind=jnp.uint32), shape(block))
    first = (size, depth, deeper * depth, block)
    made = jax.eval_shape(
        lambda stream, spare: device_attempts.begin_boards.jitted(*first, stream, spare), stream, shape()
    )
    made = jax.tree.map(lambda field: shape(*field.shape, kind=field.dtype), made)
    boards = made.free, made.cells
    for program, static, given in (
        (device_attempts.begin_boards, first, (stream, shape())),
        (
            device_attempts.continue_boards,
            (size, deeper * depth, block // device_maps.RETRIED_PART),
            (stream, made, shape()),
        ),
        (device_attempts.find_makespans, (size, block, block // 8), (*boards, made.cost, shape())),
        (plan_walks.flood_for_costs, (size, 4 * size), (*boards, shape(block // 16), shape())),
        (
            team_floods.flood_for_team_costs,
            (size, True),
            (made.free, shape(6, block), shape(block), shape(block // 256), shape()),
        ),
    ):
        with stated_settings():
            compiled = program.jitted.lower(*static, *given).compile()
        print(f"{program.__name__}, {block} boards: {compiled.memory_analysis().temp_size_in_bytes / 2**20:.0f} MiB")
        for line in describe_loops(compiled.as_text()):
            print("   ", line)


def describe_loops(text: str) -> Iterator[str]:
    """The kernels of a compiled program and of its loops, one within another."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if begun := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\{$", line):
            lines = bodies.setdefault("" if begun[1] else begun[2], [])
        elif " = " in line:
            lines.append(line.split(" = ", 1)[1])

    def describe(body: str, title: str) -> Iterator[str]:
        kinds = Counter(kind[1] for line in bodies[body] if (kind := re.search(r"\s([a-z][a-z\-]*)\(", f" {line}")))
        large = sum(bool(re.match(r"\w+\[\d+(,\d+){2,4}\]\S* copy\(", line)) for line in bodies[body])
        number = sum(count for kind, count in kinds.items() if kind not in NO_KERNELS)
        yield f"{title}: {number} kernels" + (f", {large} of them copies of sets of states" if large else "")
        for line in bodies[body]:
            if loop := re.search(r"while\(.*body=%?([\w.\-]+)", line):
                rounds = re.search(r'known_trip_count":\{"n":"(\d+)"', line)
                name = f"loop of {rounds[1]}" if rounds else "loop until done"
                yield from (f"    {inner}" for inner in describe(loop[1], name))

    yield from describe("", "once")


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--block", type=int, default=None)
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--kernels", action="store_true")
    given = parser.parse_args()
    if given.kernels:
        tools = next(Path(folder) / "nvidia/cuda_nvcc" for folder in sys.path if (Path(folder) / "nvidia").is_dir())
        os.environ["PATH"] += f"{os.pathsep}{tools / 'bin'}"
        os.environ["XLA_FLAGS"] = f"--xla_gpu_cuda_data_dir={tools}"
        count_kernels(given.size, given.block or 1 << 16)
    else:
        count_transfers(given.size, given.block or 1 << 12, given.blocks)


if __name__ == "__main__":
    main()
