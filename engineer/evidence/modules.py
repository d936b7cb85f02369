"""The context modules: which parts of the evidence an engineer is shown, their presets, and the budget of tokens."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import Count, one_of

if TYPE_CHECKING:
    from lakewright.engineer.evidence.evidence import Evidence

FIELDS: dict[str, dict[str, Any]] = {
    "cases": {"cases": []},
    "statistics": {"statistics": {}},
    "difficulty": {"forecast": None},
    "rl_details": {"groups": [], "training": {}},
    "self_summary": {"summary": ""},
    "history": {"history": []},
    "failures": {"outcomes": {}, "by_trait": {}},
    "guideline": {"guideline": ""},
    "bookkeeping": {"round": None, "rounds": None, "problems": None},
}
"""The fields of the evidence that a module shows, and their values without it, in the order in which they are cut."""
# Outcomes are never cut, only their detail by trait; refusals belong to no module.
CUTS = [("forced", {"by_trait": {}}) if name == "failures" else (name, fields) for name, fields in FIELDS.items()]


class Modules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of the evidence that are shown; the default is the paper's V6 (arXiv 2606.17682).

    failures: outcomes by stratum and trait, of this round and of those in the history. guideline: what good
    redesigns do. history: earlier rounds. default_in_history: round 0, the first design, is one of them.
    self_summary: the engineer's own summary of the round before. bookkeeping: the round's index, the number of
    rounds and of problems. rl_details: settings and figures of the training, and its rollouts by cell. statistics: what
    was really sampled. cases: a few problems with a failed answer. difficulty: what the difficulty
    model expects of cells, drawn or not. worth: what training on these cells gains, in tokens;
    texts tell it with the forecast. shuffled, a control: each stratum shows the figures of another.
    """

    failures: bool = True
    guideline: bool = True
    history: bool = True
    default_in_history: bool = False
    self_summary: bool = False
    bookkeeping: bool = True
    rl_details: bool = False
    statistics: bool = False
    cases: bool = False
    difficulty: bool = False
    worth: bool = False
    shuffled: bool = False

    def in_place(self) -> "Modules":
        """The same modules, each stratum with its own figures."""
        return msgspec.structs.replace(self, shuffled=False)


CUTS.append(("refusals", {"refusals": []}))

_V4 = Modules(bookkeeping=False)
PRESETS = {
    "v1": Modules(guideline=False, history=False, bookkeeping=False),
    "v2": Modules(history=False, bookkeeping=False),
    "v3": Modules(default_in_history=True, bookkeeping=False),
    "v4": _V4,
    "v5": msgspec.structs.replace(_V4, self_summary=True),
    "v6": Modules(),
    "rl_details": msgspec.structs.replace(_V4, rl_details=True),
    "shuffled": Modules(shuffled=True),
    "none": Modules(failures=False, guideline=False, history=False, bookkeeping=False),
    "difficulty": Modules(difficulty=True),
    "forecast": Modules(failures=False, guideline=False, history=False, bookkeeping=False, difficulty=True),
    "worth": Modules(failures=False, guideline=False, history=False, bookkeeping=False, difficulty=True, worth=True),
}


class EvidenceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the evidence that an engineer is shown."""

    preset: Annotated[str, one_of(PRESETS)] = "v6"
    """The modules of evidence that the engineer sees, by preset; v1 to v6 are the paper's."""
    modules: dict[str, bool] = {}
    """Modules switched on or off in addition to the preset, such as { cases = true }."""
    budget: Count = 6000
    """Most tokens of the evidence; longer evidence is cut."""

    def __post_init__(self) -> None:
        self.chosen()

    def chosen(self) -> Modules:
        """The modules. Raises InputError on an unknown preset or module, naming the choices."""
        if self.preset not in PRESETS:
            raise InputError(f"preset is {self.preset!r:.60}; choose from {', '.join(PRESETS)}")
        names = Modules.__struct_fields__
        if unknown := [name for name in self.modules if name not in names]:
            raise InputError(f"modules: {unknown[0]!r:.60} is unknown; choose from {', '.join(names)}")
        return msgspec.structs.replace(PRESETS[self.preset], **self.modules)


def fit_to_budget(
    evidence: "Evidence", budget: int, count: Callable[["Evidence"], int]
) -> tuple["Evidence", tuple[str, ...]]:
    """The evidence with as much cut as it takes for `count` of it to be at most `budget`; and what was cut, in order.

    Cut first to last by CUTS; cases and rounds of the history one by one, the latest case and the oldest round
    first. The outcomes of this round are never cut. Raises InputError if they alone do not fit.
    """
    cut: list[str] = []
    for name, empty in CUTS:
        while count(evidence) > budget and any(getattr(evidence, field) != value for field, value in empty.items()):
            cut.append(name)
            evidence = msgspec.structs.replace(evidence, **_cut_part(evidence, name, empty))
    if (needed := count(evidence)) > budget:
        raise InputError(f"evidence.budget is {budget} tokens, too few even for the outcomes; choose {needed} or more")
    return evidence, tuple(f"{name} x{cut.count(name)}" if cut.count(name) > 1 else name for name in dict.fromkeys(cut))


def _cut_part(evidence: "Evidence", name: str, empty: dict[str, object]) -> dict[str, object]:
    if name == "cases":
        return {"cases": evidence.cases[:-1]}
    if name == "history":
        return {"history": evidence.history[1:]}
    return empty
