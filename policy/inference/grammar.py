"""Answers under a grammar of tokens, as those of an engineer that answers in tokens."""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from policy.codecs import token_ids


@torch.inference_mode()
def answer_under_grammar(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompt: Sequence[str],
    allowed: Callable[[Sequence[str]], tuple[str, ...]],
    *,
    max_new_tokens: int = 256,
) -> list[str]:
    """Decodes greedily, each token among `allowed(answer so far)`, until nothing is allowed."""
    model.eval()
    ids = torch.tensor([token_ids(tokenizer, prompt)], device=model.device)
    answer: list[str] = []
    cache = None
    while len(answer) < max_new_tokens and (choices := allowed(answer)):
        output = model(input_ids=ids, past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        scores = output.logits[0, -1, token_ids(tokenizer, choices)]
        answer.append(choices[int(scores.argmax())])
        ids = torch.tensor([token_ids(tokenizer, answer[-1:])], device=model.device)
    return answer
