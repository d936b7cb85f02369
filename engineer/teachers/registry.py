"""The teachers by name."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from lakewright.core_jax.errors import InputError
from lakewright.engineer.evidence import EvidenceSettings
from lakewright.engineer.options import checked_options
from lakewright.engineer.proposal import Teacher
from lakewright.engineer.teachers.adarft import AdaRFTTeacher
from lakewright.engineer.teachers.alp_gmm import AlpGmmTeacher
from lakewright.engineer.teachers.difficulty import DifficultyTeacher
from lakewright.engineer.teachers.domain_randomisation import DomainRandomisationTeacher
from lakewright.engineer.teachers.dump import DumpTeacher
from lakewright.engineer.teachers.e2h import EasyToHardTeacher
from lakewright.engineer.teachers.fixed import FixedTeacher
from lakewright.engineer.teachers.forecast import ForecastTeacher
from lakewright.engineer.teachers.llm import Ask, LlmTeacher
from lakewright.engineer.teachers.matched_random import MatchedRandomTeacher
from lakewright.engineer.teachers.proportional import ProportionalTeacher
from lakewright.engineer.teachers.random import RandomTeacher
from lakewright.engineer.teachers.rlve import RlveTeacher
from lakewright.engineer.teachers.rules import RulesTeacher
from lakewright.engineer.teachers.saboteur import SaboteurTeacher
from lakewright.engineer.teachers.sec import SecTeacher
from lakewright.engineer.teachers.self import Decode, SelfTeacher
from lakewright.engineer.teachers.self_trained import Sample, SampleJson, SelfTrainedLlmTeacher, SelfTrainedTeacher
from lakewright.engineer.teachers.sfl import SflTeacher
from lakewright.engineer.teachers.static import StaticTeacher
from lakewright.engineer.teachers.thompson import ThompsonTeacher


@dataclasses.dataclass(frozen=True)
class Tools:
    """What teachers may need of the run: its evidence settings, and the way in which their model is asked.

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


def _model(tools: Tools) -> Teacher:
    if tools.ask:
        return LlmTeacher(tools.ask, tools.evidence, tools.proposals, tools.inline)
    if tools.decode:
        return SelfTeacher(tools.decode, tools.evidence)
    raise InputError("teacher: there is no model to ask; give a decode or an ask function")


def _self_trained(tools: Tools) -> Teacher:
    if tools.sample:
        return SelfTrainedTeacher(tools.sample, tools.evidence)
    if tools.sample_json:
        return SelfTrainedLlmTeacher(tools.sample_json, tools.evidence)
    raise InputError("teacher: there is no model to sample from; give a sample function")


def _matched_random(tools: Tools, match: str = "rules") -> Teacher:
    return MatchedRandomTeacher(make_teacher(match, tools))


_ALONE: dict[str, Callable[..., Teacher]] = {
    "fixed": FixedTeacher,
    "static": StaticTeacher,
    "domain_randomisation": DomainRandomisationTeacher,
    "random": RandomTeacher,
    "rules": RulesTeacher,
    "proportional": ProportionalTeacher,
    "e2h_cosine": functools.partial(EasyToHardTeacher, "cosine"),
    "e2h_gaussian": functools.partial(EasyToHardTeacher, "gaussian"),
    "adarft": AdaRFTTeacher,
    "sec": SecTeacher,
    "thompson": ThompsonTeacher,
    "alp_gmm": AlpGmmTeacher,
    "sfl": SflTeacher,
    "rlve": RlveTeacher,
    "dump": DumpTeacher,
    "difficulty": DifficultyTeacher,
    "forecast": ForecastTeacher,
    "saboteur": SaboteurTeacher,
}
# The current checkpoint, the same trained on its proposals, the one of the warm-up, and one behind a server.
MODELS = ("self", "self_trained", "base", "endpoint")
_WITH_TOOLS: dict[str, Callable[..., Teacher]] = {"matched_random": _matched_random, **dict.fromkeys(MODELS, _model)}
_WITH_TOOLS["self_trained"] = _self_trained
TEACHERS = (*_ALONE, *_WITH_TOOLS)


def make_teacher(name: str, tools: Tools | None = None, options: Mapping[str, Any] | None = None) -> Teacher:
    """The teacher of that name, its `options` being keyword arguments of its class.

    Raises InputError on an unknown name or option, naming the choices, and where a tool is missing.
    """
    checked = check_teacher(name, options or {})
    if name in _ALONE:
        return _ALONE[name](**checked)
    return _WITH_TOOLS[name](tools or Tools(), **checked)


def check_teacher(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the teacher takes them.

    Raises InputError where there is no teacher of that name, or it has no such option, or the value is out of range.
    """
    if name not in TEACHERS:
        raise InputError(f"teacher: {name!r:.60} is unknown; choose from {', '.join(TEACHERS)}")
    checked = checked_options("teacher_options", name, _ALONE.get(name) or _WITH_TOOLS[name], options)
    if name in _ALONE:
        _ALONE[name](**checked)  # which knows what options go together
    if "match" in checked:
        _check_match(checked["match"])
    return checked


def _check_match(name: str) -> None:
    if name == "matched_random":
        raise InputError("teacher_options: match is matched_random; name another teacher")
    check_teacher(name, {})
