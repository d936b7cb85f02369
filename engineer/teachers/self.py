"""The policy itself as the teacher: the current checkpoint answers, and may be trained on what its answers earn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.calls import escape_surrogates
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence.evidence import Evidence, show_evidence
from lakewright.engineer.evidence.modules import EvidenceSettings, fit_to_budget
from lakewright.engineer.evidence.token_form import evidence_tokens, read_tokens
from lakewright.engineer.evidence.vocabulary import DeltaGrammar
from lakewright.engineer.proposal import AnswerTokens, Proposal, Stateful
from lakewright.engineer.random_generators import Key, numpy_rng, split_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.llm import Reply, parse_reply, propose_replies
from lakewright.engineer.teachers.llm_prompt import Message, ask_about, prompt_text

Allowed = Callable[[Sequence[str]], tuple[str, ...]]
Decode = Callable[[list[str], Allowed], list[str]]
SampleAnswers = Callable[[list[str], Allowed, int], list[list[str]]]
"""Samples a group of answers: prompt tokens, the function prefix -> allowed next tokens, and a seed."""
A = TypeVar("A")


@dataclass
class SelfTeacher(Stateful):
    """Asks `decode`, which maps prompt tokens and a function prefix -> allowed next tokens to answer tokens.

    It is shown what `settings` switch on; its own answer is its summary of the round.
    """

    reads_outcomes = True

    decode: Decode
    settings: EvidenceSettings

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The checkpoint's delta; whatever tokens come back, a proposal, with an error if they make no delta."""
        allowed = DeltaGrammar(space, design.strata).allowed
        return _propose_in_tokens(evidence, space, self.settings, key, lambda prompt: [self.decode(prompt, allowed)])


def _propose_in_tokens(
    evidence: Evidence,
    space: DesignSpace,
    settings: EvidenceSettings,
    key: Key,
    ask: Callable[[list[str]], list[list[str]]],
) -> Proposal:
    """The different deltas of the answers to the shown evidence; with an error if no answer makes one."""
    view = show_evidence(evidence, settings.chosen(), key)
    view, cut = fit_to_budget(view, settings.budget, lambda view: len(evidence_tokens(view, space)))
    answers = ask(prompt := evidence_tokens(view, space))
    read = read_token_answers(answers, space)
    usable = [delta for delta in read if isinstance(delta, Delta)]
    different = [delta for place, delta in enumerate(usable) if delta not in usable[:place]]
    # Whatever came back must go into a file: what is not text is written as escapes.
    texts = [escape_surrogates(" ".join(map(str, answer))) for answer in answers]
    return Proposal(
        prompt=" ".join(prompt),
        answer="\n".join(texts),
        delta=different[0] if different else None,
        error="" if different else str(read[0]),
        candidates=tuple(different[1:]),
        summary=texts[0],
        cut=cut,
        tokens=sum(map(len, answers)),
    )


class SampledAnswers(NamedTuple):
    """A group of answers of a language model: as its tokens, with the prompt's, and as texts."""

    tokens: AnswerTokens
    texts: list[str]


SampleJson = Callable[[list[Message], dict[str, Any], int], SampledAnswers]
"""Samples a group of answers in JSON: messages, the schema of an answer, and a seed."""


@dataclass
class SelfTrainedTeacher(Stateful):
    """Asks `sample` for a group of answers: the first that makes a delta is proposed, the others are its candidates.

    The training that follows from their rewards is the loop's.
    """

    reads_outcomes = True

    sample: SampleAnswers
    settings: EvidenceSettings

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The checkpoint's deltas, an answer a line; with an error if no answer makes one."""
        showing, asking = split_key(key)
        allowed, seed = DeltaGrammar(space, design.strata).allowed, int(numpy_rng(asking).integers(2**31))
        return _propose_in_tokens(
            evidence, space, self.settings, showing, lambda prompt: self.sample(prompt, allowed, seed)
        )


@dataclass
class SelfTrainedLlmTeacher(Stateful):
    """Like `SelfTrainedTeacher`, for a language model: it answers in JSON at once, without a thought before it."""

    reads_outcomes = True

    sample: SampleJson
    settings: EvidenceSettings

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The checkpoint's deltas; with an error if no answer makes one."""
        showing, asking = split_key(key)
        messages, schema, cut = ask_about(evidence, design, space, self.settings, showing)
        tokens, texts = self.sample(messages, schema, int(numpy_rng(asking).integers(2**31)))
        replies = [Reply(text, len(answer)) for text, answer in zip(texts, tokens.answers, strict=True)]
        proposal = propose_replies(replies, space)
        return msgspec.structs.replace(proposal, prompt=prompt_text(messages), cut=cut, spoken=tokens)


def read_token_answers(answers: Sequence[Sequence[str]], space: DesignSpace) -> list[Delta | InputError]:
    """The delta of each answer in tokens, or the error."""
    return _read_answers(lambda answer: read_tokens(answer, space), answers)


def read_json_answers(texts: Sequence[str], space: DesignSpace) -> list[Delta | InputError]:
    """The delta of each answer in JSON, or the error."""
    return _read_answers(lambda text: parse_reply(text, space)[0], texts)


def _read_answers(reader: Callable[[A], Delta], answers: Sequence[A]) -> list[Delta | InputError]:
    found: list[Delta | InputError] = []
    for answer in answers:
        try:
            found.append(reader(answer))
        except InputError as error:
            found.append(error)
    return found
