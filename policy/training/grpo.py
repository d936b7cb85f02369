"""GRPO on tasks that a `Play` asks and judges, a batch at once, through TRL's trainer.

In addition to TRL's own figures the log of a step holds shares of all answers sampled: for valid ones (`valid`) and of
each failure (`failure/NAME`). `sampled/zero_variance` is the share of sampled groups whose rewards are all equal,
`frac_reward_zero_std` the share of the groups that were trained on.
"""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PreTrainedTokenizerFast, PrinterCallback
from trl import GRPOConfig

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.policy.models.building import computes_in_bfloat16
from lakewright.policy.play import Play, Tasks, TaskStream
from lakewright.policy.training.callbacks import Average, StateSaver, TrainingReport, Until
from lakewright.policy.training.grpo_loss import PlanTrainer, may_share_prompts
from lakewright.policy.training.hardware import (
    build_adapter,
    build_host_arguments,
    check_host,
    gather_model,
    is_sharded,
    is_split,
    rank_and_processes,
    share_batch,
)
from lakewright.policy.training.rollouts import Answered, Rollouts
from lakewright.policy.training.settings import GrpoSettings
from lakewright.policy.training.training_state import Pause, StepClock, choose_pause, load_place

T = TypeVar("T")


def train_grpo(
    model: PreTrainedModel,
    play: Play[T],
    tasks: Tasks[T],
    settings: GrpoSettings,
    *,
    seed: int,
    scratch: Path,
    on_step: Callable[[dict[str, Any]], bool | None] = lambda log: None,
    on_groups: Callable[[list[RolloutGroup]], None] = lambda groups: None,
    on_answers: Callable[[list[Answered]], None] = lambda answers: None,
    state_file: Path | None = None,
    notes: Callable[[], str] = lambda: "",
    now: Callable[[], float] = time.monotonic,
    pause: Pause = choose_pause,
) -> PreTrainedModel:
    """Train `model` in place on `tasks`, each seen once, and return it.

    Of several processes that a launcher has started, each samples its share of the tasks; if the weights are sharded,
    only the first process returns the whole model.

    Args:
        model, settings: the policy, and the stage's settings.
        play, tasks: the play that asks and judges the tasks; the tasks, a sequence or a stream.
        seed, scratch: the seed of the sampling, and a folder for TRL.
        on_step: gets TRL's log of each step, and may end the training by returning True.
        on_groups, on_answers: get the rollouts as they are judged, one group for each task, and their answers.
        state_file: a process saves the training to it about once a minute, and resumes from it if it exists; model
            and tasks must be the same as at its beginning.
        notes, now: give a text that is saved with the state, and the time in seconds that `minutes` are counted in.
        pause: the time between two saved states.

    Raises InputError if the tasks do not fill a step, which TRL would silently skip, or are fewer than the steps need,
    and as `play` does.
    """
    check_host(settings.host)
    place = load_place(state_file)
    take = _supply_tasks(tasks, play.plural, settings, place.boards)
    rollouts = Rollouts(
        take,
        play,
        group=settings.group,
        oversample=settings.oversample,
        temperature=settings.temperature,
        guided=settings.guided,
        on_groups=on_groups,
        on_answers=on_answers,
    )
    average, clock = Average(settings.average), StepClock(place.seconds, state_file if settings.minutes else None, now)
    arguments = _build_arguments(settings, model, play.longest_answer(tasks), seed, scratch)
    trainer = _build_trainer(model, play.tokenizer, rollouts, arguments, settings, clock)
    until = [Until(settings.minutes, clock)] if settings.minutes else []
    saver = [StateSaver(state_file, trainer, average, clock, notes, pause)] if state_file else []
    for callback in (TrainingReport(on_step), average, *until, *saver):
        trainer.add_callback(callback)
    _check_launch(trainer, settings)
    trainer.train()
    average.load_into(trainer.accelerator.unwrap_model(trainer.model))
    return gather_model(trainer, scratch / "weights", settings.host)


