"""Warm-up: supervised learning of certified plans.

Boards are rotated and reflected and agents permuted at random, so that each certified plan serves many boards. Muon
trains the matrices and AdamW the embeddings and the head, or AdamW all of them; the averaged weights are kept.
"""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.types import DELTAS, PAD, Board
from lakewright.policy.codecs import Codec, TokensCodec
from lakewright.policy.inference import cache_rows, common_prefix
from lakewright.policy.models import use_precision
from lakewright.policy.networks import BoardNetwork
from lakewright.policy.tasks import Task
from lakewright.policy.training.board_stream import BoardStream
from lakewright.policy.training.optimizers import (
    Place,
    TrainingState,
    adamw_alone,
    averaged_model,
    muon_and_adamw,
    rate_scale,
)
from lakewright.policy.training.settings import WarmupSettings

POOL = 8  # batches drawn together, then sorted by length
SECONDS = 60.0  # of training, at least, between two times that it is kept
RARELY = 30  # times as long as the keeping takes lie between two of them,
LONGEST = 300.0  # but at most so many seconds
WORTH_SHARING = 4  # tokens that all prompts of a batch begin with, as those of chat templates do
IGNORED = -100  # the label of tokens without a loss: prompt and padding


Example = tuple[list[int], list[int]]  # prompt and answer, token ids


def warm_up(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: Sequence[Task] | BoardStream,
    extra: Sequence[Example],
    settings: WarmupSettings,
    seed: int,
    on_step: Callable[[int, float], None] = lambda step, loss: None,
    codec: Codec | None = None,
    kept: Path | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> PreTrainedModel:
    """Trains `model` on the certified plans of `tasks` and on `extra` examples; returns the averaged model.

    codec: the one of the model, by default tokens. kept: a file in which the training is kept about once a minute; if
    it is there, the training continues from it: a stream of boards must then begin at its `kept_place`. Its first steps
    are reported once more. clock: the seconds that `minutes` are counted in. Raises InputError where that file is of
    another training.
    """
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    make = muon_and_adamw if settings.optimizer == "muon" else adamw_alone
    optimizer = make(model, settings.matrix_rate, settings.other_rate)
    averaged = averaged_model(model, settings.decay)
    state, place = TrainingState(model, averaged, optimizer), Place()
    if kept is not None and kept.exists():
        place = state.load(kept)
        rng.bit_generator.state = json.loads(place.random)
        for step, known in enumerate(state.losses):
            on_step(step, known)
    model.train()
    codec = codec or TokensCodec(tokenizer)
    boards = place.boards
    batches: list[list[Example]] = []
    begun, keeping = clock(), _Keeping(kept, clock)
    for step in range(place.step, settings.steps):
        seconds = place.seconds + clock() - begun
        if step % POOL == 0 and keeping.is_due():
            replaced = place.replaced + (tasks.replaced if isinstance(tasks, BoardStream) else 0)
            keeping.keep(state, Place(step, boards, seconds, json.dumps(rng.bit_generator.state), replaced))
        done = max(step / settings.steps, seconds / (60 * settings.minutes) if settings.minutes else 0)
        if done >= 1:
            break
        if step % POOL == 0:
            mixed = extra if done >= settings.extra_from else []
            batches = _batches(codec, tasks, mixed, settings, rng)
            boards += POOL * _boards_of_a_batch(settings, mixed)
        batch = batches[step % POOL]
        loss = plan_loss(model, batch, tokenizer.pad_token_id)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.scale_rates(rate_scale(step, done))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        averaged.update_parameters(model)
        state.losses.append(loss.item())
        on_step(step, state.losses[-1])
    return cast(PreTrainedModel, averaged.module)


class _Keeping:
    """Keeps a training in a file now and then, the more rarely the longer it takes; without a file, never."""

    def __init__(self, file: Path | None, clock: Callable[[], float]) -> None:
        self.file = file
        self.clock = clock
        self.kept = clock()
        self.pause = SECONDS

    def is_due(self) -> bool:
        return self.file is not None and self.clock() - self.kept > self.pause

    def keep(self, state: TrainingState, place: Place) -> None:
        assert self.file is not None
        asked = self.clock()
        state.save(self.file, place)
        self.kept = self.clock()
        self.pause = max(SECONDS, min(RARELY * (self.kept - asked), LONGEST))


def _boards_of_a_batch(settings: WarmupSettings, extra: Sequence[Example]) -> int:
    """The examples of a batch that are boards."""
    return settings.batch - (round(settings.batch * settings.extra_share) if extra else 0)


def _batches(
    codec: Codec,
    tasks: Sequence[Task] | BoardStream,
    extra: Sequence[Example],
    settings: WarmupSettings,
    rng: np.random.Generator,
) -> list[list[Example]]:
    """A pool of batches of examples of similar length, so that little of a batch is padding."""
    boards = _boards_of_a_batch(settings, extra)
    others = settings.batch - boards
    drawn = _drawn(tasks, POOL * boards, rng)
    drawn = [_augmented(task, rng) for task in drawn] if settings.augment else drawn
    examples = [(codec.encode_prompt(task.board), codec.encode_answer(task.board, task.moves)) for task in drawn]
    examples += [extra[i] for i in rng.integers(len(extra), size=POOL * others)] if others else []
    examples.sort(key=lambda example: len(example[0]) + len(example[1]))
    return [examples[batch * settings.batch : (batch + 1) * settings.batch] for batch in rng.permutation(POOL)]


def _drawn(tasks: Sequence[Task] | BoardStream, count: int, rng: np.random.Generator) -> list[Task]:
    if isinstance(tasks, BoardStream):
        return tasks.take(count)
    return [tasks[i] for i in rng.integers(len(tasks), size=count)]


def plan_loss(model: PreTrainedModel, examples: list[Example], pad: int) -> torch.Tensor:
    """Cross entropy of the answers, the mean over their tokens."""
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
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels[:, known:].flatten().to(model.device), ignore_index=IGNORED
    )


