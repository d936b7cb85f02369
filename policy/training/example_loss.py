"""What a model makes of given answers: the loss that it learns them by, and their exact log-probabilities."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
from transformers import PreTrainedModel

from lakewright.policy.inference import cache_rows, common_prefix
from lakewright.policy.models import set_mode, use_precision
from lakewright.policy.networks import BoardNetwork
from lakewright.policy.play import Play

WORTH_SHARING = 4  # tokens that all prompts of a batch begin with, as those of chat templates do
IGNORED = -100  # the label of tokens without a loss: prompt and padding

Example: TypeAlias = tuple[list[int], list[int]]  # prompt and answer, token ids
T = TypeVar("T")


def plan_loss(model: PreTrainedModel, examples: list[Example], pad: int) -> torch.Tensor:
    """Cross entropy of the answers, the mean over their tokens."""
    logits, labels = _score(model, examples, pad)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


@torch.inference_mode()
def reference_log_probs(model: PreTrainedModel, play: Play[T], tasks: Sequence[T], batch: int = 64) -> np.ndarray:
    """The log-probability of each reference answer at temperature 1, its end included: float64 [B], at most 0.

    Args: batch: answers read together, those of similar length. Raises InputError as `play` does.
    """
    examples = [(play.encode_prompt(task), play.encode_reference(task)) for task in tasks]
    order = sorted(range(len(examples)), key=lambda place: sum(map(len, examples[place])))
    found = np.zeros(len(examples))
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        with set_mode(model):
            logits, labels = _score(model, [examples[place] for place in places], play.tokenizer.pad_token_id)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
        )
        found[places] = -losses.double().sum(1).cpu().numpy()
    return found


def _score(model: PreTrainedModel, examples: list[Example], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The scores of words float32 [B, T, V] and the words that follow int [B, T], IGNORED where none is learned."""
    width = max(len(prompt) + len(answer) for prompt, answer in examples)
    ids = torch.full((len(examples), width), pad)
    labels = torch.full((len(examples), width), IGNORED)
    for row, (prompt, answer) in enumerate(examples):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    # Padding is on the right, where a causal model does not see it: no mask is needed.
    # Scores for every word of a vocabulary are computed only from the last token of the shortest prompt on.
    known = min(len(prompt) for prompt, _ in examples)
    with use_precision(model):
        logits = _logits(model, ids.to(model.device), common_prefix([prompt for prompt, _ in examples]), known)
    return logits, labels[:, known:].to(model.device)


def _logits(model: PreTrainedModel, ids: torch.Tensor, shared: int, known: int) -> torch.Tensor:
    """The scores of the tokens from `known` on; the `shared` first tokens, the same in all rows, are read once."""
    given: dict[str, Any] = {"logits_to_keep": ids.shape[1] - known + 1}
    if shared >= WORTH_SHARING and not isinstance(model, BoardNetwork):
        read = model(input_ids=ids[:1, :shared], use_cache=True, logits_to_keep=1).past_key_values
        given["past_key_values"] = cache_rows(read, ids.new_zeros(len(ids)))
        ids = ids[:, shared:]
    return model(input_ids=ids, **given).logits[:, :-1].float()
