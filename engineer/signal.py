"""Signal: how many of the answers to each stratum teach something, and graders that may be broken.

A group whose answers all earn the same has no advantage, so GRPO learns nothing from its tokens. Groups are
in one of three pools: solved (all answers valid, no signal), learnable (with signal), and out of reach (the others). A
stratum that is out of reach may be too hard, or its grader, reference or prompt may be wrong: `find_suspect_graders`.
The engineer doubts such a stratum (`find_doubts`): it gets no more than the guard's floor, and its answers
say nothing about others. Every ROUNDS_TO_RECHECK rounds it is checked again.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from lakewright.core_jax.results import EQUAL
from lakewright.engineer.cells import Stratum
from lakewright.engineer.problems import Verdict
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally, pool_tallies

FEWEST = 32  # answers of a stratum without which nothing is said
SUCCEEDS = 0.2  # the share of valid answers from which on a neighbour succeeds
COMMON_FAILURE = 0.5  # the share of the failures elsewhere from which on a way to fail is not odd
DOUBTED = 64  # of the last answers to a stratum, without which it is not doubted,
DOUBTED_UNRANKED = 256  # or this many, if no more is known than that other strata, in no order, succeed
NO_ANSWER = "no answer is valid"  # begins the line that says so
ROUNDS_TO_RECHECK = 5  # rounds: in each ROUNDS_TO_RECHECK-th in a row, a stratum that is doubted may have any share


class StratumCount(msgspec.Struct, array_like=True):
    """Counts of the answers to one stratum.

    answers, valid, tokens: over all answers. failures: the others by name. groups: those with at least two answers
    that are complete. learnable, solved: for the groups. grouped, wasted: tokens of the groups, and of those without
    signal.
    """

    answers: int = 0
    valid: int = 0
    tokens: int = 0
    failures: dict[str, int] = {}
    groups: int = 0
    learnable: int = 0
    solved: int = 0
    grouped: int = 0
    wasted: int = 0


class OpenGroup(msgspec.Struct, array_like=True):
    """A group as its answers come. low, high: its rewards."""

    version: int
    stratum: str
    low: float
    high: float
    answers: int = 0
    valid: int = 0
    tokens: int = 0

    def add_answer(self, valid: bool, reward: float, tokens: int) -> None:
        """Adds an answer."""
        self.answers, self.valid, self.tokens = self.answers + 1, self.valid + valid, self.tokens + tokens
        self.low, self.high = min(self.low, reward), max(self.high, reward)


class StratumSignal(msgspec.Struct, frozen=True):
    """The answers to one stratum: counts, and shares from 0 to 1, which are 0 without groups.

    valid: share of the answers. signal: share of the groups whose rewards differ; the same as `learnable`. solved,
    learnable, out_of_reach: the three pools of groups. wasted: share of the groups' tokens that gave no signal.
    """

    answers: int
    groups: int
    valid: float
    signal: float
    solved: float
    learnable: float
    out_of_reach: float
    wasted: float


def add_group(count: StratumCount, group: OpenGroup) -> None:
    """Adds a complete group to the counts of its stratum; a single answer does not make a group."""
    if group.answers < 2:
        return
    # Rewards and not verdicts: a graded reward gives signal also among answers that are all invalid.
    signal = group.high - group.low > EQUAL
    count.groups += 1
    count.grouped += group.tokens
    count.learnable += signal
    count.solved += not signal and group.valid == group.answers
    count.wasted += 0 if signal else group.tokens


def measure_signal(count: StratumCount) -> StratumSignal:
    """The shares of some counts."""
    groups, signal = max(1, count.groups), count.learnable
    return StratumSignal(
        answers=count.answers,
        groups=count.groups,
        valid=count.valid / max(1, count.answers),
        signal=signal / groups,
        solved=count.solved / groups,
        learnable=signal / groups,
        out_of_reach=(count.groups - signal - count.solved) / groups,
        wasted=count.wasted / max(1, count.grouped),
    )


def list_metrics(groups: Iterable[tuple[Stratum, Sequence[Verdict], Sequence[int]]]) -> dict[str, float]:
    """Metrics of some groups for the tracker of a trainer, by name.

    groups: each the stratum, the verdicts and the lengths of its answers. The metrics are `engineer/STRATUM/valid`,
    `signal`, `solved`, `out_of_reach` and `tokens_without_signal`, and of all groups `engineer/signal` and
    `engineer/tokens_without_signal`.
    """
    strata: dict[Stratum, StratumCount] = {}
    whole = StratumCount()
    for stratum, verdicts, lengths in groups:
        rewards = [verdict.reward for verdict in verdicts]
        valid = sum(verdict.valid for verdict in verdicts)
        group = OpenGroup(0, "", min(rewards), max(rewards), len(rewards), valid, sum(lengths))
        for count in (strata.setdefault(stratum, StratumCount()), whole):
            count.answers, count.valid = count.answers + len(rewards), count.valid + valid
            add_group(count, group)
    found: dict[str, float] = {}
    for place, count in [*((f"engineer/{stratum}", count) for stratum, count in strata.items()), ("engineer", whole)]:
        measured = measure_signal(count)
        named = {"signal": measured.signal, "tokens_without_signal": measured.wasted} if count.groups else {}
        if count is not whole:
            pools = {"solved": measured.solved, "out_of_reach": measured.out_of_reach} if count.groups else {}
            named |= {"valid": measured.valid, **pools}
        found |= {f"{place}/{name}": value for name, value in named.items()}
    return found


def find_suspect_graders(tallies: Mapping[Stratum, Tally], space: DesignSpace) -> dict[Stratum, str]:
    """The strata whose grader, reference or prompt may be broken, which would look like a task too hard, and why.

    A stratum with at least FEWEST answers, all invalid, is suspect if all fail in one and the same way of
    several, unless strata that succeed usually fail so, too. It is also suspect if its neighbours succeed: of ranked
    strata a harder one, of others at least half of the rest.

    tallies: counts of answers, each counting as a problem; of held-out problems or of training.
    """
    counted = {stratum: tally for stratum, tally in tallies.items() if tally.problems >= FEWEST}
    failed = (stratum for stratum in space.sort_strata(counted) if not counted[stratum].valid)
    reasons = {
        stratum: _find_odd_failure(stratum, counted, space) or _find_contrast(stratum, counted, space)
        for stratum in failed
    }
    return {stratum: reason for stratum, reason in reasons.items() if reason}


def _find_odd_failure(stratum: Stratum, counted: Mapping[Stratum, Tally], space: DesignSpace) -> str:
    """The reason to suspect a stratum of which all answers fail in one way, or nothing."""
    tally = counted[stratum]
    ways = [name for name, count in tally.failures.items() if count]
    if len(ways) != 1 or tally.failures[ways[0]] < tally.problems or len(space.failures) < 2:
        return ""
    others = [other for other in counted.values() if other.valid]
    alike = sum(other.failures.get(ways[0], 0) for other in others)
    if others and alike >= COMMON_FAILURE * max(1, sum(other.problems - other.valid for other in others)):
        return ""
    return f"all {tally.problems} answers fail as {ways[0]}"


def _find_contrast(stratum: Stratum, counted: Mapping[Stratum, Tally], space: DesignSpace) -> str:
    """The reason to suspect a stratum whose neighbours succeed, or nothing."""
    neighbours = _find_successful(stratum, counted, space)
    shown = ", ".join(f"{name} {counted[name].valid_rate:.0%}" for name in neighbours[:3])
    what = "harder ones succeed" if space.ranked else "others succeed"
    return f"none of {counted[stratum].problems} answers is valid, while {what}: {shown}" if neighbours else ""


def _find_successful(stratum: Stratum, counted: Mapping[Stratum, Tally], space: DesignSpace) -> list[Stratum]:
    """The neighbours of a stratum that succeed, if they should not if it were only hard."""
    others = [other for other in space.sort_strata(counted) if other != stratum]
    if space.ranked:
        others = [other for other in others if space.ranks[other] > space.ranks[stratum]]
    good = [other for other in others if counted[other].valid_rate >= SUCCEEDS]
    return good if space.ranked or 2 * len(good) >= len(others) else []


def describe_suspect(word: str, stratum: Stratum, reason: str) -> str:
    """The line that says so. word: the space's word for a stratum."""
    remedy = "look at its grader, its references and where its prompts and answers are cut off"
    return f"{word} {stratum}: {reason}; a broken grader looks like a hard task: {remedy}"


