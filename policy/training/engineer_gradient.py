"""The policy gradient for an engineer's answers under a grammar: GRPO's loss on the tokens of the answers alone."""

from collections.abc import Iterator, Sequence

import msgspec
import torch
from transformers import PreTrainedModel

from lakewright.policy.inference.grammar import Grammar, log_probs_under_grammar
from lakewright.policy.models.building import set_mode, use_torch_defaults
from lakewright.policy.training.settings import AnswerTraining, answers_at_once


class AnswerGroup(msgspec.Struct, frozen=True):
    """Answers to one prompt, in token ids, with the advantage of each."""

    prompt: Sequence[int]
    answers: Sequence[Sequence[int]]
    advantages: Sequence[float]

    @property
    def tokens(self) -> int:
        """The tokens of all its answers."""
        return sum(map(len, self.answers))

    def split_rows(self, words: int) -> list["AnswerGroup"]:
        """Return the group in parts whose scores over a vocabulary of `words` fit into memory."""
        rows = answers_at_once(max(map(len, self.answers)), words)
        places = range(0, len(self.answers), rows)
        cut = [(self.answers[at : at + rows], self.advantages[at : at + rows]) for at in places]
        return [AnswerGroup(self.prompt, answers, advantages) for answers, advantages in cut]


def train_on_answers(
    model: PreTrainedModel,
    reference: PreTrainedModel,
    groups: Sequence[AnswerGroup],
    grammar: Grammar,
    settings: AnswerTraining,
) -> dict[str, float]:
    """Train `model` in place on groups of its own answers.

    Let r be the ratio of a token's probability to that before the training, A the advantage of its answer, and d the
    log-ratio of the reference to the model. The loss of a group is the mean over its tokens of

            -min(r A, clip(r, 1 - epsilon, 1 + epsilon) A) + kl (exp(d) - d - 1).

    Args:
        model: the model that gave the answers.
        reference: the model to stay close to.
        groups: answers with their advantages.
        grammar: the grammar that the answers were given under.
        settings: rates and bounds.

    Returns the loss of the first step, and the divergence from the reference after the last.
    """
    words = model.config.vocab_size
    parts = [(part, 1 / group.tokens / len(groups)) for group in groups for part in group.split_rows(words)]
    # No dropout, so that the ratios of the first step are 1; but activations are only computed again in training.
    with set_mode(model, training=model.is_activation_checkpointing):
        return _run_updates(model, reference, parts, grammar, settings)


@use_torch_defaults()
def _run_updates(
    model: PreTrainedModel,
    reference: PreTrainedModel,
    parts: Sequence[tuple[AnswerGroup, float]],
    grammar: Grammar,
    settings: AnswerTraining,
) -> dict[str, float]:
    """Run the updates of `train_on_answers`, whose result this returns.

    Args:
        model, reference, grammar, settings: see `train_on_answers`.
        parts: parts of groups, each with the share of one of its tokens in the mean over groups.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.rate, weight_decay=0.0)
    with torch.no_grad():
        before = [_log_probs(model, part, grammar)[0] for part, _ in parts]
        anchors = [_log_probs(reference, part, grammar)[0].to(model.device) for part, _ in parts]

    def iterate_terms() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for (part, share), old, anchor in zip(parts, before, anchors, strict=True):
            loss, divergence = _compute_terms(model, part, grammar, old, anchor, settings)
            yield loss * share, divergence * share

    losses = []
    for _ in range(settings.updates):
        optimizer.zero_grad(set_to_none=True)
        losses.append(0.0)
        # One part after another, because the scores of all groups together would not fit into memory.
        for loss, _ in iterate_terms():
            loss.backward()
            losses[-1] += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        divergence = sum(float(divergence) for _, divergence in iterate_terms())
    return {"loss": losses[0], "kl": divergence}


def _compute_terms(
    model: PreTrainedModel,
    group: AnswerGroup,
    grammar: Grammar,
    old: torch.Tensor,
    anchor: torch.Tensor,
    settings: AnswerTraining,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums over the tokens of a group: for the loss, and of the divergence from the reference.

    Args:
        model: the policy.
        group: answers with their advantages.
        grammar: the grammar that the answers were given under.
        old: log-probabilities [G, T] before the training.
        anchor: log-probabilities [G, T] of the reference.
        settings: bounds and weights.
    """
    now, there = _log_probs(model, group, grammar)
    advantages = torch.tensor(list(group.advantages), device=now.device)[:, None]
    ratio = (now - old).exp()
    clipped = ratio.clamp(1 - settings.epsilon, 1 + settings.epsilon)
    gain = torch.minimum(ratio * advantages, clipped * advantages)
    away = anchor - now
    divergence = away.exp() - away - 1  # an unbiased estimate of the KL divergence, at least 0
    return ((settings.kl * divergence - gain) * there).sum(), (divergence * there).sum()


def _log_probs(model: PreTrainedModel, group: AnswerGroup, grammar: Grammar) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of `log_probs_under_grammar`, with 0 for padding."""
    taken, there = log_probs_under_grammar(model, group.prompt, group.answers, grammar)
    return taken.masked_fill(~there, 0.0), there
