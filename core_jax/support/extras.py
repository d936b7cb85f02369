"""Packages that come with an extra of this one: which extra brings a module that is missing."""

import contextlib
import re
from collections.abc import Iterator

from lakewright.core_jax.errors import InputError

PACKAGE = "lakewright"
# Modules whose package has another name; or the package of ours that brings them.
NAMES = {"sklearn": "scikit-learn", "yaml": "pyyaml", "pysat": "python-sat", "jaxlib": "jax", "llvmlite": "numba"}
REQUIREMENT = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w.-]+)")


# Commands whose other modules are also in a smaller extra.
EXTRAS_OF_COMMANDS = {"sweep": "sweeps", "view": "view"}


class MissingPackageError(InputError, ModuleNotFoundError):
    """A package that an extra brings is not installed."""


@contextlib.contextmanager
def naming_extra(who: str, extra: str) -> Iterator[None]:
    """Raises MissingPackageError if an import in the block fails for want of an extra. who: needs it, for the message.

    This is an ImportError, too, as an import's should be.
    """
    try:
        yield
    except MissingPackageError:
        raise
    except ModuleNotFoundError as error:
        raise MissingPackageError(_tell_missing(error.name, who, extra)) from error


def describe_missing(error: ModuleNotFoundError, who: str, command: str = "") -> str | None:
    """A line for an import that failed, naming an extra that brings the module; None if no extra does.

    It is the extra of the command, or the first that does.
    """
    import importlib.metadata  # which takes a while: most processes never ask

    module = (error.name or "").partition(".")[0]
    wanted = _normalize_name(NAMES.get(module, module))
    found = map(REQUIREMENT.match, importlib.metadata.requires(PACKAGE) or [])
    extras = [match[2] for match in found if match and _normalize_name(match[1]) == wanted]
    return _tell_missing(module, who, EXTRAS_OF_COMMANDS.get(command, extras[0])) if extras else None


def _tell_missing(module: str | None, who: str, extra: str) -> str:
    return f"{who} needs {module}, which is not installed; pip install '{PACKAGE}[{extra}]'"


def _normalize_name(package: str) -> str:
    """The name in the normal form of wheels (PEP 503)."""
    return re.sub("[-_.]+", "-", package).lower()
