"""Answers under a grammar, as an engineer gives them: greedy, sampled, and the log-probabilities of given ones."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.codecs.tokens import token_ids
from lakewright.policy.models.building import set_mode, use_precision

Allowed = Callable[[Sequence[str]], tuple[str, ...]]
Grammar = Callable[[Sequence[int]], Iterable[Sequence[int] | np.ndarray]]
"""For each token id of an answer the ids that might have stood there."""


def grammar_of(tokenizer: PreTrainedTokenizerFast, allowed: Allowed) -> Grammar:
    """Return the grammar of answers whose words are tokens."""

    def open_to(answer: Sequence[int]) -> Iterable[Sequence[int]]:
        words = tokenizer.convert_ids_to_tokens(list(answer))
        return (token_ids(tokenizer, allowed(words[:place])) for place in range(len(words)))

    return open_to


@torch.inference_mode()
def answer_under_grammar(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompt: Sequence[str],
    allowed: Allowed,
    *,
    max_new_tokens: int = 256,
) -> list[str]:
    """Return the greedy answer under a grammar, as tokens.

    Args:
        model, tokenizer: the policy.
        prompt: its tokens.
        allowed: gives the tokens that may follow an answer so far; an empty list ends it.
        max_new_tokens: most tokens of the answer.
    """
    ids = torch.tensor([token_ids(tokenizer, prompt)], device=model.device)
    answer: list[str] = []
    cache = None
    with set_mode(model), use_precision(model):
        while len(answer) < max_new_tokens and (choices := allowed(answer)):
            output = model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            scores = output.logits[0, -1, token_ids(tokenizer, choices)]
            answer.append(choices[int(scores.argmax())])
            ids = torch.tensor([token_ids(tokenizer, answer[-1:])], device=model.device)
    return answer


@torch.inference_mode()
def sample_under_grammar(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompt: Sequence[str],
    allowed: Allowed,
    *,
    copies: int,
    temperature: float,
    seed: int,
    max_new_tokens: int = 256,
) -> list[list[str]]:
    """Return sampled answers under a grammar, as tokens.

    Args:
        model, tokenizer: the policy.
        prompt: its tokens.
        allowed: gives the tokens that may follow an answer so far; an empty list ends it.
        copies: how many answers.
        temperature: sampling temperature.
        seed: seed for sampling.
        max_new_tokens: most tokens of an answer.
    """
    chance = torch.Generator().manual_seed(seed)
    answers: list[list[str]] = [[] for _ in range(copies)]
    ids = torch.tensor([token_ids(tokenizer, prompt)] * copies, device=model.device)
    cache = None
    with set_mode(model), use_precision(model):
        for _ in range(max_new_tokens):
            choices = [allowed(answer) for answer in answers]
            if not any(choices):
                break
            output = model(input_ids=ids, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            logits = output.logits[:, -1].float().cpu() / temperature
            for answer, scores, open_to in zip(answers, logits, choices, strict=True):
                if open_to:
                    chances = scores[token_ids(tokenizer, open_to)].softmax(0)
                    answer.append(open_to[int(torch.multinomial(chances, 1, generator=chance))])
            last = [token_ids(tokenizer, answer[-1:]) for answer in answers]
            ids = torch.tensor(last, device=model.device)
    return answers


def log_probs_under_grammar(
    model: PreTrainedModel, prompt: Sequence[int], answers: Sequence[Sequence[int]], grammar: Grammar
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities [G, T] of the tokens of answers, each among those allowed there, and a mask [G, T] of
    tokens.

    Args:
        model: the policy.
        prompt: token ids.
        answers: token ids of G answers.
        grammar: gives the allowed ids at each place of an answer.
    """
    longest, none = max(map(len, answers)), 0  # the id that pads shorter answers
    ids = torch.tensor([[*prompt, *answer, *[none] * (longest - len(answer))] for answer in answers])
    with use_precision(model):
        output = model(input_ids=ids.to(model.device), logits_to_keep=longest + 1, use_cache=False)
    logits = output.logits[:, :-1].float()
    open_to = torch.zeros(logits.shape, dtype=torch.bool)
    for row, answer in enumerate(answers):
        for place, choices in enumerate(grammar(answer)):
            open_to[row, place, choices] = True
        open_to[row, len(answer) :, none] = True  # so that padding has a probability of one, not 0 / 0
    masked = logits.masked_fill(~open_to.to(logits.device), -torch.inf).log_softmax(-1)
    taken = masked.gather(-1, ids[:, len(prompt) :, None].to(logits.device)).squeeze(-1)
    lengths = torch.tensor([len(answer) for answer in answers], device=logits.device)
    return taken, torch.arange(longest, device=logits.device) < lengths[:, None]
