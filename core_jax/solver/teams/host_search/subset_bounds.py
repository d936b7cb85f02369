"""Lower bounds on the slack of a team from its parts' bounds."""

from lakewright.core_jax.solver.teams.host_search.workspace import MOVING, Numbers, Work
from lakewright.core_jax.support.compiled_code import compiled_within


@compiled_within
def bound_by_matchings(work: Work, excess: Numbers) -> int:
    """The lower bound on slack that matchings give from the excess of each pair, int [P]."""
    # Pairs that share no agent add up; the weights of a matching are doubled, see `list_matchings`.
    best = 0
    for row in range(work.matchings):
        doubled = 0
        for pair in range(work.pairs):
            doubled += work.matching[row, pair] * excess[pair]
        best = max(best, doubled)
    return (best + 1) // 2


@compiled_within
def count_members(subset: int) -> int:
    """Counts the agents of a set."""
    count = 0
    while subset:
        subset &= subset - 1
        count += 1
    return count


@compiled_within
def combine_bounds(work: Work, mode: int) -> None:
    """Raises the bounds of all sets of three and more agents to the values that follow from their parts.

    With L_S the bound of S, and |S| = k:

        L_S >= L_A + L_B  for every split of S into A and B
        L_S >= (sum of L_{S - i} over the agents i of S) / (k - 1)

    The second holds because each agent is in k - 1 of these sets.
    """
    lower = work.lower[mode]
    for subset in range(1 << work.agents):  # parts have smaller numbers, so they are done before
        count = count_members(subset)
        if count < 3:
            continue
        best = lower[subset]
        # All proper parts, by falling number.
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
    """Sets the lateness that sets of one or two members may have: the others need the rest of the bound.

    Args: work, mode, members, bound: see `search_team`.
    """
    for agent in range(work.agents):
        if members >> agent & 1:
            one = 1 << agent
            work.allowed[one] = bound - work.lower[mode, members ^ one]
            for other in range(agent):
                if members >> other & 1:
                    both = one | 1 << other
                    work.allowed[both] = bound - work.lower[mode, members ^ both]
