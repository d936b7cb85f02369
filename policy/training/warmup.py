"""Warm-up: supervised learning of reference answers, such as certified plans, and the loss that it minimises.

Boards are rotated and reflected and agents permuted at random, so that each certified plan serves many boards. Muon
trains the matrices and AdamW the embeddings and the head, or AdamW all of them; the result is the averaged weights.
"""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import torch
from transformers import PreTrainedModel

from lakewright.policy.inference.decoders import cache_rows, common_prefix
from lakewright.policy.inference.device_limits import SCORES, fit_rows, should_share_prefix
from lakewright.policy.models.building import set_mode, use_precision, use_torch_defaults
from lakewright.policy.networks.board_network import BoardNetwork
from lakewright.policy.play import Play, Tasks, TaskStream
from lakewright.policy.training.optimizers import build_adamw, build_average, build_muon_and_adamw, rate_scale
from lakewright.policy.training.recorded_scores import WIDTH, RecordedLoss, is_recordable
from lakewright.policy.training.settings import WarmupSettings
from lakewright.policy.training.training_state import Pause, Place, SaveTimes, StepClock, TrainingState, choose_pause

READ_ON_CPU = 64  # reference answers that a CPU reads together
POOL = 8  # batches drawn together, then sorted by length
IGNORED = -100  # the label of tokens without a loss: prompt and padding

TokenExample: TypeAlias = tuple[list[int], list[int]]  # prompt and answer, token ids

Loss: TypeAlias = Callable[[PreTrainedModel, list[TokenExample], int], torch.Tensor]
"""The loss of a batch of examples, by the model and the id of padding."""

T = TypeVar("T")


def warm_up(
    model: PreTrainedModel,
    play: Play[T],
    tasks: Tasks[T],
    extra: Sequence[TokenExample],
    settings: WarmupSettings,
    seed: int,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
    state_file: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
    loss_of: Loss | None = None,
    pause: Pause = choose_pause,
) -> PreTrainedModel:
    """Train `model` on the reference answers of `tasks` and on `extra` examples; return the averaged model.

    Args:
        model, play: the policy, and the play that asks the tasks and knows their answers.
        tasks: a sequence, which is repeated, or a stream, whose tasks are seen once each.
        extra, settings: more examples, token ids; the settings of the warm-up.
        seed: seed of batches, symmetries and dropout.
        on_step: gets each step and its loss.
        state_file: a file to which the training is saved about once a minute, and from which it resumes if the file
            exists: a stream must then begin at its `load_place`, and the earlier losses are reported again.
        clock, pause: give the time in seconds that `minutes` are counted in, and the time between two saved states.
        loss_of: the loss to minimise; by default the cross entropy of the answers, `plan_loss`.

    Raises InputError if that file is of another training, and as `play` does.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    build = build_muon_and_adamw if settings.optimizer == "muon" else build_adamw
    optimizer = build(model, settings.matrix_rate, settings.other_rate)
    averaged = build_average(model, settings.decay)
    state = TrainingState(model, averaged, optimizer)
    minimised = loss_of or (RecordedLoss(model, _token_loss) if is_recordable(model) else plan_loss)
    place = _load_state(state, state_file, rng, on_step)
    model.train()
    boards, batches = place.boards, list[list[TokenExample]]()
    times, saves = StepClock(place.seconds, state_file if settings.minutes else None, clock), SaveTimes(clock, pause)
    for step in range(place.step, settings.steps):
        seconds = times.seconds_at(step)
        # Only between two pools: the state holds no batches, so that a resumed training draws the same ones next.
        if state_file and step % POOL == 0 and saves.is_due():
            replaced = place.replaced + (tasks.replaced if isinstance(tasks, TaskStream) else 0)
            with saves.saving():
                state.save(state_file, Place(step, boards, seconds, json.dumps(rng.bit_generator.state), replaced))
        # The share of the training that is over, by steps or by the clock: it ends with the nearer of both.
        done = max(step / settings.steps, seconds / (60 * settings.minutes) if settings.minutes else 0)
        if done >= 1:
            break
        if step % POOL == 0:
            mixed = extra if done >= settings.extra_from else []
            batches = _draw_batches(play, tasks, mixed, settings, rng)
            boards += POOL * _count_boards(settings, mixed)
        optimizer.scale_rates(rate_scale(step, done))
        loss = _update_weights(model, optimizer, batches[step % POOL], play.tokenizer.pad_token_id, minimised)
        averaged.update_parameters(model)
        state.losses.append(loss)
        on_step(step, loss)
    return cast(PreTrainedModel, averaged.module)


def _load_state(
    state: TrainingState, file: Path | None, rng: np.random.Generator, on_step: Callable[[int, float], None]
) -> Place:
    """Load a saved training, report its losses, and return its place; without a file, the beginning."""
    if file is None or not file.exists():
        return Place()
    place = state.load(file)
    rng.bit_generator.state = json.loads(place.random)
    for step, loss in enumerate(state.losses):
        on_step(step, loss)
    return place


@use_torch_defaults()
def _update_weights(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    batch: list[TokenExample],
    pad: int,
    minimised: Loss | RecordedLoss,
) -> float:
    """Make one update on a batch and return its loss."""
    if recorded := isinstance(minimised, RecordedLoss):  # which keeps the gradients and sets them to zero
        loss = minimised.backward(*_collate(batch, pad, WIDTH))
    else:
        loss = minimised(model, batch, pad)
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if not recorded:
        optimizer.zero_grad(set_to_none=True)
    return loss.item()


def _count_boards(settings: WarmupSettings, extra: Sequence[TokenExample]) -> int:
    """Return how many examples of a batch are boards."""
    return settings.batch - (round(settings.batch * settings.extra_share) if extra else 0)


def _draw_batches(
    play: Play[T],
    tasks: Tasks[T],
    extra: Sequence[TokenExample],
    settings: WarmupSettings,
    rng: np.random.Generator,
) -> list[list[TokenExample]]:
    """Return a pool of batches of examples of similar length, so that little of a batch is padding."""
    boards = _count_boards(settings, extra)
    others = settings.batch - boards
    drawn = _draw_tasks(tasks, POOL * boards, rng)
    drawn = [play.augment(task, rng) for task in drawn] if settings.augment else drawn
    examples = [(play.encode_prompt(task), play.encode_reference(task)) for task in drawn]
    examples += [extra[i] for i in rng.integers(len(extra), size=POOL * others)] if others else []
    examples.sort(key=lambda example: len(example[0]) + len(example[1]))
    return [examples[batch * settings.batch : (batch + 1) * settings.batch] for batch in rng.permutation(POOL)]


def _draw_tasks(tasks: Tasks[T], count: int, rng: np.random.Generator) -> list[T]:
    if isinstance(tasks, TaskStream):
        return tasks.take(count)
    return [tasks[i] for i in rng.integers(len(tasks), size=count)]


def plan_loss(model: PreTrainedModel, examples: list[TokenExample], pad: int) -> torch.Tensor:
    """Return the cross entropy of the answers, the mean over their tokens."""
    logits, labels = _score_answers(model, examples, pad)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)


def choice_odds(model: PreTrainedModel, prompts: list[list[int]], one: int, other: int, pad: int) -> torch.Tensor:
    """Return the log-odds of a token against another as the next token after each prompt: float32 [B].

    Args:
        model: the policy.
        prompts: token ids.
        one, other: the two tokens.
        pad: the id of padding.
    """
    logits, labels = _score_answers(model, [(prompt, [one]) for prompt in prompts], pad)
    last = logits[labels != IGNORED]  # a row of scores for each prompt
    return last[:, one] - last[:, other]


@torch.inference_mode()
@use_torch_defaults()
def reference_log_probs(model: PreTrainedModel, play: Play[T], tasks: Sequence[T], batch: int = 0) -> np.ndarray:
    """Return the log-probability of each reference answer at temperature 1, its end included: float64 [B].

    Args:
        model, play, tasks: the policy, the kind of tasks, and the tasks.
        batch: number of answers read together, of similar lengths; 0: as many as a GPU's memory holds, or 64 on a CPU.

    Raises InputError as `play` does.
    """
    examples = [(play.encode_prompt(task), play.encode_reference(task)) for task in tasks]
    order = sorted(range(len(examples)), key=lambda place: sum(map(len, examples[place])))
    found = np.zeros(len(examples))
    longest = max((sum(map(len, example)) for example in examples), default=0)
    batch = batch or fit_rows(model.device, SCORES * 4 * longest * model.config.vocab_size, READ_ON_CPU)
    for begin in range(0, len(order), batch):
        places = order[begin : begin + batch]
        with set_mode(model):
            logits, labels = _score_answers(model, [examples[place] for place in places], play.tokenizer.pad_token_id)
        losses = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none"
        )
        found[places] = -losses.double().sum(1).cpu().numpy()
    return found


def _score_answers(model: PreTrainedModel, examples: list[TokenExample], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores of words float32 [B, T, V] and the words that follow int [B, T], IGNORED outside of answers."""
    ids, labels, known = _collate(examples, pad)
    with use_precision(model):
        logits = _compute_logits(model, ids.to(model.device), common_prefix([prompt for prompt, _ in examples]), known)
    return logits, labels[:, known:].to(model.device)


