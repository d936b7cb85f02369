"""A search for what each pair of agents of a board needs together, made on demand and stored in a table.

The table holds, for each pair and each two cells of it, its *excess* (by how much the two together exceed their single
distances) or its makespan. It is found by iterative deepening (Korf 1985) over slack: beyond the step itself, a move
closer costs no slack, a wait one and a move away two. Slack never rises and steps without slack come closer, so it runs
into no cycle. If no plan fits bound r, the optimum is at least r + 1. If a plan fits it, the bound left at each state
along the plan is exact: less was refuted where the plan begins.

An entry is uint16: the board's tag in 7 bits, one bit that says whether it is exact, and its value in 8.
"""

import numpy as np

from lakewright.core_jax.solver.teams.host_search.board_cells import need_distance
from lakewright.core_jax.solver.teams.host_search.workspace import COSTS, HIGHEST, MAKESPAN, MOVING, NO_WAY, Table, Work
from lakewright.core_jax.support.compiled_code import compiled_within

TAGS = 127
EXACT = 256
HOME, DEEPER, REFUTED = range(3)


@compiled_within
def pair_tag(work: Work) -> int:
    """The upper bits of this board's entries; see `clear_tags`."""
    return (work.board % TAGS + 1) << 9


@compiled_within
def clear_tags(work: Work, table: Table) -> None:
    """Clears the table where tags begin again, so that no other board's entry has this tag; call it for every board."""
    if work.board % TAGS == 0:
        table[:] = 0


@compiled_within
def pair_entry(entry: int, tag: int) -> int:
    """A lower bound, plus EXACT if it is more than that; 0 for an entry of another board."""
    known = np.int64(entry) - tag
    return known if 0 <= known < 2 * EXACT else 0


@compiled_within
def bound_pair(work: Work, table: Table, mode: int, pair: int, one: int, other: int, limit: int) -> int:
    """The excess of a pair, or its makespan, from two cells; or a lower bound above `limit` if it exceeds that.

    Args:
        work: the board, and the stack of the search for two.
        table: the known bounds of pairs, uint16 [3, P, F, F].
        mode: the quantity to find: MOVING, COSTS or MAKESPAN.
        pair: the pair's number.
        one: the cell of its first agent.
        other: the cell of its second agent.
        limit: values up to this are found exactly.
    """
    tag = pair_tag(work)
    entry = pair_entry(table[mode, pair, one, other], tag)
    least = entry & 255
    if entry >= EXACT or least > limit:
        return least
    if mode == MAKESPAN:
        first, second = work.first[pair], work.second[pair]
        alone = max(work.distance[first, 0, one], work.distance[second, 0, other])
        least = max(least, np.int64(alone))
        together = pair_entry(table[COSTS, pair, one, other], tag)
        if least == 0 or together == EXACT:  # shortest paths that do not meet
            table[mode, pair, one, other] = tag + EXACT + least
            return least
    if mode == MOVING and least & 1:  # every detour without a wait is even
        least += 1
    # Every bound below `least` is refuted, so the first that holds is the optimum.
    while least <= min(limit, HIGHEST):
        if search_pair(work, table, mode, pair, one, other, least):
            return least
        least += 2 if mode == MOVING else 1
    return least


@compiled_within
def search_pair(work: Work, table: Table, mode: int, pair: int, one: int, other: int, left: int) -> bool:
    """Return True if two agents get home within a bound; the table learns from it.

    Args:
        work, table, mode, pair, one, other: see `bound_pair`.
        left: the most slack, or steps for MAKESPAN.
    """
    if mode != MAKESPAN:
        need_distance(work, work.first[pair], 1 << work.second[pair])
        need_distance(work, work.second[pair], 1 << work.first[pair])
    tag = pair_tag(work)
    step = 0
    _open_state(work, mode, pair, 0, one, other, left)
    # Level s of the stack is a state with `duo_left[s]` of the bound left; of its joint moves the first `duo_tried[s]`
    # are refuted, or lead to level s + 1.
    while step >= 0:
        outcome = _advance_state(work, table, mode, pair, step, tag)
        if outcome == DEEPER:
            step += 1
        elif outcome == HOME:
            _record_path(work, table, mode, pair, step, tag)
            return True
        else:
            # All joint moves are refuted with this much left: so the state needs one more at least.
            table[mode, pair, work.duo_cell[step, 0], work.duo_cell[step, 1]] = tag + min(
                work.duo_left[step] + 1, HIGHEST + 1
            )
            step -= 1
    return False


