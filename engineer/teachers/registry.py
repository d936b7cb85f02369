"""The teachers by name."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.evidence import EvidenceSettings
from lakewright.engineer.options import checked_options
from lakewright.engineer.plugins import load_class
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.teachers.controls import MatchedRandomTeacher, check_match
from lakewright.engineer.teachers.llm import Ask, LlmTeacher
from lakewright.engineer.teachers.self import Decode, SelfTeacher
from lakewright.engineer.teachers.self_trained import Sample, SampleJson, SelfTrainedLlmTeacher, SelfTrainedTeacher

ROOM = "lakewright.engineer.teachers"
TEACHERS = {
    "fixed": f"{ROOM}.controls:FixedTeacher",
    "static": f"{ROOM}.controls:StaticTeacher",
    "domain_randomisation": f"{ROOM}.controls:DomainRandomisationTeacher",
    "random": f"{ROOM}.controls:RandomTeacher",
    "rules": f"{ROOM}.rules:RulesTeacher",
    "proportional": f"{ROOM}.proportional:ProportionalTeacher",
    "e2h_cosine": f"{ROOM}.e2h:CosineTeacher",
    "e2h_gaussian": f"{ROOM}.e2h:GaussianTeacher",
    "adarft": f"{ROOM}.adarft:AdaRFTTeacher",
    "sec": f"{ROOM}.sec:SecTeacher",
    "thompson": f"{ROOM}.thompson:ThompsonTeacher",
    "alp_gmm": f"{ROOM}.alp_gmm:AlpGmmTeacher",
    "sfl": f"{ROOM}.sfl:SflTeacher",
    "rlve": f"{ROOM}.rlve:RlveTeacher",
    "coaching": f"{ROOM}.coaching:CoachingTeacher",
    "difficulty_pools": f"{ROOM}.difficulty_pools:DifficultyPoolsTeacher",
    "learning_progress": f"{ROOM}.learning_progress:LearningProgressTeacher",
    "dump": f"{ROOM}.dump:DumpTeacher",
    "difficulty": f"{ROOM}.difficulty:DifficultyTeacher",
    "forecast": f"{ROOM}.forecast:ForecastTeacher",
    "saboteur": f"{ROOM}.controls:SaboteurTeacher",
    "matched_random": f"{ROOM}.registry:match_random",
    "self": f"{ROOM}.registry:ask_model",
    "self_trained": f"{ROOM}.registry:sample_model",
    "base": f"{ROOM}.registry:ask_model",
    "endpoint": f"{ROOM}.registry:ask_model",
}
"""A new teacher is a file and a line here; one from elsewhere is named as `module:Class` or `FILE.py:Class`."""
MODELS = ("self", "self_trained", "base", "endpoint")
"""The current checkpoint, the same trained on its proposals, that of the warm-up, and a model behind a server."""
METHODS = ("propose", "state_dict", "load_state_dict")


@dataclasses.dataclass(frozen=True)
class Tools:
    """What teachers may need of a trainer: its evidence settings, and the way in which their model is asked.

    That is `decode` for a model that speaks tokens, `ask` for one that speaks language; `sample` and `sample_json` for
    those that are trained on their answers too. proposals, inline: as in `LlmTeacher`.
    """

    evidence: EvidenceSettings = dataclasses.field(default_factory=EvidenceSettings)
    decode: Decode | None = None
    sample: Sample | None = None
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
    raise InputError("teacher: there is no model to ask; give a decode or an ask function")


def sample_model(tools: Tools) -> Teacher:
    """The teacher that samples a group of answers of a model that is trained on them."""
    if tools.sample:
        return SelfTrainedTeacher(tools.sample, tools.evidence)
    if tools.sample_json:
        return SelfTrainedLlmTeacher(tools.sample_json, tools.evidence)
    raise InputError("teacher: there is no model to sample from; give a sample function")


def match_random(tools: Tools, match: str = "rules") -> Teacher:
    """The control that edits as much as another teacher."""
    return MatchedRandomTeacher(make_teacher(match, tools))


def make_teacher(name: str, tools: Tools | None = None, options: Mapping[str, Any] | None = None) -> Teacher:
    """The teacher of that name, its `options` being keyword arguments of its class.

    Raises InputError on an unknown name or option, naming the choices, and where a tool is missing.
    """
    checked = check_teacher(name, options or {})
    make = load_class(name, TEACHERS, "teacher", METHODS)
    return make(tools or Tools(), **checked) if _needs_tools(make) else make(**checked)


def check_teacher(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the teacher takes them.

    Raises InputError where there is no teacher of that name, or it has no such option, or the value is out of range.
    """
    make = load_class(name, TEACHERS, "teacher", METHODS)
    checked = checked_options("teacher_options", name, make, options)
    if not _needs_tools(make):
        make(**checked)  # which knows what options go together
    if name == "matched_random":
        match = checked.get("match", "rules")
        check_match(match)
        check_teacher(match, {})
    return checked


def _needs_tools(make: Any) -> bool:
    return "tools" in inspect.signature(make).parameters
