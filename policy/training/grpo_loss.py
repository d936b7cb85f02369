"""The loss of GRPO, which is TRL's, and the scores of tokens that it is computed from.

Additions to TRL's trainer are for few cores: shared prompts, Muon, rates that fall with the clock.

TRL sends every answer together with its prompt through the model, though the answers of a group share the prompt, which
is the larger part. Here each prompt of a batch is read once, and its keys and values serve all of its answers,
gradients included. Answers of similar length are read together, so that an endless one does not pad all others.
"""

import os
import warnings
from typing import Any, Literal, cast

import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import DynamicCache, LlamaForCausalLM, PreTrainedModel, Qwen3ForCausalLM
from trl import GRPOTrainer

from lakewright.policy.inference.decoders import cache_rows
from lakewright.policy.inference.device_limits import fit_rows
from lakewright.policy.models.building import use_torch_defaults
from lakewright.policy.networks.board_network import BoardNetwork
from lakewright.policy.training.optimizers import build_muon_and_adamw, rate_scale
from lakewright.policy.training.recorded_scores import RecordedScores, is_recordable, score_tokens
from lakewright.policy.training.settings import HostSettings, allows_shared_prompts
from lakewright.policy.training.training_state import StepClock

TOGETHER = 64  # answers that a CPU reads at a time, and
SCORES = 1 << 26  # scores of tokens that it holds for them
ARRAYS = 3  # of float32, as large as the scores: these, their logarithms, and their gradients


class PlanTrainer(GRPOTrainer):
    """The trainer of a stage.

    Args:
        args, given: arguments of TRL.
        optimizer: TRL's own AdamW, or Muon for matrices.
        schedule: constant rates, or the warm-up's rates, which fall until the steps or the minutes are over.
        minutes: the length of the training, if the clock limits it.
        clock: the seconds of the training.
        share_prompts: see `may_share_prompts`.
    """

    def __init__(
        self,
        *args: Any,
        optimizer: Literal["adamw", "muon"],
        schedule: Literal["constant", "cosine"],
        minutes: float | None,
        clock: StepClock,
        share_prompts: bool,
        **given: Any,
    ) -> None:
        self._kind, self._schedule, self._minutes, self._shares = optimizer, schedule, minutes, share_prompts
        self._clock, self._scores = clock, cast(RecordedScores | None, None)
        with warnings.catch_warnings():
            # TRL may still change `rollout_func`; tests/policy/test_overridden_internals.py says when it has.
            warnings.filterwarnings("ignore", message="You are using 'rollout_func'", category=UserWarning)
            super().__init__(*args, **given)

    @use_torch_defaults()
    def training_step(self, *args: Any, **given: Any) -> torch.Tensor:
        """Like TRL's, whatever code of an environment has set in torch. A hook of transformers' Trainer."""
        return super().training_step(*args, **given)

    @use_torch_defaults()
    def _prepare_inputs(self, *args: Any, **given: Any) -> Any:
        """Like TRL's; it has the environment judge. A hook of transformers' Trainer."""
        return super()._prepare_inputs(*args, **given)

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Return Muon if the settings ask for it. A hook of transformers' Trainer."""
        if self._kind == "adamw":
            return super().create_optimizer(model)
        rate, trained = self.args.learning_rate, self.model if model is None else model
        assert isinstance(trained, torch.nn.Module)
        self.optimizer = build_muon_and_adamw(trained, rate, rate)
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> Any:
        """Return the rates of each step. A hook of transformers' Trainer."""
        if self._schedule == "constant":
            return super().create_scheduler(num_training_steps, optimizer)

        def scale_rate(step: int) -> float:
            done = step / num_training_steps
            if self._minutes:
                done = max(done, self._clock.seconds_at(step) / (60 * self._minutes))
            return rate_scale(step, done)

        stepping = optimizer or self.optimizer
        assert stepping is not None
        self.lr_scheduler = LambdaLR(stepping, scale_rate)
        return self.lr_scheduler

    def continue_at(self, step: int, tokens: int) -> None:
        """Resume after `step` steps and `tokens` tokens, of prompts too; call it when the training begins."""
        # What transformers restores from a checkpoint of its own, which is not written here.
        self.state.global_step = self._globalstep_last_logged = step
        self.state.num_input_tokens_seen = tokens
        assert self.lr_scheduler is not None
        scheduler = getattr(self.lr_scheduler, "scheduler", self.lr_scheduler)  # accelerate wraps it
        scheduler.last_epoch = step
        for group, scale, rate in zip(
            scheduler.optimizer.param_groups, scheduler.lr_lambdas, scheduler.base_lrs, strict=True
        ):
            group["lr"] = rate * scale(step)
        scheduler._last_lr = [group["lr"] for group in scheduler.optimizer.param_groups]  # what the log shows

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        *args: Any,
        compute_entropy: bool = False,
        **given: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return log-probabilities of the last `logits_to_keep` tokens [B, T], 0 at padding; entropies; and no
        auxiliary loss.

        Overrides TRL's method.
        """
        if not (self._shares or isinstance(model, BoardNetwork)):
            return super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, *args, compute_entropy=compute_entropy, **given
            )
        if self._shares and is_recordable(model):
            scores = self._scores or RecordedScores(model, self.temperature, self._precision)
            self._scores = scores
            log_probs, entropies = scores.score(input_ids, attention_mask, logits_to_keep)
            return log_probs, entropies if compute_entropy else None, None
        with self.accelerator.autocast():
            log_probs, entropies = answer_log_probs(model, input_ids, attention_mask, logits_to_keep, self.temperature)
        return log_probs, entropies if compute_entropy else None, None

    @property
    def _precision(self) -> torch.dtype | None:
        return torch.bfloat16 if self.accelerator.mixed_precision == "bf16" else None


def may_share_prompts(model: PreTrainedModel, host: HostSettings, answer: int) -> bool:
    """Return True if prompts can be shared: a Qwen3 or Llama model, not wrapped, that one process trains on short
    answers.

    `answer` is the number of tokens of the longest. A board network reads each prompt once anyway, see
    `BoardNetwork.make_maps`.
    """
    known, words = isinstance(model, Qwen3ForCausalLM | LlamaForCausalLM), model.config.vocab_size
    memory = torch.cuda.get_device_properties(model.device).total_memory if model.device.type == "cuda" else 0
    return known and allows_shared_prompts(host, answer, words, elsewhere="RANK" in os.environ, memory=memory)


def answer_log_probs(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, answer: int, temperature: float, together: int = TOGETHER
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probabilities and entropies of the last `answer` tokens of each row: [B, answer], 0 if `mask` is.

    Args:
        model: the policy.
        ids, mask: int [B, P + answer]: prompts padded on the left, answers on the right.
        answer: the number of those tokens.
        temperature: sampling temperature.
        together: answers that a CPU reads at a time.
    """
    if isinstance(model, BoardNetwork):
        logits = model(input_ids=ids).logits[:, -answer - 1 : -1].float() / temperature
        log_probs, entropies = score_tokens(logits, ids[:, -answer:])
        return log_probs * mask[:, -answer:], entropies * mask[:, -answer:]
    return _score_shared_prompts(model, ids, mask, answer, temperature, together)


