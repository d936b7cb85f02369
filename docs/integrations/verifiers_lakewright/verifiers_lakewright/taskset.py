"""The taskset: boards drawn without end, or those of a benchmark, with rewards from the simulator."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from lakewright.core_jax.rows import Row, VerdictRow, board_key
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.experiments.boards.evaluation.evaluation_set import read_set
from lakewright.experiments.environments.text_tasks import BoardStream, TextTask

FAMILIAR = 4096  # boards in a row that have come before, after which no more of a kind are looked for


class LakeData(vf.TaskData):
    """A board with its labels: the row of Lakewright."""

    row: dict[str, Any]


class LakeTask(vf.Task[LakeData]):
    """One board. Rewards: 0.7 for a valid plan, 0.3 more where its sum of costs is optimal."""

    @property
    def key(self) -> str:
        """The SHA-256 of the board, whatever its id and prompt."""
        return board_key(self._task.row)

    @vf.reward(weight=0.7)
    async def valid(self, trace: vf.Trace) -> float:
        """Whether the plan is valid."""
        return float(self._verdict(trace).valid)

    @vf.reward(weight=0.3)
    async def optimal(self, trace: vf.Trace) -> float:
        """Whether its sum of costs is the optimum."""
        return float(bool(self._verdict(trace).optimal_sum_of_costs))

    @vf.metric
    async def failures(self, trace: vf.Trace) -> dict[str, float]:
        """1 for the first failure of the plan, by its name, 0 for all others."""
        found = self._verdict(trace).failure
        return {f"failure/{name}": float(name == found) for name in FAILURE_NAMES[1:]}

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Plays the certified plan: it must be valid and of optimal sum of costs."""
        return bool(self._task.judge(self._task.answer).optimal_sum_of_costs)

    @property
    def _task(self) -> TextTask:
        return TextTask.of(self.data.row)

    def _verdict(self, trace: vf.Trace) -> VerdictRow:
        return self._task.judge(trace.last_reply)


class LakeConfig(vf.TasksetConfig):
    """Which boards: those of `benchmark`, or drawn without end."""

    benchmark: Path | None = None
    """A folder of `lakewright benchmark build`, or a file of rows; without it boards are drawn."""
    size: int = 5
    """Cells on a side of a drawn board, 3 to 16."""
    agents: int = 2
    """Agents on a drawn board, 1 to 8."""
    hole_ratio: float = 0.3
    """Holes / (cells that are neither start nor goal) of drawn boards, 0 to 0.5."""
    wait_ratio: float = 0.5
    """Share of drawn boards on which every plan of optimal sum of costs waits, 0 to 1."""
    seed: int = 0
    """The seed of drawn boards."""


class LakeTaskset(vf.Taskset[LakeTask, LakeConfig]):
    """Every board once."""

    def __init__(self, config: LakeConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.benchmark is None

    def load(self) -> Iterable[LakeTask]:
        """The tasks, in the order of the benchmark or of the seed."""
        for row in self._drawn() if self.config.benchmark is None else read_set(self.config.benchmark).rows:
            task = TextTask(row)
            yield LakeTask(LakeData(id=row.id, name=row.id, prompt=task.question, row=task.fields), self.config.task)

    def _drawn(self) -> Iterator[Row]:
        """Boards that have not come before, until there seem to be no more of the kind."""
        config = self.config
        stream = BoardStream(config.size, config.agents, config.hole_ratio, config.wait_ratio, config.seed)
        seen: set[str] = set()
        last = 0
        for index in itertools.count():
            row = stream[index]
            if (key := board_key(row)) not in seen:
                seen.add(key)
                last = index
                yield row
            elif index - last > FAMILIAR:
                return
