"""The text form of evidence, for an engineer that reads language."""

from collections.abc import Iterator, Mapping, Sequence

from lakewright.core_jax.config import EnvConfig, holds
from lakewright.core_jax.results import Outcomes, without
from lakewright.core_jax.terms import FAILURE_NAMES
from lakewright.engineer.delta import summary
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence.evidence import Case, CellGroups, Evidence, Round, SizeStatistics

CHARACTERS_PER_TOKEN = 3  # fewer than English needs, as tables of numbers need more tokens; see `token_estimate`
_SPOKEN = {"illegal_move": "off board", "goal_not_reached": "not home"}


def evidence_text(evidence: Evidence) -> str:
    """What a view of the evidence says, section by section; what it leaves out has no section.

    Rates are shares of boards. Words that a model wrote are on one line, in quotes, without control characters.
    """
    return "\n".join(line for section in _sections(evidence) for line in (*section, "")).rstrip() + "\n"


def token_estimate(text: str) -> int:
    """About how many tokens a text takes, without a tokenizer: a token for every three bytes of UTF-8."""
    return -(-len(text.encode()) // CHARACTERS_PER_TOKEN)


def _sections(evidence: Evidence) -> Iterator[list[str]]:
    if evidence.round is not None and evidence.rounds is not None:
        trained = "" if evidence.boards is None else f" It trained on {evidence.boards} boards."
        yield [f"This is round {evidence.round + 1} of {evidence.rounds}.{trained}"]
    if evidence.guideline:
        yield ["## Guideline", evidence.guideline]
    if evidence.history:
        rounds = (line for number, old in enumerate(evidence.history) for line in _past(number, old, evidence.teams))
        yield ["## Earlier rounds shown, oldest first", *rounds]
    yield ["## Current config", *_config(evidence.config, evidence.teams)]
    if evidence.outcomes:
        yield ["## Outcomes on held-out boards after training on it", *_outcomes(evidence.outcomes, evidence.forced)]
    if evidence.summary:
        yield ["## What you told yourself in the round before", _quoted(evidence.summary)]
    if evidence.training:
        yield ["## Training", *(f"{name}: {_number(value)}" for name, value in evidence.training.items())]
    if evidence.groups:
        yield ["## Training rollouts", *(_rollouts(cell) for cell in evidence.groups)]
    if evidence.statistics:
        yield [
            "## What was really sampled",
            *(_sampled(size, evidence.statistics[size]) for size in sorted(evidence.statistics)),
        ]
    if evidence.forecast:
        yield ["## What a model of all rollouts expects, of boards drawn or not", *_forecast(evidence.forecast)]
    if evidence.cases:
        yield ["## Plans that failed", *(line for case in evidence.cases for line in _case(case))]
    if evidence.refusals:
        yield [
            "## Your earlier answers to this were refused",
            *(f"- {_quoted(refusal)}" for refusal in evidence.refusals),
        ]


def _past(number: int, old: Round, teams: Sequence[int]) -> Iterator[str]:
    yield f"Round shown {number + 1}:"
    yield from (f"  {line}" for line in _config(old.config, teams))
    yield from (f"  {line}" for line in _outcomes(old.outcomes, {}))
    if old.delta is not None:
        yield f"  then proposed: {_quoted(summary(old.delta))}"
    if old.note:
        yield f"  which was {_quoted(old.note)}"
    if old.undone:
        yield "  The round was taken back, as validation fell."


def _config(config: EnvConfig, teams: Sequence[int]) -> Iterator[str]:
    for size, cell in sorted(config.sizes.items()):
        ratios = ", ".join(
            f"{name} {_number(value)}" for name, value in zip(cell.__struct_fields__, _values(cell), strict=True)
        )
        agents = " or ".join(str(team) for team in teams or [config.agents] if holds(size, team))
        yield f"{size}x{size}, {agents} agents: {ratios}"


def _values(cell: object) -> list[float]:
    return [getattr(cell, name) for name in cell.__struct_fields__]  # type: ignore[attr-defined]


def _outcomes(outcomes: Mapping[int, Outcomes], forced: Mapping[int, Outcomes]) -> Iterator[str]:
    for size, seen in sorted(outcomes.items()):
        yield f"{size}x{size}: {_rates(seen)}"
        if size in forced:
            yield f"  a wait is forced: {_rates(forced[size])}"
            yield f"  no wait is forced: {_rates(without(seen, forced[size]))}"


def _rates(seen: Outcomes) -> str:
    makespan, costs = (seen.rate(count) for count in (seen.optimal_makespan, seen.optimal_sum_of_costs))
    optimal = f"optimal {makespan:.2f} by makespan, {costs:.2f} by sum of costs"
    failures = ", ".join(f"{_spoken(name)} {seen.rate(seen.failures.get(name, 0)):.2f}" for name in FAILURE_NAMES[1:])
    return f"{seen.boards} boards, valid {seen.rate(seen.valid):.2f}, {optimal}; failed by {failures}"


def _rollouts(cell: CellGroups) -> str:
    seen, wait = cell.groups, "a forced wait" if cell.forced else "no forced wait"
    return (
        f"{cell.size}x{cell.size}, hole_ratio {_number(cell.hole_ratio)}, {wait}: {seen.groups} boards, "
        f"valid {seen.success:.2f}, groups with a signal {seen.informative_share:.2f}, "
        f"mean reward {seen.reward:.2f}, mean p(1-p) {seen.learnability:.3f}"
    )


def _forecast(forecast: Forecast) -> Iterator[str]:
    strata: dict[tuple[int, bool], list[str]] = {}
    for found in forecast.grid:
        rate = f"{found.p:.2f} +- {found.deviation:.2f} at hole_ratio {_number(found.cell.hole_ratio)}"
        strata.setdefault((found.cell.size, found.cell.forced), []).append(rate)
    for (size, forced), rates in strata.items():
        yield f"{size}x{size}, {'a forced wait' if forced else 'no forced wait'}: valid {', '.join(rates)}"


def _sampled(size: int, seen: SizeStatistics) -> str:
    accepted = "" if seen.acceptance is None else f", {seen.acceptance:.3f} of the attempts accepted"
    return (
        f"{size}x{size}: {seen.boards} boards, hole_ratio {seen.hole_ratio:.3f}, wait_ratio {seen.wait_ratio:.3f}, "
        f"mean optimum {seen.makespan:.2f} (makespan), {seen.sum_of_costs:.2f} (sum of costs){accepted}"
    )


def _case(case: Case) -> Iterator[str]:
    agents = "; ".join(f"agent {i} {s} to {g}" for i, (s, g) in enumerate(zip(case.starts, case.goals, strict=True)))
    yield f"{case.size}x{case.size}, failed by {_spoken(case.failure)} of agent {case.agent} at step {case.step}"
    yield from (f"  {line}" for line in case.grid)
    yield f"  {agents}"
    yield f"  plan: {', '.join(case.plan)}"


def _spoken(failure: str) -> str:
    return _SPOKEN.get(failure, failure.replace("_", " "))


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _quoted(words: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in words)
    return f'"{" ".join(printable.split())}"'