def _score_shared_prompts(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, answer: int, temperature: float, together: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of `answer_log_probs` for a Qwen3 or Llama model: each prompt is read once."""
    prompts, which = torch.unique(torch.stack([ids, mask], -1)[:, :-answer], dim=0, return_inverse=True)
    cache = DynamicCache(config=model.config)
    read = _compute_hidden(model, prompts[..., 0], prompts[..., 1], cache)[:, -1:]
    lengths = mask[:, -answer:].sum(1)
    log_probs: list[torch.Tensor] = []
    entropies: list[torch.Tensor] = []
    # Answers of similar length are read together, so that little of a batch is padding.
    order = lengths.argsort()
    scores = answer * model.config.vocab_size
    at_once = fit_rows(ids.device, ARRAYS * 4 * scores, max(1, min(together, SCORES // scores)), len(ids))
    for rows in order.split(at_once):
        longest = max(int(lengths[rows].max()), 1)
        tokens = ids[rows, -answer:][:, :longest]
        prompt, part = which[rows], mask[rows][:, : ids.shape[1] - answer + longest]
        # The last state of the prompt predicts the first token of the answer; the answer's last token predicts nothing.
        states = read[prompt]
        if longest > 1:
            later = _compute_hidden(model, tokens[:, :-1], part[:, :-1], cache_rows(cache, prompt))
            states = torch.cat([states, later], 1)
        logits = model.get_output_embeddings()(states).float() / temperature
        there = part[:, -longest:] > 0
        for found, values in zip((log_probs, entropies), score_tokens(logits, tokens), strict=True):
            found.append(torch.nn.functional.pad(values * there, (0, answer - longest)))
    back = order.argsort()  # the inverse permutation
    return torch.cat(log_probs)[back], torch.cat(entropies)[back]


def _compute_hidden(model: Any, ids: torch.Tensor, mask: torch.Tensor, cache: DynamicCache) -> torch.Tensor:
    """Return the last hidden states [B, T, H] of tokens that follow those in the cache.

    Args:
        model: the policy.
        ids: int [B, T].
        mask: int [B, C + T], of the cached tokens too.
        cache: keys and values of C tokens; keys and values of `ids` are added.
    """
    places = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    output = model.base_model(
        input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True
    )
    return output.last_hidden_state
