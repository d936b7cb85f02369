"""Rollouts: groups of answers to a board, judged as they are made, so that GRPO can leave out groups without signal.

A group whose rewards are all equal has no advantages and costs an update for nothing. DAPO's dynamic sampling (Yu et
al. 2025, section 3.2) samples more boards and keeps the informative groups. TRL asks a `rollout_func` for a number of
answers and takes the prompts and answers that it returns: so boards are chosen here, and the trainer is unchanged.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.results import Group, informative
from lakewright.core_jax.types import FAILURE_NAMES, Failure
from lakewright.policy.codecs import Codec, TokensCodec
from lakewright.policy.inference import sample
from lakewright.policy.tasks import Task
from lakewright.policy.training.hardware import rank_and_processes, sampled_by_vllm
from lakewright.policy.training.reward import judge_answers, rewards
from lakewright.policy.training.settings import RewardSettings


@dataclasses.dataclass(frozen=True)
class Answered:
    """The answers to the board of a key, with their log-probabilities, failures (`Failure`) and rewards.

    moves, agents, steps: of the sampled ones the plans, int8 [G, K, T], and the first agent and step that fail, -1 if
    none.
    """

    board: str
    prompt: list[int]
    answers: list[list[int]]
    log_probs: list[list[float]]
    failures: np.ndarray
    rewards: np.ndarray
    moves: np.ndarray
    agents: np.ndarray
    steps: np.ndarray

    @property
    def informative(self) -> bool:
        """Whether GRPO learns from the group."""
        return informative(self.rewards)

    @property
    def tokens(self) -> int:
        """How many were sampled."""
        return sum(map(len, self.answers))

    def with_plan(self, plan: list[int], failure: int, reward: float) -> "Answered":
        """These answers and a plan that was not sampled, so that its log-probabilities are not known."""
        return dataclasses.replace(
            self,
            answers=[*self.answers, plan],
            log_probs=[*self.log_probs, [0.0] * len(plan)],
            failures=np.append(self.failures, failure),
            rewards=np.append(self.rewards, reward),
        )

    @property
    def group(self) -> Group:
        """The group of the answers."""
        return Group.of(self.board, self.failures == Failure.NONE, self.rewards, self.failures)


def roll_out(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    group: int,
    reward: RewardSettings,
    *,
    horizon: int,
    seed: int,
    temperature: float = 1.0,
    codec: Codec | None = None,
    on_progress: Callable[[int], None] = lambda answers: None,
) -> tuple[list[Group], int]:
    """`group` sampled answers to each task, judged as in training: the groups in order, and the tokens generated."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = answer_groups(
            model,
            tokenizer,
            tasks,
            group,
            reward,
            horizon=horizon,
            temperature=temperature,
            codec=codec,
            on_progress=lambda prompts: on_progress(prompts * group),
        )
    return [answered.group for answered in made], sum(answered.tokens for answered in made)


def answer_groups(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    group: int,
    reward: RewardSettings,
    *,
    horizon: int,
    temperature: float,
    codec: Codec | None = None,
    trainer: Any = None,
    on_progress: Callable[[int], None] = lambda prompts: None,
) -> list[Answered]:
    """`group` judged answers to each task, sampled by the vLLM of `trainer` if it has one. codec: by default tokens."""
    codec = codec or TokensCodec(tokenizer)
    prompts = [codec.encode_prompt(task.board) for task in tasks]
    if _has_vllm(trainer):
        made = sampled_by_vllm(trainer, prompts, group)
    else:
        made = sample(
            model,
            tokenizer,
            prompts,
            copies=group,
            max_new_tokens=max(codec.answer_length(horizon, len(task.board.starts)) for task in tasks),
            temperature=temperature,
            batch=codec.batch,
            scored=_is_scored(codec, trainer),
            on_progress=on_progress,
        )
    repeated = [task for task in tasks for _ in range(group)]
    verdicts, moves = judge_answers(repeated, made.answers, horizon, codec)
    earned = rewards(repeated, verdicts, moves, reward)
    parts = [slice(begin, begin + group) for begin in range(0, len(made.answers), group)]
    return [
        Answered(
            task.key,
            prompt,
            made.answers[rows],
            made.log_probs[rows],
            np.asarray(verdicts.failure)[rows],
            earned[rows],
            moves[rows, : len(task.board.starts)],
            np.asarray(verdicts.agent)[rows],
            np.asarray(verdicts.step)[rows],
        )
        for task, prompt, rows in zip(tasks, prompts, parts, strict=True)
    ]


