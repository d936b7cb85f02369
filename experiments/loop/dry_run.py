"""Checks before a run: what it needs of the machine, and what it would do, without starting anything."""

from pathlib import Path

import msgspec

from lakewright.engineer.design import Design
from lakewright.experiments.loop.redesign.teacher_models import check_askable
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.loop.training.warmup import read_recorded_evidence
from lakewright.policy.codecs import build_tokenizer
from lakewright.policy.inference import check_vllm
from lakewright.policy.models import check_device, check_folder, check_shape, resolve_place
from lakewright.policy.training import check_host


class RunPlan(msgspec.Struct, frozen=True):
    """The plan of a run. failures, columns: for the environment's space. budget: the most tokens, if limited."""

    environment: str
    teacher: str
    start: Design
    columns: list[str]
    failures: list[str]
    held_out: int
    warmup_steps: int
    stages: int
    steps: list[int]
    answers: list[int]
    budget: int | None


def describe_run(settings: RunSettings) -> RunPlan:
    """The plan of a run. Raises InputError if its environment or settings cannot be used.

    Of environments other than the lake, whose generator needs no test, the held-out problems are drawn and checked as
    before the warm-up.
    """
    trainee = make_trainee(settings)
    read_recorded_evidence(trainee)
    trainee.rehearse()
    space, stages = trainee.environment.space, range(settings.stages)
    steps = [settings.grpo.of_stage(number).steps for number in stages]
    return RunPlan(
        environment=settings.environment,
        teacher=settings.teacher,
        start=trainee.start,
        columns=[column.name for column in space.columns],
        failures=list(space.failures),
        held_out=trainee.count_held_out(),
        warmup_steps=settings.warmup.steps,
        stages=settings.stages,
        steps=steps,
        answers=[count * settings.grpo.prompts * settings.grpo.group for count in steps],
        budget=settings.budget,
    )


def describe_plan(plan: RunPlan) -> str:
    """The plan as text."""
    rows = [
        f"  {stratum}: {', '.join(f'{name} {value:g}' for name, value in row.items())}"
        for stratum, row in plan.start.strata.items()
    ]
    lines = [
        f"environment {plan.environment}, teacher {plan.teacher}; nothing is started",
        "first design:",
        *rows,
        f"held out: about {plan.held_out}; failures: {', '.join(plan.failures)}",
        f"warm-up: {plan.warmup_steps} steps; stages: {plan.stages}, with {', '.join(map(str, plan.steps))} steps",
        f"answers sampled in training: {sum(plan.answers)}",
        f"budget: {'none' if plan.budget is None else f'{plan.budget} tokens'}",
    ]
    return "\n".join(lines)


def check_machine(settings: RunSettings) -> None:
    """Raises InputError if a device, a package, memory or a server's key is missing, or the start is not a model."""
    check_device(settings.device)
    check_host(settings.grpo.host)
    if settings.codec == "text" and settings.text.decoder == "vllm":
        check_vllm("text.decoder")
    check_askable(settings)
    if not settings.start:
        check_shape(settings.model, build_tokenizer())
    elif (folder := Path(resolve_place(settings.start))).is_dir():
        check_folder(folder)
