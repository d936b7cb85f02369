"""The budget of a run: generated tokens, read from the files of its stages."""

import math

import msgspec

from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Decision, EngineerTraining, Sampled, read_record


class Spent(msgspec.Struct, frozen=True):
    """Tokens generated in training, by samplers that look at rollouts, in trials, and by the engineer.

    Validation, the same for all, is not charged.
    """

    training: int = 0
    sampling: int = 0
    trials: int = 0
    engineer: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return self.training + self.sampling + self.trials + self.engineer

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


def count_stage_tokens(stage: Stage) -> Spent:
    """The tokens of a stage so far; a step that was interrupted and is repeated counts once."""
    return Spent(
        training=_count_trained(stage) if stage.checkpoint.exists() else 0,
        sampling=_count_scored(stage),
        trials=read_record(stage.trial, Trial).tokens if stage.trial.exists() else 0,
        engineer=_count_asked(stage),
    )


def count_run_tokens(folder: RunFolder, stages: int) -> Spent:
    """The tokens of the first `stages` stages so far, those of a redesign before them included."""
    return sum((count_stage_tokens(folder.stage(number)) for number in range(-1, stages)), Spent())


def count_remaining_tokens(budget: int | None, spent: Spent) -> float:
    """The tokens that are left of a budget; without one, infinitely many."""
    return math.inf if budget is None else budget - spent.total


def _count_scored(stage: Stage) -> int:
    drawn = stage.boards.exists() or stage.problems.exists()
    return round(read_record(stage.sampled, Sampled).figures["tokens"]) if drawn else 0


def _count_trained(stage: Stage) -> int:
    """The tokens sampled in training: none in a warm-up, whose log does not name them. A log has floats only."""
    return round(sum(step.get("sampled/tokens", 0) for step in stage.read_steps()))


def _count_asked(stage: Stage) -> int:
    """The tokens of the proposals, and those of the training of the engineer that made them."""
    asked = _count_proposed(read_record(stage.proposal, Decision)) if stage.proposal.exists() else 0
    return asked + (read_record(stage.engineer, EngineerTraining).tokens if stage.engineer.exists() else 0)


def _count_proposed(decision: Decision) -> int:
    return sum(proposal.tokens for proposal in (decision.proposal, *(attempt.proposal for attempt in decision.refused)))
