"""The policy itself as the teacher, trained on what its proposals are worth: a group of answers instead of one."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import (
    DeltaGrammar,
    Evidence,
    EvidenceSettings,
    evidence_tokens,
    fitted,
    shown,
    tokens_delta,
)
from lakewright.engineer.proposal import Proposal, Spoken, Stateless
from lakewright.engineer.random_generators import Key, numpy_rng, split
from lakewright.engineer.teachers.llm import Message, Reply, asked_of, parse_answer, prompt_text, proposal_of
from lakewright.engineer.teachers.self import Allowed

Sample = Callable[[list[str], Allowed, int], list[list[str]]]
"""Samples a group of answers: prompt tokens, the function prefix -> allowed next tokens, and a seed."""


class Said(NamedTuple):
    """A group of answers of a language model: as its tokens, with those of the prompt, and as texts."""

    spoken: Spoken
    texts: list[str]


SampleJson = Callable[[list[Message], dict[str, Any], int], Said]
"""Samples a group of answers in JSON: messages, the schema of an answer, and a seed."""
A = TypeVar("A")


class SelfTrainedTeacher(Stateless):
    """Asks `sample` for a group of answers: the first that makes a delta is proposed, the others are its candidates.

    The training that follows from what they earn is the loop's.
    """

    def __init__(self, sample: Sample, settings: EvidenceSettings) -> None:
        self.sample = sample
        self.settings = settings

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The checkpoint's deltas, an answer a line; with an error where no answer makes one."""
        showing, asking = split(key)
        view = shown(evidence, self.settings.chosen(), showing)
        view, cut = fitted(view, self.settings.budget, lambda view: len(evidence_tokens(view)))
        prompt = evidence_tokens(view)
        seed = int(numpy_rng(asking).integers(2**31))
        answers = self.sample(prompt, DeltaGrammar(config.sizes).allowed, seed)
        text = "\n".join(" ".join(answer) for answer in answers)
        found = deltas_of(answers)
        usable = [delta for delta in found if isinstance(delta, ConfigDelta)]
        different = [delta for place, delta in enumerate(usable) if delta not in usable[:place]]
        return Proposal(
            prompt=" ".join(prompt),
            answer=text,
            delta=different[0] if different else None,
            error="" if different else str(found[0]),
            candidates=tuple(different[1:]),
            summary=" ".join(answers[0]),
            cut=cut,
            tokens=sum(map(len, answers)),
        )


class SelfTrainedLlmTeacher(Stateless):
    """As `SelfTrainedTeacher`, for a language model: it answers in JSON at once, without a thought before it."""

    def __init__(self, sample: SampleJson, settings: EvidenceSettings) -> None:
        self.sample = sample
        self.settings = settings

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The checkpoint's deltas; with an error where no answer makes one."""
        showing, asking = split(key)
        messages, schema, cut = asked_of(evidence, config, self.settings, showing)
        spoken, texts = self.sample(messages, schema, int(numpy_rng(asking).integers(2**31)))
        replies = [Reply(text, len(answer)) for text, answer in zip(texts, spoken.answers, strict=True)]
        proposal = proposal_of(replies)
        return msgspec.structs.replace(proposal, prompt=prompt_text(messages), cut=cut, spoken=spoken)


def deltas_of(answers: Sequence[Sequence[str]]) -> list[ConfigDelta | InputError]:
    """What each answer in tokens means, or why it means nothing."""
    return _read(tokens_delta, answers)


def deltas_in_json(texts: Sequence[str]) -> list[ConfigDelta | InputError]:
    """What each answer in JSON means, or why it means nothing."""
    return _read(lambda text: ConfigDelta(parse_answer(text).edits), texts)


def _read(reader: Callable[[A], ConfigDelta], answers: Sequence[A]) -> list[ConfigDelta | InputError]:
    found: list[ConfigDelta | InputError] = []
    for answer in answers:
        try:
            found.append(reader(answer))
        except InputError as error:
            found.append(error)
    return found
