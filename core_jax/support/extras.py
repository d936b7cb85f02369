"""Packages that come with an extra of this one: which extra brings a module that is missing."""

import contextlib
import re
from collections.abc import Iterator

from lakewright.core_jax.errors import InputError

PACKAGE = "lakewright"
# Modules whose package has another name; or the package of ours that brings them.
NAMES = {"sklearn": "scikit-learn", "yaml": "pyyaml", "pysat": "python-sat", "jaxlib": "jax", "llvmlite": "numba"}
REQUIREMENT = re.compile(r"([\w.-]+).*\bextra == ['\"]([\w.-]+)")


@contextlib.contextmanager
def naming_extra(who: str, extra: str) -> Iterator[None]:
    """Raises InputError if an import in the block fails for want of an extra. who: needs it, for the message."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise InputError(_tell_missing(error.name, who, extra)) from error


def describe_missing(error: ModuleNotFoundError, who: str) -> str | None:
    """A line for an import that failed, naming the first extra that brings the module; None if no extra does."""
    import importlib.metadata  # which takes a while: most processes never ask

    module = (error.name or "").partition(".")[0]
    wanted = _normalize_name(NAMES.get(module, module))
    found = map(REQUIREMENT.match, importlib.metadata.requires(PACKAGE) or [])
    extras = [match[2] for match in found if match and _normalize_name(match[1]) == wanted]
    return _tell_missing(module, who, extras[0]) if extras else None


def _tell_missing(module: str | None, who: str, extra: str) -> str:
    return f"{who} needs {module}, which is not installed; pip install '{PACKAGE}[{extra}]'"


def _normalize_name(package: str) -> str:
    """As in the names of wheels (PEP 503)."""
    return re.sub("[-_.]+", "-", package).lower()
