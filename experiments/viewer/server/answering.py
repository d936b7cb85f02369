"""Computations on request: the labels of a drawn board by the solver, and a checkpoint's plan for it."""

import dataclasses
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row, board_of, plan_of, solve_rows, verify_rows
from lakewright.core_jax.solver import check_memory
from lakewright.core_jax.types import PAD, Failure
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.viewer.catalogue.discovery import Catalogue, Kind, MissingError
from lakewright.experiments.viewer.catalogue.run_space import LAKE
from lakewright.experiments.viewer.pages.board_pages import read_drawn_row
from lakewright.experiments.viewer.pages.rendering import render_fragment
from lakewright.experiments.viewer.pictures.played_plans import draw_played, make_example, still_svg
from lakewright.policy.models import PRETRAINED
from lakewright.policy.tasks import BoardTask

SOLVER_PATIENCE = 120.0  # seconds that a board waits for those before it, and for its answer
BoardKind = tuple[int, int]  # size and number of agents
NARROW = [
    (0, 0),
    (0, 1),
    (0, 2),
    (1, 0),
]  # two agents that pass here have no plan, as only a search proves
PATIENCE = 120.0  # seconds that a question to a checkpoint waits for those before it
SOON = 0.7  # seconds that a first board waits for its programs, before the page says that they are compiled
MODELS = 2  # checkpoints cached in memory
NO_PLAN = "no plan could be read from its answer"
HORIZON = 64  # steps of the longest plan of the pretrained policy, as in `benchmark eval`


class CompilingError(Exception):
    """The programs for a kind of board are not ready yet."""


class Solver:
    """Solves boards one by one; boards of a new kind once their programs are compiled, which it does by itself."""

    def __init__(self) -> None:
        self._one = ThreadPoolExecutor(1, "solver")
        self._lock = threading.Lock()
        self._ready: dict[BoardKind, Future[None]] = {}

    def solve(self, row: Row, patience: float) -> Row:
        """The row with its labels. Raises CompilingError if its programs are not ready within `patience` seconds."""
        try:
            self._prepare_programs(row).result(patience)
        except TimeoutError:
            raise CompilingError from None
        asked = self._one.submit(solve_rows, [row])
        try:
            [solved] = asked.result(SOLVER_PATIENCE)
        except TimeoutError:
            asked.cancel()
            raise InputError("the solver is busy with an earlier board; try again") from None
        return solved

    def _prepare_programs(self, row: Row) -> Future[None]:
        kind = row.size, row.agents
        with self._lock:
            if kind not in self._ready:
                self._ready[kind] = self._one.submit(_compile_kind, row)
            return self._ready[kind]


def _compile_kind(row: Row) -> None:
    """Solves a board, and one of its kind on which certificates don't hold, each alone, as the editor asks."""
    solve_rows([row])
    if row.agents > 1:
        solve_rows([_narrow_row(row.size, row.agents)])


def _narrow_row(size: int, agents: int) -> Row:
    """A board on which two agents have to pass each other where they cannot; the others keep out of the way."""
    aside = [cell for line in range(size) for column in range(size) if (cell := (line, column)) not in NARROW]
    others = aside[: 2 * (agents - 2)]
    starts, goals = [NARROW[0], NARROW[1], *others[::2]], [NARROW[2], NARROW[3], *others[1::2]]
    free = {*starts, *goals}
    grid = ["".join(".H"[(line, column) not in free] for column in range(size)) for line in range(size)]
    return Row("narrow", size, agents, grid, starts, goals)


