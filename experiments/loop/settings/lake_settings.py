"""The settings of the lake: its boards as configs, what they must satisfy, and the names that settings had before.

The lake's settings once had names of their own (`env`, `warmup_env`, `guard.max_hole_change`). They are read, in files
and on the command line, as the names that settings of every environment have now; nothing is written in them.
"""

import json
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lakewright.core_jax.config import MAX_HOLE_RATIO, MAX_TOKEN_SIZE, EnvConfig, holds, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert
from lakewright.engineer.difficulty import complete_settings
from lakewright.experiments.jobs.runtime.named_values import set_value
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
OLDER_NAMES = {
    "env.sizes": "design",
    "env.agents": "agents",
    "warmup_env.sizes": "warmup_design",
    "warmup_env.agents": "warmup_agents",
    "guard.max_data_change": "guard.reach.SHARE",
    "guard.max_hole_change": "guard.reach.hole_ratio",
    "guard.max_wait_change": "guard.reach.wait_ratio",
    "guard.max_hole_ratio": "guard.most.hole_ratio",
    "guard.max_wait_ratio": "guard.most.wait_ratio",
}
# Limits of the guard that older versions recorded although they are the environment's.
USUAL_LIMITS = {
    True: {
        "reach": {"data_ratio": 0.15, "hole_ratio": 0.1, "wait_ratio": 0.25},
        "most": {"hole_ratio": MAX_HOLE_RATIO, "wait_ratio": 1.0},
    },
    False: {"reach": {"share": 0.15}, "most": {}},
}


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


def rename_word(word: str, *, lake: bool) -> list[str]:
    """An override such as `env.sizes.3.wait_ratio=0.2` with the name of today; several if it sets several.

    lake: whether the run is of the lake.
    """
    name, given, value = word.partition("=")
    for older, now in _list_names(lake=lake):
        if name == older or name.startswith(f"{older}."):
            return [now + name.removeprefix(older) + given + value]
    if name.split(".")[0] not in ("env", "warmup_env", "guard"):
        return [word]
    raw: dict[str, Any] = {}
    set_value(raw, word, "guard.floor=0.1")
    renamed = rename_settings(raw, lake=lake)
    return [word] if renamed == raw else [f"{key}={_write(part)}" for key, part in renamed.items()]


def _write(value: Any) -> str:
    """A value as an override has it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(str(name))} = {_write(part)}' for name, part in value.items())}}}"
    return json.dumps(value)


def rename_settings(raw: dict[str, Any], *, lake: bool) -> dict[str, Any]:
    """Some settings of a file with the names of today; `raw` is not altered. lake: whether the run is of the lake."""
    found = _copy(raw)
    for older, now in _list_names(lake=lake):
        table, name = older.split(".")
        if not isinstance(part := found.get(table), dict) or name not in part:
            continue
        value, place = part.pop(name), found
        *path, last = now.split(".")
        for step in path:
            place = place.setdefault(step, {})
        # A reach by name went before the one limit of shares that older versions had for all environments.
        if older == "guard.max_data_change":
            place.setdefault(last, value)
        else:
            place[last] = value
    return {name: part for name, part in found.items() if name not in ("env", "warmup_env") or part}


def complete_run(recorded: Any) -> Any:
    """JSON values of a record of earlier versions with `settings` of a run, in the form of this version."""
    recorded = complete_settings(recorded)
    settings = recorded.get("settings") if isinstance(recorded, dict) else None
    if not isinstance(settings, dict):
        return recorded
    if settings.get("codec") == "bytes":  # the preset `text` set it, which had no effect, so it is no other run
        settings = leave_out(settings, ("text.batch",))
        recorded = recorded | {"settings": settings}
    if "env" not in settings:
        return recorded
    lake = settings.get("environment", "lake") == "lake"
    if not lake:  # which had settings of the lake without effect, and its limits
        settings = leave_out(settings, ("env", "warmup_env", *LAKE_ONLY))
        limits = ("max_hole_change", "max_wait_change", "max_hole_ratio", "max_wait_ratio")
        guard = {name: part for name, part in settings.get("guard", {}).items() if name not in limits}
        settings |= {"guard": guard}
    if settings.get("codec") == "tokens":  # which uses none of them, and another default is another run
        settings = leave_out(settings, ("text",))
    settings = rename_settings(settings, lake=lake)
    guard = settings.get("guard", {})
    for name, usual in USUAL_LIMITS[lake].items():
        guard[name] = {key: value for key, value in guard.get(name, {}).items() if value != usual.get(key)}
    return recorded | {"settings": settings | {"guard": guard}}


def _list_names(*, lake: bool) -> list[tuple[str, str]]:
    """Older names of settings, each with today's."""
    share = "data_ratio" if lake else "share"
    return [(older, now.replace("SHARE", share)) for older, now in OLDER_NAMES.items()]


def _copy(value: Any) -> Any:
    return {name: _copy(part) for name, part in value.items()} if isinstance(value, dict) else value
