"""Lower bounds on the slack of a team from those of its parts."""

from lakewright.core_jax.solver.teams.host_search.workspace import MOVING, Numbers, Work
from lakewright.core_jax.support.compiled_code import compiled_within


@compiled_within
def bound_by_matchings(work: Work, excess: Numbers) -> int:
    """The lower bound that matchings give from the excess of each pair, int [P]."""
    best = 0
    for row in range(work.matchings):
        doubled = 0
        for pair in range(work.pairs):
            doubled += work.matching[row, pair] * excess[pair]
        best = max(best, doubled)
    return (best + 1) // 2


@compiled_within
def count_members(subset: int) -> int:
    """How many agents a set holds."""
    count = 0
    while subset:
        subset &= subset - 1
        count += 1
    return count


@compiled_within
def combine_bounds(work: Work, mode: int) -> None:
    """Raises the bounds of all sets of three and more agents to what those of their parts give.

    A set costs no less than two parts of it, and, as each agent is in all but one of the sets without one agent, no
    less than the sum of those divided by the number of the others.
    """
    lower = work.lower[mode]
    for subset in range(1 << work.agents):
        count = count_members(subset)
        if count < 3:
            continue
        best = lower[subset]
        part = (subset - 1) & subset
        while part:
            best = max(best, lower[part] + lower[subset ^ part])
            part = (part - 1) & subset
        total = 0
        for agent in range(work.agents):
            if subset >> agent & 1:
                total += lower[subset ^ (1 << agent)]
        best = max(best, (total + count - 2) // (count - 1))
        if mode == MOVING and best & 1:  # every detour without a wait is even
            best += 1
        lower[subset] = best


@compiled_within
def set_allowances(work: Work, mode: int, members: int, bound: int) -> None:
    """How late sets of one or two members may be: the others need the rest of the bound."""
    for agent in range(work.agents):
        if members >> agent & 1:
            one = 1 << agent
            work.allowed[one] = bound - work.lower[mode, members ^ one]
            for other in range(agent):
                if members >> other & 1:
                    both = one | 1 << other
                    work.allowed[both] = bound - work.lower[mode, members ^ both]
