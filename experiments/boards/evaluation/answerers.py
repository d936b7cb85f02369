"""Answerers of an evaluation: a planner, a model behind an endpoint, or a model in this process.

Plans without a model, to compare models with: for each row one string of moves for each agent.

optimal: the row's own certified plan. prioritized: one agent after another, each as early as the earlier ones allow
(Erdmann and Lozano-Perez, 1987; space-time search with waits: Silver, 2005). greedy: a shortest path for each agent,
regardless of the others. offset: the rows, then the columns from start to goal, whatever is in the way: what a model
says that copies its compact prompt. random: moves at random, but never off the board or into a hole.
"""

import dataclasses
import functools
import hashlib
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import content_hash
from lakewright.core_jax.rows import Row, board_of, plan_of
from lakewright.core_jax.support import Natural
from lakewright.core_jax.types import DELTAS, MOVES, WAIT
from lakewright.experiments.jobs.executors.executor import SERIAL, Executor, Serial, in_order
from lakewright.experiments.jobs.resumable.spending import Spending
from lakewright.policy.inference import ChatRequest, Endpoint, EndpointSettings, price_tokens

if TYPE_CHECKING:
    from lakewright.policy.codecs import TextSettings
    from lakewright.policy.inference import AnswerWriter

PLANS_AT_ONCE = 128  # saved together
ANSWERS_AT_ONCE = 512  # decoded together, in tokens of cells
MOST_BY_VLLM = 1024  # answers that vLLM is asked for, and saved, together
HORIZON = 64  # steps of the longest plan in tokens of cells
Square = tuple[int, int]
PlanBoard = Callable[[Row, int], list[str]]
STEPS_A_SIDE = 4  # of a random walk: the most, in sides of the board


class AnswerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of answers.jsonl. sample: 0 is greedy, those from 1 on are sampled.

    text: the answer of a model that answers in text. plan: the answer of others, null if it could not be read. finish:
    why the model ended, `length` if it was cut off.
    """

    id: str
    sample: Natural
    text: str | None = None
    plan: list[str] | None = None
    prompt_tokens: Natural | None = None
    completion_tokens: Natural | None = None
    finish: str | None = None


@dataclasses.dataclass(frozen=True)
class WantedAnswer:
    """An answer to ask for. prompt: empty for answerers that read no prompt."""

    row: Row
    prompt: str
    sample: int
    temperature: float


class Answerer(Protocol):
    """Gives answers.

    reads_text: whether it reads prompts in text. name: a name to show. identity: all that its answers depend on. spent:
    dollars, earlier ones in the same folder included.
    """

    reads_text: bool
    name: str
    identity: dict[str, Any]

    @property
    def spent(self) -> float:
        """Dollars for all tries so far; 0 if nothing is paid for."""
        ...

    def answers(self, asked: Sequence[WantedAnswer]) -> Iterator[list[AnswerRow]]:
        """The answers as they come, in any order."""
        ...


class PlannerAnswerer:
    """One of `PLANNERS`, which reads no prompt."""

    reads_text = False
    spent = 0.0

    def __init__(self, solver: str, seed: int, executor: Executor = SERIAL) -> None:
        self.name = f"solver {solver}"
        self.identity = {"solver": solver, "seed": seed}
        self._plan, self._executor = functools.partial(_plan_batch, solver=solver, seed=seed), executor

    def answers(self, asked: Sequence[WantedAnswer]) -> Iterator[list[AnswerRow]]:
        """In order."""
        return in_order(self._executor, self._plan, _split_batches(asked, PLANS_AT_ONCE))


def _plan_batch(asked: Sequence[WantedAnswer], solver: str, seed: int) -> list[AnswerRow]:
    plan = PLANNERS[solver]
    return [AnswerRow(one.row.id, one.sample, plan=plan(one.row, seed + one.sample)) for one in asked]


class EndpointAnswerer:
    """A model behind an endpoint. out: the folder of its answers, where `spending.jsonl` keeps what they cost."""

    reads_text = True

    def __init__(self, settings: EndpointSettings, out: Path) -> None:
        self.name = settings.model
        self.identity = {"endpoint": settings.url, "model": settings.model, "max_tokens": settings.max_tokens}
        self._spending = Spending(out / "spending.jsonl")
        paid = price_tokens(settings, *self._spending.count_tokens())
        self._endpoint = Endpoint(settings, paid, self._spending.add)

    @property
    def spent(self) -> float:
        """Dollars for all tries so far, those without an answer included."""
        return self._endpoint.spent

    def answers(self, asked: Sequence[WantedAnswer]) -> Iterator[list[AnswerRow]]:
        """As they come. Raises EndpointError or BudgetSpentError once all requested answers have come."""
        questions = (ChatRequest([{"role": "user", "content": one.prompt}], one.temperature) for one in asked)
        with self._spending:
            for place, said in self._endpoint.ask_all(questions):
                row, sample = asked[place].row, asked[place].sample
                tokens = (said.prompt_tokens, said.completion_tokens)
                yield [AnswerRow(row.id, sample, said.text, None, *tokens, said.finish)]


class ModelAnswerer:
    """A checkpoint, whichever codec it uses.

    Args:
        place: The checkpoint's place.
        settings: Say how it is asked in text.
        device: The device that it runs on.
        batch: Answers decoded together; by default in text as many as a GPU's memory holds, and few on a CPU.
        seed: Seed of the samples.
        executor: Answers batches, each of its processes with a model of its own.

    Raises InputError if the model cannot be read or the device is not there.
    """

    spent = 0.0

    def __init__(
        self,
        place: str,
        settings: "TextSettings",
        device: str,
        batch: int | None,
        seed: int,
        executor: Executor = SERIAL,
    ) -> None:
        self._source, self._executor = (place, settings, device, batch, seed), executor
        from lakewright.policy.codecs import codec_for
        from lakewright.policy.models import get_codec, load_model, prepare_place

        by_vllm = settings.decoder == "vllm"
        self._model, tokenizer = load_model(place, "auto", "cpu" if by_vllm else device)
        self._codec = codec_for(get_codec(self._model), tokenizer, settings)
        self.reads_text = self._codec.name == "text"
        self._batch = batch or (0 if self.reads_text else ANSWERS_AT_ONCE)
        self._policy = self._start_vllm(place, batch) if by_vllm else None
        self._seed = seed
        self.name = place
        self.identity: dict[str, Any] = {"model": place, "weights": _weights(Path(prepare_place(place))), "seed": seed}
        if self.reads_text:
            self.identity |= {"max_tokens": settings.max_tokens, "thinking": settings.thinking}
        if by_vllm:
            self.identity |= {"decoder": "vllm"}

    def answers(self, asked: Sequence[WantedAnswer]) -> Iterator[list[AnswerRow]]:
        """One batch after another. Raises InputError on a board that the codec cannot describe."""
        alike = itertools.groupby(asked, lambda one: (one.temperature, one.sample))
        size = self._batch or self._fit_batch(asked)
        batches = (some for _, one in alike for some in _split_batches(list(one), size))
        here = isinstance(self._executor, Serial)
        work = self._answers if here else functools.partial(_answer_batch, self._source)
        return in_order(self._executor, work, batches)

    def _start_vllm(self, place: str, batch: int | None) -> "AnswerWriter":
        """Returns vLLM with the model. Raises InputError if it cannot be used for this model, or does not start."""
        from lakewright.policy.inference import start_vllm

        if not self.reads_text:
            raise InputError(f"--decoder is vllm, but {place} answers in {self._codec.name}, not text; set it to own")
        if batch or not isinstance(self._executor, Serial):
            raise InputError(
                "--decoder is vllm, which chooses batches and processes itself; drop --batch and --workers"
            )
        self._batch = MOST_BY_VLLM
        return start_vllm(place, self._model, self._codec.tokenizer)

    def _fit_batch(self, asked: Sequence[WantedAnswer]) -> int:
        """Returns the number of answers in text that are decoded together."""
        from lakewright.policy.inference import fit_answers

        longest = max((one.prompt for one in asked), key=len, default="")
        codec: Any = self._codec
        return fit_answers(self._model, len(codec.encode_request(longest)), codec.settings.max_tokens, 1)

    def _answers(self, asked: Sequence[WantedAnswer]) -> list[AnswerRow]:
        import torch

        from lakewright.policy.codecs import TextCodec
        from lakewright.policy.inference import ModelAnswers, end_tokens, naming_full_memory

        codec, tokenizer = self._codec, self._codec.tokenizer
        boards = [board_of(one.row) for one in asked]
        if isinstance(codec, TextCodec):
            prompts = [codec.encode_request(one.prompt) for one in asked]
        else:
            prompts = [codec.encode_prompt(board) for board in boards]
        torch.manual_seed(int(content_hash([self._seed, asked[0].row.id, asked[0].sample])[:8], 16))
        with naming_full_memory(f"{len(asked)} answers of {self.name} together (set --batch)"):
            policy = self._policy or ModelAnswers(self._model, tokenizer, len(asked))
            made = policy.sample(
                prompts,
                max_new_tokens=max(codec.answer_length(HORIZON, one.row.agents) for one in asked),
                temperature=asked[0].temperature,
                scored=not self.reads_text,
            )
        ends = set(end_tokens(self._model, tokenizer))
        rows = []
        for one, board, prompt, answer in zip(asked, boards, prompts, made.answers, strict=True):
            text = plan = None
            if isinstance(codec, TextCodec):
                text = codec.decode_text(prompt, answer)
            elif (moves := codec.decode_answer(answer, board, HORIZON)) is not None:
                plan = plan_of(moves)
            finish = "stop" if answer and answer[-1] in ends else "length"
            rows.append(AnswerRow(one.row.id, one.sample, text, plan, len(prompt), len(answer), finish))
        return rows


def _answer_batch(source: tuple[Any, ...], asked: Sequence[WantedAnswer]) -> list[AnswerRow]:
    """The answers of a model, in a process other than the evaluation's."""
    return _load_answerer(*source)._answers(asked)


