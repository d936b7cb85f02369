"""The texts of a redesign: a line with all that led to it, a short sentence, and a line of numbers for each stratum."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from lakewright.engineer.cells import Stratum
from lakewright.engineer.delta import describe_changes, describe_delta, describe_moved_knobs, make_printable
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty.forecasting import Forecast
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence.evidence import Evidence
from lakewright.engineer.signal import NO_ANSWER
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.steps import Attempt, Decision, Next
from lakewright.engineer.tally import Tally

SMALLEST, MOST_SHOWN, MOST_WHY = 0.005, 3, 120  # of a summary: a change of a share, strata, characters of the reason


def add_texts(decision: Decision, environment: Environment, outcomes: Mapping[Stratum, Tally]) -> Decision:
    """The decision with its texts. outcomes: the held-out tallies, empty if unknown."""
    design, following, attempts, space = decision.before, decision.next, decision.attempts, environment.space
    return msgspec.structs.replace(
        decision,
        line=describe_round(design, following, attempts, space),
        short=sum_up_round(design, following, attempts, space),
        strata=describe_strata(environment, (design, following.design), decision.evidence, decision.forecast, outcomes),
    )


def describe_round(design: Design, following: Next, attempts: Sequence[Attempt], space: DesignSpace) -> str:
    """The proposal for a design, what followed and why, in a line.

    Args:
        design: the current design.
        following: the next design.
        attempts: the proposals; the last one counts.
        space: the design space.
    """
    delta = attempts[-1].proposal.delta if attempts else None
    proposed = describe_delta(delta, space) if delta else ""  # what is wrong with an answer is a reason
    # What an accepted proposal changes has been said; of all others it may differ from what was proposed.
    accepted = following.source == "proposal" and {one.verdict.status for one in attempts[-1:]} == {"accepted"}
    changes = "" if accepted else f"applied: {describe_changes(design, following.design, space)}"
    return "; ".join(part for part in (proposed, *following.reasons, changes) if part)


def sum_up_round(design: Design, following: Next, attempts: Sequence[Attempt], space: DesignSpace) -> str:
    """Like `Decision.summary`: `more of 3 (+9 points), less of 1 (-9 points), digits 4 to 5 in 2: WHY`.

    Args: as in `describe_round`.
    """
    share, label, after = space.share.name, space.words.label, following.design.strata
    gains = {stratum: row[share] - design.strata[stratum][share] for stratum, row in after.items()}
    parts = []
    for word, sign in (("more of ", 1), ("less of ", -1)):
        moved = sorted(
            (stratum for stratum in gains if sign * gains[stratum] >= SMALLEST),
            key=lambda stratum: -sign * gains[stratum],
        )
        parts += _list_first(word, [f"{label(stratum)} ({100 * gains[stratum]:+.0f} points)" for stratum in moved])
    changed = {stratum: describe_moved_knobs(design.strata[stratum], row, space) for stratum, row in after.items()}
    parts += _list_first("", [f"{knobs} in {label(stratum)}" for stratum, knobs in changed.items() if knobs])
    delta = attempts[-1].proposal.delta if attempts else None
    reasons = list(dict.fromkeys(edit.reason for edit in delta.edits.values())) if delta else []
    why = "; ".join(reasons) if following.source == "proposal" and reasons else following.reasons[-1]
    why = "no change was proposed" if delta and not delta.edits else make_printable(why)
    warned = "".join(f"; {reason}" for reason in following.reasons if reason.startswith(NO_ANSWER))
    return f"{', '.join(parts) or 'unchanged'}: {why[:MOST_WHY]}{'...' if len(why) > MOST_WHY else ''}{warned}"


def _list_first(word: str, said: Sequence[str]) -> list[str]:
    """The word and the first MOST_SHOWN, with the number of all others, in one part; no part if there aren't any."""
    more = f" and {len(said) - MOST_SHOWN} others" if len(said) > MOST_SHOWN else ""
    return [f"{word}{', '.join(said[:MOST_SHOWN])}{more}"] if said else []


def describe_strata(
    environment: Environment,
    designs: tuple[Design, Design],
    evidence: Evidence,
    forecast: Forecast,
    held_out: Mapping[Stratum, Tally],
) -> list[str]:
    """A line for each stratum: `sums: 20 of 64 training answers valid; expected 0.33, then 0.29; share 0.5 to 0.44`.

    Args:
        environment: the environment.
        designs: the current and the next design.
        evidence, forecast: what is known in this round; the forecast is about training answers.
        held_out: the tallies of the held-out answers, if there are any.
    """
    trained: dict[Stratum, Tally] = {}
    for part in evidence.groups:
        known = trained.get(part.cell.stratum, Tally(0, 0))
        answers, valid = known.problems + part.groups.completions, known.valid + part.groups.valid
        trained[part.cell.stratum] = Tally(answers, valid)
    expected = [_expect_valid(environment, one, forecast) for one in designs]
    lines, share = [], environment.space.share.name
    for stratum, row in designs[1].strata.items():
        before = designs[0].strata.get(stratum, row)
        answered = (("training", trained.get(stratum)), ("held-out", held_out.get(stratum)))
        parts = [f"{tally.valid} of {tally.problems} {kind} answers valid" for kind, tally in answered if tally]
        chances = [f"{chance[stratum]:.2f}" for chance in expected if stratum in chance]
        parts += [f"expected {', then '.join(chances)}"] if chances else []
        shares = dict.fromkeys(f"{one[share]:.3g}" for one in (before, row))
        knobs = describe_moved_knobs(before, row, environment.space)
        parts += [f"share {' to '.join(shares)}", *([knobs] if knobs else [])]
        lines.append(f"{environment.space.words.label(stratum)}: {'; '.join(parts)}")
    return lines


def _expect_valid(environment: Environment, design: Design, forecast: Forecast) -> dict[Stratum, float]:
    """The expected share of valid answers to the problems that a design draws, by stratum."""
    mix = environment.cells(design)
    chances = forecast.model.predict(list(mix), environment.space).mean
    return {
        stratum: math.fsum(
            chance * mix[cell] for cell, chance in zip(mix, chances, strict=True) if cell.stratum == stratum
        )
        / math.fsum(part for cell, part in mix.items() if cell.stratum == stratum)
        for stratum in dict.fromkeys(cell.stratum for cell in mix)
    }
