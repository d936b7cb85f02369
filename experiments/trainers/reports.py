"""Answers of the commands on an engineer's folder: a report of the work, the status, and the cost of decisions."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lakewright.core_jax.support import convert
from lakewright.engineer.evidence import Evidence, evidence_text
from lakewright.engineer.samplers import Sampling
from lakewright.engineer.signal import StratumSignal
from lakewright.engineer.space import DesignSpace
from lakewright.experiments.trainers.versions import Author, Counts, Version


class DecisionTokens(msgspec.Struct, frozen=True):
    """Tokens that were generated to decide: answers of a model that is the engineer, and rollouts of trials."""

    engineer: int = 0
    trials: int = 0


class TrialCounts(msgspec.Struct, frozen=True):
    """Trials of proposals. left_out: how many did not fit into `trial.share`; reason: why the last did not."""

    held: int = 0
    left_out: int = 0
    reason: str = ""


class NextReport(msgspec.Struct, frozen=True):
    """The result of a command: the version, its design and author, whether it is new, why, and what was read for it.

    complaint: one line about outcomes that were left out or are of an outdated design; empty without any. outdated:
    whether all answers of training are. rolled_back: whether validation fell, so that a trainer may go back to the
    weights before, too. spent: tokens that the decision cost.
    """

    version: int
    by: Author
    new: bool
    line: str
    design: dict[str, Any]
    counts: Counts = Counts()
    complaint: str = ""
    outdated: bool = False
    rolled_back: bool = False
    spent: DecisionTokens = DecisionTokens()


class FolderStatus(msgspec.Struct, frozen=True):
    """The present state of a folder.

    outcomes: by version and stratum, answers and valid ones. strata: likewise, how much they teach. suspects: a line
    for each stratum whose grader may be broken. pending: answers not read yet. spent: tokens of all decisions.
    sampler: its name. places: all sources' together. sampling: the work of the sampler for them. trials: all so far.
    faults: the numbers of all lines by reason: `left_out`, `dropped`, which count without their failure, and `undrawn`,
    which count although their version draws no such problem.
    """

    version: int
    by: Author
    environment: str
    teacher: str
    design: dict[str, Any]
    outcomes: dict[str, dict[str, tuple[int, int]]]
    strata: dict[str, dict[str, StratumSignal]]
    suspects: list[str]
    held_out: int
    pending: int
    complaint: str
    edited: bool
    spent: DecisionTokens
    sampler: str = "fresh"
    places: int = 0
    sampling: Sampling = Sampling()
    trials: TrialCounts = TrialCounts()
    faults: dict[str, dict[str, int]] = {}


def count_answers(count: int) -> str:
    """A number of answers for people."""
    return "1 answer" if count == 1 else f"{count} answers"


def count_spent(decisions: Sequence[Mapping[str, Any]]) -> DecisionTokens:
    """The tokens of some decisions, as versions note them."""
    asked = sum(attempt["proposal"]["tokens"] for note in decisions for attempt in note["attempts"])
    return DecisionTokens(asked, sum(note["trial"]["tokens"] for note in decisions if note["trial"]))


def count_trials(decisions: Sequence[Mapping[str, Any]]) -> TrialCounts:
    """The trials of some decisions, as versions note them."""
    reasons = [reason for note in decisions if (reason := note["next"].get("untried"))]
    return TrialCounts(sum(bool(note["trial"]) for note in decisions), len(reasons), reasons[-1] if reasons else "")


def describe_version(version: Version, space: DesignSpace) -> str:
    """A version for people: who made it and why, and for the last decision about it the evidence, proposals and result.

    A language model's prompt has the evidence that it read; for other teachers, it is written here.
    """
    parts = [f"version {version.version} by {version.by}: {version.line}"]
    for note in version.decisions[-1:]:
        shown = [attempt["proposal"] for attempt in note["attempts"]]
        if any(proposal["prompt"] for proposal in shown):
            parts += [f"## Prompt\n{one['prompt']}\n\n## Answer\n{one['answer']}" for one in shown]
        else:
            parts.append(evidence_text(convert(note["evidence"], Evidence, "evidence"), space).rstrip())
        parts.append("\n".join(["## Decision", note["line"], *note.get("strata", [])]))
    return "\n\n".join(parts)
