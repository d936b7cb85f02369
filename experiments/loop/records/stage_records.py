"""What the files of a stage hold: validation, boards, rollback, decision, trial, what is next, and how long it took."""

from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import Outcomes
from lakewright.core_jax.rows import Row
from lakewright.core_jax.support import read_config, write_json
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.evidence import SizeStatistics
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.negotiation import Attempt
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.rollback import Comparison
from lakewright.engineer.teachers import deltas_in_json, deltas_of
from lakewright.engineer.trial import Earned, Lead, StratumTrial, Tried

T = TypeVar("T", bound=msgspec.Struct)


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A board of the held-out set and the policy's plan for it, in which the letter `?` is a jump."""

    row: Row
    plan: list[str]
    failure: str
    agent: int
    step: int


class Excluded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """excluded.json: how many boards were drawn that `exclude` names, each replaced before it was trained on."""

    boards: int


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """validation.json: the outcomes on the held-out set per map size, and some plans to look at.

    forced: the outcomes on those of the boards that force a wait. valid: a digit for each board in the order of the
    set, 1 where the plan is valid.
    """

    sizes: dict[int, Outcomes]
    examples: list[Example]
    forced: dict[int, Outcomes]
    valid: str


class Sampled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """sampled.json: statistics of a stage's boards, the sampler that chose them, and its state afterwards.

    figures: how many boards were newly drawn (`fresh`), rolled out on (`scored`) and used again (`replayed`), and the
    `tokens` of those rollouts.
    """

    sizes: dict[int, SizeStatistics]
    sampler: str
    figures: dict[str, int]
    state: dict[str, Any]


class Rollback(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rollback.json: the stage's policy compared with the one it was trained from, and whether it was taken back.

    against: the folder of that policy. weights: the folder of the policy that the run continues with.
    """

    against: str
    comparison: Comparison
    back: bool
    weights: str


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """proposal.json: the teacher's proposal, the guard's verdict on it, and the teacher's state afterwards.

    refused: earlier tries of this stage, each refused.
    """

    teacher: str
    proposal: Proposal
    verdict: GuardVerdict
    teacher_state: dict[str, Any]
    refused: list[Attempt] = []


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """trial.json: the configs that were tried, the current one first; the place of the one chosen; what it cost.

    strata: the valid plans of each board rolled out. leads: of each config over the current one, and how likely it is
    better; none in a trial without a current config, or of an older version.
    """

    candidates: list[Tried]
    chosen: int
    tokens: int
    strata: list[StratumTrial] = []
    leads: list[Lead] = []

    def summary(self) -> str:
        """The outcome in a line."""
        best = self.chosen or max(
            range(1, len(self.candidates)), key=lambda place: self.leads[place].better if self.leads else 0
        )
        scores = f"{self.candidates[best].score:.3f} against {self.candidates[0].score:.3f}"
        sure = f", better with probability {self.leads[best].better:.2f}" if self.leads else ""
        if self.chosen:
            return f"tried, and it gives more signal: {scores}{sure}"
        return f"tried, and not trained on, as it gives less signal: {scores}{sure}"


Source = Literal["proposal", "trial", "rollback", "current"]


class Next(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """next.json: what the next stage is drawn from, where that config comes from, and why.

    source: `proposal`, as the guard left it, where no trial was held; `trial`, the proposal that it chose; `rollback`,
    the config before a stage that was taken back; `current`, which stays as nothing better was proposed. reasons: a
    line each of guard, trial or rollback.
    """

    config: EnvConfig
    source: Source
    reasons: list[str]


class EngineerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of answers of the checkpoint as engineer, what each earned, and the figures of the training on them.

    figures: means over the group of `reward`, `score` and `siblings`; the shares `refused`, `projected` and `distinct`;
    and `loss` and `kl` of the training, where there was one and the answers did not all earn the same. said: the
    answers as text, where they are those of a language model.
    """

    answers: list[list[str]]
    earned: list[Earned]
    figures: dict[str, float]
    said: list[str] = []

    @property
    def deltas(self) -> list[ConfigDelta | InputError]:
        """What each answer means, or why it means nothing."""
        return deltas_in_json(self.said) if self.said else deltas_of(self.answers)


class EngineerTraining(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """engineer.json: the groups of answers to one prompt; the first was proposed, the last is of the trained engineer.

    Every group but the last was trained on.
    """

    prompt: list[str]
    groups: list[EngineerGroup]

    @property
    def proposed(self) -> list[tuple[list[str], ConfigDelta | InputError]]:
        """The answers that are tried, and what they mean: those of the engineer before the training, and after it."""
        tried = (self.groups[0], self.groups[-1])
        return [answer for group in tried for answer in zip(group.answers, group.deltas, strict=True)]

    @property
    def tokens(self) -> int:
        """How many were generated beyond the first group, which the proposal counts."""
        return sum(len(answer) for group in self.groups[1:] for answer in group.answers)


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """done.json: how long the work of this attempt took, and the versions of the libraries."""

    seconds: float
    versions: dict[str, str]


def write(path: Path, value: msgspec.Struct) -> None:
    """Writes a record as indented JSON, whole or not at all."""
    write_json(path, value)


def read(path: Path, kind: type[T]) -> T:
    """Reads a record. Raises InputError naming file, field, value and remedy."""
    return read_config(path, kind)
