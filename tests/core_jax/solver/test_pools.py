"""Threads of the solver: one pool at a time, so that no more boards are solved at once than memory was counted for."""

import threading
from concurrent.futures import ThreadPoolExecutor

from lakewright.core_jax.solver import SolverStage, solve_with_stages
from lakewright.core_jax.solver.teams import team_solver
from lakewright.core_jax.solver.teams.host_search import host_search
from lakewright.core_jax.support import parallel
from tests.support.boards.sample_boards import mixed_boards


def test_no_pool_of_threads_begins_inside_another_whatever_stage_decides(monkeypatch):
    begun: list[str] = []

    class Watched(ThreadPoolExecutor):
        def __init__(self, workers: int) -> None:
            begun.append(threading.current_thread().name)
            super().__init__(workers)

    monkeypatch.setattr(parallel, "ThreadPoolExecutor", Watched)
    monkeypatch.setattr(team_solver, "AT_ONCE", 8)
    monkeypatch.setattr(host_search, "NODES", 1)  # so that the search leaves boards to the formulas
    monkeypatch.setenv("NPROC", "3")
    solved = solve_with_stages(mixed_boards(0, 24, 3, 4))
    assert SolverStage.FORMULAS in solved.stage.tolist(), "no board reached the last pool"
    assert begun
    assert set(begun) == {threading.main_thread().name}, "a pool inside a pool: memory is counted for one"
