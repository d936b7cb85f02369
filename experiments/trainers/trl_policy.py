"""The policy that TRL trains, asked by the trainer's own generation: rollouts for trials, and answers of an engineer.

Generation is the work of all processes together because weights may be sharded and vLLM is shared. So the first
process, which decides, sends each request to the others, and these answer requests until it has decided.
"""

import contextlib
import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from trl import GRPOTrainer

from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Group, Problem, Verdict
from lakewright.engineer.teachers import Message, Reply, prompt_text
from lakewright.experiments.trainers.trl_episodes import Prompt, RolloutFactory
from lakewright.experiments.trainers.trl_texts import read_completion_text, write_prompt

T = TypeVar("T")
TURNS = 1000  # of a trial, at most: those of another step have other seeds


class GenerationRequest(NamedTuple):
    """Generation in all processes: answers to each prompt, with chance from a seed, up to a number of tokens.

    tokens: None is as many as the trainer allows. problems: the prompts' own if episodes on them are played.
    """

    prompts: list[Prompt]
    answers: int
    seed: int
    tokens: int | None = None
    problems: Sequence[Problem] = ()


NO_REQUEST: GenerationRequest | None = None


class PolicyAnswer(NamedTuple):
    """A text, and its length in tokens. verdict: the verdict of an episode."""

    text: str
    tokens: int
    verdict: Verdict | None = None


