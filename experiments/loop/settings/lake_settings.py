"""The settings of the lake: its boards as configs, and what they must satisfy; and settings that only the lake has."""

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lakewright.core_jax.config import MAX_TOKEN_SIZE, EnvConfig, holds, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.policy.model_settings import resolve_shape

if TYPE_CHECKING:
    from lakewright.experiments.loop.settings.run_settings import RunSettings

FIRST = {str(size): {"data_ratio": 0.25, "hole_ratio": 0.25, "wait_ratio": 0.5} for size in (3, 4, 5, 6)}
DRAWN = "leave it out, because problems are drawn while training"
LAKE_ONLY = {
    **dict.fromkeys(("agents", "warmup_agents", "teams", "exclude"), "leave it out"),
    "horizon": "set text.max_tokens",
    "reward": "leave it out, because the environment's judge gives rewards",
    **dict.fromkeys(("text.prompt", "validation.hole_ratios", "validation.wait_ratios"), "leave it out"),
    "warmup.augment": "leave it out",
    **dict.fromkeys(("warmup.boards", "warmup.fresh"), DRAWN),
    "warmup.hole_ratios": "set warmup_design",
}
"""Settings that have no effect in other environments, and what to do instead."""


def first_boards(settings: "RunSettings") -> EnvConfig:
    """The config of the boards of a run's first stage. Raises InputError naming what is out of range."""
    return convert({"sizes": settings.design, "agents": settings.agents}, EnvConfig, "design")


def warmup_boards(settings: "RunSettings") -> EnvConfig:
    """The config of the boards of the warm-up. Raises InputError naming what is out of range."""
    return convert({"sizes": settings.warmup_design, "agents": settings.warmup_agents}, EnvConfig, "warmup_design")


def refuse_lake_only(settings: "RunSettings") -> None:
    """Raises InputError if a setting that only the lake has is not the usual one, in a run of another environment."""
    usual = type(settings)()
    for name, remedy in LAKE_ONLY.items():
        read = operator.attrgetter(name)
        if (value := read(settings)) != read(usual):
            raise InputError(f"{name} is {value!r:.60}, which only the lake has; {remedy}")
    if settings.codec == "tokens" and resolve_shape(settings.model).architecture != "board":
        raise InputError("codec is tokens, which only the lake has; set codec=bytes, or text for a pretrained model")


def check_run_boards(settings: "RunSettings") -> None:
    """Raises ValueError if the boards of a run cannot be trained on."""
    first, warmup = first_boards(settings), warmup_boards(settings)
    if large := [size for size in (*first.sizes, *warmup.sizes) if size > MAX_TOKEN_SIZE]:
        raise ValueError(f"design.{large[0]}: boards to train on are at most {MAX_TOKEN_SIZE}x{MAX_TOKEN_SIZE}")
    if missing := [size for size in first.sizes if size not in warmup.sizes]:
        raise ValueError(f"warmup_design lacks {missing[0]}, which design has; add it")
    floor, most = settings.guard.floor, 1 / len(first.sizes)
    if floor is not None and floor > most:
        raise ValueError(f"guard.floor is {floor:g}, too much for {len(first.sizes)} sizes; choose at most {most:.3g}")
    if settings.exclude and not (settings.grpo.fresh and (settings.warmup.fresh or not settings.warmup.steps)):
        raise ValueError(
            f"exclude is {settings.exclude}, but it excludes only boards that are drawn while training; set "
            "warmup.fresh and grpo.fresh"
        )
    if settings.teams:
        _check_teams(settings, {"agents": first, "warmup_agents": warmup})


def _check_teams(settings: "RunSettings", configs: dict[str, EnvConfig]) -> None:
    teams, sizes = settings.teams, configs["agents"].sizes
    listed = ", ".join(map(str, teams))
    if len(set(teams)) < len(teams):
        raise ValueError(f"teams is [{listed}]; list each team size once")
    for name, config in configs.items():
        # So that every size holds a team, and what asks whether boards can force a wait is answered.
        if config.agents not in teams:
            raise ValueError(f"{name} is {config.agents}, not in teams [{listed}]; set it to one of them")
        with_teams(config, teams)
    if not settings.guard.floor and not holds(min(sizes), max(teams)):
        raise ValueError(
            f"guard.floor is 0, but {max(teams)} agents do not fit on size {min(sizes)}, and the others might get no "
            "boards; choose more than 0"
        )
    if settings.sampler.name == "domain_randomisation":
        raise ValueError(
            "sampler.name is domain_randomisation, which draws for one number of agents; drop teams, or choose "
            "another sampler"
        )


def leave_out(raw: dict[str, Any], names: Iterable[str], path: str = "") -> dict[str, Any]:
    """A table without the values of some dotted names. path: the name of the table, with a dot at its end."""
    return {
        name: leave_out(value, names, f"{path}{name}.") if isinstance(value, dict) else value
        for name, value in raw.items()
        if path + name not in names
    }
