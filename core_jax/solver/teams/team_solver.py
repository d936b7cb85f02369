"""Optimal plans and certificates for three and more agents, on batches of one map size.

A search in compiled code (`core_jax.solver.teams.host_search`) decides most boards within microseconds. What it leaves
open is solved board by board, with the bounds that it found (`core_jax.solver.teams.hard_boards`). Three agents are
always decided; four or more are left undecided if a board has taken its budget of conflicts.
"""

import dataclasses
import enum
import functools
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from lakewright.core_jax.lake.label_batches import join_labels, take_rows, with_rows
from lakewright.core_jax.solver.teams.formulas.optimal_plans import FormulaAnswer
from lakewright.core_jax.solver.teams.formulas.puzzle import make_puzzle
from lakewright.core_jax.solver.teams.hard_boards import Decided, HardBoard
from lakewright.core_jax.solver.teams.host_search.host_search import Searched, search_batch
from lakewright.core_jax.solver.teams.joint_states import list_steps
from lakewright.core_jax.support.compiled_code import compile_all
from lakewright.core_jax.support.parallel import on_all_cores
from lakewright.core_jax.types import PAD, Board, Certificate, Labels, Status

BUDGET = 1 << 18  # conflicts of the satisfiability solver, after which a board of four or more agents stays undecided
AT_ONCE = 64  # boards that a core takes at a time


class SolverStage(enum.IntEnum):
    """The stage that decided a board, the last of several. NOTHING: it is undecided."""

    NOTHING = 0
    CERTIFICATE = 1
    FLOOD = 2
    SEARCH = 3
    FORMULAS = 4
    JOINT_STATES = 5


@dataclasses.dataclass(frozen=True)
class SolvedBoards:
    """Labels of B boards and their cost: stage int [B], a `SolverStage`; conflicts int [B], of the formulas."""

    labels: Labels
    stage: np.ndarray
    conflicts: np.ndarray


@functools.cache
def start_compiling() -> Future[None]:
    """Search and formulas, compiled in a thread of its own once this is called."""
    thread = ThreadPoolExecutor(1)
    done = thread.submit(compile_all)
    thread.shutdown(wait=False)
    return done


