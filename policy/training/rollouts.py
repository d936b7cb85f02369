"""Rollouts: groups of answers to a task, judged as they are made, so that GRPO can leave out groups without signal.

A group whose rewards are all equal has no advantages and costs an update for nothing. DAPO's dynamic sampling (Yu et
al. 2025, section 3.2) samples more tasks and keeps the informative groups. TRL asks a `rollout_func` for a number of
answers and takes the prompts and answers that it returns: so tasks are chosen here, and the trainer is unchanged.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import torch
from transformers import PreTrainedModel

from lakewright.core_jax.results import RolloutGroup, informative
from lakewright.policy.inference.answers import AnswerSampler, find_answers
from lakewright.policy.play import Judged, Play
from lakewright.policy.training.hardware import TrainerAnswers, rank_and_processes

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Answered:
    """The G answers to a task, and the verdicts on them.

    Args:
        key: the task's key.
        prompt: token ids.
        answers: token ids of each answer.
        log_probs: one for each token at the sampling temperature, empty if not requested.
        judged: the verdicts.
    """

    key: str
    prompt: list[int]
    answers: list[list[int]]
    log_probs: list[list[float]]
    judged: Judged

    @property
    def rewards(self) -> np.ndarray:
        """The reward of each answer, float [G]."""
        return self.judged.rewards

    @property
    def informative(self) -> bool:
        """True if GRPO learns from the group."""
        return informative(self.rewards)

    @property
    def tokens(self) -> int:
        """The number of sampled tokens."""
        return sum(map(len, self.answers))

    def with_reference(self, answer: list[int], judged: Judged) -> "Answered":
        """Return these answers and one that was not sampled, so that its log-probabilities are unknown."""
        answers, log_probs = [*self.answers, answer], [*self.log_probs, [0.0] * len(answer)]
        return Answered(self.key, self.prompt, answers, log_probs, self.judged.append_verdicts(judged))

    @property
    def group(self) -> RolloutGroup:
        """The group of the answers."""
        failures = dict(Counter(filter(None, self.judged.failures)))
        counted = RolloutGroup.of(self.key, self.judged.valid, self.rewards)
        return msgspec.structs.replace(counted, failures=failures, tokens=self.tokens)


def roll_out(
    policy: PreTrainedModel | AnswerSampler,
    play: Play[T],
    tasks: Sequence[T],
    group: int,
    *,
    seed: int,
    temperature: float = 1.0,
    on_progress: Callable[[int], None] = lambda answers: None,
) -> tuple[list[RolloutGroup], int]:
    """Return sampled answers to each task, judged as in training: the groups in order, and the tokens generated.

    Args:
        policy, play, tasks: see `answer_groups`.
        group: answers to each task.
        seed: seed of the sampling; torch's own generator does not change.
        temperature: sampling temperature.
        on_progress: gets how many more answers are sampled.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = answer_groups(
            policy,
            play,
            tasks,
            group,
            temperature=temperature,
            on_progress=lambda prompts: on_progress(prompts * group),
        )
    return [answered.group for answered in made], sum(answered.tokens for answered in made)


def answer_groups(
    policy: PreTrainedModel | AnswerSampler,
    play: Play[T],
    tasks: Sequence[T],
    group: int = 1,
    *,
    temperature: float = 0.0,
    on_progress: Callable[[int], None] = lambda prompts: None,
) -> list[Answered]:
    """Return judged answers to each task.

    Args:
        policy: the model, or what answers for it.
        play, tasks: the kind of tasks, and the tasks.
        group: answers to each task.
        temperature: sampling temperature; 0 is greedy.
        on_progress: gets how many more tasks are answered.

    Raises InputError as `play` does.
    """
    if not tasks:
        return []
    prompts = [play.encode_prompt(task) for task in tasks]
    made = find_answers(policy, play.tokenizer, play.batch).sample(
        prompts,
        copies=group,
        max_new_tokens=play.longest_answer(tasks),
        temperature=temperature,
        scored=play.scored,
        on_progress=on_progress,
    )
    judged = play.judge([task for task in tasks for _ in range(group)], made.answers)
    parts = [slice(begin, begin + group) for begin in range(0, len(made.answers), group)]
    return [
        Answered(play.key(task), prompt, made.answers[rows], made.log_probs[rows], judged.select_rows(rows))
        for task, prompt, rows in zip(tasks, prompts, parts, strict=True)
    ]


