"""The records of a stage: validation, boards, rollback, decision, trial, next design, and duration."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import Natural, convert, listed, read_raw, write_json
from lakewright.engineer.design import Delta, by_stratum
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.rollback import Comparison
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.steps import Attempt
from lakewright.engineer.tally import Case, Drawn, Tally, pool_tallies
from lakewright.engineer.teachers import read_json_answers, read_token_answers
from lakewright.engineer.trial import Earned
from lakewright.experiments.environments.lake import row_of

T = TypeVar("T", bound=msgspec.Struct)


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A held-out problem and the policy's answer to it.

    failure: `none` of a valid answer. place: how far it got, -1 if that has no meaning. data: on the lake the plan, in
    which the letter `?` is a jump, and the agent that fails.
    """

    problem: Problem
    answer: str
    failure: str
    place: int = -1
    data: Any = None

    @property
    def is_plan(self) -> bool:
        """Return True for a plan for a board, False for an answer in text."""
        return self.data is not None

    @property
    def row(self) -> Row:
        """The board of a problem of the lake."""
        return row_of(self.problem)

    @property
    def plan(self) -> list[str]:
        """The plan for a board."""
        return list(self.data["plan"])

    @property
    def agent(self) -> int:
        """The agent that fails on a board."""
        return int(self.data["agent"])


class Excluded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """excluded.json: how many boards were drawn that `exclude` names, each replaced before it was trained on."""

    boards: int


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """validation.json: the outcomes on the held-out set by stratum, and some answers as examples.

    by_trait: by stratum and knob, the outcomes on the problems that have the trait. valid: a digit for each problem in
    the order of the set, 1 if the answer is valid. probability: P(reference answer) at temperature 1, the mean on each
    stratum, for problems in text. cases: failed examples in the environment's own words, for problems in text; None in
    folders of earlier versions.
    """

    outcomes: dict[int | str, Tally]
    examples: list[Example]
    by_trait: dict[int | str, dict[str, Tally]]
    valid: str
    probability: dict[int | str, float] = {}
    cases: list[Case] | None = None

    def __post_init__(self) -> None:
        for name in ("outcomes", "by_trait", "probability"):
            msgspec.structs.force_setattr(self, name, by_stratum(getattr(self, name)))

    @property
    def pooled(self) -> Tally:
        """The outcomes on the whole set."""
        return pool_tallies(self.outcomes.values())

    @property
    def answered(self) -> list[bool]:
        """True for each problem whose answer is valid, in the order of the set."""
        return [digit == "1" for digit in self.valid]


class SampledRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sampled.json: statistics of a stage's problems, the sampler that chose them, and its state afterwards.

    figures: how many problems were newly drawn (`fresh`), rolled out on (`scored`) and used again (`replayed`), and the
    `tokens` of those rollouts.
    """

    statistics: dict[int | str, Drawn]
    sampler: str
    figures: dict[str, int]
    state: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "statistics", by_stratum(self.statistics))


class Rollback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rollback.json: the stage's policy compared with the one it was trained from, and whether it was rolled back.

    against: the folder of that policy. weights: the folder of the policy that the run continues with.
    """

    against: str
    comparison: Comparison
    rolled_back: bool = msgspec.field(name="back")
    weights: str


class DecisionRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """proposal.json: the teacher's proposal, the guard's verdict on it, and the teacher's state afterwards.

    refused: earlier tries of this stage, each refused.
    """

    teacher: str
    proposal: Proposal
    verdict: GuardVerdict
    teacher_state: dict[str, Any]
    refused: list[Attempt] = []


class EngineerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of answers of the checkpoint as engineer, what each earned, and the figures of the training on them.

    figures: means over the group of `reward`, `score` and `siblings`; the shares `refused`, `projected` and `distinct`;
    and `loss` and `kl` of the training, if there was one and the answers did not all earn the same. said: the
    answers as text, if they come from a language model.
    """

    answers: list[list[str]]
    earned: list[Earned]
    figures: dict[str, float]
    said: list[str] = []

    def read_deltas(self, space: DesignSpace) -> list[Delta | InputError]:
        """The delta of each answer, or why it has no delta."""
        return read_json_answers(self.said, space) if self.said else read_token_answers(self.answers, space)


class EngineerTraining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """engineer.json: the groups of answers to one prompt; the first was proposed, the last is of the trained engineer.

    Every group but the last was trained on.
    """

    prompt: list[str]
    groups: list[EngineerGroup]

    def list_proposed(self, space: DesignSpace) -> list[tuple[list[str], Delta | InputError]]:
        """The answers to try, and their meanings: the engineer's before the training, and after it."""
        tried = (self.groups[0], self.groups[-1])
        return [answer for group in tried for answer in zip(group.answers, group.read_deltas(space), strict=True)]

    def list_deltas(self, space: DesignSpace) -> list[Delta]:
        """The changes to try: the meanings of all answers that have a meaning."""
        return [delta for _, delta in self.list_proposed(space) if isinstance(delta, Delta)]

    @property
    def tokens(self) -> int:
        """Number of tokens generated after the first group, which the proposal counts."""
        return sum(len(answer) for group in self.groups[1:] for answer in group.answers)


class Resumed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """resumed.json, of a training: its steps and seconds when its present process began; 0 unless it resumed."""

    steps: int
    seconds: float


class Launched(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """launched.json, of a training in several processes: how often it was begun."""

    times: Natural


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """done.json: how long the work of this attempt took, and the versions of the libraries.

    seconds: by the clock. processor_seconds: spent by this process and those that it started and that have ended; None
    in records of earlier versions. started_over: how often an interrupted training in several processes began again
    from the previous checkpoint, so that with `grpo.minutes` it may have another number of steps.
    """

    seconds: float
    versions: dict[str, str]
    processor_seconds: float | None = None
    started_over: Natural = 0


def write_record(path: Path, value: msgspec.Struct, *, lake: bool = True) -> None:
    """Writes a record as indented JSON, whole or not at all. lake: whether it is of a run of the lake."""
    from lakewright.experiments.loop.records.lake_form import to_lake  # which knows the records of this file

    with listed(path):
        write_json(path, to_lake(value) if lake else value)


def read_record(path: Path, kind: type[T]) -> T:
    """Reads a record, of the lake or of another environment.

    Raises InputError naming file, field, value and remedy.
    """
    from lakewright.experiments.loop.records.lake_form import from_lake

    return convert(from_lake(read_raw(path), kind), kind, str(path))


def find_record(path: Path, kind: type[T]) -> T | None:
    """Like `read_record`, or None without a file."""
    return read_record(path, kind) if path.exists() else None