class Answering:
    """The solver, and the checkpoints, one request at a time."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self._solver = catalogue, Solver()
        self._one = threading.Lock()
        self._models: OrderedDict[str, Any] = OrderedDict()

    def draw_board(self, board: str) -> str:
        """The picture of a board. Raises InputError if it isn't one."""
        return still_svg(read_drawn_row(board))

    def solve_board(self, board: str) -> str:
        """Status, optima, forced wait and plan of a board, or that its programs are compiled, to be asked again.

        Raises InputError if it isn't one, or too large.
        """
        row = read_drawn_row(board)
        check_memory(row.size, row.agents)
        try:
            begun = time.perf_counter()
            solved = self._solver.solve(row, SOON)
        except CompilingError:
            return render_fragment("_compiling.html", {"size": row.size, "agents": row.agents})
        plan = draw_played(make_example(solved, solved.plan)) if solved.plan else None
        found = {"row": solved, "played": plan, "title": "The solver", "plan_title": "The certified plan"}
        return self._render_answer(found, _describe_solved(solved), begun)

    def ask_checkpoint(self, board: str, checkpoint: str) -> str:
        """The greedy plan for a board, of a run's checkpoint (`warmup/RUN`, `stage-0/RUN`) or the one `pretrained`.

        Raises InputError if no checkpoint has that name.
        """
        row, begun = read_drawn_row(board), time.perf_counter()
        part, _, name = checkpoint.partition("/")
        if checkpoint == PRETRAINED:
            title, plan = "The pretrained policy", self._run_alone(self._plan_by_pretrained, row)
        else:
            folder, stage = self._stage_of_run(part, name)
            title = f"The checkpoint of {part.replace('-', ' ')}"
            plan = self._run_alone(self._plan_by_run, folder, stage, row)
        if plan is None:
            return self._render_answer(
                {"row": None, "played": None, "title": title, "plan_title": title}, NO_PLAN, begun
            )
        [verdict] = self._run_alone(verify_rows, [row], [plan])
        agent, step = verdict.agent or 0, verdict.step or 0
        found = draw_played(make_example(row, plan, verdict.failure, agent, step))
        words = "Its greedy plan is valid." if verdict.valid else "Its greedy plan fails."
        return self._render_answer(
            {"row": None, "played": found, "title": title, "plan_title": "Its plan"}, words, begun
        )

    def _render_answer(self, values: dict[str, Any], words: str, begun: float) -> str:
        milliseconds = 1000 * (time.perf_counter() - begun)
        return render_fragment("_answer.html", {**values, "words": words, "milliseconds": milliseconds})

    def _run_alone(self, function: Any, *arguments: Any) -> Any:
        if not self._one.acquire(timeout=PATIENCE):
            raise InputError("the checkpoints are busy with an earlier board; try again")
        try:
            return function(*arguments)
        finally:
            self._one.release()

    def _stage_of_run(self, part: str, name: str) -> tuple[RunFolder, Stage]:
        item = self._catalogue.find(Kind.RUN, name)
        folder = RunFolder(item.path)
        if folder.settings().environment != LAKE:
            raise InputError(f"{name}: its checkpoints do not know boards; choose a run of the lake")
        stage = _stage_of(folder, part)
        if not stage.checkpoint.exists():
            raise MissingError(f"{name}: {part!r:.40} has no checkpoint here")
        self._catalogue.check_inside(stage.checkpoint)
        return folder, stage

    def _plan_by_run(self, folder: RunFolder, stage: Stage, row: Row) -> list[str] | None:
        """A greedy plan; None if the answer was no plan."""
        key = f"{stage.checkpoint}:{stage.checkpoint.stat().st_mtime_ns}"
        return greedy_plan(self._load_policy(key, lambda: load_of_run(folder.settings(), stage.checkpoint)), row)

    def _plan_by_pretrained(self, row: Row) -> list[str] | None:
        return greedy_plan(self._load_policy(PRETRAINED, load_pretrained), row)

    def _load_policy(self, key: str, load: Callable[[], Any]) -> Any:
        """A policy that was read for an earlier board, or is read now."""
        if key not in self._models:
            self._models[key] = load()
            while len(self._models) > MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(key)
        return self._models[key]


def _stage_of(folder: RunFolder, part: str) -> Stage:
    number = part.removeprefix("stage-")
    if part == "warmup":
        return folder.warmup
    if part.startswith("stage-") and number.isascii() and number.isdigit() and len(number) < 4:
        return folder.stage(int(number))
    raise MissingError(f"{part!r:.40} is not a stage; choose warmup or stage-0, stage-1 ...")


def _describe_solved(row: Row) -> str:
    if row.status == "solvable":
        waits = "every cheapest plan has to wait" if row.wait_required else "no wait is needed"
        soonest = f"all can be at their goals at t = {row.makespan}"
        return f"Solvable: {soonest}; the least sum of costs is {row.sum_of_costs}, {waits}."
    if row.status == "unsolvable":
        return "Unsolvable: no plan brings every agent to its goal."
    return "Undecided: the search ended before it could decide."


@dataclasses.dataclass(frozen=True)
class LoadedPolicy:
    """A policy that was read: its codec, and the steps of the longest plan that it may answer with."""

    model: Any
    codec: Any
    horizon: int


def load_of_run(settings: RunSettings, checkpoint: Path) -> LoadedPolicy:
    """A checkpoint of a run with these settings, on the CPU. Raises InputError if it cannot be read."""
    from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
    from lakewright.experiments.loop.training.policy_models import load_policy
    from lakewright.policy.codecs import codec_for

    prepare_libraries()
    model, tokenizer = load_policy(settings, checkpoint, "cpu")
    return LoadedPolicy(model, codec_for(settings.codec, tokenizer, settings.text), settings.horizon)


def load_pretrained() -> LoadedPolicy:
    """The policy that comes with the package, on the CPU."""
    from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries
    from lakewright.policy.codecs import TokensCodec
    from lakewright.policy.models import PRETRAINED, load_checkpoint

    prepare_libraries()
    model, tokenizer = load_checkpoint(PRETRAINED, device="cpu")
    return LoadedPolicy(model, TokensCodec(tokenizer), HORIZON)


def greedy_plan(asked: LoadedPolicy, row: Row) -> list[str] | None:
    """The moves that a policy answers with; None if its answer names no plan."""
    from lakewright.policy.board_play import BoardPlay
    from lakewright.policy.evaluation import evaluate

    board = board_of(row)
    task = BoardTask(board, 0, 0, False, np.full((row.agents, 1), PAD, np.int8), row.hole_ratio)
    verdicts, plans = evaluate(asked.model, BoardPlay(asked.codec, asked.horizon), [task])
    return None if int(verdicts.failure[0]) == Failure.PARSE_ERROR else plan_of(plans[0][: row.agents])
