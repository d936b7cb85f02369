"""Boards of the lake as a `Play`: a codec's prompts, certified plans as reference answers, the simulator's verdicts.

`check_chat_model` checks, before it is trained, that a language model can be asked for plans.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.types import FAILURE_NAMES, MOVES, BoardVerdict, Failure
from lakewright.policy.codecs.codec import Codec, TextCodec
from lakewright.policy.inference.sampling import sample
from lakewright.policy.play import Judged, Tasks
from lakewright.policy.tasks import BoardTask, augment_task
from lakewright.policy.training.board_stream import BoardTaskStream
from lakewright.policy.training.reward import compute_rewards, judge_answers
from lakewright.policy.training.settings import RewardSettings

ENOUGH = 8  # tokens within which a model must answer something


class PlayedPlan(NamedTuple):
    """A plan, int8 [K, T], and its verdict, a number of each field of `BoardVerdict` named here."""

    moves: np.ndarray
    failure: int
    agent: int
    step: int
    makespan: int
    sum_of_costs: int


@dataclasses.dataclass(frozen=True)
class BoardPlay:
    """The `Play` of boards.

    Args:
        codec: writes prompts and reads answers.
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
        """See `Play`: True for the tokens codec, whose vocabulary is small; False for language models."""
        return self.codec.name == "tokens"

    def key(self, task: BoardTask) -> str:
        """See `Play`."""
        return task.key

    def encode_prompt(self, task: BoardTask) -> list[int]:
        """See `Play`."""
        return self.codec.encode_prompt(task.board)

    def encode_reference(self, task: BoardTask) -> list[int]:
        """See `Play`: the certified plan."""
        return self.codec.encode_answer(task.board, task.moves)

    def longest_answer(self, tasks: Tasks[BoardTask]) -> int:
        """See `Play`: the longest answer of the largest team."""
        if isinstance(tasks, BoardTaskStream):
            return self.codec.answer_length(self.horizon, tasks.agents)
        assert isinstance(tasks, Sequence), "boards come in a list or from a BoardTaskStream"
        return max(self.codec.answer_length(self.horizon, len(task.board.starts)) for task in tasks)

    def judge_plans(self, tasks: Sequence[BoardTask], answers: Sequence[list[int]]) -> tuple[BoardVerdict, np.ndarray]:
        """See `judge_answers`: the verdicts, numpy arrays [B], and the plans, int8 [B, K, horizon]."""
        return judge_answers(list(tasks), list(answers), self.horizon, self.codec)

    def judge(self, tasks: Sequence[BoardTask], answers: Sequence[list[int]]) -> Judged:
        """Like `Play`, with the plans as details."""
        found, moves = self.judge_plans(tasks, answers)
        codes = np.asarray(found.failure)
        fields = (codes, found.agent, found.step, found.makespan, found.sum_of_costs)
        plans = zip(tasks, moves, *(np.asarray(field).tolist() for field in fields), strict=True)
        return Judged(
            codes == Failure.NONE,
            compute_rewards(list(tasks), found, moves, self.reward),
            [FAILURE_NAMES[code] if code else "" for code in codes],
            [PlayedPlan(plan[: len(task.board.starts)], *verdict) for task, plan, *verdict in plans],
        )

    def augment(self, task: BoardTask, rng: np.random.Generator) -> BoardTask:
        """See `Play` and `augment_task`."""
        return augment_task(task, rng)


def check_chat_model(place: str, model: PreTrainedModel, codec: TextCodec, task: BoardTask) -> None:
    """Raise InputError, one line that names `place`, unless the model can be asked for plans.

    It needs a chat template, for which see `check_template`, a tokenizer that keeps moves whole, and some answer to
    `task`.

    Args:
        place: the name of the model in messages.
        model: answers `task`.
        codec: the model's codec.
        task: any board.
    """
    if not codec.tokenizer.chat_template:
        raise InputError(f"{place}: its tokenizer has no chat template; choose a model that was trained to chat")
    _check_moves(place, codec)
    _check_answer(place, model, codec, task)


def _check_moves(place: str, codec: TextCodec) -> None:
    """Check that each move is read back unchanged and, with the compact prompt, that each is one token."""
    for move, letter in enumerate(MOVES):
        word = codec.move_word(move)
        tokens = codec.tokenizer.encode(f" {word}", add_special_tokens=False)
        if codec.settings.prompt == "compact" and len(tokens) != 1:
            raise InputError(
                f"{place}: its tokenizer splits the move {word!r} into {len(tokens)} tokens; set text.prompt=full"
            )
        if str(codec.tokenizer.decode(tokens)).strip() != word:
            raise InputError(f"{place}: its tokenizer does not give back the move {word!r} ({letter}); choose another")


@torch.inference_mode()
def _check_answer(place: str, model: PreTrainedModel, codec: TextCodec, task: BoardTask) -> None:
    """Check that the model answers something to `task`."""
    prompt = codec.encode_prompt(task.board)
    made = sample(model, codec.tokenizer, [prompt], max_new_tokens=ENOUGH, temperature=0.0, scored=False)
    if not codec.decode_text(prompt, made.answers[0]).strip():
        raise InputError(f"{place}: answers nothing to the prompt of a board; choose a model that was trained to chat")
