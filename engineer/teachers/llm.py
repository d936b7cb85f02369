"""A language model as the teacher: it reads the evidence as text, reasons, and answers in JSON under a schema."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.engineer.delta import FIELDS, ConfigDelta, parse_delta
from lakewright.engineer.evidence import (
    STEPS,
    STRIDES,
    Evidence,
    EvidenceSettings,
    evidence_text,
    fitted,
    shown,
    token_estimate,
)
from lakewright.engineer.proposal import Proposal, Stateless
from lakewright.engineer.random_generators import Key, numpy_rng, split

Message = dict[str, str]  # role and content
THOUGHT, ANSWER = "</think>", "ANSWER:"  # what comes between reasoning and JSON
MOST = 65_536  # characters of an answer that are kept
REASON, REASONING = 160, 1000  # characters; llama.cpp takes no grammar of 1500
SYSTEM = (
    "You are the engineer of a training environment. A policy learns to plan the ways of several agents on boards of "
    "a frozen lake. You read how it does, and change the distribution of the boards that it trains on next. It is "
    "judged on held-out boards of all sizes, which you cannot change."
)
TASK = """\
## Your task
For each map size, change the share of boards (data_ratio), the share of cells that are holes (hole_ratio, 0 to 0.5) and
the share of boards on which a wait is forced (wait_ratio, 0 to 1). Give signed changes:
{changes}
0 keeps a ratio. Data ratios are made to sum to one afterwards, and what is illegal or too large a change is cut back.
Give a short reason for each size, first of all.{summary}
Think first. Then write a line {answer} and below it one JSON object of this form, with nothing after it,
with a number for each <change> and your own words for each <why>:
{form}
"""
SUMMARY = "\nAdd a summary of this round for yourself: you will read it in the next one."


class Reply(NamedTuple):
    """What a model said, how many tokens it generated, and what it cost in dollars."""

    text: str
    tokens: int
    dollars: float = 0.0


class Asked(NamedTuple):
    """A question to a model, the JSON schema of its answer, and what was cut from the evidence to fit."""

    messages: list[Message]
    schema: dict[str, Any]
    cut: tuple[str, ...]


class UnansweredError(Exception):
    """The model cannot be reached, or not afforded; the text is a line that says why."""


Ask = Callable[[list[Message], dict[str, Any], int], Reply]
"""Asks a model: messages, the JSON schema of the answer, and a seed. Raises UnansweredError."""


class Answer(ConfigDelta, frozen=True, forbid_unknown_fields=True):
    """The JSON of an answer: the delta, and what a model may add to it."""

    reasoning: str = ""
    summary: str = ""


class LlmTeacher(Stateless):
    """Asks `ask` for `proposals` answers; the first that can be used is the delta, the others are tried with it.

    inline: whether the reasoning is a part of the JSON, for servers that let a model write nothing else.
    """

    def __init__(self, ask: Ask, settings: EvidenceSettings, proposals: int = 1, inline: bool = False) -> None:
        self.ask = ask
        self.settings = settings
        self.proposals = proposals
        self.inline = inline
        self._unanswered = ""

    def propose(self, evidence: Evidence, config: EnvConfig, key: Key) -> Proposal:
        """The model's delta; whatever comes back, a proposal, with an error where it is none.

        A model that once could not be reached is not asked again: the error counts for all tries of a stage.
        """
        for_view, for_seeds = split(key)
        messages, schema, cut = asked_of(evidence, config, self.settings, for_view, self.inline)
        replies: list[Reply] = []
        for seed in numpy_rng(for_seeds).integers(np.iinfo(np.int32).max, size=self.proposals).tolist():
            try:
                replies.append(self._asked(messages, schema, seed))
            except UnansweredError as error:
                self._unanswered = str(error)
        proposal = proposal_of(replies, self._unanswered)
        return msgspec.structs.replace(proposal, prompt=prompt_text(messages), cut=cut)

    def _asked(self, messages: list[Message], schema: dict[str, Any], seed: int) -> Reply:
        if self._unanswered:
            raise UnansweredError(self._unanswered)
        return self.ask(messages, schema, seed)


def asked_of(
    evidence: Evidence, config: EnvConfig, settings: EvidenceSettings, key: Key, inline: bool = False
) -> Asked:
    """The question to a model about the evidence, with the schema of its answer.

    key: draws what the view of the evidence shows. inline: as in `LlmTeacher`.
    """
    modules = settings.chosen()
    view = shown(evidence, modules, key)
    view, cut = fitted(view, settings.budget, lambda view: token_estimate(evidence_text(view)))
    schema = answer_schema(config, inline, modules.self_summary)
    return Asked(_messages(view, config, modules.self_summary), schema, cut)


def answer_schema(config: EnvConfig, inline: bool, summary: bool) -> dict[str, Any]:
    """The JSON schema of an answer for the sizes of `config`: changes in whole steps, texts of bounded length.

    All fields are required and no others allowed, as strict servers demand; `parse_answer` is more lenient.
    """
    changes = {field: {"enum": _steps(field)} for field in FIELDS}
    edit = _object({"reason": _line(REASON), **changes})
    edits = _object({str(size): edit for size in sorted(config.sizes)})
    before = {"reasoning": _line(REASONING, placeholders="")} if inline else {}
    return _object({**before, "edits": edits, **({"summary": _line(REASON)} if summary else {})})


def parse_answer(text: str) -> Answer:
    """The JSON object that ends a model's answer, after its reasoning and without a code fence.

    Raises InputError, and nothing else, where the answer is not that.
    """
    last = text.rpartition(THOUGHT)[2].rpartition(ANSWER)[2].strip()
    fenced = last.startswith("```") and last.endswith("```") and len(last) > 6
    return parse_delta(last[3:-3].removeprefix("json") if fenced else last, Answer)


def prompt_text(messages: Sequence[Message]) -> str:
    """Messages as a text to be read."""
    return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)


def proposal_of(replies: Sequence[Reply], unanswered: str = "") -> Proposal:
    """The first usable answer as the delta, the other usable ones as candidates; the prompt is the caller's.

    unanswered: why there are no replies.
    """
    texts = [_writable(reply.text[:MOST]) for reply in replies]
    answers, errors = [], []
    for text in (reply.text for reply in replies):
        try:
            answers.append(parse_answer(text))
        except InputError as error:
            errors.append(str(error))
    tokens, dollars = sum(reply.tokens for reply in replies), sum(reply.dollars for reply in replies)
    whole = "\n\n".join(texts)
    if not answers:
        return Proposal("", whole, None, _writable(unanswered) or errors[0], tokens=tokens, dollars=dollars)
    first, *others = (ConfigDelta(answer.edits) for answer in answers)
    return Proposal(
        prompt="",
        answer=whole,
        delta=first,
        candidates=tuple(others),
        summary=answers[0].summary,
        tokens=tokens,
        dollars=dollars,
    )


def _writable(text: str) -> str:
    """Text that a file can hold: halves of surrogate pairs spelled out."""
    return text.encode(errors="backslashreplace").decode()


def _messages(view: Evidence, config: EnvConfig, summary: bool) -> list[Message]:
    changes = "\n".join(f"- {field}: {', '.join(f'{step:g}' for step in _steps(field))}" for field in FIELDS)
    form = _form(sorted(config.sizes), summary)
    task = TASK.format(changes=changes, answer=ANSWER, form=form, summary=SUMMARY if summary else "")
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"{evidence_text(view)}\n{task}"}]


def _form(sizes: Sequence[int], summary: bool) -> str:
    """The form of an answer. It is no JSON itself, as small models copy an example to the letter."""
    edit = ",".join(['"reason":"<why>"', *(f'"{field}":<change>' for field in FIELDS)])
    edits = ",".join(f'"{size}":{{{edit}}}' for size in sizes)
    last = ',"summary":"<summary>"' if summary else ""
    return f'{{"edits":{{{edits}}}{last}}}'


def _steps(field: str) -> list[float]:
    return sorted(round(stride * STEPS[field], 6) for stride in (0, *STRIDES))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _line(most: int, placeholders: str = "<>") -> dict[str, Any]:
    # Without quotes, backslashes and control characters: llama.cpp matches what a dot means against raw JSON. And
    # without what encloses the placeholders of the form, as these are no answer.
    return {"type": "string", "pattern": rf'^[^"\\{placeholders}\x00-\x1f]{{1,{most}}}$'}
