"""Rates of the core on JAX's device, and its labels against those of the processor's solver on the same boards.

    python docs/hosts/gpu/core_rates.py OUT                     # on a GPU host, within ten minutes
    JAX_PLATFORMS=cpu python docs/hosts/gpu/core_rates.py OUT --pretend --sizes 5 --share 0.0001

Writes OUT/core_rates.json after each part, and prints a line for each figure, at last each goal with what was measured.
`--share` takes fewer boards. `--pretend` has a processor do what a GPU would, to try this script. `--parts` names the
parts: machine, solve, generate, statistics, sweep, teams, labels, digests, cores, tests. What matters most comes first,
and a part begins only while there is time. The lake's packages must be importable as `lakewright`; the tests need
pytest and hypothesis.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from board_digests import pretend_gpu

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import draw_free, generate
from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import label_teams_on_device, solve
from lakewright.core_jax.solver.accelerator import device_solver, packing, sizes, team_labels
from lakewright.core_jax.statistics import features, measure_draws
from lakewright.core_jax.support import keep_compiled_programs, on_all_cores, seconds_by_phase
from lakewright.core_jax.types import Board, Failure
from lakewright.experiments.boards.sweep import SweepSpec, shards
from lakewright.experiments.jobs.executors.choice import AT_ONCE

PAIRS = ((8, 1 << 20), (5, 1 << 20), (10, 1 << 18), (12, 1 << 18))  # sizes of boards for two agents, boards in a block
TEAMS = ((5, 1 << 15), (8, 1 << 14), (10, 1 << 14), (12, 1 << 13))
FLOODED = 1 << 18  # boards for three agents
RATIO, BLOCKS = 0.3, 8
LABELS = ("status", "certificate", "makespan", "sum_of_costs", "wait_required", "moves")
HOUSE = Path(__file__).parents[3]
TESTS = [f"tests/core_jax/{room}" for room in ("solver", "generator", "statistics", "lake", "test_platforms.py")]
GOALS = (  # part, figure, millions of boards a second that are asked for on an H200
    ("solve", "8x8 on the device", 20), ("solve", "8x8 from and to the host", 10), ("solve", "5x5 on the device", 30),
    ("solve", "10x10 on the device", 8), ("teams", "8x8, three agents, by floods", 0.3), ("generate", "8x8", 2),
    ("statistics", "8x8 a sweep's boards", 10), ("sweep", "8x8 with files", 10),
)  # fmt: skip
BEGUN = time.monotonic()


class Report:
    """What was found so far, written to a file after every part."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.file, self.seconds, self.share = folder / "core_rates.json", given.seconds, given.share
        self.sizes, self.pretends, share = given.sizes, given.pretend, given.share
        self.found: dict[str, Any] = {"share": share, "parts": {}}

    def chosen(self, sizes: tuple[tuple[int, int], ...]) -> list[tuple[int, int]]:
        return [(size, block) for size, block in sizes if size in self.sizes]

    def left(self) -> float:
        return self.seconds - (time.monotonic() - BEGUN)

    def count(self, boards: int) -> int:
        return max(64, int(boards * self.share))

    def say(self, part: str, name: str, figure: Any) -> None:
        self.found["parts"].setdefault(part, {})[name] = figure
        print(f"[{time.monotonic() - BEGUN:6.1f}] {part}, {name}: {json.dumps(figure)}", flush=True)
        self.write()

    def write(self) -> None:
        beside = self.file.with_suffix(".tmp")
        beside.write_text(json.dumps(self.found, indent=1, default=str))
        beside.replace(self.file)


def draw(size: int, agents: int, count: int, seed: int = 1) -> Board:
    """Random boards, solvable or not."""
    return draw_free(size, agents, holes_of(size, agents, RATIO), seed, 0, count)


def rate(function: Callable[[], object], boards: int, times: int = 3) -> dict[str, float]:
    """Boards a second of some calls after a first one: the median, and the seconds of the first."""
    seconds = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        jax.block_until_ready(function())
        seconds.append(time.perf_counter() - begun)
    median = statistics.median(seconds[1:])
    return {"boards_a_second": round(boards / median), "boards": boards, "first_call_s": round(seconds[0], 2)}


def split_time(function: Callable[[], object], boards: int) -> dict[str, float]:
    """Nanoseconds a board, by phase."""
    return {phase: round(1e9 * seconds / boards, 2) for phase, seconds in seconds_by_phase(function).items()}