def solve_teams(
    boards: Board, makespan_plans: bool = False, budget: int = BUDGET, wanted: np.ndarray | None = None
) -> SolvedBoards:
    """Labels B boards of three or more agents, numpy arrays throughout.

    Args:
        boards: with leading axis B.
        makespan_plans: whether to return `makespan_moves` too.
        budget: conflicts of all formulas of a board of four or more agents, after which it is undecided.
        wanted: bool [B], or None: a solvable board whose forced wait differs has a makespan of -1 and no plan.
    """
    boards = jax.tree.map(np.asarray, boards)
    start_compiling().result()
    count = len(boards.starts)
    parts = -(-count // AT_ONCE)
    rows = [np.arange(part, count, parts) for part in range(parts)]  # boards come sorted: each part gets hard ones

    def of_part(part: np.ndarray) -> SolvedBoards:
        return _solve_part(take_rows(boards, part), makespan_plans, budget, None if wanted is None else wanted[part])

    # Parts in turn and not in runs, so that no core gets all the hard boards; the order is restored afterwards.
    found = on_all_cores(of_part, rows)
    order = np.argsort(np.concatenate(rows))
    labels = take_rows(join_labels([part.labels for part in found]), order)
    stage, conflicts = (
        np.concatenate([getattr(part, name) for part in found])[order] for name in ("stage", "conflicts")
    )
    return SolvedBoards(labels, stage, conflicts)


def _solve_part(boards: Board, makespan_plans: bool, budget: int, wanted: np.ndarray | None) -> SolvedBoards:
    """`solve_teams` in this thread; some formulas are written while other threads search."""
    searched = search_batch(boards, wanted)
    found = _read_search(searched, makespan_plans, wanted)
    left = np.flatnonzero(found.stage == SolverStage.NOTHING)
    if not len(left):
        return found
    hard = [_solve_hard_board(boards, searched, row, budget) for row in left.tolist()]
    labels = join_labels([_label_hard_board(decided, makespan_plans) for decided in hard])
    found.stage[left] = [_name_stage(decided) for decided in hard]
    found.conflicts[left] = [decided.conflicts for decided in hard]
    return dataclasses.replace(found, labels=with_rows(found.labels, left, labels))


def _read_search(searched: Searched, makespan_plans: bool, wanted: np.ndarray | None) -> SolvedBoards:
    """The boards that the search decided; the others are undecided."""
    answers = searched.answers
    solvable = answers["solvable"] & answers["cost_known"] & answers["wait_known"]
    # A board whose forced wait is not wanted is settled by that alone: its makespan was not looked for.
    missed = np.zeros(len(answers), bool) if wanted is None else solvable & (answers["wait"] != wanted)
    solvable &= answers["makespan_known"] | missed
    planned = solvable & ~missed
    decided = solvable | ~answers["solvable"]
    # Bounds that are met prove a label by themselves; otherwise the search has ruled out everything below it.
    kinds = np.where(answers["by_bounds"], Certificate.BOUND, Certificate.SEARCH)
    kinds = np.where(answers["solvable"], kinds, Certificate.FLOOD)  # of two agents
    status = np.where(solvable, Status.SOLVABLE, np.where(decided, Status.UNSOLVABLE, Status.UNDECIDED))
    labels: dict[str, Any] = {
        "status": status.astype(np.int32),
        "certificate": np.where(decided, kinds, Certificate.NONE).astype(np.int32),
        "makespan": np.where(planned, answers["makespan"], -1).astype(np.int32),
        "sum_of_costs": np.where(solvable, answers["alone"] + answers["slack"], -1).astype(np.int32),
        "wait_required": answers["wait"] & solvable,
        "moves": _blank_others(planned, searched.moves),
        "makespan_moves": _blank_others(planned, searched.fastest) if makespan_plans else None,
    }
    stage = np.where(decided, SolverStage.SEARCH, SolverStage.NOTHING)
    return SolvedBoards(Labels(**labels), stage, np.zeros(len(stage), int))


def _blank_others(rows: np.ndarray, moves: np.ndarray) -> np.ndarray:
    return np.where(rows[:, None, None], moves, PAD).astype(np.int8)


def _solve_hard_board(boards: Board, searched: Searched, row: int, budget: int) -> Decided:
    """The result for a board that the search left open, beginning with the bounds and plans that the search found."""
    answer, agents = searched.answers[row], boards.starts.shape[1]
    bounds = answer["excess"][: agents * (agents - 1) // 2], answer["others"][:agents]
    holes, *ends = (np.asarray(field[row]) for field in (boards.holes, boards.starts, boards.goals))
    starts, goals = (cells @ np.array([len(holes), 1]) for cells in ends)
    puzzle = make_puzzle(list_steps(holes), starts, goals, *bounds)
    cost, makespan = int(puzzle.alone.sum() + answer["slack"]), int(answer["makespan"])
    # What the search proved is not proved again: a known plan is passed on as the answer, a known bound as the start.
    cheapest = fastest = None
    if answer["cost_known"] and answer["wait_known"]:
        cheapest = FormulaAnswer(searched.moves[row], cost, bool(answer["wait"]))
    if answer["makespan_known"]:
        fastest = FormulaAnswer(searched.fastest[row], makespan)
    return HardBoard(puzzle, budget).decide(cheapest or cost, fastest or makespan)


def _label_hard_board(decided: Decided, makespan_plans: bool) -> Labels:
    """The labels of one hard board, a batch of one."""
    status = {True: Status.SOLVABLE, False: Status.UNSOLVABLE, None: Status.UNDECIDED}[decided.solvable]
    certificate = {True: Certificate.SEARCH, False: Certificate.FLOOD, None: Certificate.NONE}[decided.solvable]
    nothing = FormulaAnswer(np.zeros((decided.agents, 0), np.int8), -1)
    cheapest, fastest = (
        answer if decided.solvable and answer is not None else nothing for answer in (decided.cheapest, decided.fastest)
    )
    labels: dict[str, Any] = {
        "status": np.array([status], np.int32),
        "certificate": np.array([certificate], np.int32),
        "makespan": np.array([fastest.bound], np.int32),
        "sum_of_costs": np.array([cheapest.bound], np.int32),
        "wait_required": np.array([cheapest.waits]),
        "moves": np.asarray(cheapest.moves)[None],
        "makespan_moves": np.asarray(fastest.moves)[None] if makespan_plans else None,
    }
    return Labels(**labels)


def _name_stage(decided: Decided) -> SolverStage:
    if decided.solvable is None:
        return SolverStage.NOTHING
    return SolverStage.JOINT_STATES if decided.flooded else SolverStage.FORMULAS
