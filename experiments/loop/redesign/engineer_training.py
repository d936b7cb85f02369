"""The training of the engineer `self_trained`: the checkpoint's own proposals, rewarded by their worth."""

import msgspec
import torch
from transformers import PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.design import Delta
from lakewright.engineer.difficulty import Forecast, estimate_diminishing_worth, estimate_worth
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.trial import Earned, ScoreDesign, measure_return, reward_proposals
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    EngineerGroup,
    EngineerTraining,
    Validation,
    find_record,
    read_record,
    write_record,
)
from lakewright.experiments.loop.redesign.engineer_formats import EngineerFormat, make_format
from lakewright.experiments.loop.redesign.teacher_models import make_engineer
from lakewright.experiments.loop.training.policy_models import load_policy
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.models import save_checkpoint
from lakewright.policy.training import AnswerGroup, merge_adapter, prepare_training, train_on_answers

TRAINED = "self_trained"


def train_engineer(trainee: Trainee, folder: RunFolder, number: int) -> None:
    """Trains the stage's policy on groups of its own proposals, and saves weights and figures next to the stage's.

    The first group is what was proposed; each further round samples one from the weights trained so far, and the last
    group is the trained engineer's. The next stage continues from these weights; the policy after the warm-up is the
    reference.
    """
    settings, stage = trainee.settings, folder.stage(number)
    policy, tokenizer = load_policy(settings, stage.checkpoint)
    model = prepare_training(policy, settings.grpo.host)
    reference, _ = load_policy(settings, folder.warmup.checkpoint)
    form = make_format(settings, tokenizer, stage.design(), trainee.environment.space)
    asked = form.read_proposal(read_record(stage.proposal, DecisionRecord).proposal)
    prompt, answers = asked.prompt, asked.answers
    measured = _measure_gains(trainee, folder, number, tokenizer)
    torch.manual_seed(derive_seed(settings.seed, f"stage {number} engineer training"))
    groups: list[EngineerGroup] = []
    with progress("engineer", settings.engineer.training.rounds, "rounds") as bar:
        for turn in range(settings.engineer.training.rounds):
            group = _judge_group(trainee, folder, number, form, answers)
            sampled = _encode_group(tokenizer, prompt, answers, [part.advantage for part in group.earned])
            if useful := [part for part in (sampled, *measured) if any(part.advantages)]:
                figures = train_on_answers(model, reference, useful, form.grammar, settings.engineer.training)
                group.figures.update(figures)
            groups.append(group)
            seed = derive_seed(settings.seed, f"stage {number} engineer round {turn + 1}")
            answers = form.sample_answers(model, prompt, seed)
            bar.update()
            bar.set_postfix(reward=f"{group.figures['reward']:.2f}")
    groups.append(_judge_group(trainee, folder, number, form, answers))
    write_record(stage.engineer, EngineerTraining(prompt, groups))
    save_checkpoint(stage.engineer_checkpoint, merge_adapter(model, settings.grpo.host), tokenizer)


def _encode_group(
    tokenizer: PreTrainedTokenizerFast, prompt: list[str], answers: list[list[str]], advantages: list[float]
) -> AnswerGroup:
    ids = tokenizer.convert_tokens_to_ids
    return AnswerGroup(ids(prompt), [ids(answer) for answer in answers], advantages)


def _judge_group(
    trainee: Trainee, folder: RunFolder, number: int, form: EngineerFormat, answers: list[list[str]]
) -> EngineerGroup:
    """A group of answers with their rewards."""
    stage, space = folder.stage(number), trainee.environment.space
    group = EngineerGroup(answers, [], {}, form.decode_answers(answers))
    engineer, known = make_engineer(trainee.settings, trainee.environment, stage.design()), stage.read_forecast()
    verdicts = [_judge_answer(engineer, known, delta) for delta in group.read_deltas(space)]
    earned = reward_proposals(verdicts, _make_score(trainee, stage), trainee.settings.engineer.reward, space)
    return msgspec.structs.replace(group, earned=earned, figures=_average_figures(answers, earned))


def _make_score(trainee: Trainee, stage: Stage) -> ScoreDesign:
    """A function of a design: its forecast worth beyond the stage's design; 0 without a forecast."""
    environment, known, power = trainee.environment, stage.read_forecast(), trainee.settings.engineer.reward.power
    space, current = environment.space, environment.cells(stage.design())
    if known is None:
        return lambda design: 0.0
    if not power:
        return lambda design: estimate_worth(known.model, environment.cells(design), space, current).mean
    before = estimate_diminishing_worth(known, current, power, space)
    return lambda design: estimate_diminishing_worth(known, environment.cells(design), power, space) - before


def _average_figures(answers: list[list[str]], earned: list[Earned]) -> dict[str, float]:
    sums = {
        "reward": sum(part.reward for part in earned),
        "score": sum(part.score for part in earned),
        "refused": sum(part.status == "refused" for part in earned),
        "projected": sum(part.status == "projected" for part in earned),
        "siblings": sum(part.siblings for part in earned),
        "distinct": len(set(map(tuple, answers))),
    }
    return {name: value / len(earned) for name, value in sums.items()}


def _judge_answer(engineer: Engineer, known: Forecast | None, delta: Delta | InputError) -> GuardVerdict:
    if isinstance(delta, InputError):
        return GuardVerdict("refused", [str(delta)], engineer.design)
    return engineer.judge_delta(delta, known)


def _measure_gains(
    trainee: Trainee, folder: RunFolder, number: int, tokenizer: PreTrainedTokenizerFast
) -> list[AnswerGroup]:
    """The answers that stages were trained on, with the policy's measured gain as their advantages."""
    reward, credits = trainee.settings.engineer.reward, {}
    rates = [_measure_valid(folder, stage) for stage in range(number + 1)] if reward.gain or reward.returns else []
    if reward.gain and number:
        credits[number - 1] = reward.gain * 10 * (rates[-1] - rates[-2])
    gained = measure_return(rates, reward.stages)
    if reward.returns and gained is not None:
        asked = number - reward.stages
        credits[asked] = credits.get(asked, 0.0) + reward.returns * 10 * gained
    found = [_credit_answer(trainee, folder, stage, tokenizer, advantage) for stage, advantage in credits.items()]
    return [answer for answer in found if answer]


def _credit_answer(
    trainee: Trainee, folder: RunFolder, number: int, tokenizer: PreTrainedTokenizerFast, advantage: float
) -> AnswerGroup | None:
    """The answer after a stage that the next was trained on, if one was, with its advantage."""
    before, after = folder.stage(number), folder.stage(number + 1)
    training = find_record(before.engineer, EngineerTraining)
    if training is None:
        return None
    engineer, known = make_engineer(trainee.settings, trainee.environment, before.design()), before.read_forecast()
    for answer, delta in training.list_proposed(engineer.space):
        verdict = _judge_answer(engineer, known, delta)
        if verdict.status != "refused" and verdict.design == after.design() != engineer.design:
            return _encode_group(tokenizer, training.prompt, [answer], [advantage])
    return None


def _measure_valid(folder: RunFolder, number: int) -> float:
    return read_record(folder.stage(number).validation, Validation).pooled.valid_rate