class Rollouts(Generic[T]):
    """TRL's `rollout_func`: fills the requested groups with answers to tasks.

    Args:
        take: gives the next tasks.
        play: asks and judges them.
        group: answers to a task.
        oversample: up to this many times as many tasks are sampled, in rounds, until enough groups are informative; if
            too few are, the first of the others fill the rest. With 1 no group is left out.
        temperature: sampling temperature.
        guided: the last answer of each group is the reference answer (off-policy guidance: Yan et al. 2025, arXiv
            2504.14945), so that a group of failures has a signal too; figures and groups count sampled answers only.
        on_groups: gets all sampled groups.
        on_answers: gets their answers too.
    """

    def __init__(
        self,
        take: Callable[[int], list[T]],
        play: Play[T],
        *,
        group: int,
        oversample: int,
        temperature: float,
        guided: bool = False,
        on_groups: Callable[[list[RolloutGroup]], None] = lambda groups: None,
        on_answers: Callable[[list[Answered]], None] = lambda answers: None,
    ) -> None:
        self._take, self._play = take, play
        self._group, self._oversample, self._temperature = group, oversample, temperature
        self._guided = guided
        self._on_groups, self._on_answers = on_groups, on_answers
        self.figures: dict[str, float] = {}

    def __call__(self, slots: list[Any], trainer: Any) -> dict[str, list | None]:
        """Return one answer for each of `slots`, which are whole groups."""
        wanted = len(slots) // self._group
        by_vllm = bool(getattr(trainer, "use_vllm", False))
        policy = TrainerAnswers(trainer) if by_vllm else trainer.accelerator.unwrap_model(trainer.model)
        sampled: list[Answered] = []
        groups: list[Answered] = []  # to be trained on
        for _ in range(self._oversample):
            found = sum(group.informative for group in groups)
            if groups and (self._oversample == 1 or _holds_everywhere(trainer, found >= wanted)):
                break
            tasks = self._take(wanted)
            made = answer_groups(policy, self._play, tasks, self._group - self._guided, temperature=self._temperature)
            sampled += made
            groups += self._add_references(made, tasks) if self._guided else made
        self.figures = _compute_figures(sampled, self._play.failures)
        self._on_groups([answered.group for answered in sampled])
        self._on_answers(sampled)
        # Sorting is stable: informative groups first, in the order of sampling.
        chosen = sorted(groups, key=lambda group: not group.informative)[:wanted]
        scores = [score for group in chosen for score in group.log_probs]
        return {
            "prompt_ids": [group.prompt for group in chosen for _ in group.answers],
            "completion_ids": [answer for group in chosen for answer in group.answers],
            # Language models have them only from vLLM, whose deviation they correct.
            "logprobs": scores if self._play.scored or by_vllm else None,
            "plan_reward": [float(reward) for group in chosen for reward in group.rewards],
        }

    def _add_references(self, made: list[Answered], tasks: list[T]) -> Iterator[Answered]:
        """Add the reference answers, judged like any answer: a plan longer than the horizon earns nothing."""
        references = [self._play.encode_reference(task) for task in tasks]
        judged = self._play.judge(tasks, references)
        for place, (answered, answer) in enumerate(zip(made, references, strict=True)):
            yield answered.with_reference(answer, judged.select_rows(slice(place, place + 1)))

    def reward(
        self, plan_reward: list[float], log_metric: Callable[[str, float], None], **_: Any
    ) -> list[float | None]:
        """Return the rewards and log the figures of all answers sampled for this step. TRL's reward function."""
        for name, value in self.figures.items():
            log_metric(name, value)
        return list(plan_reward)


def _holds_everywhere(trainer: Any, here: bool) -> bool:
    """Return True if `here` holds in all processes, which must sample the same number of times."""
    accelerator = trainer.accelerator
    if rank_and_processes()[1] == 1:
        return here
    return bool(accelerator.gather(torch.tensor([here], device=accelerator.device)).all())


def _compute_figures(groups: list[Answered], names: Sequence[str]) -> dict[str, float]:
    """Return shares of all sampled answers, including groups that are left out."""
    failures = Counter(name for group in groups for name in group.judged.failures)
    answers = failures.total()
    shares = {f"failure/{name}": failures[name] / answers for name in names}
    uninformative = float(np.mean([not group.informative for group in groups]))
    earned = float(np.mean([group.rewards.mean() for group in groups]))
    tokens = float(sum(group.tokens for group in groups))
    sampled = {"groups": float(len(groups)), "tokens": tokens, "zero_variance": uninformative, "mean_reward": earned}
    valid = float(np.concatenate([group.judged.valid for group in groups]).mean())
    return {"valid": valid, **shares, **{f"sampled/{name}": value for name, value in sampled.items()}}
