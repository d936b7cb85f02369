"""The training of the engineer `self_trained`: the checkpoint's own proposals, rewarded by what they are worth."""

import msgspec
import torch
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import can_draw_for
from lakewright.core_jax.results import pool
from lakewright.engineer.delta import ConfigDelta
from lakewright.engineer.difficulty import diminishing_worth_of, worth_of
from lakewright.engineer.guard import GuardVerdict, judge
from lakewright.engineer.trial import Earned, Score, earned_by
from lakewright.experiments.loop.records import (
    Decision,
    EngineerGroup,
    EngineerTraining,
    RunFolder,
    Stage,
    Validation,
    read,
    write,
)
from lakewright.experiments.loop.redesign.difficulty import read_forecast, trust_region
from lakewright.experiments.loop.redesign.engineer_speech import EngineerSpeech, speech_of
from lakewright.experiments.loop.settings import RunSettings, seed_for
from lakewright.experiments.loop.training import load_policy
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import AnswerGroup, train_on_answers, trainable, without_adapter

TRAINED = "self_trained"


def train_engineer(settings: RunSettings, folder: RunFolder, number: int) -> None:
    """Trains the stage's policy on groups of its own proposals, and keeps weights and figures next to the stage's.

    The first group is what was proposed; each further round samples one from the weights trained so far, and the last
    group is the trained engineer's. The next stage continues from these weights; the policy after the warm-up is the
    reference.
    """
    stage = folder.stage(number)
    policy, tokenizer = load_policy(settings, stage.checkpoint)
    model = trainable(policy, settings.grpo.host)
    reference, _ = load_policy(settings, folder.warmup.checkpoint)
    speech = speech_of(settings, tokenizer, stage.config())
    spoken = speech.spoken(read(stage.proposal, Decision).proposal)
    prompt, answers = spoken.prompt, spoken.answers
    measured = _measured(settings, folder, number, tokenizer)
    torch.manual_seed(seed_for(settings.seed, f"stage {number} engineer training"))
    groups: list[EngineerGroup] = []
    with progress("engineer", settings.engineer.training.rounds, "rounds") as bar:
        for turn in range(settings.engineer.training.rounds):
            group = _judged(settings, folder, number, speech, answers)
            sampled = _in_ids(tokenizer, prompt, answers, [part.advantage for part in group.earned])
            parts = [sampled, *measured]
            if useful := [part for part in parts if any(part.advantages)]:
                figures = train_on_answers(model, reference, useful, speech.grammar, settings.engineer.training)
                group.figures.update(figures)
            groups.append(group)
            answers = speech.sample(model, prompt, seed_for(settings.seed, f"stage {number} engineer round {turn + 1}"))
            bar.update()
            bar.set_postfix(reward=f"{group.figures['reward']:.2f}")
    groups.append(_judged(settings, folder, number, speech, answers))
    write(stage.engineer, EngineerTraining(prompt, groups))
    save_checkpoint(stage.engineer_checkpoint, without_adapter(model, settings.grpo.host), tokenizer)


def _in_ids(
    tokenizer: PreTrainedTokenizerFast, prompt: list[str], answers: list[list[str]], advantages: list[float]
) -> AnswerGroup:
    ids = tokenizer.convert_tokens_to_ids
    return AnswerGroup(ids(prompt), [ids(answer) for answer in answers], advantages)


def _judged(
    settings: RunSettings, folder: RunFolder, number: int, speech: EngineerSpeech, answers: list[list[str]]
) -> EngineerGroup:
    """A group of answers with what they earn."""
    stage, group = folder.stage(number), EngineerGroup(answers, [], {}, speech.texts(answers))
    verdicts = [_verdict(settings, folder, number, delta) for delta in group.deltas]
    earned = earned_by(stage.config(), verdicts, _score(settings, stage), settings.engineer.reward)
    return msgspec.structs.replace(group, earned=earned, figures=_figures(answers, earned))


def _score(settings: RunSettings, stage: Stage) -> Score:
    """How much more a config is worth than the stage's by its forecast; nothing where there is none."""
    current, known, power = stage.config(), read_forecast(stage), settings.engineer.reward.power
    if known is None:
        return lambda config: 0.0
    if not power:
        return lambda config: worth_of(known.model, config, current, settings.teams).mean
    before = diminishing_worth_of(known, current, power, settings.teams)
    return lambda config: diminishing_worth_of(known, config, power, settings.teams) - before


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


def _measured(
    settings: RunSettings, folder: RunFolder, number: int, tokenizer: PreTrainedTokenizerFast
) -> list[AnswerGroup]:
    """The answer that this stage was trained on, with the measured gain of the stage as its advantage."""
    weight = settings.engineer.reward.gain
    if not weight or not number or not folder.stage(number - 1).engineer.exists():
        return []
    before, now = folder.stage(number - 1), folder.stage(number)
    training = read(before.engineer, EngineerTraining)
    for answer, delta in training.proposed:
        verdict = _verdict(settings, folder, number - 1, delta)
        if verdict.status != "refused" and verdict.config == now.config() != before.config():
            advantage = weight * 10 * (_valid(folder, number) - _valid(folder, number - 1))
            return [_in_ids(tokenizer, training.prompt, [answer], [advantage])]
    return []


def _valid(folder: RunFolder, number: int) -> float:
    found = pool(read(folder.stage(number).validation, Validation).sizes.values())
    return found.rate(found.valid)
