"""A language model as the teacher: it reads the evidence as text, reasons, and answers in JSON under a schema."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import strip_thoughts
from lakewright.engineer.calls import escape_surrogates
from lakewright.engineer.delta_parsing import read_answer
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.evidence.modules import EvidenceSettings
from lakewright.engineer.proposal import Proposal, Stateful
from lakewright.engineer.random_generators import Key, numpy_rng, split_key
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.teachers.llm_prompt import ANSWER, Message, ask_about, prompt_text

MOST = 65_536  # characters of an answer that are recorded


class Reply(NamedTuple):
    """The text of a model's answer, the number of tokens generated, and the cost in dollars."""

    text: str
    tokens: int
    dollars: float = 0.0


class UnansweredError(Exception):
    """The model cannot be reached, or not afforded; the text is a line that says why."""


Ask = Callable[[list[Message], dict[str, Any], int], Reply]
"""Asks a model: messages, the JSON schema of the answer, and a seed. Raises UnansweredError."""


@dataclass
class LlmTeacher(Stateful):
    """Asks `ask` for `proposals` answers; the first that can be used is the delta, the others are tried with it.

    Args:
        ask: asks the model.
        settings: choose what the model is shown of the evidence.
        proposals: how many answers are asked for.
        inline: whether the reasoning is a part of the JSON, for servers that let a model write nothing else.
    """

    reads_outcomes = True

    ask: Ask
    settings: EvidenceSettings
    proposals: int = 1
    inline: bool = False

    def __post_init__(self) -> None:
        self._unanswered = ""  # no field, as it is no state: a resumed run asks again

    def propose(self, evidence: Evidence, design: Design, space: DesignSpace, key: Key) -> Proposal:
        """The model's delta; whatever comes back, a proposal, with an error if it is not one.

        A model that once could not be reached is not asked again: the error counts for all tries of a stage.
        """
        for_view, for_seeds = split_key(key)
        messages, schema, cut = ask_about(evidence, design, space, self.settings, for_view, inline=self.inline)
        replies: list[Reply] = []
        for seed in numpy_rng(for_seeds).integers(np.iinfo(np.int32).max, size=self.proposals).tolist():
            try:
                replies += [] if self._unanswered else [self.ask(messages, schema, seed)]
            except UnansweredError as error:
                self._unanswered = str(error)
        proposal = propose_replies(replies, space, self._unanswered)
        return msgspec.structs.replace(proposal, prompt=prompt_text(messages), cut=cut)


def parse_reply(text: str, space: DesignSpace) -> tuple[Delta, str]:
    """The delta and the summary of the JSON that ends a model's answer, after its reasoning and without a code fence.

    Raises InputError, and nothing else, if the answer is not that.
    """
    # The last marker counts: a model may write the word while it reasons about the form.
    last = strip_thoughts(text).rpartition(ANSWER)[2].strip()
    fenced = last.startswith("```") and last.endswith("```") and len(last) > 6
    return read_answer(last[3:-3].removeprefix("json") if fenced else last, space)


def propose_replies(replies: Sequence[Reply], space: DesignSpace, unanswered: str = "") -> Proposal:
    """The first usable answer as the delta, the other usable ones as candidates; the prompt is the caller's.

    unanswered: why replies are missing.
    """
    answers, errors = [], []
    for reply in replies:
        try:
            answers.append(parse_reply(reply.text, space))
        except InputError as error:
            errors.append(str(error))
    tokens, dollars = sum(reply.tokens for reply in replies), sum(reply.dollars for reply in replies)
    whole = "\n\n".join(escape_surrogates(reply.text[:MOST]) for reply in replies)
    # The first error is told to the model; the others are of the same question and would only make the next prompt
    # longer.
    if not answers:
        return Proposal("", whole, None, escape_surrogates(unanswered) or errors[0], tokens=tokens, dollars=dollars)
    (first, summary), *others = answers
    candidates = tuple(delta for delta, _ in others)
    return Proposal("", whole, first, candidates=candidates, summary=summary, tokens=tokens, dollars=dollars)
