"""Teachers that ask a model, and the functions of a trainer that they need."""

import dataclasses

from lakewright.core_jax.errors import InputError
from lakewright.engineer.evidence.modules import EvidenceSettings
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.teachers.controls import MatchedRandomTeacher
from lakewright.engineer.teachers.llm import Ask, LlmTeacher
from lakewright.engineer.teachers.registry import make_teacher
from lakewright.engineer.teachers.self import (
    Decode,
    SampleAnswers,
    SampleJson,
    SelfTeacher,
    SelfTrainedLlmTeacher,
    SelfTrainedTeacher,
)


@dataclasses.dataclass(frozen=True)
class Tools:
    """A trainer's functions for teachers: its evidence settings, and the way in which their model is asked.

    That is `decode` for a model that answers in tokens, `ask` for a language model; `sample` and `sample_json` if
    it is trained on its answers too. proposals, inline: as in `LlmTeacher`.
    """

    evidence: EvidenceSettings = dataclasses.field(default_factory=EvidenceSettings)
    decode: Decode | None = None
    sample: SampleAnswers | None = None
    sample_json: SampleJson | None = None
    ask: Ask | None = None
    proposals: int = 1
    inline: bool = False


def ask_model(tools: Tools) -> Teacher:
    """The teacher that asks a model for an answer."""
    if tools.ask:
        return LlmTeacher(tools.ask, tools.evidence, tools.proposals, tools.inline)
    if tools.decode:
        return SelfTeacher(tools.decode, tools.evidence)
    raise InputError("teacher: tools to ask a model are missing; give tools, Tools(ask=...) or Tools(decode=...)")


def sample_model(tools: Tools) -> Teacher:
    """The teacher that samples a group of answers of a model that is trained on them."""
    if tools.sample:
        return SelfTrainedTeacher(tools.sample, tools.evidence)
    if tools.sample_json:
        return SelfTrainedLlmTeacher(tools.sample_json, tools.evidence)
    raise InputError("teacher: tools to sample from a model are missing; give tools, Tools(sample=...)")


def match_random(tools: Tools, match: str = "rules") -> Teacher:
    """The control that edits as much as another teacher."""
    return MatchedRandomTeacher(make_teacher(match, tools))
