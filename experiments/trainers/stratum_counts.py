"""Counts of a folder's answers by version and stratum, group by group, and what they tell: signal, suspect graders."""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from lakewright.engineer.signal import (
    FEWEST,
    OpenGroup,
    StratumCount,
    add_group,
    describe_suspect,
    find_suspect_graders,
)
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.tally import Tally
from lakewright.experiments.trainers.outcome_lines import Line

MOST_OPEN = 1 << 14  # groups that may still get answers; the one that began first is complete when there are more

StratumCounts = dict[int, dict[str, StratumCount]]


class StratumBook:
    """The counts of training answers, updated while they are read.

    counts: by version and stratum; `open_groups`, by their names, are not in the counts of groups yet.
    """

    def __init__(self, counts: StratumCounts, open_groups: dict[bytes, OpenGroup]) -> None:
        """Continues counts, which are not changed."""
        self.counts = {
            version: {
                name: msgspec.structs.replace(count, failures=dict(count.failures)) for name, count in strata.items()
            }
            for version, strata in counts.items()
        }
        self.open_groups = {name: msgspec.structs.replace(group) for name, group in open_groups.items()}

    def add_answer(self, line: Line, stratum: str, name: bytes) -> None:
        """Adds an answer to a problem of training. name: its group."""
        count = self._find_count(line.version, stratum)
        count.answers += 1
        count.valid += line.valid
        count.tokens += line.tokens
        if line.failure:
            count.failures[line.failure] = count.failures.get(line.failure, 0) + 1
        group = self.open_groups.get(name)
        if group is None:
            if len(self.open_groups) >= MOST_OPEN:
                self._complete(self.open_groups.pop(next(iter(self.open_groups))))
            group = self.open_groups[name] = OpenGroup(line.version, stratum, line.reward, line.reward)
        group.add_answer(line.valid, line.reward, line.tokens)

    def count_all(self) -> StratumCounts:
        """The counts as if every group were complete."""
        whole = StratumBook(self.counts, {})
        for group in self.open_groups.values():
            whole._complete(group)
        return whole.counts

    def _complete(self, group: OpenGroup) -> None:
        add_group(self._find_count(group.version, group.stratum), group)

    def _find_count(self, version: int, stratum: str) -> StratumCount:
        return self.counts.setdefault(version, {}).setdefault(stratum, StratumCount())


def sort_counts(counts: StratumCounts, space: DesignSpace) -> dict[str, dict[str, StratumCount]]:
    """The counts by version and stratum, in order."""
    return {
        str(version): {name: strata[name] for name in map(str, space.strata) if name in strata}
        for version, strata in sorted(counts.items())
    }


def list_suspects(counts: Mapping[str, Mapping[str, StratumCount]], space: DesignSpace) -> list[str]:
    """A line for each stratum whose grader may be broken, by its answers in the last versions; counts: in order."""
    in_order = list(counts.values())
    found = find_suspect_graders(_tally_last(in_order, space), space)
    newest = in_order[-1] if in_order else {}
    # Graded rewards teach also where no answer is valid yet.
    taught = {name for name, count in newest.items() if 2 * count.learnable > count.groups}
    found = {stratum: reason for stratum, reason in found.items() if str(stratum) not in taught}
    return [describe_suspect(space.words.stratum, stratum, reason) for stratum, reason in found.items()]


def _tally_last(counts: Sequence[Mapping[str, StratumCount]], space: DesignSpace) -> Mapping[int | str, Tally]:
    """The answers to each stratum of the last version, and of as many before it as FEWEST answers need."""
    found: dict[int | str, Tally] = {}
    for stratum in space.strata:
        answers, valid, failures = 0, 0, Counter[str]()
        for strata in reversed(counts):
            if answers < FEWEST and (count := strata.get(str(stratum))):
                answers, valid = answers + count.answers, valid + count.valid
                failures.update(count.failures)
        if answers:
            found[stratum] = Tally(answers, valid, dict(failures))
    return found