class Rollouts:
    """TRL's `rollout_func`: fills the requested groups with answers to boards from `take`.

    Up to `oversample` times as many boards are sampled, in rounds, until enough groups are informative; where too few
    are, the first of the others fill the rest. With 1 no group is left out. guided: the last answer of each group is
    the board's certified plan (off-policy guidance: Yan et al. 2025, arXiv 2504.14945), so that a group of failures
    only has a signal too; figures and groups count sampled answers only.
    """

    def __init__(
        self,
        take: Callable[[int], list[Task]],
        tokenizer: PreTrainedTokenizerFast,
        reward: RewardSettings,
        *,
        group: int,
        oversample: int,
        horizon: int,
        temperature: float,
        guided: bool = False,
        on_groups: Callable[[list[Group]], None] = lambda groups: None,
        on_answers: Callable[[list[Answered]], None] = lambda answers: None,
        codec: Codec | None = None,
    ) -> None:
        self._codec = codec or TokensCodec(tokenizer)
        self._take, self._tokenizer, self._reward = take, tokenizer, reward
        self._group, self._oversample, self._horizon, self._temperature = group, oversample, horizon, temperature
        self._guided = guided
        self._on_groups, self._on_answers = on_groups, on_answers
        self.figures: dict[str, float] = {}

    def __call__(self, slots: list[Any], trainer: Any) -> dict[str, list | None]:
        """Makes one answer for each of `slots`, which are whole groups."""
        wanted = len(slots) // self._group
        model = trainer.accelerator.unwrap_model(trainer.model)
        sampled: list[Answered] = []
        groups: list[Answered] = []  # to be trained on
        for _ in range(self._oversample):
            found = sum(group.informative for group in groups)
            if groups and (self._oversample == 1 or _everywhere(trainer, found >= wanted)):
                break
            tasks = self._take(wanted)
            made = self._sample(model, tasks, trainer)
            sampled += made
            groups += self._guide(made, tasks) if self._guided else made
        self.figures = _figures(sampled)
        self._on_groups([answered.group for answered in sampled])
        self._on_answers(sampled)
        kept = sorted(groups, key=lambda group: not group.informative)[:wanted]
        scores = [score for group in kept for score in group.log_probs]
        return {
            "prompt_ids": [group.prompt for group in kept for _ in group.answers],
            "completion_ids": [answer for group in kept for answer in group.answers],
            "logprobs": scores if _is_scored(self._codec, trainer) else None,
            "plan_reward": [float(reward) for group in kept for reward in group.rewards],
        }

    def _sample(self, model: PreTrainedModel, tasks: list[Task], trainer: Any) -> list[Answered]:
        return answer_groups(
            model,
            self._tokenizer,
            tasks,
            self._group - self._guided,
            self._reward,
            horizon=self._horizon,
            temperature=self._temperature,
            codec=self._codec,
            trainer=trainer,
        )

    def _guide(self, made: list[Answered], tasks: list[Task]) -> Iterator[Answered]:
        """Adds the certified plans, judged like any answer: a plan longer than the horizon earns nothing."""
        plans = [self._codec.encode_answer(task.board, task.moves) for task in tasks]
        verdicts, moves = judge_answers(tasks, plans, self._horizon, self._codec)
        earned = rewards(tasks, verdicts, moves, self._reward)
        guides = zip(made, plans, verdicts.failure, earned, strict=True)
        return (answered.with_plan(plan, int(failure), float(reward)) for answered, plan, failure, reward in guides)

    def reward(
        self, plan_reward: list[float], log_metric: Callable[[str, float], None], **_: Any
    ) -> list[float | None]:
        """TRL's reward function: the rewards, and the figures of all answers sampled for this step."""
        for name, value in self.figures.items():
            log_metric(name, value)
        return list(plan_reward)


def _has_vllm(trainer: Any) -> bool:
    return bool(getattr(trainer, "use_vllm", False))


def _is_scored(codec: Codec, trainer: Any) -> bool:
    """Whether answers have log-probabilities: those of language models only from vLLM, whose deviation they correct."""
    return codec.name == "tokens" or _has_vllm(trainer)


def _everywhere(trainer: Any, here: bool) -> bool:
    """Whether `here` holds in all processes, which must sample the same number of times."""
    accelerator = trainer.accelerator
    if rank_and_processes()[1] == 1:
        return here
    return bool(accelerator.gather(torch.tensor([here], device=accelerator.device)).all())


def _figures(groups: list[Answered]) -> dict[str, float]:
    """Shares of all sampled answers, also of groups that are left out."""
    failures = np.concatenate([group.failures for group in groups])
    shares = {f"failure/{name}": float((failures == code).mean()) for code, name in enumerate(FAILURE_NAMES) if code}
    uninformative = float(np.mean([not group.informative for group in groups]))
    valid = float((failures == Failure.NONE).mean())
    earned = float(np.mean([group.rewards.mean() for group in groups]))
    tokens = float(sum(group.tokens for group in groups))
    sampled = {"groups": float(len(groups)), "tokens": tokens, "zero_variance": uninformative, "mean_reward": earned}
    return {"valid": valid, **shares, **{f"sampled/{name}": value for name, value in sampled.items()}}