@compiled_within
def _open_state(work: Work, mode: int, pair: int, step: int, one: int, other: int, left: int) -> None:
    """Begins a state at `step`, with the moves of both agents by rising price."""
    work.duo_cell[step, 0] = one
    work.duo_cell[step, 1] = other
    work.duo_left[step] = left
    work.duo_tried[step] = 0
    for side in range(2):
        agent = work.first[pair] if side == 0 else work.second[pair]
        cell = one if side == 0 else other
        distance, neighbour = work.distance[agent, 0], work.neighbour[cell]
        target, price = work.duo_target[step, side], work.duo_price[step, side]
        here = np.int64(distance[cell])
        count = 0
        # By price in slack: closer 0, a wait 1, away 2. Only moves that the agent could afford if it were alone, and no
        # waits for MOVING.
        for move in range(4):
            there = neighbour[move]
            if there >= 0 and distance[there] < here:
                target[count] = there
                price[count] = 0
                count += 1
        if (here < left) if mode == MAKESPAN else (mode == COSTS and left >= 1):
            target[count] = cell
            price[count] = 1
            count += 1
        if (here + 1 < left) if mode == MAKESPAN else left >= 2:
            for move in range(4):
                there = neighbour[move]
                if there >= 0 and distance[there] > here:
                    target[count] = there
                    price[count] = 2
                    count += 1
        work.duo_options[step, side] = count


@compiled_within
def _can_park(work: Work, pair: int, one: int, other: int, left: int) -> bool:
    """Return True if one of the two is home and the other gets there around it, with the slack that is left."""
    first, second = work.first[pair], work.second[pair]
    if one == work.goal[first]:
        around = work.distance[second, 1 << first, other]
        if around < NO_WAY and np.int64(around) - np.int64(work.distance[second, 0, other]) <= left:
            return True
    if other == work.goal[second]:
        around = work.distance[first, 1 << second, one]
        if around < NO_WAY and np.int64(around) - np.int64(work.distance[first, 0, one]) <= left:
            return True
    return False


@compiled_within
def _advance_state(work: Work, table: Table, mode: int, pair: int, step: int, tag: int) -> int:
    """Makes the next joint move of a state: HOME, DEEPER with the next state opened, or REFUTED if all are done."""
    one, other = work.duo_cell[step, 0], work.duo_cell[step, 1]
    left, tried = np.int64(work.duo_left[step]), np.int64(work.duo_tried[step])
    first, second = work.first[pair], work.second[pair]
    if tried == 0 and mode != MAKESPAN and _can_park(work, pair, one, other, left):
        return HOME
    options = np.int64(work.duo_options[step, 1])
    while tried < work.duo_options[step, 0] * options:
        of_one, of_other = tried // options, tried % options
        tried += 1
        x, y = work.duo_target[step, 0, of_one], work.duo_target[step, 1, of_other]
        if x == y or (x == other and y == one):
            continue  # they would meet or swap
        rest = left - 1
        if mode == MAKESPAN:
            if x == work.goal[first] and y == work.goal[second]:
                return HOME
            if work.distance[first, 0, x] > rest or work.distance[second, 0, y] > rest:
                continue
        else:
            rest = left - work.duo_price[step, 0, of_one] - work.duo_price[step, 1, of_other]
            if rest < 0:
                continue
        entry = pair_entry(table[mode, pair, x, y], tag)
        if (entry & 255) > rest:
            continue  # refuted before
        if entry >= EXACT:
            return HOME
        work.duo_tried[step] = tried
        _open_state(work, mode, pair, step + 1, x, y, rest)
        return DEEPER
    return REFUTED


@compiled_within
def _record_path(work: Work, table: Table, mode: int, pair: int, steps: int, tag: int) -> None:
    """Stores what is left along the path found, which is exact because less was refuted where it begins."""
    moving_too = mode == COSTS and work.duo_left[0] == 0  # without slack no agent waits
    for step in range(steps + 1):
        one, other = work.duo_cell[step, 0], work.duo_cell[step, 1]
        table[mode, pair, one, other] = tag + EXACT + work.duo_left[step]
        if moving_too:
            table[MOVING, pair, one, other] = tag + EXACT