def _logits(model: PreTrainedModel, ids: torch.Tensor, shared: int, known: int) -> torch.Tensor:
    """The scores of the tokens from `known` on; the `shared` first tokens, the same in all rows, are read once."""
    given: dict[str, Any] = {"logits_to_keep": ids.shape[1] - known + 1}
    if shared >= WORTH_SHARING and not isinstance(model, BoardNetwork):
        read = model(input_ids=ids[:1, :shared], use_cache=True, logits_to_keep=1).past_key_values
        given["past_key_values"] = cache_rows(read, ids.new_zeros(len(ids)))
        ids = ids[:, shared:]
    return model(input_ids=ids, **given).logits[:, :-1].float()


def _augmented(task: Task, rng: np.random.Generator) -> Task:
    """The task under a random symmetry of the grid and a random order of its agents."""
    rotations, mirror = int(rng.integers(4)), bool(rng.integers(2))
    agents = rng.permutation(len(task.moves))
    size = task.size
    grid = np.arange(size * size).reshape(size, size)
    grid = np.rot90(grid.T if mirror else grid, rotations)
    cells = np.empty((size * size, 2), np.int32)
    cells[grid.reshape(-1)] = np.stack(np.divmod(np.arange(size * size), size), axis=-1)
    moved_to = cells.reshape(size, size, 2)
    starts, goals = (moved_to[ends[:, 0], ends[:, 1]][agents] for ends in (task.board.starts, task.board.goals))
    holes = task.board.holes.reshape(-1)[grid]
    return dataclasses.replace(
        task, board=Board(holes, starts, goals), moves=_rotated_moves(rotations, mirror)[task.moves[agents]]
    )


def _rotated_moves(rotations: int, mirror: bool) -> np.ndarray:
    """The move that each move becomes under a symmetry: int8 by move code; PAD, the last, stays PAD."""
    turned = []
    for row, column in DELTAS:
        if mirror:
            row, column = column, row
        for _ in range(rotations):
            row, column = -column, row
        turned.append(DELTAS.index((row, column)))
    return np.array([*turned, PAD], np.int8)