def _supply_tasks(tasks: Tasks[T], plural: str, settings: GrpoSettings, taken: int) -> Callable[[int], list[T]]:
    """Return a function that gives the next tasks.

    Args:
        tasks: a sequence, or a stream.
        plural: their name in messages.
        settings: the stage's settings.
        taken: the number of tasks that an interrupted training has taken.
    """
    if isinstance(tasks, TaskStream):
        tasks.take(taken)
        return tasks.take
    if len(tasks) < settings.prompts:
        raise InputError(f"grpo: {len(tasks)} {plural} do not fill one step of {settings.prompts}; lower grpo.prompts")
    if len(tasks) < settings.boards:
        raise InputError(f"grpo: {len(tasks)} {plural} for a stage that may take {settings.boards}; lower grpo.steps")
    rank, processes = rank_and_processes()
    left = iter(tasks[taken + rank :: processes])
    return lambda count: list(itertools.islice(left, count))


def _uses_gpu(model: PreTrainedModel) -> bool:
    """Return True if the model trains on a GPU.

    One process trains it where it is; the models of several processes wait on the CPU to be placed.
    """
    _, processes = rank_and_processes()
    return torch.cuda.is_available() and (processes > 1 or model.device.type == "cuda")


def _build_arguments(
    settings: GrpoSettings, model: PreTrainedModel, length: int, seed: int, scratch: Path
) -> GRPOConfig:
    """Return TRL's arguments."""
    on_gpu = _uses_gpu(model)
    return GRPOConfig(
        output_dir=str(scratch),
        use_cpu=not on_gpu,
        max_steps=settings.steps,
        num_generations=settings.group,
        max_completion_length=length,
        temperature=settings.temperature,
        beta=settings.beta,
        loss_type=settings.loss_type,
        scale_rewards=settings.scale_rewards,
        epsilon=settings.epsilon,
        epsilon_high=settings.epsilon_high,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant",
        seed=seed,
        logging_steps=1,
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=on_gpu,
        **share_batch(settings.prompts, settings.group, settings.host),
        **build_host_arguments(settings.host, length, computes_in_bfloat16(model)),
    )


def _build_trainer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    rollouts: Rollouts,
    arguments: GRPOConfig,
    settings: GrpoSettings,
    clock: StepClock,
) -> PlanTrainer:
    """Return TRL's trainer of a stage."""
    length = arguments.max_completion_length or 0
    trainer = PlanTrainer(
        model=model,
        reward_funcs=rollouts.reward,
        args=arguments,
        # TRL takes prompts from a data set; here they are place holders, which the rollouts fill with tasks.
        train_dataset=Dataset.from_dict({"prompt": [str(place) for place in range(settings.prompts)]}),
        processing_class=tokenizer,
        rollout_func=rollouts,
        peft_config=build_adapter(settings.host),
        optimizer=settings.optimizer,
        schedule=settings.schedule,
        minutes=settings.minutes,
        clock=clock,
        share_prompts=settings.share_prompts and may_share_prompts(model, settings.host, length),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _check_launch(trainer: PlanTrainer, settings: GrpoSettings) -> None:
    """Raise InputError if the settings do not fit the way in which processes share the weights."""
    if is_sharded(trainer) and (settings.host.lora or settings.host.vllm == "off"):
        raise InputError("grpo: sharded weights (fsdp, zero3) need host.vllm and no host.lora; or use zero2, multi_gpu")
    if settings.optimizer == "muon" and is_split(trainer):
        raise InputError("grpo.optimizer: muon needs whole matrices, which FSDP and DeepSpeed split; set it to adamw")
    if is_sharded(trainer) and settings.average:
        raise InputError(
            "grpo: sharded weights (fsdp, zero3) are not averaged; set grpo.average to 0, or use multi_gpu"
        )
