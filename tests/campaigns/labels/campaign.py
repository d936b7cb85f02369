"""Labels of fresh boards against other people's solvers, and how long each board takes.

python -m tests.campaigns labels 1000

Four boards in five are for two agents, the others for three to five; 3x3 to 10x10, crowded and sparse ones. Each label
is compared with w9-pathfinding's A* over joint states, which ends on boards without a plan too, or its CBS, and with
the labels of related boards. Every plan is replayed by the simulator and by code that shares nothing with it. Some
boards are solved alone, so that the tail of the times is seen. Batches are saved in a journal, so that a campaign that
was killed resumes.
"""

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import holds, holes_of
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.lake import verify
from lakewright.core_jax.solver import SolverStage, solve, solve_with_stages
from lakewright.core_jax.types import Board, BoardVerdict, Failure, Status
from lakewright.experiments.bench.measurement import format_markdown
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.executors.executor import Task, in_order
from lakewright.experiments.jobs.resumable.journal import LineJournal
from tests.campaigns.labels.independent_replay import Replay, replay_plans
from tests.campaigns.labels.related_boards import find_contradictions
from tests.campaigns.rates.peers import UNSOLVABLE, PlainBoard, w9_cbs, w9_joint_astar

TEAMS, SIZES, HOLE_RATIOS = (3, 4, 5), tuple(range(3, 11)), (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
EVERY = 2  # batches of which one is of a team
AT_ONCE, AT_ONCE_FOR_TWO = 64, 256  # boards of one kind
TIMED = 4  # of them, each alone
LONG = 0.05  # seconds; a board that takes longer is timed again, as a new program may have been compiled for it

HEAD = (
    *("agents", "hole ratio", "boards", "p50 ms", "p99 ms", "max ms"),
    *("undecided", "not compared", "wrong", "decided by"),
)
COUNTS = ("boards", "undecided", "uncompared", "wrong")


class Tried(msgspec.Struct, frozen=True):
    """The outcome of the `batch`th batch of `seed`: boards of a number of agents and a hole ratio.

    undecided: without labels; uncompared: if the other solvers took too long; wrong: labels that differ from its, or
    contradict those of related boards, or plans that do not replay at their optimum, or wait if no wait is required.
    seconds: of processor time, of some boards, each alone. decided: boards by the stage that decided them. examples: up
    to three wrong boards, drawn.
    """

    seed: int
    batch: int
    agents: int
    hole_ratio: float
    boards: int
    undecided: int
    uncompared: int
    wrong: int
    seconds: list[float]
    decided: dict[str, int]
    examples: list[str]


class Times(msgspec.Struct, frozen=True):
    """The time that boards took, each alone, in milliseconds of processor time; timed: how many of them."""

    p50: float
    p99: float
    max: float
    timed: int


class Total(msgspec.Struct, frozen=True):
    """The outcome of all boards of a number of agents and a hole ratio; fields as in `Tried`."""

    agents: int
    hole_ratio: float
    boards: int
    undecided: int
    uncompared: int
    wrong: int
    decided: dict[str, int]
    milliseconds_alone: Times
    examples: list[str]


class Kind(NamedTuple):
    """Boards of one size and number of agents."""

    agents: int
    size: int
    hole_ratio: float


class Batches(NamedTuple):
    """The boards that a campaign draws. sizes: theirs. of_teams, of_two: boards of one kind in a batch."""

    sizes: Sequence[int] = SIZES
    of_teams: int = AT_ONCE
    of_two: int = AT_ONCE_FOR_TWO


USUAL = Batches()


def check_labels(
    count: int,
    seed: int = 0,
    journal: Path | None = None,
    on_progress: Callable[[int], object] = lambda boards: None,
    agents: int | None = None,
    where: ExecutorChoice = HERE,
    batches: Batches = USUAL,
) -> list[Total]:
    """Draws `count` boards and tries them; `on_progress` is given the number of boards done.

    Args:
        journal: keeps each finished batch; those that it holds are not tried again.
        agents: only boards with this number.
        where: where batches are tried, and how many at a time; times are of boards beside as many others.
        batches: what is drawn.

    Raises ImportError if w9-pathfinding is not installed (`pip install lakewright[bench]`), InputError if the
    journal is of another seed.
    """
    with _journal_batches(journal, seed, agents) as (found, keep):
        done = sum(tried.boards for tried in found)
        on_progress(done)
        with where.open(Task("batch")) as executor:
            for tried in in_order(
                executor,
                partial(_try_batch, seed, agents, batches.sizes),
                _list_batches(len(found), count - done, agents, batches),
            ):
                found.append(tried)
                keep(tried)
                on_progress(tried.boards)
    alike: dict[tuple[int, float], list[Tried]] = defaultdict(list)
    for tried in found:
        alike[tried.agents, tried.hole_ratio].append(tried)
    return [_sum_up(parts) for _, parts in sorted(alike.items())]


@contextlib.contextmanager
def _journal_batches(
    path: Path | None, seed: int, agents: int | None
) -> Iterator[tuple[list[Tried], Callable[[Tried], object]]]:
    """The batches that are finished, and what keeps another."""
    if path is None:
        yield [], lambda tried: None
        return
    with LineJournal(path, Tried) as journal:
        found = list(journal)
        for place, tried in enumerate(found):
            if (tried.seed, tried.batch) != (seed, place):
                raise InputError(
                    f"{path}:{place + 1}: is batch {tried.batch} of seed {tried.seed}, not {place} of seed {seed}; "
                    "repeat that seed, or choose another file"
                )
            if agents not in (None, tried.agents):
                raise InputError(f"{path}:{place + 1}: has {tried.agents} agents, not {agents}; choose another file")
        yield found, journal.add


def format_totals(found: list[Total]) -> str:
    """The campaign as Markdown, and the wrong boards."""
    examples = [drawn for total in found for drawn in total.examples]
    return "\n".join([*format_markdown(HEAD, [_format_total(total) for total in found]), *examples])


def fresh_boards(random: np.random.Generator, kind: Kind, count: int) -> Board:
    """Boards with starts, goals and holes anywhere, as numpy arrays."""
    order = random.random((count, kind.size**2)).argsort(axis=1)
    cells = np.stack(np.divmod(order, kind.size), axis=-1).astype(np.int32)
    ends = 2 * kind.agents
    holes = np.zeros((count, kind.size, kind.size), bool)
    for hole in range(ends, ends + holes_of(kind.size, kind.agents, kind.hole_ratio)):
        holes[np.arange(count), cells[:, hole, 0], cells[:, hole, 1]] = True
    return Board(holes, cells[:, : kind.agents], cells[:, kind.agents : ends])  # type: ignore[arg-type]


def _list_batches(first: int, boards: int, only: int | None, batches: Batches) -> Iterator[tuple[int, int]]:
    """The number of each batch that is left, from `first` on, and how many boards it has."""
    for number in itertools.count(first):
        if boards <= 0:
            return
        some = min(batches.of_teams if _is_of_team(number, only) else batches.of_two, boards)
        yield number, some
        boards -= some


def _is_of_team(number: int, only: int | None) -> bool:
    return number % EVERY == 0 if only is None else only > 2


def _try_batch(seed: int, only: int | None, sizes: Sequence[int], batch: tuple[int, int]) -> Tried:
    """Draws the boards of a batch, all of one kind, and tries them; batches do not depend on one another."""
    number, count = batch
    random = np.random.default_rng((seed, number))
    team = _is_of_team(number, only)
    kinds = [
        Kind(agents, size, ratio)
        for agents in ((only,) if only else TEAMS if team else (2,))
        for size in sizes
        for ratio in HOLE_RATIOS
        if holds(size, agents)
    ]
    kind = kinds[random.integers(len(kinds))]
    boards = fresh_boards(random, kind, count)
    found = solve_with_stages(boards, makespan_plans=True)
    labels = found.labels
    theirs = [_solve_with_peers(plain) for plain in _plain_boards(boards)]
    undecided = np.asarray(labels.status) == Status.UNDECIDED
    missing = np.array([cost is None for cost in theirs])
    ours = np.where(np.asarray(labels.status) == Status.UNSOLVABLE, UNSOLVABLE, labels.sum_of_costs)
    differs = ~undecided & ~missing & (ours != np.array([cost if cost is not None else 0 for cost in theirs]))
    wrong = (
        differs
        | (np.asarray(labels.solvable) & ~_replay_labels(boards, labels))
        | find_contradictions(boards, labels, random)
    )
    return Tried(
        seed=seed,
        batch=number,
        agents=kind.agents,
        hole_ratio=kind.hole_ratio,
        boards=len(theirs),
        undecided=int(undecided.sum()),
        uncompared=int((missing & ~undecided).sum()),
        wrong=int(wrong.sum()),
        seconds=[_time_row(boards, row) for row in range(min(TIMED, len(theirs)))],
        decided={stage.name.lower(): int((found.stage == stage).sum()) for stage in SolverStage},
        examples=[str(plain) for plain, bad in zip(_plain_boards(boards), wrong, strict=True) if bad][:3],
    )


def _solve_with_peers(board: PlainBoard) -> int | None:
    """The optimum by A* over joint states; if A* takes too long, by CBS, which finds long plans of many agents
    sooner, but never that there is none. None if both take too long.
    """
    cost = w9_joint_astar(board)
    return w9_cbs(board) if cost is None else cost


def _time_row(boards: Board, row: int) -> float:
    """The processor time that one board takes alone; other work on the machine hardly matters to that."""
    alone = jax.tree.map(lambda field: field[row : row + 1], boards)
    taken: list[float] = []
    while not taken or (len(taken) == 1 and taken[0] > LONG):
        begun = time.process_time()
        solve(alone)
        taken.append(time.process_time() - begun)
    return min(taken)


def _replay_labels(boards: Board, labels) -> np.ndarray:
    """Tests that both plans reach their optima, and that the cheaper one waits just if it must: bool [B].

    The simulator must think so, and a replay that shares no code with it.
    """
    plans = [np.asarray(moves) for moves in (labels.moves, labels.makespan_moves)]
    holes, starts, goals = (np.asarray(part) for part in (boards.holes, boards.starts, boards.goals))
    replay = partial(replay_plans, holes, starts, goals)
    good = np.ones(len(plans[0]), bool)
    for judge in (partial(verify, boards), replay):
        cheap, fast = (judge(moves) for moves in plans)
        good &= _is_valid(cheap) & _is_valid(fast)
        good &= (cheap.sum_of_costs == labels.sum_of_costs) & (fast.makespan == labels.makespan)
    return good & (replay(plans[0]).waits == labels.wait_required)


def _is_valid(found: BoardVerdict | Replay) -> np.ndarray:
    return found.valid if isinstance(found, Replay) else np.asarray(found.failure) == Failure.NONE


def _plain_boards(boards: Board) -> Iterator[PlainBoard]:
    fields = (np.asarray(field).tolist() for field in (boards.holes, boards.starts, boards.goals))
    for holes, starts, goals in zip(*fields, strict=True):
        yield PlainBoard(holes, [tuple(cell) for cell in starts], [tuple(cell) for cell in goals])


def _sum_up(parts: list[Tried]) -> Total:
    milliseconds = 1e3 * np.array([second for part in parts for second in part.seconds])
    median, late, longest = (round(float(np.quantile(milliseconds, share)), 2) for share in (0.5, 0.99, 1))
    return Total(
        agents=parts[0].agents,
        hole_ratio=parts[0].hole_ratio,
        decided={stage: sum(part.decided[stage] for part in parts) for stage in parts[0].decided},
        milliseconds_alone=Times(median, late, longest, len(milliseconds)),
        examples=[example for part in parts for example in part.examples][:3],
        **{name: sum(getattr(part, name) for part in parts) for name in COUNTS},
    )


def _format_total(total: Total) -> tuple[str, ...]:
    alone = total.milliseconds_alone
    times = f"{alone.p50:.2f}", f"{alone.p99:.1f}", f"{alone.max:.0f}"
    counts = (str(number) for number in (total.undecided, total.uncompared, total.wrong))
    decided = ", ".join(f"{stage.replace('_', ' ')} {count:,}" for stage, count in total.decided.items() if count)
    return str(total.agents), f"{total.hole_ratio:g}", str(total.boards), *times, *counts, decided
