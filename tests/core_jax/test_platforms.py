"""Every program of the core is lowered for GPUs and TPUs too: nothing in them needs a CPU."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from lakewright.core_jax import solver
from lakewright.core_jax.generator import attempts, device_attempts, uniform_boards
from lakewright.core_jax.lake import EnvParams, environment, verification
from lakewright.core_jax.solver.accelerator import plan_walks, shortest_paths, team_floods
from lakewright.core_jax.solver.accelerator.makespan_floods import flood_for_makespans
from lakewright.core_jax.solver.single_agent.certificate import certify_boards
from lakewright.core_jax.solver.single_agent.distances import measure_distances
from lakewright.core_jax.solver.two_agents.joint_floods import CostTable
from lakewright.core_jax.solver.two_agents.plan_extraction import extract_cheapest_plans, extract_fastest_plans
from lakewright.core_jax.statistics import board_features
from lakewright.core_jax.support import make_streams
from lakewright.core_jax.types import Board
from tests.support.boards.sample_boards import mixed_boards
from tests.support.deep import keep_quick

SIZE, COUNT, HORIZON = 4, 128, 16


@functools.cache
def boards() -> Board:
    return mixed_boards(0, COUNT, SIZE)


@functools.cache
def tables() -> CostTable:
    """The shapes of cost tables of the boards."""
    return jax.eval_shape(jitted(solver.flood_boards), ~boards().holes, boards().goals)


def jitted(function):
    """What `jax.export` takes."""
    return getattr(function, "jitted", function)


def lanes() -> tuple:
    wait, index = np.zeros(COUNT, bool), np.arange(COUNT, dtype=np.uint32)
    return np.int32(2), make_streams([(0, 0), (0, 1)]), wait, index, index


def distance() -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((COUNT, 2, SIZE, SIZE), jnp.int16)


def plans() -> np.ndarray:
    return np.zeros((COUNT, 2, HORIZON), np.int8)


def params() -> EnvParams:
    return EnvParams(jax.tree.map(jnp.asarray, boards()), 8)


def played(key, params):
    first, second = jax.random.split(key)
    _, state = environment.reset(first, params)
    return environment.step(second, state, jnp.zeros(2, jnp.int8), params)


def free_cells(ends: int = 4) -> tuple[tuple, np.ndarray]:
    return (np.zeros(COUNT, np.uint32),), np.zeros((ends, COUNT), np.int32)


def flooded(ends: int = 4) -> tuple:
    return *free_cells(ends), np.arange(32, dtype=np.int32), np.int32(0)


def stream() -> device_attempts.Stream:
    holes, keys, wait, index, _ = lanes()
    return device_attempts.Stream(holes, keys, wait, index, np.zeros(COUNT, np.int32))


PROGRAMS = {
    "distances": lambda: (measure_distances, boards()),
    "certificates": lambda: (certify_boards, HORIZON, boards(), distance()),
    "furthest": lambda: (solver.solver._find_furthest, distance()),
    "floods": lambda: (solver.flood_boards, ~boards().holes, boards().goals),
    "floods that end early": lambda: (solver.flood_boards, ~boards().holes, boards().goals, boards().starts),
    "optima": lambda: (solver.solver._read_optima, tables(), boards()),
    "plans of optimal cost": lambda: (extract_cheapest_plans, HORIZON, tables(), boards().starts),
    "plans of optimal makespan": lambda: (
        extract_fastest_plans,
        HORIZON,
        jax.eval_shape(jitted(solver.solver._read_optima), tables(), boards())[1],
        ~boards().holes,
        boards().starts,
        boards().starts[:, 0, 0],
    ),
    "maps": lambda: (attempts._draw_maps, SIZE, *lanes()),
    "attempts on accelerators": lambda: (device_attempts.begin_boards, SIZE, 8, 16, 64, stream(), np.int32(4)),
    "starts": lambda: (
        attempts._pick_starts,
        tables(),
        ~boards().holes,
        boards().goals,
        np.zeros(COUNT, bool),
        np.zeros(COUNT, np.uint32),
    ),
    "whole boards": lambda: (attempts._draw_boards, SIZE, 3, *lanes()),
    "lots of free draws": lambda: (uniform_boards._draw_lots, SIZE, make_streams([(0, 0)])[0], np.arange(COUNT)),
    "free draws": lambda: (uniform_boards._place_boards, 2, *[np.zeros((COUNT, SIZE**2), np.uint32)] * 2, np.int32(2)),
    "verdicts": lambda: (verification._judge_plans, boards(), plans()),
    "statistics": lambda: (board_features.measure_block, boards()),
    "single paths on accelerators": lambda: (shortest_paths.measure_paths, SIZE, *free_cells()),
    "makespans on accelerators": lambda: (flood_for_makespans, SIZE, *flooded()),
    "sums of costs on accelerators": lambda: (plan_walks.flood_for_costs, SIZE, 16, *flooded()),
    "makespans of teams on accelerators": lambda: (team_floods.flood_for_team_makespans, SIZE, *flooded(6)),
    "sums of costs of teams on accelerators": lambda: (
        team_floods.flood_for_team_costs,
        SIZE,
        False,
        *free_cells(6),
        np.zeros(COUNT, np.int32),
        *flooded()[2:],
    ),
    "environment": lambda: (jax.jit(played), jax.random.key(0), params()),
}


@pytest.mark.parametrize("name", keep_quick(PROGRAMS, list(PROGRAMS)[::2]))
def test_a_program_is_lowered_for_every_platform(name):
    function, *given = PROGRAMS[name]()
    exported = export.export(jitted(function), platforms=["cpu", "cuda", "tpu"])(*given)
    assert exported.platforms == ("cpu", "cuda", "tpu"), name