class TrainedPolicy:
    """The policy of a trainer. The random draws and the logs of training are as if nothing had been generated."""

    def __init__(
        self,
        trainer: GRPOTrainer,
        environment: Environment,
        *,
        chat: bool,
        answer_tokens: int,
        rollouts: RolloutFactory | None = None,
    ) -> None:
        """Wraps a trainer.

        Args:
            environment: judges the answers.
            chat: whether prompts are messages.
            answer_tokens: the most tokens of an answer as the engineer.
            rollouts: run the episodes of an environment of several turns.
        """
        self.trainer, self.environment, self.chat, self.answer_tokens = trainer, environment, chat, answer_tokens
        self.rollouts, self.step = rollouts, 0

    def roll_out(self, problems: Sequence[Problem], samples: int, turn: int) -> tuple[list[Group], int]:
        """Groups of answers to problems, and their tokens: a `RollOut`, called in the first process."""
        prompts = [write_prompt(problem.prompt, chat=self.chat) for problem in problems]
        played = list(problems) if self.rollouts else []
        answers = self._generate_everywhere(
            GenerationRequest(prompts, samples, TURNS * self.step + turn, problems=played)
        )
        tokens = sum(answer.tokens for part in answers for answer in part)
        if self.rollouts:
            verdicts = [[answer.verdict for answer in part if answer.verdict] for part in answers]
            return list(map(Group.from_verdicts, problems, verdicts)), tokens
        return self.environment.groups(problems, [[answer.text for answer in part] for part in answers]), tokens

    def ask(self, messages: list[Message], schema: dict[str, Any], seed: int) -> Reply:
        """The policy's answer as the engineer: an `Ask`, called in the first process. The schema is in the messages."""
        prompt: Prompt = messages if self.chat else f"{prompt_text(messages)}\n\n[assistant]\n"
        ((answer,),) = self._generate_everywhere(GenerationRequest([prompt], 1, seed, self.answer_tokens))
        return Reply(answer.text, answer.tokens)

    def serve_requests(self) -> None:
        """Generates what the first process asks for, until it has decided; called in all other processes."""
        while (request := send_from_first(NO_REQUEST)) is not None:
            self._generate_share(request)

    def end_requests(self) -> None:
        """Lets the other processes go on; called in the first process, once it has decided."""
        send_from_first(NO_REQUEST)

    def _generate_everywhere(self, request: GenerationRequest) -> list[list[PolicyAnswer]]:
        """The answers to each prompt."""
        send_from_first(request)
        found = self._generate_share(request)
        many = len(found) // len(request.prompts)
        return [found[place * many :][: request.answers] for place in range(len(request.prompts))]

    def _generate_share(self, request: GenerationRequest) -> list[PolicyAnswer]:
        """Generates this process's part of a request; the answers of all processes, for each prompt equally many."""
        trainer = self.trainer
        many = self._count_repeats(request.answers)
        rank, world = trainer.accelerator.process_index, trainer.accelerator.num_processes
        share = -(-len(request.prompts) // world)  # the same for all, as some ways to generate ask for that
        last = len(request.prompts) - 1
        mine = [min(place, last) for place in range(rank * share, (rank + 1) * share) for _ in range(many)]
        batch = max(1, trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation // many) * many
        answers: list[PolicyAnswer] = []
        with _leave_as_it_is(trainer, request.seed + rank), _limit_tokens(trainer, request.tokens):
            for begin in range(0, len(mine), batch):
                answers += self._generate_batch(request, mine[begin : begin + batch])
        return _gather_answers(answers)[: many * len(request.prompts)]

    def _generate_batch(self, request: GenerationRequest, places: Sequence[int]) -> list[PolicyAnswer]:
        """The answers to the prompts of some places of a request."""
        prompts = [request.prompts[place] for place in places]
        if not self.rollouts:
            return self._generate_texts(prompts)
        problems = [request.problems[place] for place in places if request.problems]
        with self.rollouts.play_here(self.trainer, prompts, problems) as (rollouts, begun):
            answers = self._generate_texts(begun)
            verdicts = [rollout.verdict for rollout in rollouts]
        return [answer._replace(verdict=verdict) for answer, verdict in itertools.zip_longest(answers, verdicts)]

    def _generate_texts(self, prompts: Sequence[Prompt]) -> list[PolicyAnswer]:
        _, ids, _, completions, *_ = self.trainer._generate(prompts)
        return [
            PolicyAnswer(read_completion_text(one, tokens, self.trainer.processing_class), len(tokens))
            for one, tokens in zip(completions, ids, strict=True)
        ]

    def _count_repeats(self, answers: int) -> int:
        """Repetitions of a prompt: a server that samples for the trainer answers in whole groups of its own."""
        trainer = self.trainer
        if not (trainer.use_vllm and trainer.vllm_mode == "server"):
            return answers
        group = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        return -(-answers // group) * group


def send_from_first(value: T) -> T:
    """Sends a value from the first process to all others; what it is."""
    sent = [value]
    if torch.distributed.is_initialized():
        torch.distributed.broadcast_object_list(sent, src=0)
    return sent[0]


def _gather_answers(answers: list[PolicyAnswer]) -> list[PolicyAnswer]:
    """The answers of all processes, in the order of their ranks."""
    if not torch.distributed.is_initialized():
        return answers
    found: list[list[PolicyAnswer]] = [[] for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather_object(found, answers)
    return [answer for part in found for answer in part]


@contextlib.contextmanager
def _leave_as_it_is(trainer: GRPOTrainer, seed: int) -> Iterator[None]:
    """Chance from a seed in the block; afterwards the trainer's chance, counts and metrics are restored."""
    metrics, seen = copy.deepcopy(trainer._metrics), trainer.state.num_input_tokens_seen
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices):
            torch.manual_seed(seed)
            yield
    finally:
        trainer._metrics, trainer.state.num_input_tokens_seen = metrics, seen


@contextlib.contextmanager
def _limit_tokens(trainer: GRPOTrainer, tokens: int | None) -> Iterator[None]:
    """Limits the tokens of an answer in the block; None leaves the limit of the trainer."""
    owner, name = (
        (trainer.vllm_generation, "max_completion_length")
        if trainer.use_vllm
        else (trainer.generation_config, "max_new_tokens")
    )
    before = getattr(owner, name)
    setattr(owner, name, tokens or before)
    try:
        yield
    finally:
        setattr(owner, name, before)