@functools.cache
def _load_answerer(*source: Any) -> ModelAnswerer:
    return ModelAnswerer(*source)


def _weights(folder: Path) -> str | None:
    """The hash of the weights in a folder; None for a model on the hub."""
    if not folder.is_dir():
        return None
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*config.json"), *folder.glob("tokenizer.json")]):
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _split_batches(asked: Sequence[WantedAnswer], size: int) -> Iterator[Sequence[WantedAnswer]]:
    return (asked[begin : begin + size] for begin in range(0, len(asked), size))


def plan_optimally(row: Row, seed: int) -> list[str]:
    """The certified plan; without one, no agent moves."""
    return row.plan or [""] * row.agents


def plan_by_priority(row: Row, seed: int) -> list[str]:
    """Agent 0 plans first; an agent without a path past the earlier ones stays at its start."""
    paths: list[list[Square]] = []
    for start, goal in zip(row.starts, row.goals, strict=True):
        paths.append(_find_earliest_path(row, start, goal, paths) or [start])
    return [_write_moves(path) for path in paths]


def plan_greedily(row: Row, seed: int) -> list[str]:
    """A shortest path for each agent; an agent without one stays at its start."""
    pairs = zip(row.starts, row.goals, strict=True)
    return [_write_moves(_find_earliest_path(row, start, goal, []) or [start]) for start, goal in pairs]


def plan_by_offset(row: Row, seed: int) -> list[str]:
    """Down or up, then right or left, as far as the goal is away."""
    plans = []
    for start, goal in zip(row.starts, row.goals, strict=True):
        rows, columns = goal[0] - start[0], goal[1] - start[1]
        plans.append("UD"[rows > 0] * abs(rows) + "LR"[columns > 0] * abs(columns))
    return plans


def at_random(row: Row, seed: int) -> list[str]:
    """Uniform among the moves to free cells, until the agent is on its goal or the walk is long enough."""
    rng = random.Random(f"{seed} {row.id}")
    return [_walk_randomly(row, start, goal, rng) for start, goal in zip(row.starts, row.goals, strict=True)]


PLANNERS: dict[str, PlanBoard] = {
    "optimal": plan_optimally,
    "prioritized": plan_by_priority,
    "greedy": plan_greedily,
    "offset": plan_by_offset,
    "random": at_random,
}


def _find_earliest_path(row: Row, start: Square, goal: Square, others: list[list[Square]]) -> list[Square] | None:
    """The earliest path that can stay on `goal`, without conflicts with the paths of others, who stay where these end.

    Breadth first in time.
    """
    over = max(map(len, others), default=0)  # from this time on no other agent moves
    last_visit = max((time for path in others for time, cell in enumerate(path) if cell == goal), default=-1)
    queue: deque[list[Square]] = deque([[start]])
    seen = {(start, 0)}
    while queue:
        path = queue.popleft()
        time = len(path)
        if path[-1] == goal and time - 1 > last_visit:
            return path
        for cell, _ in _list_neighbours(row, path[-1]):
            state = (cell, min(time, over))
            if state not in seen and not any(_is_conflict(path[-1], cell, other, time) for other in others):
                seen.add(state)
                queue.append([*path, cell])
    return None


def _is_conflict(before: Square, after: Square, other: list[Square], time: int) -> bool:
    """Whether a step that ends at `time` has a vertex or swap conflict with another agent."""
    was, is_now = other[min(time - 1, len(other) - 1)], other[min(time, len(other) - 1)]
    return after == is_now or (after == was and before == is_now)


def _list_neighbours(row: Row, cell: Square) -> Iterator[tuple[Square, str]]:
    """The free cells that a move leads to, with the move."""
    for (down, right), letter in zip(DELTAS, MOVES, strict=True):
        r, c = cell[0] + down, cell[1] + right
        if 0 <= r < row.size and 0 <= c < row.size and row.grid[r][c] != "H":
            yield (r, c), letter


def _write_moves(path: list[Square]) -> str:
    steps = ((to[0] - at[0], to[1] - at[1]) for at, to in pairwise(path))
    return "".join(MOVES[DELTAS.index(step)] for step in steps)


def _walk_randomly(row: Row, cell: Square, goal: Square, rng: random.Random) -> str:
    moves = ""
    while cell != goal and len(moves) < STEPS_A_SIDE * row.size:
        cell, letter = rng.choice(list(_list_neighbours(row, cell)))
        moves += letter
    return moves or MOVES[WAIT]
