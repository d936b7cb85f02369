"""Environments by name: the lake, tasks of reasoning-gym, a class in a file or a module, or an entry point."""

import importlib.metadata
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakewright.core_jax.errors import InputError, one_line, suggest
from lakewright.engineer.calls import show
from lakewright.engineer.environment import Environment
from lakewright.engineer.plugins import load_class
from lakewright.engineer.space import DesignSpace

ENTRY_POINTS = "lakewright.environments"
LAKE = "lakewright.experiments.environments.lake:Lake"
GYM = "reasoning_gym"


def load_environment(name: str) -> Environment:
    """The environment of a name.

    name: `lake`, `reasoning_gym:TASK[,TASK...]`, `FILE.py:Class`, `module:Class`, or an entry point of the group
    `lakewright.environments`. A function without arguments that returns an environment may stand for a class.

    Raises InputError if it isn't a text, doesn't exist, lacks a member, or cannot be made.
    """
    _check_name(name)
    where = f"environment {name!r:.80}"
    try:
        environment = _load_tasks(name) if name.startswith(f"{GYM}:") else _make_environment(_find_class(name), where)
    except InputError as error:
        raise (error if str(error).startswith("environment ") else InputError(f"{where}: {error}")) from error
    except (Exception, SystemExit) as error:
        problem = one_line(f"{type(error).__name__}: {error}")
        raise InputError(f"{where}: cannot be made ({problem}); correct its constructor") from error
    _check_environment(environment, where)
    return environment


def resolve_name(name: str) -> str:
    """The name of an environment, with the path of a file made absolute, because others may load it elsewhere."""
    _check_name(name)
    file, found, attribute = name.rpartition(".py:")
    return f"{Path(f'{file}.py').resolve()}:{attribute}" if found else name


def _check_name(name: object) -> None:
    """Raises InputError on an environment itself, which another process could not load again."""
    if not isinstance(name, str):
        raise InputError(f"environment: is {show(name)}; give its name, such as FILE.py:Class or module:Class")


def _load_tasks(name: str) -> Environment:
    tasks = [task.strip() for task in name.removeprefix(f"{GYM}:").split(",")]
    if not all(tasks):
        raise InputError(f"environment {name!r:.80}: a task has no name; write {GYM}:TASK or {GYM}:TASK,TASK")
    return load_class("lakewright.experiments.environments.reasoning_gym:ReasoningGym", {}, "environment", ())(tasks)


def _find_class(name: str) -> Callable[[], Any]:
    if name == "lake" or ":" in name:  # reading the entry points of all installed packages takes longer than the rest
        return load_class(name, {"lake": LAKE}, "environment", ())
    points = {point.name: point.value for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    if name not in points:
        listed = suggest(name, ["lake", *sorted(points), f"{GYM}:TASK"])
        raise InputError(f"environment {name!r:.80}: is unknown; {listed}, FILE.py:Class and module:Class")
    return load_class(name, points, "environment", ())


def _make_environment(loaded: Callable[[], Any], where: str) -> Any:
    """An object of a class, whose abstract members and arguments are checked first."""
    if isinstance(loaded, type):
        if not issubclass(loaded, Environment):
            raise InputError(f"{where}: is not an Environment; derive it from lakewright.engineer.Environment")
        if missing := sorted(loaded.__abstractmethods__):
            remedy = "write it" if len(missing) == 1 else "write them"
            raise InputError(f"{where}: it has no {' and no '.join(missing)}; {remedy}")
    needed = [
        parameter.name
        for parameter in inspect.signature(loaded).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        listed = ", ".join(needed)
        raise InputError(
            f"{where}: its constructor needs {listed}; give defaults, or name a function without arguments"
        )
    return loaded()


def _check_environment(environment: Any, where: str) -> None:
    if not isinstance(environment, Environment):
        raise InputError(f"{where}: gave {environment!r:.60}, which is not an Environment; return one")
    if not isinstance(getattr(environment, "space", None), DesignSpace):
        raise InputError(f"{where}: it has no space; give it a DesignSpace as its attribute space")