def find_no_valid_answer(answers: Iterable[Sequence[Tally]], word: str) -> str:
    """The line about answers that are all invalid; empty if one is valid, or there are fewer than FEWEST.

    answers: answers to held-out problems and in training. word: the space's word for a stratum.
    """
    pooled = [(sum(one.problems for one in part), sum(one.valid for one in part)) for part in answers]
    if any(valid for _, valid in pooled) or max(problems for problems, _ in pooled) < FEWEST:
        return ""
    return f"{NO_ANSWER} in any {word}; check the judge, and where answers are cut off"


class Doubt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stratum that the engineer doubts, why, and for how many rounds in a row, this one included."""

    stratum: Stratum
    reason: str
    rounds: int

    @property
    def holds(self) -> bool:
        """Whether the stratum gets no more than the guard's floor; not in a round in which it is checked again."""
        return self.rounds % ROUNDS_TO_RECHECK > 0

    def describe(self, word: str, *, held: bool) -> str:
        """The line of the decision. word: as in `describe_suspect`. held: whether it has the least share now."""
        least = "it gets the least share" if held else "its share stays, because the design does"
        what = least if self.holds else f"checked again after {self.rounds} rounds"
        return f"{describe_suspect(word, self.stratum, self.reason)}; {what}"


def find_doubts(
    rounds: Sequence[Mapping[Stratum, Tally]], space: DesignSpace, graded: Collection[Stratum] = ()
) -> list[Doubt]:
    """The strata whose graders are suspect by more answers than `find_suspect_graders` needs.

    A round in which no stratum succeeds says nothing. One valid answer among the last ends a doubt.

    Args:
        rounds: the outcomes of each round; the last is this round.
        space: the design space.
        graded: strata from `find_graded`, which are never doubted.
    """
    # The length of a doubt is counted anew from the rounds themselves, so that a restored engineer has the same.
    reasons = doubted = _map_doubted(rounds, space)
    counts, back = dict.fromkeys(reasons, 0), 0
    while doubted:  # one round further back, with the strata that were doubted ever since
        counts |= {stratum: counts[stratum] + 1 for stratum in doubted}
        back += 1
        earlier = _map_doubted(rounds[:-back], space)
        doubted = {stratum: reason for stratum, reason in doubted.items() if stratum in earlier}
    return [Doubt(stratum, reason, counts[stratum]) for stratum, reason in reasons.items() if stratum not in graded]


