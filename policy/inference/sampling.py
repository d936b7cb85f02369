"""Answers from a model in this process: greedy or sampled, many at once."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import (
    DynamicCache,
    LogitsProcessorList,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    StoppingCriteria,
    StoppingCriteriaList,
)

from lakewright.policy.inference.decoders import cache_rows, find_decoder, should_decode_singly
from lakewright.policy.inference.device_limits import fit_answers
from lakewright.policy.inference.step_graph import uses_graphs
from lakewright.policy.models.building import set_mode, use_precision, use_torch_defaults

ROWS = 512  # answers decoded together
STEPS_UNSEEN = 8  # after which a GPU is asked which answers have ended, for which it must be waited for

AnswerMask = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
"""Given answers so far [G, T] and logits [G, V], the logits with minus infinity where a token may not follow."""


@dataclasses.dataclass(frozen=True)
class Samples:
    """Answers and their log-probabilities.

    Args:
        answers: token ids, with an end token unless the answer is cut off.
        log_probs: one for each token, at the sampling temperature (at 0, of the model itself), empty if not
        requested.
    """

    answers: list[list[int]]
    log_probs: list[list[float]]


@use_torch_defaults()
def sample(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    *,
    copies: int = 1,
    max_new_tokens: int,
    temperature: float,
    batch: int = ROWS,
    scored: bool = True,
    mask: AnswerMask | None = None,
    on_progress: Callable[[int], None] = lambda prompts: None,
) -> Samples:
    """Return answers to prompts, those to one prompt next to each other.

    Prompts of similar length are decoded together, so that a batch holds little padding. Models that `find_decoder`
    does not know answer by their own `generate`, whose log-probabilities take much memory if the vocabulary is large.

    Args:
        model, tokenizer: the policy.
        prompts: token ids.
        copies: answers to each prompt.
        max_new_tokens: most tokens of an answer.
        temperature: sampling temperature; 0 is greedy.
        batch: most answers that are decoded together; 0: see `fit_answers`.
        scored: return log-probabilities too.
        mask: the tokens that may follow in answers to a single prompt.
        on_progress: gets how many more prompts are answered, now and then 0 of them.
    """
    assert mask is None or len(prompts) == 1, "a mask belongs to the answers to one prompt"
    known = find_decoder(model)
    decode = functools.partial(
        _decode_answers if known else generate_answers, mask=mask, scored=scored, on_progress=on_progress
    )
    ends = end_tokens(model, tokenizer)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    answers: list[list[int]] = [[] for _ in range(len(prompts) * copies)]
    log_probs: list[list[float]] = [[] for _ in answers]
    longest = max(map(len, prompts), default=0)
    # The model's own `generate` holds a prompt for each of its answers.
    sharing = copies if known else 1
    at_once = max(1, (batch or fit_answers(model, longest, max_new_tokens, sharing)) // copies)
    for begin in range(0, len(order), at_once):
        chosen = order[begin : begin + at_once]
        with set_mode(model), use_precision(model):
            tokens, scores = decode(model, tokenizer, [prompts[i] for i in chosen], copies, max_new_tokens, temperature)
        lengths = _count_answer_tokens(tokens, ends)
        rows = [i * copies + copy for i in chosen for copy in range(copies)]
        for row, answer, score, length in zip(rows, tokens.tolist(), scores.tolist(), lengths.tolist(), strict=True):
            answers[row], log_probs[row] = answer[:length], score[:length]
    return Samples(answers, log_probs)


def end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Return all tokens that end an answer: the tokenizer's answer, and the model config's."""
    config = getattr(model, "generation_config", None)
    named = getattr(config, "eos_token_id", None)
    named = named if isinstance(named, list) else [named]
    return sorted({tokenizer.eos_token_id, *(end for end in named if end is not None)})


