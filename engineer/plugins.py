"""Classes by name, and their options: from a registry, and a user's own as `module:Class` or `FILE.py:Class`."""

import functools
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import msgspec

from lakewright.core_jax.errors import InputError, suggest
from lakewright.core_jax.support import PACKAGE, convert, describe_missing

_FILES: dict[str, ModuleType] = {}  # imported, by the name that was given
Power = Annotated[float, msgspec.Meta(ge=0, le=10)]  # to which weights are raised
Draws = Annotated[int, msgspec.Meta(ge=1, le=100_000)]  # random draws for one proposal


def load_class(name: str, registry: Mapping[str, str], kind: str, methods: Sequence[str]) -> Any:
    """The class, or the function that makes an object, of a name.

    Args:
        name: a name in the registry, or `module:Class` or `FILE.py:Class`, which are imported.
        registry: `module:Class` by name.
        kind: the required kind, to name in messages, such as teacher.
        methods: the methods that it must have.

    Raises InputError on an unknown class, or one that lacks a method.
    """
    if name not in registry and ":" not in name:
        raise InputError(f"{kind}: {name!r:.60} is unknown; {suggest(name, registry)}, or name module:Class")
    spec = registry.get(name, name)
    where, _, attribute = spec.rpartition(":")
    if not where or not attribute:
        raise InputError(f"{kind} {name!r:.80}: half of the name is missing; name module:Class or FILE.py:Class")
    module = _import_module(where, f"{kind} {name!r:.80}")
    loaded = getattr(module, attribute, None)
    if loaded is None:
        raise InputError(f"{kind} {name!r:.80}: {where} has no {attribute!r:.60}; correct the name")
    if isinstance(loaded, type) and (missing := [method for method in methods if not hasattr(loaded, method)]):
        raise InputError(f"{kind} {name!r:.80}: it has no {missing[0]}; a {kind} has {', '.join(methods)}")
    if not callable(loaded):
        raise InputError(f"{kind} {name!r:.80}: {attribute} is not a class; name a class")
    return loaded


def _import_module(where: str, what: str) -> ModuleType:
    """A module by its name or its file. Raises InputError if it cannot be imported."""
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        path = Path(where).resolve()
        if not path.is_file():
            known = _FILES.get(where)
            if known and Path(str(known.__file__)).is_file():  # imported, and the working folder changed since then
                return known
            raise InputError(f"{what}: {where} is not a file; check the path")
        name = f"lakewright_plugin_{path.stem}"
        known = sys.modules.get(name)
        if known and getattr(known, "__file__", None) == str(path):
            _FILES[where] = known
            return known
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # so that its classes can be pickled by name, as worker processes need
        try:
            with _search_folder(str(path.parent)):
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]  # a module that is half there would be found the next time
            raise
        _FILES[where] = module
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and where.startswith(f"{PACKAGE}."):
            raise InputError(describe_missing(error, what) or f"{what}: {error}") from error
        file = where if where.endswith(".py") else f"{where.replace('.', '/')}.py"
        unfound = file != where and isinstance(error, ModuleNotFoundError) and Path(file).is_file()
        remedy = f"write {file}:CLASS" if unfound else f"correct {_find_line(error, Path(file).name) or 'it'}"
        raise InputError(f"{what}: {where} cannot be imported ({type(error).__name__}: {error}); {remedy}") from error
    return module


def _find_line(error: BaseException, name: str) -> str:
    """The line of a file of that name in which an error arose, as `NAME:LINE`; empty if it arose elsewhere."""
    frames = ((Path(frame.f_code.co_filename).name, line) for frame, line in traceback.walk_tb(error.__traceback__))
    lines = [line for file, line in frames if file == name]
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).name == name:
        lines.append(error.lineno or 1)
    return f"{name}:{lines[-1]}" if lines else ""


@contextmanager
def _search_folder(folder: str) -> Iterator[None]:
    """Lets a file import what is beside it, as `python FILE` does; the folder is last, so that it hides nothing."""
    added = folder not in sys.path
    if added:
        sys.path.append(folder)
    try:
        yield
    finally:
        if added:
            sys.path.remove(folder)


def check_options(where: str, name: str, make: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as `make` annotates them.

    Args:
        where: the place to name in messages.
        name: the class to name in messages.
        make: the class.
        options: the options by name.

    Raises InputError if one is not an argument of `make` with a default, or of another type, or outside its range. If
    `make` has further arguments by name that are floats (`**knobs: float`), other names are options, too.
    """
    kind, options = _options_of(make), convert(options, dict[str, Any], where)
    fixed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    for argument, given in inspect.signature(make).parameters.items():
        if given.default is given.empty and given.kind not in fixed and argument != "tools":
            raise InputError(f"{where}: the argument {argument} of {name:.80} has no default; give it one")
    known = {option: value for option, value in options.items() if option in kind.__struct_fields__}
    others = {option: value for option, value in options.items() if option not in known}
    if others and not _takes_numbers(make):
        wrong = next(iter(others))
        raise InputError(f"{where}: {wrong!r:.60} is unknown to {name}; {suggest(wrong, kind.__struct_fields__)}")
    checked = convert(known, kind, where)
    return {option: getattr(checked, option) for option in known} | convert(others, dict[str, float], where)


def _takes_numbers(make: Callable[..., Any]) -> bool:
    """Return True if `make` has further arguments by name, which are numbers."""
    parameters = inspect.signature(make).parameters.values()
    return any(given.kind is given.VAR_KEYWORD and given.annotation is float for given in parameters)


@functools.cache
def _options_of(make: Callable[..., Any]) -> type[msgspec.Struct]:
    """A struct of the arguments that have a default."""
    arguments = inspect.signature(make).parameters.items()
    fields = [(name, given.annotation, given.default) for name, given in arguments if given.default is not given.empty]
    return msgspec.defstruct("Options", fields, frozen=True, forbid_unknown_fields=True)
