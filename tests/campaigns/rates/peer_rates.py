"""Boards a second that other people's exact solvers solve, on the same boards as ours and in the same run.

python -m tests.campaigns peers --json

Rates are medians of several turns, each of which continues on the boards where the turn before ended.
"""

import statistics
from collections.abc import Callable

import msgspec
import numpy as np

from lakewright.core_jax.support import cores
from lakewright.core_jax.types import Board, Status
from lakewright.experiments.bench import measurement
from lakewright.experiments.bench.lake import BenchCase, describe_machine, list_cases, measure_solver
from lakewright.experiments.bench.measurement import Bench, Measurement, format_table
from tests.campaigns.rates.peers import PEERS, Crew, Peer, PeerAnswers, PlainBoard, find_version, start_crew

PEER_BOARDS, PEER_SECONDS = 4096, 0.5  # boards for a peer, and how long it solves at a time

__all__ = ["format_table", "measure_rates"]


def measure_rates(only: int | None = None, on_progress: Callable[[], object] = lambda: None) -> Bench:
    """Our solver and every peer on the boards of each case.

    only: boards with this number of agents, or None for all.
    """
    found: list[Measurement] = []
    with start_crew(1) as one, start_crew(cores()) as all_cores:
        for size, agents in list_cases(only):
            case, ours = measure_solver(size, agents)
            theirs = [_measure_peer(peer, case, one, all_cores) for peer in PEERS]
            found += [_compare_with_peers(ours, theirs), *theirs]
            on_progress()
    versions = {peer.package: version for peer in PEERS if (version := find_version(peer))}
    return Bench(describe_machine() | versions, found)


def _measure_peer(peer: Peer, case: BenchCase, one: Crew, all_cores: Crew) -> Measurement:
    """A peer on the boards of a case, those with a solution only if it does not end on the others."""
    row = Measurement(work="solve", size=case.size, agents=case.agents, solver=peer.name)
    if find_version(peer) is None:
        return msgspec.structs.replace(row, note="not installed: pip install lakewright[bench]")
    status = np.asarray(case.labels.status)
    places = np.flatnonzero((status == Status.SOLVABLE) | peer.decides)[:PEER_BOARDS]
    boards = _plain_boards(case.boards, places)
    runs: list[list[PeerAnswers]] = []
    # Each continues where the one before ended, so that slow peers see many boards too.
    for _ in range(measurement.REPEATS):
        runs.append(all_cores.solve(peer, boards, sum(len(run[0].costs) for run in runs), PEER_SECONDS))
    alone = [one.solve(peer, boards, 0, PEER_SECONDS)[0].rate for _ in range(measurement.REPEATS)]
    rates = [sum(answers.rate for answers in run) for run in runs]
    given = [
        (cost, places[(answers.first + i) % len(places)])
        for run in runs
        for answers in run
        for i, cost in enumerate(answers.costs)
    ]
    both = [(cost, place) for cost, place in given if cost is not None and status[place] != Status.UNDECIDED]
    return msgspec.structs.replace(
        row,
        boards=len(places),
        given="all" if peer.decides else "solvable",
        rate=statistics.median(rates),
        rates=rates,
        one_core=statistics.median(alone),
        undecided=sum(cost is None for cost, _ in given) / len(given),
        differing=sum(cost != int(case.labels.sum_of_costs[place]) for cost, place in both),
    )


def _plain_boards(boards: Board, places: np.ndarray) -> list[PlainBoard]:
    fields = (np.asarray(field)[places].tolist() for field in (boards.holes, boards.starts, boards.goals))
    return [
        PlainBoard(holes, [tuple(cell) for cell in starts], [tuple(cell) for cell in goals])
        for holes, starts, goals in zip(*fields, strict=True)
    ]


def _compare_with_peers(ours: Measurement, theirs: list[Measurement]) -> Measurement:
    rates = [row.rate for row in theirs if row.rate is not None]
    if not rates or ours.rate is None:
        return ours
    return msgspec.structs.replace(ours, times_fastest_peer=ours.rate / max(rates))
