"""Problems in text as a `Play`: any objects with a prompt and a reference answer, and a function that judges answers.

    model, tokenizer = build_byte_policy("0.6M", seed=0)          # or load_model(...), a language model
    play = play_texts(model, tokenizer, judge, failures=("no_number", "wrong"), text=TextSettings(max_tokens=8))
    model = warm_up(model, play, DrawnTasks(draw), [], WarmupSettings(steps=500), seed=0)
    model = train_grpo(model, play, problems, GrpoSettings(steps=20), seed=1, scratch=folder)
    greedy = answer_groups(model, play, held_out)                 # with group=8, temperature=1.0: samples

The details of each judged answer are its text.
"""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.policy.codecs.problem_codec import BYTES, ByteCodec, ChatCodec, ProblemCodec, build_byte_tokenizer
from lakewright.policy.codecs.settings import TextSettings
from lakewright.policy.model_settings import ModelName, ModelSettings, resolve_shape
from lakewright.policy.models.building import TEXT, build_model, get_codec
from lakewright.policy.play import Judged, Tasks


class TextProblem(Protocol):
    """A question and a valid answer to it."""

    @property
    def prompt(self) -> str:
        """The question as the model reads it."""
        ...

    @property
    def answer(self) -> str:
        """The reference answer."""
        ...


class TextVerdict(Protocol):
    """A verdict on an answer: valid or not, its reward, and the name of its failure, empty if it is valid."""

    @property
    def valid(self) -> bool:
        """True if the answer is right."""
        ...

    @property
    def reward(self) -> float:
        """The number that training raises."""
        ...

    @property
    def failure(self) -> str:
        """One of the known failures."""
        ...


P = TypeVar("P", bound=TextProblem)


def key_of_prompt(problem: TextProblem) -> str:
    """Return the SHA-256 of a prompt, for problems without a key of their own."""
    return hashlib.sha256(problem.prompt.encode(errors="surrogatepass")).hexdigest()


class TextPlay(Generic[P]):
    """The `Play` of problems in text.

    Args:
        codec: turns texts into tokens and back.
        judge: gives a verdict for each of some problems and the text of an answer to it.
        failures: the names of all failures.
        max_tokens: most tokens of an answer, its end included.
        positions: most tokens of prompt and answer that the model reads; None if nothing limits them.
        key: gives the name of a problem in files.
    """

    plural = "problems"

    def __init__(
        self,
        codec: ProblemCodec,
        judge: Callable[[Sequence[P], list[str]], Sequence[TextVerdict]],
        failures: Sequence[str],
        *,
        max_tokens: int,
        positions: int | None = None,
        key: Callable[[P], str] = key_of_prompt,
    ) -> None:
        self.codec, self.failures = codec, tuple(failures)
        self._judge, self._key, self._longest, self._positions = judge, key, max_tokens, positions

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
        """The codec's."""
        return self.codec.scored

    def key(self, task: P) -> str:
        """See `Play`."""
        return self._key(task)

    def encode_prompt(self, task: P) -> list[int]:
        """See `Play`. Raises InputError if the model has no room for the prompt and the longest answer."""
        ids = self.codec.encode_prompt(task.prompt)
        if self._positions is not None and len(ids) + self._longest > self._positions:
            raise InputError(
                f"the prompt {task.prompt!r:.60} has {len(ids)} tokens, and answers may have {self._longest}: more "
                f"than the {self._positions} of the model; shorten it, lower text.max_tokens or raise model.positions"
            )
        return ids

    def encode_reference(self, task: P) -> list[int]:
        """See `Play`. Raises InputError if the reference is longer than answers may be."""
        ids = self.codec.encode_answer(task.answer)
        if len(ids) > self._longest:
            raise InputError(
                f"the reference answer {task.answer!r:.60} has {len(ids)} tokens with its end, and answers may have "
                f"{self._longest}; raise text.max_tokens"
            )
        return ids

    def longest_answer(self, tasks: Tasks[P]) -> int:
        """See `Play`: the same for all problems."""
        return self._longest

    def judge(self, tasks: Sequence[P], answers: Sequence[list[int]]) -> Judged:
        """Like `Play`, with the texts as details. Raises InputError on a verdict that contradicts itself."""
        texts = [self.codec.decode_answer(answer) for answer in answers]
        verdicts = list(self._judge(tasks, texts))
        if len(verdicts) != len(texts):
            raise InputError(f"judge: {len(verdicts)} verdicts on {len(texts)} answers; give one for each, in order")
        for text, verdict in zip(texts, verdicts, strict=True):
            self._check_verdict(text, verdict)
        valid = np.array([bool(verdict.valid) for verdict in verdicts])
        earned = np.array([float(verdict.reward) for verdict in verdicts])
        return Judged(valid, earned, [verdict.failure for verdict in verdicts], texts)

    def augment(self, task: P, rng: np.random.Generator) -> P:
        """See `Play`: a problem in text has no known symmetry."""
        return task

    def _check_verdict(self, text: str, verdict: TextVerdict) -> None:
        known = ("",) if verdict.valid else self.failures
        if verdict.failure not in known:
            kind, named = ("a valid", "no failure") if verdict.valid else ("an invalid", f"one of {', '.join(known)}")
            raise InputError(f"judge: {kind} answer {text!r:.60} has the failure {verdict.failure!r:.40}; name {named}")
        if not math.isfinite(verdict.reward):
            raise InputError(f"judge: the answer {text!r:.60} earns {verdict.reward}; give a finite reward")


def build_byte_policy(
    settings: ModelSettings | ModelName, seed: int, device: str = "auto", extra: Sequence[str] = ()
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return a transformer with random weights that reads and writes bytes, and its tokenizer; its codec is `bytes`.

    Args:
        settings: the model's shape; `positions` is the most bytes of prompt and answer, plus three.
        seed: seed of the weights.
        device: see `load_model`.
        extra: words in addition to the bytes.

    Raises InputError on the shape of a board network.
    """
    if resolve_shape(settings).architecture == "board":
        raise InputError("model.architecture is board, which reads boards and no text; set it to qwen3")
    tokenizer = build_byte_tokenizer(extra)
    model = build_model(settings, tokenizer, seed, device)
    model.config.codec = BYTES
    return model, tokenizer


def play_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    judge: Callable[[Sequence[Any], list[str]], Sequence[TextVerdict]],
    failures: Sequence[str],
    *,
    text: TextSettings = TextSettings(),  # noqa: B008 - it is frozen
    key: Callable[[Any], str] = key_of_prompt,
) -> TextPlay[Any]:
    """Return the `TextPlay` of a model: in bytes if its checkpoint says so, else as a language model.

    Args:
        model, tokenizer: the policy.
        judge, failures, key: see `TextPlay`.
        text: the length of answers and, for language models, how they are asked.

    Raises InputError if the model knows boards only.
    """
    name = get_codec(model)
    if name not in (BYTES, TEXT):
        raise InputError(f"codec is {name!r:.40}, which has no words for text; choose a model of {BYTES} or {TEXT}")
    codec = ByteCodec(tokenizer) if name == BYTES else ChatCodec(tokenizer, text)
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return TextPlay(codec, judge, failures, max_tokens=text.max_tokens, positions=positions, key=key)