def _map_doubted(rounds: Sequence[Mapping[Stratum, Tally]], space: DesignSpace) -> dict[Stratum, str]:
    """The strata that are doubted after some rounds, and why."""
    # Without an order, "the others succeed" is weaker evidence than "a harder one succeeds", so it takes more
    # answers.
    recent, longer = (
        _pool_last(rounds, fewest, space) for fewest in (DOUBTED, DOUBTED if space.ranked else DOUBTED_UNRANKED)
    )
    reasons: dict[Stratum, str] = {}
    if any(tally.valid_rate >= SUCCEEDS for tally in recent.values()):
        for mine, find in ((longer, _find_contrast), (recent, _find_odd_failure)):
            failed = (stratum for stratum, tally in mine.items() if not tally.valid)
            reasons |= {stratum: reason for stratum in failed if (reason := find(stratum, recent | mine, space))}
    return {stratum: reasons[stratum] for stratum in space.sort_strata(reasons)}


def _pool_last(rounds: Sequence[Mapping[Stratum, Tally]], fewest: int, space: DesignSpace) -> dict[Stratum, Tally]:
    """The answers to each stratum of as many of the last rounds as have `fewest`; without strata that have less."""
    found: dict[Stratum, Tally] = {}
    for stratum in space.strata:
        parts, answers = list[Tally](), 0
        for outcomes in reversed(rounds):
            if answers >= fewest:
                break
            if part := outcomes.get(stratum):
                parts, answers = [*parts, part], answers + part.problems
        if answers >= fewest:
            found[stratum] = pool_tallies(parts)
    return found
