"""The training of the engineer `self_trained`: the checkpoint's own proposals, rewarded by what they are worth."""

import torch

from core_jax.config import EnvConfig
from core_jax.errors import InputError
from core_jax.generator import can_draw_for
from core_jax.results import pool
from engineer.delta import ConfigDelta
from engineer.difficulty import worth_of
from engineer.evidence import DeltaGrammar
from engineer.guard import GuardVerdict, judge
from engineer.proposal_reward import Earned, earned_by
from engineer.teachers import deltas_of
from experiments.loop.records import Decision, EngineerTraining, RunFolder, Validation, read, write
from experiments.loop.redesign.difficulty import read_forecast, trust_region
from experiments.loop.settings import RunSettings, seed_for
from experiments.loop.training import load_policy
from policy.checkpoints import save_checkpoint
from policy.training import AnswerGroup, train_on_answers

TRAINED = "self_trained"


def train_engineer(settings: RunSettings, folder: RunFolder, number: int) -> None:
    """Trains the stage's policy on the group of its own proposals, and keeps weights and figures beside the stage's.

    The weights are what the next stage goes on from; the policy that the warm-up left is the reference.
    """
    stage = folder.stage(number)
    group = _group(settings, folder, number)
    model, tokenizer = load_policy(settings, stage.checkpoint)
    reference, _ = load_policy(settings, folder.warmup.checkpoint)
    groups = [AnswerGroup(group.prompt, group.answers, [part.advantage for part in group.earned])]
    groups += _measured(settings, folder, number)
    torch.manual_seed(seed_for(settings.seed, f"stage {number} engineer training"))
    allowed = DeltaGrammar(stage.config().sizes).allowed
    if useful := [part for part in groups if any(part.advantages)]:
        figures = train_on_answers(model, reference, tokenizer, useful, allowed, settings.engineer.training)
        group.figures.update(figures)
    write(stage.engineer, group)
    save_checkpoint(stage.engineer_checkpoint, model, tokenizer)


def _group(settings: RunSettings, folder: RunFolder, number: int) -> EngineerTraining:
    """The answers of a stage's proposal with what they earn."""
    stage = folder.stage(number)
    proposal, current = read(stage.proposal, Decision).proposal, stage.config()
    answers = [line.split() for line in proposal.answer.split("\n")]
    verdicts = [_verdict(settings, folder, number, delta) for delta in deltas_of(answers)]
    known = read_forecast(stage)

    def score(config: EnvConfig) -> float:
        return worth_of(known.model, config, current, settings.teams).mean if known else 0.0

    earned = earned_by(current, verdicts, score, settings.engineer.reward)
    return EngineerTraining(proposal.prompt.split(), answers, earned, _figures(answers, earned))


def _figures(answers: list[list[str]], earned: list[Earned]) -> dict[str, float]:
    count = len(earned)
    return {
        "reward": sum(part.reward for part in earned) / count,
        "score": sum(part.score for part in earned) / count,
        "refused": sum(part.status == "refused" for part in earned) / count,
        "projected": sum(part.status == "projected" for part in earned) / count,
        "siblings": sum(part.siblings for part in earned) / count,
        "distinct": len({tuple(answer) for answer in answers}) / count,
    }


def _verdict(settings: RunSettings, folder: RunFolder, number: int, delta: ConfigDelta | InputError) -> GuardVerdict:
    stage = folder.stage(number)
    if isinstance(delta, InputError):
        return GuardVerdict("refused", [str(delta)], stage.config())
    return judge(stage.config(), delta, trust_region(settings, stage), can_draw_for(settings.teams))


def _measured(settings: RunSettings, folder: RunFolder, number: int) -> list[AnswerGroup]:
    """The answer that this stage was trained on, with the measured gain of the stage as its advantage."""
    weight = settings.engineer.reward.gain
    if not weight or not number or not folder.stage(number - 1).engineer.exists():
        return []
    before, now = folder.stage(number - 1), folder.stage(number)
    told = read(before.engineer, EngineerTraining)
    for answer in told.answers:
        verdict = _verdict(settings, folder, number - 1, deltas_of([answer])[0])
        if verdict.status != "refused" and verdict.config == now.config() != before.config():
            advantage = weight * 10 * (_valid(folder, number) - _valid(folder, number - 1))
            return [AnswerGroup(told.prompt, [answer], [advantage])]
    return []


def _valid(folder: RunFolder, number: int) -> float:
    found = pool(read(folder.stage(number).validation, Validation).sizes.values())
    return found.rate(found.valid)
