"""Digests of what the core makes on JAX's device: drawn boards, their labels, solved boards, verdicts, random play.

    JAX_PLATFORMS=cuda python docs/hosts/gpu/board_digests.py >gpu.json
    JAX_PLATFORMS=cpu python docs/hosts/gpu/board_digests.py >cpu.json
    cmp gpu.json cpu.json

Keys, seeds and sizes are the same ones each time, so that both files must be equal. `--share 0.01` takes fewer boards,
`--part 0 4` every fourth case, from the first one on, `--sizes 5` cases of some sizes. `--pretend` has a processor do
what a GPU would. The device and the seconds of each case are printed on standard error.
"""

import argparse
import dataclasses
import hashlib
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.generator import device_maps, draw_free, generate, generator, uniform_boards
from lakewright.core_jax.lake import EnvParams, reset, step, verify
from lakewright.core_jax.lake.label_batches import pad_moves, round_horizon
from lakewright.core_jax.solver import solve, solver
from lakewright.core_jax.statistics import board_features
from lakewright.core_jax.support import parallel
from lakewright.core_jax.types import PAD, Failure

CASES = (  # size, agents, boards
    *((4, 1, 4096), (5, 2, 8192), (6, 2, 8192), (8, 2, 8192), (10, 2, 8192), (6, 3, 4096)),
    *((10, 3, 4096), (6, 4, 2048), (8, 4, 2048), (8, 5, 1024), (10, 5, 1024), (6, 6, 256)),
)
HOLE_RATIO, WAIT_RATIO = 0.3, 0.5
PLAYS, STEPS, LIMIT = 1024, 64, 50


def pretend_gpu(block: int, *others) -> None:
    """Has the core, and other modules, do on a processor what they do on a GPU, in blocks of a few boards."""
    for module in (board_features, generator, solver, uniform_boards, *others):
        module.on_gpu = lambda: not parallel._on_host.get()
    device_maps.BLOCKS = (block,)  # type: ignore[assignment]
    board_features.LARGE = uniform_boards.LARGE = block


def digest(tree) -> str:
    """SHA-256 of all arrays of a tree, with their names, types and shapes."""
    found = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.ascontiguousarray(leaf)
        found.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def play(boards, key) -> tuple:
    """All observations, states and rewards of random play on boards with a solution."""
    params = EnvParams(jax.tree.map(jnp.asarray, boards), LIMIT)
    reset_key, key = jax.random.split(key)
    observation, state = jax.vmap(reset, (0, None))(jax.random.split(reset_key, PLAYS), params)

    @jax.jit
    def one(state, key):
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, state.positions.shape[:2], 0, 5)
        keys = jax.random.split(step_key, PLAYS)
        seen, state, *rest = jax.vmap(step, (0, 0, 0, None))(keys, state, action, params)
        return state, (seen, state.positions, rest)

    return observation, jax.lax.scan(one, state, jax.random.split(key, STEPS))[1]


def case(size: int, agents: int, count: int) -> dict[str, str | int]:
    """The digests of one size and number of agents."""
    config = EnvConfig.single(size, agents, HOLE_RATIO, WAIT_RATIO if agents > 1 else 0.0)
    drawn = generate(config, 7, count)[size]
    free = draw_free(size, agents, holes_of(size, agents, HOLE_RATIO), seed=11, first=0, count=count)
    labels = solve(free, makespan_plans=agents == 2)
    moves = np.asarray(drawn.labels.moves)
    longest = int((moves != PAD).any(axis=(0, 1)).sum())
    plans = pad_moves(moves[..., :longest], round_horizon(longest))  # padded as if drawn with no failed attempts
    verdicts = verify(drawn.boards, drawn.labels.moves)
    found: dict[str, str | int] = {"size": size, "agents": agents, "boards": count}
    return found | {
        "drawn": digest((drawn.boards, drawn.index)),
        "labels of drawn": digest(dataclasses.replace(drawn.labels, moves=plans)),
        "free": digest(free),
        "labels of free": digest(labels),
        "labels of free by a GPU's solver": digest(solve(free)),  # plans of optimal makespan are a processor's
        "verdicts": digest(verdicts),
        "play": digest(play(drawn.boards, jax.random.key(3))),
        "valid": int((np.asarray(verdicts.failure) == Failure.NONE).sum()),
        "solvable": int(np.asarray(labels.solvable).sum()),
    }


def main() -> None:
    """Prints a JSON object for each case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1))
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--pretend", action="store_true")
    given = parser.parse_args()
    if given.pretend:
        pretend_gpu(64)
    print(jax.devices()[0].device_kind, jax.__version__, file=sys.stderr)
    for size, agents, boards in CASES[given.part[0] :: given.part[1]]:
        if given.sizes and size not in given.sizes:
            continue
        begun = time.perf_counter()
        print(json.dumps(case(size, agents, max(32, round(boards * given.share)))), flush=True)
        print(f"{size}x{size}, {agents} agents: {time.perf_counter() - begun:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
