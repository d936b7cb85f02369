"""Boards of the lake as a `Play`: a codec's prompts, certified plans as reference answers, the simulator's verdicts."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.types import FAILURE_NAMES, BoardVerdict, Failure
from lakewright.policy.codecs.codec import Codec
from lakewright.policy.play import Judged, Tasks
from lakewright.policy.tasks import BoardTask, augment_task
from lakewright.policy.training.board_stream import BoardStream
from lakewright.policy.training.reward import compute_rewards, judge_answers
from lakewright.policy.training.settings import RewardSettings


class PlayedPlan(NamedTuple):
    """A plan and its verdict: moves int8 [K, T], the failure, and the first agent and step that fail, else -1."""

    moves: np.ndarray
    failure: int
    agent: int
    step: int


@dataclasses.dataclass(frozen=True)
class BoardPlay:
    """The `Play` of boards.

    Args:
        codec: for prompts and answers.
        horizon: steps of the longest plan.
        reward: the parts of an answer's reward.
    """

    codec: Codec
    horizon: int
    reward: RewardSettings = RewardSettings()  # noqa: RUF009 - it is frozen

    failures = tuple(name for code, name in enumerate(FAILURE_NAMES) if code)
    plural = "boards"

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The codec's."""
        return self.codec.tokenizer

    @property
    def batch(self) -> int:
        """The codec's."""
        return self.codec.batch

    @property
    def scored(self) -> bool:
        """As `Play`: True for the tokens codec, whose vocabulary is small; False for language models."""
        return self.codec.name == "tokens"

    def key(self, task: BoardTask) -> str:
        """As `Play`."""
        return task.key

    def encode_prompt(self, task: BoardTask) -> list[int]:
        """As `Play`."""
        return self.codec.encode_prompt(task.board)

    def encode_reference(self, task: BoardTask) -> list[int]:
        """As `Play`: the certified plan."""
        return self.codec.encode_answer(task.board, task.moves)

    def longest_answer(self, tasks: Tasks[BoardTask]) -> int:
        """As `Play`: the longest answer of the largest team."""
        if isinstance(tasks, BoardStream):
            return self.codec.answer_length(self.horizon, tasks.agents)
        assert isinstance(tasks, Sequence), "boards come in a list or from a BoardStream"
        return max(self.codec.answer_length(self.horizon, len(task.board.starts)) for task in tasks)

    def judge_plans(self, tasks: Sequence[BoardTask], answers: Sequence[list[int]]) -> tuple[BoardVerdict, np.ndarray]:
        """As `judge_answers`: the verdicts, numpy arrays [B], and the plans, int8 [B, K, horizon]."""
        return judge_answers(list(tasks), list(answers), self.horizon, self.codec)

    def judge(self, tasks: Sequence[BoardTask], answers: Sequence[list[int]]) -> Judged:
        """As `Play`, with the plans as details."""
        found, moves = self.judge_plans(tasks, answers)
        codes = np.asarray(found.failure)
        places = zip(tasks, moves, codes, np.asarray(found.agent), np.asarray(found.step), strict=True)
        return Judged(
            codes == Failure.NONE,
            compute_rewards(list(tasks), found, moves, self.reward),
            [FAILURE_NAMES[code] if code else "" for code in codes],
            [PlayedPlan(plan[: len(task.board.starts)], *where) for task, plan, *where in places],
        )

    def augment(self, task: BoardTask, rng: np.random.Generator) -> BoardTask:
        """As `Play`: see `augment_task`."""
        return augment_task(task, rng)
