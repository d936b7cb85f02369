"""The training of the engineer `self_trained`: the checkpoint's own proposals, rewarded by what they are worth."""

import msgspec
import torch
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import estimate_diminishing_worth, estimate_worth
from lakewright.engineer.guard import GuardVerdict, judge_delta
from lakewright.engineer.tally import pool_tallies
from lakewright.engineer.trial import Earned, Score, reward_proposals
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
from lakewright.experiments.loop.settings import seed_for
from lakewright.experiments.loop.training import Trainee, load_policy
from lakewright.experiments.runtime.progress_bars import progress
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import AnswerGroup, train_on_answers, trainable, without_adapter

TRAINED = "self_trained"


def train_engineer(trainee: Trainee, folder: RunFolder, number: int) -> None:
    """Trains the stage's policy on groups of its own proposals, and keeps weights and figures next to the stage's.

    The first group is what was proposed; each further round samples one from the weights trained so far, and the last
    group is the trained engineer's. The next stage continues from these weights; the policy after the warm-up is the
    reference.
    """
    settings, stage = trainee.settings, folder.stage(number)
    policy, tokenizer = load_policy(settings, stage.checkpoint)
    model = trainable(policy, settings.grpo.host)
    reference, _ = load_policy(settings, folder.warmup.checkpoint)
    speech = speech_of(settings, tokenizer, stage.design(), trainee.environment.space)
    spoken = speech.spoken(read(stage.proposal, Decision).proposal)
    prompt, answers = spoken.prompt, spoken.answers
    measured = _measure_gain(trainee, folder, number, tokenizer)
    torch.manual_seed(seed_for(settings.seed, f"stage {number} engineer training"))
    groups: list[EngineerGroup] = []
    with progress("engineer", settings.engineer.training.rounds, "rounds") as bar:
        for turn in range(settings.engineer.training.rounds):
            group = _judge_group(trainee, folder, number, speech, answers)
            sampled = _in_ids(tokenizer, prompt, answers, [part.advantage for part in group.earned])
            parts = [sampled, *measured]
            if useful := [part for part in parts if any(part.advantages)]:
                figures = train_on_answers(model, reference, useful, speech.grammar, settings.engineer.training)
                group.figures.update(figures)
            groups.append(group)
            answers = speech.sample(model, prompt, seed_for(settings.seed, f"stage {number} engineer round {turn + 1}"))
            bar.update()
            bar.set_postfix(reward=f"{group.figures['reward']:.2f}")
    groups.append(_judge_group(trainee, folder, number, speech, answers))
    write(stage.engineer, EngineerTraining(prompt, groups))
    save_checkpoint(stage.engineer_checkpoint, without_adapter(model, settings.grpo.host), tokenizer)


def _in_ids(
    tokenizer: PreTrainedTokenizerFast, prompt: list[str], answers: list[list[str]], advantages: list[float]
) -> AnswerGroup:
    ids = tokenizer.convert_tokens_to_ids
    return AnswerGroup(ids(prompt), [ids(answer) for answer in answers], advantages)


def _judge_group(
    trainee: Trainee, folder: RunFolder, number: int, speech: EngineerSpeech, answers: list[list[str]]
) -> EngineerGroup:
    """A group of answers with what they earn."""
    stage, space = folder.stage(number), trainee.environment.space
    group = EngineerGroup(answers, [], {}, speech.texts(answers))
    verdicts = [_judge_answer(trainee, stage, delta) for delta in group.read(space)]
    earned = reward_proposals(verdicts, _score(trainee, stage), trainee.settings.engineer.reward, space)
    return msgspec.structs.replace(group, earned=earned, figures=_figures(answers, earned))


def _score(trainee: Trainee, stage: Stage) -> Score:
    """How much more a design is worth than the stage's by its forecast; nothing where there is none."""
    environment, known, power = trainee.environment, read_forecast(stage), trainee.settings.engineer.reward.power
    space, current = environment.space, environment.cells(stage.design())
    if known is None:
        return lambda design: 0.0
    if not power:
        return lambda design: estimate_worth(known.model, environment.cells(design), space, current).mean
    before = estimate_diminishing_worth(known, current, power, space)
    return lambda design: estimate_diminishing_worth(known, environment.cells(design), power, space) - before


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


def _judge_answer(trainee: Trainee, stage: Stage, delta: Delta | InputError) -> GuardVerdict:
    if isinstance(delta, InputError):
        return GuardVerdict("refused", [str(delta)], stage.design())
    guard = trust_region(trainee.settings, trainee.environment, stage)
    return judge_delta(stage.design(), delta, trainee.environment, guard)


def _measure_gain(
    trainee: Trainee, folder: RunFolder, number: int, tokenizer: PreTrainedTokenizerFast
) -> list[AnswerGroup]:
    """The answer that this stage was trained on, with the measured gain of the stage as its advantage."""
    weight = trainee.settings.engineer.reward.gain
    if not weight or not number or not folder.stage(number - 1).engineer.exists():
        return []
    before, now = folder.stage(number - 1), folder.stage(number)
    training = read(before.engineer, EngineerTraining)
    for answer, delta in training.proposed(trainee.environment.space):
        verdict = _judge_answer(trainee, before, delta)
        if verdict.status != "refused" and verdict.design == now.design() != before.design():
            advantage = weight * 10 * (_valid(folder, number) - _valid(folder, number - 1))
            return [_in_ids(tokenizer, training.prompt, [answer], [advantage])]
    return []


def _valid(folder: RunFolder, number: int) -> float:
    return pool_tallies(read(folder.stage(number).validation, Validation).outcomes.values()).valid_rate
