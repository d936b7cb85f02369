"""GRPO on certified boards, through TRL's trainer; every verdict comes from the lake's simulator, a batch at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerFast, PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from core_jax.errors import InputError
from core_jax.groups import Group
from core_jax.ranges import Count, Positive, Weight
from core_jax.types import FAILURE_NAMES, Failure
from policy.boards import Task
from policy.codecs.tokens import encode_prompt
from policy.evaluation import answer_length
from policy.rewards import RewardSettings, judge, rewards


class GrpoSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One stage of GRPO: `steps` updates, each on `prompts` boards with `group` completions a board."""

    steps: Count = 32
    prompts: Count = 32
    group: Annotated[int, msgspec.Meta(ge=2)] = 8
    learning_rate: Positive = 8e-5
    temperature: Positive = 1.0
    beta: Weight = 0.0
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "dapo"

    @property
    def boards(self) -> int:
        """Boards of a stage: each is seen once."""
        return self.steps * self.prompts


def train_grpo(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    tasks: list[Task],
    settings: GrpoSettings,
    reward: RewardSettings,
    *,
    horizon: int,
    seed: int,
    scratch: Path,
    on_step: Callable[[dict[str, Any]], bool | None] = lambda log: None,
    on_groups: Callable[[list[Group]], None] = lambda groups: None,
) -> PreTrainedModel:
    """Trains `model` in place on `tasks`, one pass; `on_step` is told of TRL's log of a step, and True ends it there;
    `on_groups` of the rollouts as they are judged, a group a board.

    Beside TRL's own figures the log holds the share of each failure (`failure/NAME`), of valid plans (`valid`) and of
    groups whose rewards are all equal (`frac_reward_zero_std`). Raises InputError where the tasks do not fill a step,
    which TRL would silently skip.
    """
    if len(tasks) < settings.prompts:
        raise InputError(f"grpo: {len(tasks)} boards do not fill one step of {settings.prompts}; lower grpo.prompts")
    prompts = [" ".join(tokenizer.convert_ids_to_tokens(encode_prompt(task.board))) for task in tasks]
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=_reward_function(tasks, reward, horizon, on_groups),
        args=_arguments(settings, horizon, seed, scratch),
        train_dataset=Dataset.from_dict({"prompt": prompts, "task": list(range(len(tasks)))}),
        processing_class=tokenizer,
        callbacks=[_Report(on_step)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer.accelerator.unwrap_model(trainer.model)


def _arguments(settings: GrpoSettings, horizon: int, seed: int, scratch: Path) -> GRPOConfig:
    on_gpu = torch.cuda.is_available()
    completions = settings.prompts * settings.group
    return GRPOConfig(
        output_dir=str(scratch),
        use_cpu=not on_gpu,
        bf16=False,
        activation_checkpointing=False,
        max_steps=settings.steps,
        per_device_train_batch_size=completions,
        generation_batch_size=completions,
        num_generations=settings.group,
        max_completion_length=answer_length(horizon),
        temperature=settings.temperature,
        beta=settings.beta,
        loss_type=settings.loss_type,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        seed=seed,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=on_gpu,
    )


def _reward_function(
    tasks: list[Task], settings: RewardSettings, horizon: int, on_groups: Callable[[list[Group]], None]
) -> Callable[..., list[float | None]]:
    def plan_reward(
        completion_ids: list[list[int]], task: list[int], log_metric: Callable[[str, float], None], **_: Any
    ) -> list[float | None]:
        asked = [tasks[i] for i in task]
        verdicts, moves = judge(asked, completion_ids, horizon)
        failure = np.asarray(verdicts.failure)
        log_metric("valid", float((failure == Failure.NONE).mean()))
        for code, name in enumerate(FAILURE_NAMES[1:], 1):
            log_metric(f"failure/{name}", float((failure == code).mean()))
        earned = rewards(asked, verdicts, moves, settings)
        boards = np.array(task)
        on_groups([Group.of(int(i), (failure == Failure.NONE)[boards == i], earned[boards == i]) for i in set(task)])
        return earned.tolist()

    return plan_reward


class _Report(TrainerCallback):
    """Hands every step's log on, prints nothing, and ends the training when told to."""

    def __init__(self, on_step: Callable[[dict[str, Any]], bool | None]) -> None:
        self.on_step = on_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if logs and "reward" in logs and self.on_step({"step": state.global_step, **logs}):
            control.should_training_stop = True
