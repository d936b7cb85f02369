"""The budget of a run: generated tokens, read from the files of its stages."""

import math

import msgspec

from lakewright.engineer.trial import Trial
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    EngineerTraining,
    SampledRecord,
    find_record,
    read_record,
)


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
    steps = stage.read_steps() if stage.checkpoint.exists() else []  # those of a warm-up name no tokens
    trial, decision = find_record(stage.trial, Trial), find_record(stage.proposal, DecisionRecord)
    proposals = [decision.proposal, *(attempt.proposal for attempt in decision.refused)] if decision else []
    trained = find_record(stage.engineer, EngineerTraining)
    return Spent(
        training=round(sum(step.get("sampled/tokens", 0) for step in steps)),  # a log has floats only
        sampling=round(read_record(stage.sampled, SampledRecord).figures["tokens"]) if stage.saved_problems else 0,
        trials=trial.tokens if trial else 0,
        engineer=sum(proposal.tokens for proposal in proposals) + (trained.tokens if trained else 0),
    )


def count_run_tokens(folder: RunFolder, stages: int) -> Spent:
    """The tokens of the first `stages` stages so far, a redesign before them included."""
    return sum((count_stage_tokens(folder.stage(number)) for number in range(-1, stages)), Spent())


def count_left(folder: RunFolder, stages: int) -> float:
    """The tokens of a run's budget that its first `stages` stages have left; without a budget, infinitely many."""
    budget, spent = folder.settings().budget, count_run_tokens(folder, stages)
    return math.inf if budget is None else budget - spent.total


def has_next_stage(folder: RunFolder, number: int) -> bool:
    """Return True if another stage follows: otherwise no proposal needs to be tried."""
    return count_left(folder, number + 1) > 0 and number + 1 < folder.settings().stages


def explain_spent(budget: int | None, folder: RunFolder) -> str:
    """The reason why a run can never train a stage; empty if it can, or has.

    A redesign before the first stage may spend the whole budget.
    """
    spent = count_run_tokens(folder, 0)
    if budget is None or budget > spent.total or folder.stage(0).done.exists():
        return ""
    return (
        f"budget is {budget} tokens, all spent before the first stage: {spent.trials} by the trial and "
        f"{spent.engineer} by the engineer; choose a larger budget, or smaller trials, in another folder"
    )