def measure_machine(report: Report) -> None:
    """The device, its versions, and copies there and back."""
    device = jax.local_devices()[0]
    report.say("machine", "device", f"{device.device_kind}, {len(jax.local_devices())}, jax {jax.__version__}")
    report.say("machine", "cores", len(os.sched_getaffinity(0)))
    report.say("machine", "memory", device.memory_stats() and device.memory_stats().get("bytes_limit"))
    host = np.random.default_rng(0).integers(0, 255, 1 << (27 if report.share == 1 else 16), np.uint8)
    there = jax.device_put(host)
    for name, copy in (
        ("to_device", lambda: jax.device_put(host)),
        ("to_host", lambda: np.asarray(there + np.uint8(1))),
    ):
        seconds = []
        for _ in range(4):
            begun = time.perf_counter()
            jax.block_until_ready(copy())
            seconds.append(time.perf_counter() - begun)
        report.say("machine", f"{name}_GB_s", round(host.nbytes / min(seconds[1:]) / 1e9, 2))


def check_labels(report: Report) -> None:
    """Labels and plans of the same boards from both solvers; the processor's work in a process of its own."""
    for size, block in report.chosen(PAIRS):
        if report.left() < 40:
            return
        count = report.count(block)  # as many as `measure_solve` takes, so that its programs are compiled here
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            given = [sys.executable, __file__, folder, "--expected", str(size), str(count)]
            other = subprocess.Popen(given, env=os.environ | {"JAX_PLATFORMS": "cpu"})
            boards = draw(size, 2, count, seed=3)
            labels = device_solver.solve_on_device(boards)
            if other.wait(timeout=max(report.left(), 10)):
                raise RuntimeError("the processor's solver failed")
            seconds = time.perf_counter() - begun
            expected = np.load(Path(folder) / "expected.npz")
            for name, drawn in (("holes", boards.holes), ("starts", boards.starts), ("goals", boards.goals)):
                assert (expected[name] == np.asarray(drawn)).all(), f"other {name} were drawn"
            wrong = {}
            for name in LABELS:
                one, two = np.asarray(getattr(labels, name)), expected[name]
                same = one.shape == two.shape and (one == two).reshape(count, -1).all(axis=1)
                wrong[name] = int(count - np.sum(same))
        failure = np.asarray(verify(boards, labels.moves).failure)
        wrong["plans"] = int(((failure == Failure.NONE) != np.asarray(labels.solvable)).sum())
        flooded = float((np.asarray(labels.certificate) == 2).mean())
        report.say("labels", f"{size}x{size}", {"wrong": wrong, "of": count, "flooded": flooded, "seconds": seconds})


def write_expected(folder: Path, size: int, count: int) -> None:
    """The labels of the processor's solver, for `check_labels`."""
    boards = draw(size, 2, count, seed=3)
    labels = solve(boards)
    np.savez(
        folder / "expected.npz",
        **{name: np.asarray(getattr(boards, name)) for name in ("holes", "starts", "goals")},
        **{name: np.asarray(getattr(labels, name)) for name in LABELS},
    )


def measure_solve(report: Report) -> None:
    """Boards of two agents a second: on the device, from and to the host's arrays, and by phase."""
    for size, block in report.chosen(PAIRS):
        if report.left() < 30:
            return
        chosen = sizes.choose_sizes(size, BLOCKS * report.count(block), sizes.memory_per_thread())
        boards = jax.tree.map(np.asarray, draw(size, 2, chosen.block))
        # All as the solver itself does it: a program is compiled for the device that `on_all_cores` chooses.
        unload = partial(packing.unload_boards, size)
        free, cells = jax.block_until_ready(on_all_cores(unload, [boards])[0])

        def label(_: int, chosen=chosen, free=free, cells=cells, size=size) -> object:
            labels = device_solver.label_cells(size, chosen, free, cells)
            return jax.block_until_ready((labels.cost, labels.moves))

        name = f"{size}x{size}"
        report.say("solve", f"{name} sizes", vars(chosen))
        report.say("solve", f"{name} one thread on the device", rate(partial(on_all_cores, label, [0]), chosen.block))
        again = BLOCKS * chosen.block
        report.say("solve", f"{name} on the device", rate(partial(on_all_cores, label, range(BLOCKS)), again, 2))
        phases = split_time(partial(on_all_cores, label, [0]), chosen.block)
        report.say("solve", f"{name} ns a board by phase", phases)
        many = jax.tree.map(lambda field: np.concatenate([field] * BLOCKS), boards)
        report.say("solve", f"{name} from and to the host", rate(partial(solve, many), again, 2))
        report.say("solve", f"{name} peak", peak())


