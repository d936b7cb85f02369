"""The dataset: boards with a certified plan, scored by playing the answer, and the curriculum over them."""

import dataclasses
import random
from typing import Any

from reasoning_gym.coaching import BaseCurriculum, RangeAttributeDefinition, ScalarAttributeDefinition
from reasoning_gym.dataset import ProceduralDataset

from lakewright.experiments.environments.text_tasks import BoardStream, TextTask, score

SMALLEST, LARGEST, MOST_AGENTS = 3, 16, 8


@dataclasses.dataclass
class LakeConfig:
    """The boards of a dataset: sides are drawn evenly from `min_board_size` to `max_board_size`."""

    min_board_size: int = 4
    max_board_size: int = 6
    agents: int = 2
    hole_ratio: float = 0.2
    wait_ratio: float = 0.25
    seed: int | None = None
    size: int = 500

    def validate(self) -> None:
        """Raises AssertionError on values that no board can have."""
        assert SMALLEST <= self.min_board_size <= self.max_board_size <= LARGEST, (
            f"min_board_size is {self.min_board_size} and max_board_size {self.max_board_size}; "
            f"choose {SMALLEST} to {LARGEST}, the smaller one first"
        )
        assert 2 <= self.agents <= min(MOST_AGENTS, self.min_board_size), (
            f"agents is {self.agents}; choose 2 to {MOST_AGENTS}, and at most min_board_size ({self.min_board_size})"
        )
        assert 0 <= self.hole_ratio <= 0.5, f"hole_ratio is {self.hole_ratio}; choose 0 to 0.5"
        assert 0 <= self.wait_ratio <= 1, f"wait_ratio is {self.wait_ratio}; choose 0 to 1"
        assert self.size > 0, f"size is {self.size}; give at least 1 question"


class LakeDataset(ProceduralDataset):
    """Plans for teams on frozen lakes. The answer is a certified plan of optimal sum of costs; others may do."""

    def __init__(self, config: LakeConfig) -> None:
        super().__init__(config=config, seed=config.seed, size=config.size)
        self._streams: dict[int, BoardStream] = {}

    def __getitem__(self, idx: int) -> dict[str, Any]:
        """The question of this number; the same for the same config and seed."""
        if not 0 <= idx < self.size:
            raise IndexError(idx)
        side = random.Random(f"{self.seed} {idx}").randint(self.config.min_board_size, self.config.max_board_size)
        task = TextTask(self._stream(side)[idx])
        return {
            "question": task.question,
            "answer": task.answer,
            "metadata": {
                "source_dataset": "multi_agent_frozen_lake",
                "source_index": idx,
                "row": task.fields,
                "difficulty": {
                    "board_size": (self.config.min_board_size, self.config.max_board_size),
                    "agents": self.config.agents,
                    "hole_ratio": self.config.hole_ratio,
                    "wait_ratio": self.config.wait_ratio,
                },
            },
        }

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        """1 for a plan of optimal sum of costs, 0.7 to 0.85 for a valid one that costs more, 0 for anything else.

        The answer is played by the simulator: that it contains the certified plan among other words earns nothing.
        """
        task = TextTask.of(entry["metadata"]["row"])
        return score(task.row, task.judge(answer)) if isinstance(answer, str) else 0.0

    def _stream(self, side: int) -> BoardStream:
        if side not in self._streams:
            kind = (side, self.config.agents, self.config.hole_ratio, self.config.wait_ratio)
            self._streams[side] = BoardStream(*kind, self.seed)
        return self._streams[side]


class LakeCurriculum(BaseCurriculum):
    """Larger boards, larger teams, more holes, more forced waits."""

    def __init__(self) -> None:
        super().__init__(LakeCurriculum.__name__, LakeConfig)
        self._define_attributes(
            RangeAttributeDefinition(
                name="board_size",
                levels=[4, 5, 6, 8, 10],
                default_level=1,
                description="Cells on a side of the board",
                lower_field_name="min_board_size",
                upper_field_name="max_board_size",
                ensure_interval=True,
            ),
            ScalarAttributeDefinition(
                name="agents", field_name="agents", levels=[2, 2, 3, 3, 4], description="Agents on a board"
            ),
            ScalarAttributeDefinition(
                name="hole_ratio",
                field_name="hole_ratio",
                levels=[0.1, 0.2, 0.3, 0.4, 0.5],
                description="Holes / (cells that are neither start nor goal)",
            ),
            ScalarAttributeDefinition(
                name="wait_ratio",
                field_name="wait_ratio",
                levels=[0.0, 0.25, 0.5, 0.75, 0.75],
                description="Share of boards on which every plan of optimal sum of costs waits",
            ),
        )