def _collate(examples: list[TokenExample], pad: int, multiple: int = 1) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return ids and labels int [B, L], and the first tokens that no prompt is shorter than.

    Args:
        examples: prompts and answers.
        pad: the id of padding.
        multiple: what L and the number of first tokens are multiples of.
    """
    width = max(len(prompt) + len(answer) for prompt, answer in examples)
    # Padding is on the right, where a causal model does not see it: no mask is needed.
    ids = torch.full((len(examples), -(-width // multiple) * multiple), pad)
    labels = torch.full(ids.shape, IGNORED)
    for row, (prompt, answer) in enumerate(examples):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
    # Scores for every word of a vocabulary are computed only from the last token of the shortest prompt on.
    known = min(len(prompt) for prompt, _ in examples)
    return ids, labels, max(1, known // multiple * multiple)


def _token_loss(model: PreTrainedModel, ids: torch.Tensor, labels: torch.Tensor, known: int) -> torch.Tensor:
    """Return the loss of `plan_loss` for a batch of `_collate`."""
    with use_precision(model):
        logits = _compute_logits(model, ids, 0, known)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, known:].flatten(), ignore_index=IGNORED)


def _compute_logits(model: PreTrainedModel, ids: torch.Tensor, shared: int, known: int) -> torch.Tensor:
    """Return the scores of the tokens from `known` on.

    Args:
        model: the policy.
        ids: int [B, L], prompts and answers.
        shared: the number of first tokens that are the same in all rows; they are read once if that pays.
        known: the length of the shortest prompt.
    """
    given: dict[str, Any] = {"logits_to_keep": ids.shape[1] - known + 1}
    if not isinstance(model, BoardNetwork) and should_share_prefix(model, shared, shared * len(ids)):
        read = model(input_ids=ids[:1, :shared], use_cache=True, logits_to_keep=1).past_key_values
        given["past_key_values"] = cache_rows(read, ids.new_zeros(len(ids)))
        ids = ids[:, shared:]
    return model(input_ids=ids, **given).logits[:, :-1].float()
