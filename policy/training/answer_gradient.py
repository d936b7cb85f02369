"""Policy gradient on answers under a grammar: GRPO's loss on the tokens of the answers alone."""

from collections.abc import Sequence

import msgspec
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from policy.inference import Allowed, log_probs_under_grammar
from policy.training.settings import AnswerTraining


class AnswerGroup(msgspec.Struct, frozen=True):
    """Answers to one prompt, with the advantage of each."""

    prompt: Sequence[str]
    answers: Sequence[Sequence[str]]
    advantages: Sequence[float]


def train_on_answers(
    model: PreTrainedModel,
    reference: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    groups: Sequence[AnswerGroup],
    allowed: Allowed,
    settings: AnswerTraining,
) -> dict[str, float]:
    """Trains `model` in place; the loss of the first step, and the divergence from the reference after the last.

    With r the ratio of a token's probability to that before the training, A the advantage of its answer and d the
    log-ratio of the reference to the model, the loss is the mean over tokens of

        -min(r A, clip(r, 1 - epsilon, 1 + epsilon) A) + kl (exp(d) - d - 1).
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=0.0)
    model.eval()  # no dropout: the ratios of the first step are 1
    with torch.no_grad():
        before = [_log_probs(model, tokenizer, group, allowed)[0] for group in groups]
        anchors = [_log_probs(reference, tokenizer, group, allowed)[0].to(model.device) for group in groups]
    losses = []
    for _ in range(settings.updates):
        parts = [
            _loss(model, tokenizer, group, allowed, old, anchor, settings)[0]
            for group, old, anchor in zip(groups, before, anchors, strict=True)
        ]
        loss = torch.stack(parts).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        ends = [
            _loss(model, tokenizer, group, allowed, old, anchor, settings)[1]
            for group, old, anchor in zip(groups, before, anchors, strict=True)
        ]
    return {"loss": losses[0], "kl": float(torch.stack(ends).mean())}


def _loss(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    group: AnswerGroup,
    allowed: Allowed,
    old: torch.Tensor,
    anchor: torch.Tensor,
    settings: AnswerTraining,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of a group, and its divergence from the reference."""
    now, there = _log_probs(model, tokenizer, group, allowed)
    advantages = torch.tensor(list(group.advantages), device=now.device)[:, None]
    ratio = (now - old).exp()
    clipped = ratio.clamp(1 - settings.epsilon, 1 + settings.epsilon)
    gain = torch.minimum(ratio * advantages, clipped * advantages)
    away = anchor - now
    divergence = away.exp() - away - 1
    tokens = there.sum()
    return ((settings.kl * divergence - gain) * there).sum() / tokens, (divergence * there).sum() / tokens


def _log_probs(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, group: AnswerGroup, allowed: Allowed
) -> tuple[torch.Tensor, torch.Tensor]:
    """As of `log_probs_under_grammar`, 0 where there is no token."""
    taken, there = log_probs_under_grammar(model, tokenizer, group.prompt, group.answers, allowed)
    return taken.masked_fill(~there, 0.0), there
