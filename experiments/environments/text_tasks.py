"""A board as a question in text, its certified answer, and the score of any other: for language-model frameworks."""

import functools
from typing import Any

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import generate
from lakewright.core_jax.rows import Row, VerdictRow, rows_of
from lakewright.policy.codecs import encode_prompt, plan_text
from lakewright.policy.judging import judge_plans, read_plan
from lakewright.policy.tasks import BoardTask, task_of
from lakewright.policy.training import RewardSettings

CHUNK = 32


class TextTask(msgspec.Struct, frozen=True):
    """A board with its labels, as a question in text."""

    row: Row

    @classmethod
    def of(cls, fields: dict[str, Any]) -> "TextTask":
        """The task of a row's fields, as JSON has them. Raises ValueError if they are not a row."""
        return cls(msgspec.convert(fields, Row))

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the row, as JSON has them, without what a benchmark adds."""
        whole = msgspec.to_builtins(self.row)
        return {name: whole[name] for name in Row.__struct_fields__}

    @property
    def question(self) -> str:
        """The prompt. Raises ValueError on more than eight agents."""
        return encode_prompt(self._task.board)

    @property
    def answer(self) -> str:
        """The certified plan, as a model would write it."""
        return plan_text(self._task.moves)

    def judge(self, answer: str) -> VerdictRow:
        """The verdict of the simulator on an answer, which is read strictly."""
        return judge_plans([self.row], [read_plan(answer, self.row.agents)])[0]

    @property
    def _task(self) -> BoardTask:
        return task_of(self.row)


def score(row: Row, verdict: VerdictRow) -> float:
    """1 for a plan of optimal sum of costs, less for a valid one that costs more, 0 for anything else."""
    if not verdict.valid or verdict.sum_of_costs is None or row.sum_of_costs is None:
        return 0.0
    return float(RewardSettings().reward_valid_plan(verdict.sum_of_costs - row.sum_of_costs))


class BoardStream:
    """The endless set of boards of a kind and a seed.

    Args:
        size: cells on a side.
        agents: agents on each board.
        hole_ratio, wait_ratio: as in `generate`.
        seed: another seed gives other boards.

    Raises InputError if such boards do not exist.
    """

    def __init__(self, size: int, agents: int, hole_ratio: float, wait_ratio: float, seed: int) -> None:
        try:
            config = EnvConfig.single(size, agents, hole_ratio, wait_ratio)
        except ValueError as error:
            raise InputError(str(error)) from None
        self._size, self._config, self._seed = size, config, seed

    def __getitem__(self, index: int) -> Row:
        """The row of the board of this number, with its plan; the same for the same kind, seed and number."""
        first = index - index % CHUNK
        return _draw_chunk(self._config.agents, self._size, self._kind, self._seed, first)[index - first]

    @property
    def _kind(self) -> tuple[float, float]:
        cell = self._config.sizes[self._size]
        return cell.hole_ratio, cell.wait_ratio


@functools.lru_cache(maxsize=256)
def _draw_chunk(agents: int, size: int, ratios: tuple[float, float], seed: int, first: int) -> list[Row]:
    config = EnvConfig.single(size, agents, *ratios)
    return rows_of(generate(config, seed, CHUNK, first=first), config)
