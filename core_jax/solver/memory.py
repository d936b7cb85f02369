"""The memory that solving takes, estimated beforehand."""

import functools

import psutil

from lakewright.core_jax.config import MAX_AGENTS
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake.bitboards import BOARDS_PER_WORD, cell_count
from lakewright.core_jax.solver.two_agents.joint_floods import cost_bits
from lakewright.core_jax.support.threads import cores

FLOOD_WORDS = 4  # words of a block that is flooded at once
PAIR_BYTES = 200  # of the clauses of a formula, for each pair of agents, cell and step
SEARCH_BYTES, SEARCH_CELLS = 1 << 22, 256  # of the search, without its table; the most cells in that


@functools.cache
def check_memory(size: int, agents: int) -> None:
    """Raises InputError with the estimate if boards of that kind cannot be solved in this machine's memory."""
    if agents > MAX_AGENTS:
        raise InputError(f"agents is {agents}: at most {MAX_AGENTS} agents are supported; leave these boards out")
    needed, there = memory_needed(size, agents), psutil.virtual_memory().total
    if needed > there:
        raise InputError(
            f"{size}x{size} boards with {agents} agents take about {needed / 2**30:.1f} GiB to solve, and this "
            f"machine has {there / 2**30:.1f} GiB; use smaller boards or fewer agents"
        )


def memory_needed(size: int, agents: int) -> int:
    """About how many bytes solving takes at once: tables of joint states outweigh everything else."""
    cells = cell_count(size)
    if agents == 1:
        return cells * BOARDS_PER_WORD
    if agents == 2:
        return 4 * FLOOD_WORDS * (2 * cost_bits(size) + 24) * cells * (cells + size + 1)
    # All joint states of three agents may be visited, a byte each, to prove that no plan exists.
    joint = size**6 if agents == 3 else 0
    pairs = agents * (agents - 1) // 2
    formula = size**2 * 2 * size * (8 * agents + PAIR_BYTES * pairs)
    tables = SEARCH_BYTES + 6 * pairs * min(size**2, SEARCH_CELLS) ** 2
    return cores() * (joint + formula + tables)
