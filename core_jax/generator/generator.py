"""EnvConfig + seed + index -> a certified board.

The index alone determines the stratum of a board, by `apportionment`; config, seed and index determine the board: the
first attempt of the index's own stream that has the stratum. So a set can be drawn in pieces, in any batches, on any
number of processes and devices.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable

import jax
import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig, holes_of
from lakewright.core_jax.errors import InputError, TooRareError
from lakewright.core_jax.generator.attempts import Attempts, FoundBoards, Lanes, block_of, make_attempts
from lakewright.core_jax.support.apportionment import assign_shares
from lakewright.core_jax.support.jax_settings import stated_settings
from lakewright.core_jax.support.parallel import on_gpu, on_host, workers
from lakewright.core_jax.support.random_keys import make_streams
from lakewright.core_jax.types import Board, Labels, Status

# The most attempts at a board; in a stratum met by one attempt in 256, one board in 10^13 needs more.
MAX_ATTEMPTS = 8192
MOST_BOARDS = 1 << 32  # of a set: indices are 32 bits
# A config is reachable where each stratum is met by at least REACHED of REACH_ATTEMPTS attempts.
REACHED, REACH_ATTEMPTS = 16, 4096
ROUND = 4096  # attempts that a worker is given at once
LEAST = 8  # blocks in a round at least, if twice as many are needed: small rounds cost more than their attempts
SPECULATION = 8  # a round has at most 1 / SPECULATION of the attempts at a board that it needs on average


@dataclasses.dataclass(frozen=True)
class BoardStratum:
    """Boards of one size and number of agents, with `holes` holes, whose optimal plans must wait or need not."""

    size: int
    agents: int
    holes: int
    wait: bool

    def __str__(self) -> str:
        agents = f"{self.agents} agent{'s' * (self.agents > 1)}"
        waits = "with a forced wait" if self.wait else "without a forced wait"
        return f"{self.size}x{self.size} boards for {agents} with {self.holes} holes {waits}"


class Acceptance(msgspec.Struct, frozen=True):
    """The attempts at the boards of one stratum.

    drawn: attempts at them, each board's own included; those made beyond, to fill a block, are not counted, so the
    figures of a set are the sums over its pieces, however it was cut. met: which of them have the stratum: the
    boards. An attempt is one map with goals for two agents; for others it is one whole board, and of those were
    `solvable`, `unsolvable`, `undecided`, and with a forced wait `waiting`; None for two agents.
    """

    size: int
    agents: int
    holes: int
    wait: bool
    drawn: int
    met: int
    solvable: int | None = None
    unsolvable: int | None = None
    undecided: int | None = None
    waiting: int | None = None


@dataclasses.dataclass(frozen=True)
class Batch:
    """Certified boards of one size, by rising index; numpy arrays throughout.

    index: int [B], each board's place in the whole set. hole_ratio: the one that the config asks for at this size.
    acceptance: the acceptance by stratum, if the stratum was drawn from.
    """

    boards: Board
    labels: Labels
    index: np.ndarray
    hole_ratio: float
    acceptance: tuple[Acceptance, ...]


@stated_settings()
def generate(
    config: EnvConfig,
    seed: int,
    count: int,
    on_progress: Callable[[int], object] = lambda boards: None,
    first: int = 0,
) -> dict[int, Batch]:
    """Draws the boards first .. first + count - 1 of the set of `config` and `seed`, by map size.

    In every set from 0 on, sizes and, within a size, forced waits have their configured shares within one board. A
    board depends on config, seed and index alone. Memory grows with `count`: draw a large set in pieces, with one
    `first` after another. Raises TooRareError if a stratum is missing, InputError on a count, seed or index out of
    range.

    Args:
        config: the distribution of the boards.
        seed: the set's seed, 0 to 2^32 - 1.
        count: boards to draw.
        on_progress: gets numbers of finished boards.
        first: the index of the first board.
    """
    _check_request(config, seed, count, first)
    share, rank = assign_shares([cell.data_ratio for cell in config.sizes.values()], first, count)
    batches = {}
    for place, (size, cell) in enumerate(config.sizes.items()):
        mine = np.flatnonzero(share == place)
        if len(mine):
            stratum, _ = assign_shares([cell.wait_ratio, 1 - cell.wait_ratio], int(rank[mine[0]]), len(mine))
            with contextlib.nullcontext() if _uses_device(size, config.agents) else on_host():
                source = _Source.of(config, size, seed)
                batches[size] = _draw_boards(source, cell.hole_ratio, first + mine, stratum == 0, on_progress)
    return batches


def _uses_device(size: int, agents: int) -> bool:
    """Whether boards are drawn on an accelerator; teams never are, because the host searches for their plans."""
    if agents != 2 or not on_gpu():
        return False
    from lakewright.core_jax.generator import device_maps  # a processor's commands start without it

    return device_maps.suits_device(size)


def check_count(count: int) -> None:
    """Raises InputError unless a set can have `count` boards."""
    if not 1 <= count <= MOST_BOARDS:
        raise InputError(f"count is {count:.6g}; choose 1 to {MOST_BOARDS}")


@stated_settings()
def check_reachable(config: EnvConfig, seed: int) -> None:
    """Raises TooRareError, saying which, if boards that `config` asks for are rarer than one in 256 attempts."""
    _check_request(config, seed, 1, 0)
    for size, cell in config.sizes.items():
        for wait, share in cell.wait_shares:
            if share * cell.data_ratio > 0:
                _check_found(_Source.of(config, size, seed), wait)


def can_draw(size: int, agents: int, hole_ratio: float, wait: bool) -> bool:
    """Return True if boards of this kind are met by one in 256 attempts or more.

    Args:
        size: cells on a side.
        agents: number of agents on a board.
        hole_ratio: share of cells that are holes.
        wait: True for boards that force a wait.
    """
    return _can_draw(size, agents, holes_of(size, agents, hole_ratio), wait)


@functools.cache
@stated_settings()
def _can_draw(size: int, agents: int, holes: int, wait: bool) -> bool:
    """Like `can_draw`, for a number of holes."""
    if agents == 1 and wait:
        return False
    try:
        _check_found(_Source.with_holes(size, agents, holes, seed=0), wait)
    except InputError:
        return False
    return True


@dataclasses.dataclass(frozen=True)
class _Source:
    """The source of the boards of one size: both strata, and the keys of their streams, [2] by `wait`."""

    size: int
    agents: int
    holes: int
    streams: jax.Array

    @classmethod
    def of(cls, config: EnvConfig, size: int, seed: int) -> "_Source":
        return cls.with_holes(size, config.agents, holes_of(size, config.agents, config.sizes[size].hole_ratio), seed)

    @classmethod
    def with_holes(cls, size: int, agents: int, holes: int, seed: int) -> "_Source":
        """The source of boards with this many holes.

        Args:
            size: cells on a side.
            agents, holes: numbers on a board.
            seed: the set's seed.
        """
        return cls(size, agents, holes, make_streams([(seed, agents, size, holes, wait) for wait in (False, True)]))

    def stratum(self, wait: bool) -> BoardStratum:
        return BoardStratum(self.size, self.agents, self.holes, wait)

    def make_attempts(self, lanes: Lanes) -> Attempts:
        return make_attempts(self.size, self.agents, self.holes, self.streams, lanes)


class _Tally:
    """Counts of attempts, by stratum."""

    def __init__(self) -> None:
        self.drawn, self.met, self.waiting = np.zeros((3, 2), int)
        self.status = np.zeros((2, len(Status)), int)

    def add(self, lanes: Lanes, made: Attempts, counted: np.ndarray) -> None:
        wait = lanes.wait[counted].astype(int)
        np.add.at(self.drawn, wait, 1)
        np.add.at(self.met, wait, made.met[counted])
        if made.status is not None and made.waits is not None:
            np.add.at(self.status, (wait, made.status[counted]), 1)
            np.add.at(self.waiting, wait, made.waits[counted])

    def acceptance(self, stratum: BoardStratum) -> Acceptance:
        row = int(stratum.wait)
        kinds = [int(kind) for kind in (*self.status[row], self.waiting[row])] if stratum.agents != 2 else []
        found = int(self.drawn[row]), int(self.met[row])
        return Acceptance(stratum.size, stratum.agents, stratum.holes, stratum.wait, *found, *kinds)


def _draw_boards(
    source: _Source, hole_ratio: float, index: np.ndarray, wait: np.ndarray, on_progress: Callable[[int], object]
) -> Batch:
    """Draws boards of one size, by rounds of attempts at those that have no board yet.

    Args:
        source: the boards' source.
        hole_ratio: the configured one.
        index: int [B], each board's place in the whole set.
        wait: bool [B], whether a wait is forced.
        on_progress: gets numbers of finished boards.
    """
    if _uses_device(source.size, source.agents):
        return _draw_on_device(source, hole_ratio, index, wait, on_progress)
    tally = _Tally()
    tried = np.zeros(len(index), int)  # attempts at each board so far
    last = np.full(len(index), MAX_ATTEMPTS)  # the one that made it
    open_ = np.arange(len(index))
    found = FoundBoards(len(index))
    while len(open_):
        places, numbers = _plan_round(block_of(source.agents), open_, wait, tried, tally)
        lanes = Lanes(wait[places], index[places], numbers)
        made = source.make_attempts(lanes)
        # The lowest attempt wins, so that the board does not depend on how many were made at once.
        met = np.flatnonzero(made.met & (numbers < MAX_ATTEMPTS))
        won, order = np.unique(places[met], return_index=True)
        last[won] = numbers[met[order]]
        tally.add(lanes, made, numbers <= last[places])
        np.add.at(tried, places, 1)
        if len(won) and made.boards is not None and made.labels is not None:
            found.add(won, (np.cumsum(made.met) - 1)[met[order]], made.boards, made.labels)
        open_ = open_[last[open_] == MAX_ATTEMPTS]
        on_progress(len(won))
        for place in open_[tried[open_] >= MAX_ATTEMPTS][:1]:
            raise _make_error(source, bool(wait[place]), tally, f"board {index[place]}: none of {MAX_ATTEMPTS}")
    acceptance = tuple(tally.acceptance(source.stratum(kind)) for kind in (False, True) if kind in wait)
    return Batch(*found.read(), index, hole_ratio, acceptance)


def _draw_on_device(
    source: _Source, hole_ratio: float, index: np.ndarray, wait: np.ndarray, on_progress: Callable[[int], object]
) -> Batch:
    """Like `_draw_boards`, for two agents, on an accelerator."""
    from lakewright.core_jax.generator import device_maps  # as in `_uses_device`

    drawn = device_maps.draw_boards(
        source.size, source.holes, source.streams, wait, index, MAX_ATTEMPTS, on_progress=on_progress
    )
    # A board counts its own attempts, from the first to the one that drew it.
    met, tally = drawn.number < MAX_ATTEMPTS, _Tally()
    here = wait[: len(met)].astype(int)
    np.add.at(tally.drawn, here, np.where(met, drawn.number + 1, MAX_ATTEMPTS))
    np.add.at(tally.met, here, met)
    for place in np.flatnonzero(~met)[:1]:
        raise _make_error(source, bool(wait[place]), tally, f"board {index[place]}: none of {MAX_ATTEMPTS}")
    acceptance = tuple(tally.acceptance(source.stratum(kind)) for kind in (False, True) if kind in wait)
    return Batch(drawn.boards, drawn.labels, index, hole_ratio, acceptance)


def _plan_round(
    block: int, open_: np.ndarray, wait: np.ndarray, tried: np.ndarray, tally: _Tally
) -> tuple[np.ndarray, np.ndarray]:
    """The next attempts: at which boards, int [L], and their numbers, int [L]; sorted, and L a multiple of `block`.

    If a stratum is rare, several at a board, so that a missing one is soon given up. Blocks are filled up with
    further attempts, and there are LEAST of them if twice as many attempts are needed.

    Args:
        block: attempts made at once.
        open_: int [*], the places of boards still without an accepted attempt.
        wait: bool [B], the strata of all boards.
        tried: int [B], attempts made at each.
        tally: the tally of all attempts.
    """
    tries = np.maximum(1, tally.drawn // (SPECULATION * (tally.met + 1)))[wait[open_].astype(int)]
    needed = ((tally.drawn + 1) / (tally.met + 1))[wait[open_].astype(int)].sum()
    blocks = max(-(-tries.sum() // block), min(LEAST, -(-int(needed) // (2 * block))))
    size = min(blocks, max(ROUND // block, 1) * workers()) * block
    enough = np.searchsorted(np.cumsum(tries), size) + 1
    places = np.repeat(open_[:enough], tries[:enough])[:size]
    places = np.sort(np.concatenate([places, np.resize(open_, size - len(places))]))
    return places, tried[places] + np.arange(size) - np.searchsorted(places, places)


def _check_found(source: _Source, wait: bool) -> None:
    tally = _Tally()
    while tally.met[int(wait)] < REACHED:
        begin = int(tally.drawn[int(wait)])
        if begin >= REACH_ATTEMPTS:
            raise _make_error(source, wait, tally, f"only {tally.met[int(wait)]} of {begin}")
        lanes, made = _make_attempts_from(source, wait, begin)
        tally.add(lanes, made, np.ones(len(lanes.wait), bool))


def _make_attempts_from(source: _Source, wait: bool, begin: int) -> tuple[Lanes, Attempts]:
    """A block of attempts at the first board of a stratum, from number `begin` on."""

    def make_lanes(block: int) -> Lanes:
        return Lanes(np.full(block, wait), np.zeros(block, int), np.arange(begin, begin + block))

    if _uses_device(source.size, source.agents):
        from lakewright.core_jax.generator import device_maps  # as in `_uses_device`

        lanes = make_lanes(device_maps.BLOCKS[-1])
        met = device_maps.find_met(source.size, source.holes, source.streams, lanes.wait, lanes.number)
        return lanes, Attempts(met, None, None)
    lanes = make_lanes(block_of(source.agents))
    with on_host():
        return lanes, source.make_attempts(lanes)


def _make_error(source: _Source, wait: bool, tally: _Tally, what: str) -> TooRareError:
    """The error that names a missing stratum and counts what was drawn instead."""
    stratum = source.stratum(wait)
    drawn = "random maps" if source.agents == 2 else "random boards"
    found = tally.acceptance(stratum)
    kinds = {name: getattr(found, name) for name in ("drawn", "met", "solvable", "unsolvable", "undecided", "waiting")}
    counts = ", ".join(f"{name} {kind}" for name, kind in kinds.items() if kind is not None)
    return TooRareError(
        f"{what} {drawn} gave one of the {stratum} ({counts}); change wait_ratio or hole_ratio of size {source.size}"
    )


def _check_request(config: EnvConfig, seed: int, count: int, first: int) -> None:
    """Raises InputError unless these boards can be asked for."""
    check_count(count)
    if not 0 <= first <= MOST_BOARDS - count:
        raise InputError(f"first is {first}; choose 0 to {MOST_BOARDS - count}")
    if not 0 <= seed < 1 << 32:
        raise InputError(f"seed is {seed}; choose 0 to {(1 << 32) - 1}")
    for size, cell in config.sizes.items():
        if config.agents == 1 and cell.data_ratio * cell.wait_ratio > 0:
            raise InputError(
                f"sizes.{size}.wait_ratio is {cell.wait_ratio:g} for 1 agent, which never has to wait; set it to 0"
            )
