"""Answers from a model: greedy or sampled, in batches; and answers under a grammar."""

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from policy.boards import Task
from policy.codecs.tokens import encode_prompt, token_ids


def answer_tasks(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    *,
    max_new_tokens: int,
    temperature: float = 0.0,
    batch: int = 256,
    on_progress: Callable[[int], None] = lambda boards: None,
) -> list[list[int]]:
    """One answer (token ids after the prompt) for each task; greedy at temperature 0.

    Tasks are answered in order of prompt length, so that a batch holds little padding.
    """
    prompts = [encode_prompt(task.board) for task in tasks]
    order = sorted(range(len(tasks)), key=lambda i: len(prompts[i]))
    answers: list[list[int]] = [[] for _ in tasks]
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        outputs = _generate(model, tokenizer, [prompts[i] for i in chosen], max_new_tokens, temperature)
        for i, output in zip(chosen, outputs, strict=True):
            answers[i] = output
        on_progress(len(chosen))
    return answers


@torch.inference_mode()
def _generate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    max_new_tokens: int,
    temperature: float,
) -> list[list[int]]:
    width = max(len(prompt) for prompt in prompts)
    pad = tokenizer.pad_token_id
    ids = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=model.device)
    how = (
        {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        if temperature
        else {"do_sample": False}
    )
    model.eval()
    output: torch.Tensor = model.generate(  # type: ignore[operator]
        input_ids=ids, attention_mask=mask, max_new_tokens=max_new_tokens, **how
    )
    return output[:, width:].tolist()


@torch.inference_mode()
def answer_under_grammar(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompt: Sequence[str],
    allowed: Callable[[Sequence[str]], tuple[str, ...]],
    *,
    max_new_tokens: int = 256,
) -> list[str]:
    """Decodes greedily, at every token only among `allowed(answer so far)`, until that is empty."""
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