@torch.inference_mode()
def _decode_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    copies: int,
    max_new_tokens: int,
    temperature: float,
    mask: AnswerMask | None,
    scored: bool,
    on_progress: Callable[[int], None],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and log-probabilities [B * G, T] by a decoder of this package; T is the longest answer.

    Args:
        model, tokenizer: the policy.
        prompts: token ids of B prompts.
        copies: G, the answers to each.
        max_new_tokens, temperature, mask, on_progress: as in `sample`.
        scored: return log-probabilities; otherwise they have the shape [B * G, 0].
    """
    ends = torch.tensor(end_tokens(model, tokenizer), device=model.device)
    apart = copies if should_decode_singly(model) else 1
    prompts, copies = [prompt for prompt in prompts for _ in range(apart)], copies // apart
    tokens = torch.full((len(prompts), copies, max_new_tokens), tokenizer.eos_token_id, device=model.device)
    scores = torch.zeros((*tokens.shape[:2], scored * max_new_tokens), device=model.device)
    ended = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=model.device)
    open_ = torch.arange(len(prompts), device=model.device)  # prompts that the decoder still holds
    make = find_decoder(model)
    assert make
    decoder = make(copies, max_new_tokens)
    logits = decoder.read_prompts(*_pad_prompts(prompts, tokenizer.pad_token_id, model.device))
    # A CPU need not be waited for, and a mask looks at the tokens before.
    unseen = STEPS_UNSEEN if uses_graphs(model.device) and mask is None else 1
    begin = reported = 0
    taken: list[tuple[torch.Tensor, ...]] = []  # tokens of the steps since `begin`, and their scores
    for step in range(1, max_new_tokens + 1):
        if mask:
            logits = mask(tokens[0, :, : step - 1], logits[0])[None]
        chosen, *score = choose_tokens(logits, temperature, scored)
        taken.append((chosen, *score))
        if step - begin == unseen or step == max_new_tokens:
            block, *parts = (torch.stack(part, -1) for part in zip(*taken, strict=True))
            tokens[open_, :, begin:step] = block
            if parts:
                scores[open_, :, begin:step] = parts[0]
            # An answer that has ended is decoded further with its group; `sample` cuts it off at its end.
            ended[open_] |= torch.isin(block, ends).any(-1)
            unfinished = ~ended[open_].all(-1)
            begin, count = step, int(unfinished.sum()) if step < max_new_tokens else 0
            taken.clear()
            on_progress((len(prompts) - count) // apart - reported)
            reported = (len(prompts) - count) // apart
            if not count:
                break
            if decoder.should_drop_finished(count / len(open_), max_new_tokens - step):
                left = unfinished.nonzero().squeeze(-1)
                decoder.select_boards(left)
                open_, chosen = open_[left], chosen[left]
        logits = decoder.add_tokens(chosen)
    return tokens[:, :, :begin].flatten(0, 1), scores[:, :, :begin].flatten(0, 1)


def choose_tokens(logits: torch.Tensor, temperature: float, scored: bool = True) -> tuple[torch.Tensor, ...]:
    """Return a token for each row of [..., V], and its log-probability if it is `scored`."""
    if not (temperature or scored):
        return (logits.argmax(-1),)
    logits = logits.float() / temperature if temperature not in (0.0, 1.0) else logits.float()
    log_probs = logits.log_softmax(-1)
    if temperature:
        # The same arithmetic whether or not the tokens are scored, so that the same ones are drawn.
        chances = log_probs.exp() if scored else log_probs.exp_()
        chosen = torch.multinomial(chances.flatten(0, -2), 1).view(log_probs.shape[:-1])
    else:
        chosen = log_probs.argmax(-1)
    return (chosen, log_probs.gather(-1, chosen[..., None]).squeeze(-1)) if scored else (chosen,)


@torch.inference_mode()
def generate_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    copies: int,
    max_new_tokens: int,
    temperature: float,
    mask: AnswerMask | None = None,
    scored: bool = True,
    on_progress: Callable[[int], None] = lambda prompts: None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens int and log-probabilities float32 [B * G, T] by the model's own `generate`, for any causal model.

    Args:
        model, tokenizer: the policy.
        prompts: token ids of B prompts.
        copies: G, the answers to each.
        max_new_tokens: most tokens of an answer.
        temperature: sampling temperature; 0 is greedy.
        mask, on_progress: as in `sample`.
        scored: return log-probabilities; otherwise they have the shape [B * G, 0].
    """
    ids, present = _pad_prompts(prompts, tokenizer.pad_token_id, model.device)
    read = _read_once(model, ids, present, copies) if copies > 1 and scored is False else {}
    ids, present = ids.repeat_interleave(copies, 0), present.repeat_interleave(copies, 0)
    if mask:
        read["logits_processor"] = LogitsProcessorList([lambda rows, logits: mask(rows[:, ids.shape[1] :], logits)])
    sampled = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0, "min_p": None}
    output = model.generate(
        input_ids=ids,
        attention_mask=present,
        max_new_tokens=max_new_tokens,
        output_logits=scored,
        return_dict_in_generate=True,
        repetition_penalty=1.0,
        eos_token_id=end_tokens(model, tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        stopping_criteria=StoppingCriteriaList([_Tick(on_progress)]),
        **read,
        **(sampled if temperature else {"do_sample": False}),
    )
    tokens = output.sequences[:, ids.shape[1] :]
    on_progress(len(prompts))
    if not scored:
        return tokens, torch.zeros(len(tokens), 0)
    log_probs = (torch.stack(output.logits, 1).float() / (temperature or 1.0)).log_softmax(-1)
    return tokens, log_probs.gather(-1, tokens[..., None]).squeeze(-1)


class _Tick(StoppingCriteria):
    """Stops nothing, but reports at each token that no more prompts are answered, so that time is seen to pass."""

    def __init__(self, on_progress: Callable[[int], None]) -> None:
        self._on_progress = on_progress

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        """Return False for each row. A hook of transformers' generation."""
        self._on_progress(0)
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _read_once(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, copies: int) -> dict[str, Any]:
    """Return arguments of `generate` that continue prompts several times although they are read once here.

    The last token of a prompt is left to `generate`, which needs one to begin with.

    Args:
        model: the policy.
        ids, mask: int [B, P], prompts padded on the left, and 0 at their padding.
        copies: answers to each prompt.
    """
    cache = DynamicCache(config=model.config)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    before = {"attention_mask": mask[:, :-1], "position_ids": places[:, :-1], "past_key_values": cache}
    model(input_ids=ids[:, :-1], use_cache=True, logits_to_keep=1, **before)
    return {"past_key_values": cache_rows(cache, torch.arange(len(ids), device=ids.device).repeat_interleave(copies))}


def _pad_prompts(prompts: list[list[int]], pad: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return token ids [B, P], padded on the left, and their mask."""
    width = max(len(prompt) for prompt in prompts)
    ids = [[pad] * (width - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _count_answer_tokens(tokens: torch.Tensor, ends: Sequence[int]) -> torch.Tensor:
    """Return the length of each answer of [B, T], its end token included."""
    ended = torch.isin(tokens, torch.tensor(ends, device=tokens.device))
    return torch.where(ended.any(1), ended.int().argmax(1) + 1, tokens.shape[1])