def peak() -> float | None:
    """The most memory of the device that was in use, in GB."""
    stated = jax.local_devices()[0].memory_stats()
    return round(stated["peak_bytes_in_use"] / 1e9, 2) if stated else None


def measure_generate(report: Report) -> None:
    """Boards that `generate` makes a second, three quarters of them with a forced wait."""
    for size, _ in report.chosen(PAIRS):
        if report.left() < 20:
            return
        count = report.count(1 << 19)
        config = EnvConfig.single(size, 2, RATIO, 0.75)
        report.say("generate", f"{size}x{size}", rate(partial(generate, config, 7, count), count, 1))


def measure_statistics(report: Report) -> None:
    """A sweep's boards a second without its files: drawn, labelled and measured; and each part alone."""
    for size, _ in report.chosen(PAIRS):
        if report.left() < 20:
            return
        count = report.count(1 << 18)
        name = f"{size}x{size}"
        holes = holes_of(size, 2, RATIO)
        report.say(
            "statistics",
            f"{name} a sweep's boards",
            rate(partial(measure_draws, size, holes, 1, 0, 4 * count), 4 * count, 2),
        )
        report.say("statistics", f"{name} draw", rate(partial(draw, size, 2, count), count, 1))
        boards = draw(size, 2, count)
        labels = solve(boards)
        report.say("statistics", f"{name} measure", rate(partial(features, boards, labels), count, 1))


def measure_sweep(report: Report) -> None:
    """A sweep's boards a second with its files, as many shards at a time as the command makes."""
    for size, _ in report.chosen(PAIRS)[:1]:
        count, number = report.count(1 << 18), 3 * AT_ONCE
        spec = SweepSpec(sizes=(size,), agents=(2,), hole_ratios=(RATIO,), boards=number * count, shard=count, seed=5)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(AT_ONCE) as pool:
            make = partial(shards.make_shard, Path(folder), spec)
            make(spec.shards()[0])
            found = rate(
                partial(lambda pool, *given: list(pool.map(*given)), pool, make, spec.shards()), number * count, 1
            )
        report.say("sweep", f"{size}x{size} with files", found)


def measure_teams(report: Report) -> None:
    """Boards of three agents a second: by the host's search, with plans, and labels alone by the device's floods."""
    for size, block in report.chosen(TEAMS):
        if report.left() < 25:
            return
        boards = draw(size, 3, report.count(block))
        name = f"{size}x{size}, three agents"
        report.say("teams", name, rate(partial(solve, boards), len(boards.holes), 1))
        if size > team_labels.LARGEST or report.left() < 60:
            continue
        many = draw(size, 3, report.count(FLOODED))
        report.say("teams", f"{name}, by floods", rate(partial(label_teams_on_device, many), len(many.holes), 2))
        phases = split_time(partial(label_teams_on_device, many), len(many.holes))
        report.say("teams", f"{name}, ns a board by phase", phases)
        found, expected = label_teams_on_device(boards), solve(boards)
        wrong = {
            label: int((np.asarray(getattr(found, label)) != np.asarray(getattr(expected, label))).sum())
            for label in ("status", "makespan", "sum_of_costs", "wait_required")
        }
        report.say("teams", f"{name}, labels", {"wrong": wrong, "of": len(boards.holes)})


