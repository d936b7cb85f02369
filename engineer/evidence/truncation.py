"""The evidence within a budget of tokens: modules are cut in a fixed order until it fits."""

from collections.abc import Callable

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.engineer.evidence.evidence import Evidence

_EMPTY: tuple[tuple[str, dict[str, object]], ...] = (
    ("cases", {"cases": []}),
    ("statistics", {"statistics": {}}),
    ("difficulty", {"forecast": None}),
    ("rl_details", {"groups": [], "training": {}}),
    ("self_summary", {"summary": ""}),
    ("history", {"history": []}),
    ("forced", {"forced": {}}),
    ("guideline", {"guideline": ""}),
    ("bookkeeping", {"round": None, "rounds": None, "boards": None}),
    ("refusals", {"refusals": []}),
)
CUT_ORDER = tuple(name for name, _ in _EMPTY)


def fitted(evidence: Evidence, budget: int, count: Callable[[Evidence], int]) -> tuple[Evidence, tuple[str, ...]]:
    """The evidence with as much cut as it takes for `count` of it to be at most `budget`; and what was cut, in order.

    Cut first to last by CUT_ORDER; cases and rounds of the history one by one, the latest case and the oldest round
    first. The outcomes of this round are never cut. Raises InputError where they alone do not fit.
    """
    cut: list[str] = []
    for name, empty in _EMPTY:
        while count(evidence) > budget and any(getattr(evidence, field) != value for field, value in empty.items()):
            cut.append(name)
            evidence = msgspec.structs.replace(evidence, **_less(evidence, name, empty))
    if (needed := count(evidence)) > budget:
        raise InputError(f"evidence.budget is {budget} tokens, too few even for the outcomes; choose {needed} or more")
    return evidence, tuple(f"{name} x{cut.count(name)}" if cut.count(name) > 1 else name for name in dict.fromkeys(cut))


def _less(evidence: Evidence, name: str, empty: dict[str, object]) -> dict[str, object]:
    if name == "cases":
        return {"cases": evidence.cases[:-1]}
    if name == "history":
        return {"history": evidence.history[1:]}
    return empty
