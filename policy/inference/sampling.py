"""Answers from a model in this process: greedy or sampled, many at once."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from transformers import DynamicCache, LogitsProcessorList, PreTrainedModel, PreTrainedTokenizerFast

from lakewright.policy.inference.decoders import cache_rows, find_decoder, should_decode_singly
from lakewright.policy.inference.device_limits import fit_answers
from lakewright.policy.models.building import set_mode, use_precision, use_torch_defaults
from lakewright.policy.play import Play

ROWS = 512  # answers decoded together

T = TypeVar("T")
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


def answer_tasks(
    model: PreTrainedModel,
    play: Play[T],
    tasks: Sequence[T],
    *,
    temperature: float = 0.0,
    on_progress: Callable[[int], None] = lambda tasks: None,
) -> list[list[int]]:
    """Return one answer (token ids after the prompt) for each task.

    Args:
        model, play, tasks: the policy, the kind of tasks, and the tasks.
        temperature: sampling temperature; 0 is greedy.
        on_progress: gets how many more tasks are answered.

    Raises InputError as `play` does.
    """
    return sample(
        model,
        play.tokenizer,
        [play.encode_prompt(task) for task in tasks],
        max_new_tokens=play.longest_answer(tasks),
        temperature=temperature,
        batch=play.batch,
        scored=play.scored,
        on_progress=on_progress,
    ).answers


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
        on_progress: gets how many more prompts are answered.
    """
    assert mask is None or len(prompts) == 1, "a mask belongs to the answers to one prompt"
    own = functools.partial(generate_answers, scored=scored)
    decode = functools.partial(_decode_answers if find_decoder(model) else own, mask=mask)
    ends = end_tokens(model, tokenizer)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    answers: list[list[int]] = [[] for _ in range(len(prompts) * copies)]
    log_probs: list[list[float]] = [[] for _ in answers]
    longest = max(map(len, prompts), default=0)
    at_once = max(1, (batch or fit_answers(model, longest, max_new_tokens, copies)) // copies)
    for begin in range(0, len(order), at_once):
        chosen = order[begin : begin + at_once]
        with set_mode(model), use_precision(model):
            tokens, scores = decode(model, tokenizer, [prompts[i] for i in chosen], copies, max_new_tokens, temperature)
        lengths = _count_answer_tokens(tokens, ends)
        rows = [i * copies + copy for i in chosen for copy in range(copies)]
        for row, answer, score, length in zip(rows, tokens.tolist(), scores.tolist(), lengths.tolist(), strict=True):
            answers[row], log_probs[row] = answer[:length], score[:length]
        on_progress(len(chosen))
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens and log-probabilities [B * G, T] by a decoder of this package; T is the longest answer.

    Args:
        model, tokenizer: the policy.
        prompts: token ids of B prompts.
        copies: G, the answers to each.
        max_new_tokens: most tokens of an answer.
        temperature: sampling temperature; 0 is greedy.
        mask: as in `sample`.
    """
    ends = torch.tensor(end_tokens(model, tokenizer), device=model.device)
    if should_decode_singly(model):
        prompts, copies = [prompt for prompt in prompts for _ in range(copies)], 1
    tokens = torch.full((len(prompts), copies, max_new_tokens), tokenizer.eos_token_id, device=model.device)
    scores = torch.zeros(tokens.shape, device=model.device)
    ended = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=model.device)
    open_ = torch.arange(len(prompts), device=model.device)  # prompts that the decoder still holds
    make = find_decoder(model)
    assert make
    decoder = make(copies, max_new_tokens)
    logits = decoder.read_prompts(*_pad_prompts(prompts, tokenizer.pad_token_id, model.device))
    for step in range(max_new_tokens):
        if mask:
            logits = mask(tokens[0, :, :step], logits[0])[None]
        chosen, score = choose_tokens(logits, temperature)
        tokens[open_, :, step], scores[open_, :, step] = chosen, score
        # An answer that has ended is decoded further with its group; `sample` cuts it off at its end.
        ended[open_] |= torch.isin(chosen, ends)
        unfinished = ~ended[open_].all(-1)
        count = int(unfinished.sum())
        if step + 1 == max_new_tokens or not count:
            break
        if decoder.should_drop_finished(count / len(open_), max_new_tokens - step - 1):
            left = unfinished.nonzero().squeeze(-1)
            decoder.select_boards(left)
            open_, chosen = open_[left], chosen[left]
        logits = decoder.add_tokens(chosen)
    return tokens[:, :, : step + 1].flatten(0, 1), scores[:, :, : step + 1].flatten(0, 1)


def choose_tokens(logits: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a token for each row of [..., V], and its log-probability."""
    log_probs = (logits.float() / (temperature or 1.0)).log_softmax(-1)
    if temperature:
        flat = log_probs.exp().flatten(0, -2)
        chosen = torch.multinomial(flat, 1).view(log_probs.shape[:-1])
    else:
        chosen = log_probs.argmax(-1)
    return chosen, log_probs.gather(-1, chosen[..., None]).squeeze(-1)


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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return tokens int and log-probabilities float32 [B * G, T] by the model's own `generate`, for any causal model.

    Args:
        model, tokenizer: the policy.
        prompts: token ids of B prompts.
        copies: G, the answers to each.
        max_new_tokens: most tokens of an answer.
        temperature: sampling temperature; 0 is greedy.
        mask: as in `sample`.
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
        **read,
        **(sampled if temperature else {"do_sample": False}),
    )
    tokens = output.sequences[:, ids.shape[1] :]
    if not scored:
        return tokens, torch.zeros(len(tokens), 0)
    log_probs = (torch.stack(output.logits, 1).float() / (temperature or 1.0)).log_softmax(-1)
    return tokens, log_probs.gather(-1, tokens[..., None]).squeeze(-1)


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
