"""The names and forms that settings of a run had in earlier versions, which are read as the names of today.

The lake's settings once had names of their own (`env`, `warmup_env`, `guard.max_hole_change`). They are read, in files
and on the command line, as the names that settings of every environment have now; nothing is written in them.
"""

import json
from typing import Any

from lakewright.core_jax.config import MAX_HOLE_RATIO
from lakewright.engineer.settings import complete_settings
from lakewright.experiments.jobs.runtime.named_values import set_value
from lakewright.experiments.loop.settings.lake_settings import LAKE_ONLY, leave_out

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
    renamed = _copy(raw)
    for older, now in _list_names(lake=lake):
        table, name = older.split(".")
        if not isinstance(part := renamed.get(table), dict) or name not in part:
            continue
        value, place = part.pop(name), renamed
        *path, last = now.split(".")
        for step in path:
            place = place.setdefault(step, {})
        # A reach by name went before the one limit of shares that older versions had for all environments.
        if older == "guard.max_data_change":
            place.setdefault(last, value)
        else:
            place[last] = value
    return {name: part for name, part in renamed.items() if name not in ("env", "warmup_env") or part}


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