def run_tests(report: Report) -> None:
    """The tests of the core on this device, as far as there is time."""
    limit = min(report.left() - 5, 75)
    if limit < 20:
        return
    platform = "cuda" if jax.local_devices()[0].platform == "gpu" else "cpu"
    tests = ["tests/core_jax/test_errors.py"] if report.pretends else TESTS
    given = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "--continue-on-collection-errors"]
    more = {"TEST_PLATFORM": platform, "XLA_FLAGS": "", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.2"}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        child = subprocess.Popen(given, env=os.environ | more, cwd=HOUSE, stdout=output, stderr=subprocess.STDOUT)
        try:
            code: int | str = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            child.terminate()
            code = f"ended after {limit:.0f} s"
            child.wait(timeout=10)
        output.seek(0)
        report.say("tests", "core", {"code": code, "output": output.read()[-3000:]})


def check_digests(report: Report) -> None:
    """Digests of boards, labels, verdicts and play of one to six agents, on the device and on the processor."""
    script = Path(__file__).with_name("board_digests.py")
    given, found = [sys.executable, script, "--share", str(0.125 * report.share)], []
    pretend = []
    if report.pretends:
        given, pretend = [*given, "--sizes", *map(str, report.sizes)], ["--pretend"]
    children = [
        subprocess.Popen([*given, *words], stdout=subprocess.PIPE, text=True, env=os.environ | more)
        for words, more in ((pretend, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.15"}), ([], {"JAX_PLATFORMS": "cpu"}))
    ]
    for child in children:
        try:
            found.append(child.communicate(timeout=max(report.left() - 10, 1))[0].splitlines())
        except subprocess.TimeoutExpired:
            child.kill()
            found.append(child.communicate()[0].splitlines())
    both = list(zip(*found, strict=False))
    report.say("digests", "cases", {"compared": len(both), "different": [one for one, other in both if one != other]})


def measure_cores(report: Report) -> None:
    """Boards of 8x8 that the processor solves a second, by threads of a process, and by a process for each core."""
    there = sorted(os.sched_getaffinity(0))
    for count in (1, 2, 4, 8, 16):
        if count > len(there) or report.left() < 45:
            return
        for name, groups in (("threads", [there[:count]]), ("processes", [[core] for core in there[:count]])):
            boards = max(2048, report.count(1 << 16) * count // len(groups))
            given = [sys.executable, __file__, "unused", "--scale", str(boards)]
            how: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            on_cpu = os.environ | {"JAX_PLATFORMS": "cpu"}
            children = [subprocess.Popen([*given, *map(str, group)], env=on_cpu, **how) for group in groups]
            for child in children:  # all have compiled before the first begins
                assert child.stdout.readline() == "ready\n", f"a process of {count} by {name} ended"
            for child in children:
                child.stdin.write("begin\n")
                child.stdin.flush()
            rates = [float(child.communicate()[0] or "nan") for child in children]
            report.say("cores", f"{count} by {name}", {"boards_a_second": round(sum(rates))})


def print_rate(boards: int, cores: list[int]) -> None:
    """Prints the boards a second of this process on some cores, after a line on standard input, for `measure_cores`."""
    os.sched_setaffinity(0, cores)
    drawn = draw(8, 2, boards)
    solve(jax.tree.map(lambda field: field[:2048], drawn))
    print("ready", flush=True)
    sys.stdin.readline()
    print(rate(partial(solve, drawn), boards, 2)["boards_a_second"])


def compare_goals(report: Report) -> None:
    """Each goal with what was measured."""
    for part, name, asked in GOALS:
        found = report.found["parts"].get(part, {}).get(name)
        made = found["boards_a_second"] / 1e6 if found else None
        report.say("goals", f"{part}, {name}", {"asked": asked, "measured": made, "met": bool(made and made >= asked)})


PARTS: dict[str, Callable[[Report], None]] = {
    "machine": measure_machine, "solve": measure_solve, "generate": measure_generate, "statistics": measure_statistics,
    "sweep": measure_sweep, "teams": measure_teams, "labels": check_labels, "digests": check_digests,
    "cores": measure_cores, "tests": run_tests,
}  # fmt: skip


def end_in_time(report: Report) -> None:
    """Ends this process when its time is over; what was found is in the file."""
    while report.left() > -5:
        time.sleep(0.5)
    compare_goals(report)
    print("the time is over", flush=True)
    os._exit(0)


def main() -> None:
    """Runs the parts; one that fails is noted, and the next begins."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=560.0)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", type=int, nargs="*", default=[size for size, _ in PAIRS])
    parser.add_argument("--pretend", action="store_true")
    parser.add_argument("--expected", type=int, nargs=2)
    parser.add_argument("--scale", nargs="*", default=None)
    given = parser.parse_args()
    keep_compiled_programs()
    if given.scale:
        boards, *cores = map(int, given.scale)
        print_rate(boards, cores)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    if given.expected:
        write_expected(given.out, *given.expected)
        return
    if given.pretend:
        pretend_gpu(64, shards)
    report = Report(given.out, given)
    threading.Thread(target=end_in_time, args=(report,), daemon=True).start()
    for name in given.parts:
        begun = time.monotonic()
        try:
            PARTS[name](report)
        except Exception:
            report.say(name, "error", traceback.format_exc()[-2000:])
        report.say(name, "seconds", round(time.monotonic() - begun, 1))
    compare_goals(report)


if __name__ == "__main__":
    main()
