"""Boards drawn in a separate process while a model is trained on them, so that training does not wait."""

import itertools
import multiprocessing
import queue
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Batch, generate_in_turn
from lakewright.core_jax.rows import symmetric_fingerprint
from lakewright.core_jax.support import end_with_starter
from lakewright.core_jax.types import Board
from lakewright.policy.play import TaskStream
from lakewright.policy.tasks import BoardTask

CHUNK = 1024  # boards of one config after another
AT_ONCE = 8  # chunks of a config drawn together
AHEAD = 8  # chunks that wait to be taken
PATIENCE = 1.0  # seconds between two checks whether the process that draws is alive


def with_hole_ratios(config: EnvConfig, hole_ratios: Sequence[float]) -> tuple[EnvConfig, ...]:
    """Return the config with each of the hole ratios at all of its sizes; unchanged if not given."""

    def all_at(ratio: float) -> EnvConfig:
        replaced = {size: msgspec.structs.replace(cell, hole_ratio=ratio) for size, cell in config.sizes.items()}
        return config.replace(replaced)

    return tuple(all_at(ratio) for ratio in hole_ratios) or (config,)


class BoardTaskStream(TaskStream[BoardTask]):
    """An endless stream of tasks: chunks of each of `configs` alternate, and no index is repeated.

    Configs, teams, seed and the place in the stream determine a board, so that a stream opened again at `first`
    continues with the same boards. Boards are drawn by a process that ends with this one, even if this one is killed.
    Use the stream in a `with` statement.

    Args:
        configs: the boards' configs.
        seed: seed of the boards.
        first: the place of the first task.
        chunk: boards of one config in sequence, CHUNK by default.
        recorded: collect all tasks in `taken`.
        teams: numbers of agents that alternate within a chunk, instead of the one of its config.
        excluded: the `symmetric_fingerprint` of each board that must not be used; another board of its chunk takes its
            place, and `replaced` counts those among the tasks taken.
    """

    def __init__(
        self,
        configs: Sequence[EnvConfig],
        seed: int,
        first: int = 0,
        chunk: int | None = None,
        recorded: bool = False,
        teams: Sequence[int] = (),
        excluded: Collection[bytes] = (),
    ) -> None:
        chunk = chunk or CHUNK
        self.agents = max(teams or (config.agents for config in configs))
        mixed = [with_teams(config, teams) for config in configs]
        self.replaced = 0
        self.waited = 0.0  # seconds spent waiting for boards, except for the first chunk
        spawned = multiprocessing.get_context("spawn")  # a fork would copy the locks of JAX and torch
        self._chunks: Any = spawned.Queue(AHEAD)
        cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        given = (self._chunks, mixed, seed, first // chunk, chunk, cache, frozenset(excluded))
        self._process = spawned.Process(target=_serve_chunks, args=given, daemon=True)
        self._process.start()
        self._recorded, self.taken = recorded, list[BoardTask]()
        self._left = self._next_chunk()[first % chunk :]
        self.waited = 0.0

    def take(self, count: int) -> list[BoardTask]:
        """Return the next tasks. Raises InputError if boards cannot be drawn."""
        while len(self._left) < count:
            self._left += self._next_chunk()
        some, self._left = self._left[:count], self._left[count:]
        self.replaced += sum(replaced for _, replaced in some)
        tasks = [task for task, _ in some]
        self.taken += tasks if self._recorded else []
        return tasks

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._chunks.close()

    def __enter__(self) -> "BoardTaskStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next_chunk(self) -> list[tuple[BoardTask, bool]]:
        begun = time.monotonic()
        while True:
            try:
                chunk = self._chunks.get(timeout=PATIENCE)
                break
            except queue.Empty:
                if not self._process.is_alive():
                    raise InputError("the process that draws boards has died; run the command again") from None
        self.waited += time.monotonic() - begun
        if isinstance(chunk, str):
            raise InputError(chunk)
        return [(BoardTask(Board(*board), *labels), replaced) for board, labels, replaced in chunk]


def tasks_of(*made: dict[int, Batch]) -> list[BoardTask]:
    """Return the tasks of generated boards, in the order of their indices."""
    batches = [batch for part in made for batch in part.values()]
    places = np.argsort(np.concatenate([batch.index for batch in batches]))
    tasks = [task for batch in batches for task in _unpack_batch(batch)]
    return [tasks[place] for place in places]


def _unpack_batch(batch: Batch) -> list[BoardTask]:
    boards, labels = batch.boards, batch.labels
    numbers = (labels.makespan.tolist(), labels.sum_of_costs.tolist(), labels.wait_required.tolist())
    arrays = map(np.asarray, (boards.holes, boards.starts, boards.goals, labels.moves))
    return [
        BoardTask(Board(*board), makespan, cost, wait, moves[:, : max(makespan, cost)], batch.hole_ratio)
        for *board, moves, makespan, cost, wait in zip(*arrays, *numbers, strict=True)
    ]


def _serve_chunks(
    chunks: Any,
    mixed: Sequence[Sequence[EnvConfig]],
    seed: int,
    number: int,
    chunk: int,
    cache: str | None,
    excluded: frozenset[bytes],
) -> None:
    """Put chunk after chunk into the queue, which is bounded and makes this process wait.

    Args:
        chunks: the queue.
        mixed: the configs of each chunk, one for each number of agents.
        seed: seed of the boards.
        number: the first chunk.
        chunk: boards in a chunk.
        cache: the folder of compiled programs.
        excluded: fingerprints of boards that must not be used.
    """
    end_with_starter()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_compilation_cache_dir", cache)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    try:
        for tasks in _draw_chunks(mixed, seed, number, chunk):
            chunks.put([(*_pack_task(task), replaced) for task, replaced in _replace_excluded(tasks, excluded)])
    except InputError as error:
        chunks.put(str(error))


def _draw_chunks(mixed: Sequence[Sequence[EnvConfig]], seed: int, number: int, chunk: int) -> Iterator[list[BoardTask]]:
    """Yield the chunks `number`, `number` + 1 and so on: for one config after another.

    A few boards of many kinds take almost as long as many, so that after the first chunk of a config AT_ONCE are drawn
    together.
    """
    drawn: list[deque[list[BoardTask]]] = [deque() for _ in mixed]
    for place in itertools.count(number):
        turn, which = divmod(place, len(mixed))
        if not drawn[which]:
            count = AT_ONCE if place >= number + len(mixed) else 1
            tasks = tasks_of(*generate_in_turn(mixed[which], seed, count * chunk, first=turn * chunk))
            drawn[which].extend(tasks[part * chunk : (part + 1) * chunk] for part in range(count))
        yield drawn[which].popleft()


def _replace_excluded(tasks: list[BoardTask], excluded: frozenset[bytes]) -> list[tuple[BoardTask, bool]]:
    """Return the tasks, each excluded one replaced by the last allowed one before it, and which ones are replaced.

    Raises InputError if all are excluded.
    """
    if not excluded:
        return [(task, False) for task in tasks]
    allowed = [symmetric_fingerprint(task.board) not in excluded for task in tasks]
    if not any(allowed):
        raise InputError(f"all of {len(tasks)} boards drawn are excluded; draw other boards, or exclude fewer")
    # Before the first allowed task, the last one of the chunk takes the place.
    last = tasks[max(place for place, is_allowed in enumerate(allowed) if is_allowed)]
    found = []
    for task, is_allowed in zip(tasks, allowed, strict=True):
        last = task if is_allowed else last
        found.append((last, not is_allowed))
    return found


def _pack_task(task: BoardTask) -> tuple:
    board = (task.board.holes, task.board.starts, task.board.goals)
    return board, (task.makespan, task.sum_of_costs, task.wait_required, task.moves, task.hole_ratio)
