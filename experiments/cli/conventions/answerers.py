"""Answerers of `lakewright benchmark eval`: a model, a server or a solver, made from their options."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.experiments.cli.conventions.options import DEVICES, SOLVERS, Flag
from lakewright.experiments.jobs.runtime.library_setup import prepare_libraries

if TYPE_CHECKING:
    from cyclopts.argument import ArgumentCollection

    from lakewright.experiments.boards.evaluation.answerers import Answerer
    from lakewright.experiments.jobs.executors.executor import Executor


def _exactly_one(arguments: "ArgumentCollection") -> None:
    if sum(bool(argument.tokens) for argument in arguments) != 1:
        raise ValueError("give exactly one of --model, --endpoint and --solver")


WHO = Group(show=False, validator=_exactly_one)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswererChoice:
    """The choice of the answerer, its time limit and its seed."""

    model: Annotated[str | None, Parameter(group=WHO, metavar="PATH")] = None
    """A checkpoint folder, a model's name on the hub, or `pretrained`: the weights that come with lakewright."""
    endpoint: Annotated[str | None, Parameter(group=WHO, metavar="URL")] = None
    """An OpenAI-compatible server; its key is in LAKEWRIGHT_API_KEY or OPENAI_API_KEY."""
    solver: Annotated[str | None, Parameter(group=WHO, choices=SOLVERS)] = None
    """A planner instead of a model."""
    model_name: Annotated[str | None, Parameter(metavar="NAME")] = None
    """The name of the model at the endpoint."""
    max_tokens: int = 16384
    """The most tokens of an answer in text."""
    seed: int = 0
    """The seed of samples and of --solver random."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """The options of a model given by --model."""

    device: Annotated[str, Parameter(choices=DEVICES)] = "auto"
    """Where it runs; auto is a GPU if there is one."""
    batch: int | None = None
    """Answers decoded together; by default 512, or 16 in text."""
    no_thinking: Flag = False
    """Turn off thinking in models whose chat template has the choice."""
    decoder: Literal["own", "vllm"] = "own"
    """What decodes the answers of a language model: this package, or vLLM, for long answers on a GPU."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """The options of the server given by --endpoint."""

    concurrency: int = 8
    """Concurrent requests."""
    timeout: float = 600
    """Seconds after which a request without a complete answer has failed."""
    retries: int = 8
    """Attempts after the first."""
    price_in: float = 0
    """Dollars for a million tokens of prompts."""
    price_out: float = 0
    """Dollars for a million tokens of answers."""
    max_cost: float | None = None
    """A limit in dollars, which includes earlier answers and failed tries."""
    limit_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    """The server's name for the limit of an answer's tokens."""


def answerer_of(
    who: AnswererChoice, model: ModelOptions, endpoint: EndpointOptions, prompt: str, executor: "Executor"
) -> Callable[[Path], "Answerer"]:
    """A function that makes the answerer for the folder of an evaluation.

    Args:
        who, model, endpoint, prompt: the options of the command.
        executor: runs the model, if no server does.

    Raises InputError on options that do not go together.
    """
    if prompt == "compact" and who.model is None:
        raise InputError("--prompt is compact, which works only with --model; leave it out")
    if (who.model_name is None) != (who.endpoint is None):
        raise InputError("--endpoint URL and --model-name NAME belong together; give both, or neither")
    _refuse_unused(who, model, endpoint)
    if who.solver:
        return _make_solver(who.solver, who.seed, executor)
    return _make_model(who, model, prompt, executor) if who.model else _make_endpoint(who, endpoint)


def _refuse_unused(who: AnswererChoice, model: ModelOptions, endpoint: EndpointOptions) -> None:
    """Raises InputError on an option that the chosen answerer doesn't have."""
    chosen = "--solver" if who.solver else "--model" if who.model else "--endpoint"
    changed = [("--model", name, value) for name, value in _list_changes(model)]
    changed += [("--endpoint", name, value) for name, value in _list_changes(endpoint)]
    changed += [("--model or --endpoint", "max_tokens", who.max_tokens)] * (who.max_tokens != AnswererChoice.max_tokens)
    changed += [("--model or --solver", "seed", who.seed)] * (who.seed != AnswererChoice.seed)
    for owner, name, value in changed:
        if chosen not in owner.split(" or "):
            option = f"--{name.replace('_', '-')}"
            given = option if value is True else f"{option} {value}"
            raise InputError(f"{given} belongs to {owner}, but {chosen} answers; leave it out")


def _list_changes(options: ModelOptions | EndpointOptions) -> list[tuple[str, object]]:
    """The names and values of the options that are not the usual ones."""
    pairs = ((field, getattr(options, field.name)) for field in dataclasses.fields(options))
    return [(field.name, value) for field, value in pairs if value != field.default]


def _make_solver(solver: str, seed: int, executor: "Executor") -> Callable[[Path], "Answerer"]:
    from lakewright.experiments.boards.evaluation.answerers import PlannerAnswerer

    return lambda out: PlannerAnswerer(solver, seed, executor)


def _make_model(
    who: AnswererChoice, options: ModelOptions, prompt: str, executor: "Executor"
) -> Callable[[Path], "Answerer"]:
    place = who.model or ""
    prepare_libraries(place)
    from lakewright.experiments.boards.evaluation.answerers import ModelAnswerer
    from lakewright.policy.codecs import TextSettings

    form = "compact" if prompt == "compact" else "full"
    given = {
        "max_tokens": who.max_tokens,
        "thinking": not options.no_thinking,
        "prompt": form,
        "decoder": options.decoder,
    }
    settings = convert(given, TextSettings, "command line")
    if options.batch is not None and options.batch < 1:
        raise InputError(f"--batch is {options.batch}; give at least 1")
    return lambda out: ModelAnswerer(place, settings, options.device, options.batch, who.seed, executor)


def _make_endpoint(who: AnswererChoice, options: EndpointOptions) -> Callable[[Path], "Answerer"]:
    from lakewright.experiments.boards.evaluation.answerers import EndpointAnswerer
    from lakewright.policy.inference import EndpointSettings

    given = {"url": who.endpoint, "model": who.model_name, "max_tokens": who.max_tokens, **dataclasses.asdict(options)}
    settings = convert(given, EndpointSettings, "command line")
    return lambda out: EndpointAnswerer(settings, out)
