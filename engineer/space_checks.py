"""Checks of the parts of a design space: the names, and the ranges of knobs in single strata."""

import re
from collections.abc import Mapping, Sequence

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import first_repeated
from lakewright.engineer.cells import Knob, Stratum, check_grid, stratum_of
from lakewright.engineer.words import FIELDS, Words

_STRATUM = re.compile(r"[\w.:/+-]{1,60}")


def check_strata(strata: Sequence[Stratum]) -> None:
    """Raises InputError if there aren't any, one is there twice, or one is neither a name nor a whole number."""
    if not strata:
        raise InputError("space: it has no strata; name at least one")
    for stratum in strata:
        if isinstance(stratum, bool) or not isinstance(stratum, int | str):
            raise InputError(f"space: stratum {stratum!r:.60} is neither a whole number nor a name; use one of these")
        if isinstance(stratum, str) and (not _STRATUM.fullmatch(stratum) or stratum_of(stratum) != stratum):
            raise InputError(f"space: stratum {stratum!r:.60} is not a name; use letters, digits and ._:/+-, or an int")
    _check_once("stratum", strata)


def check_names(kind: str, names: Sequence[str], taken: Sequence[str] = ()) -> None:
    """Raises InputError if a name cannot be an identifier, appears twice, or is taken."""
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(f"space: {kind} {name!r:.60} is not an identifier; choose letters, digits and _")
    _check_once(kind, [*taken, *names])


def _check_once(kind: str, names: Sequence[Stratum]) -> None:
    if (twice := first_repeated(names)) is not None:
        raise InputError(f"space: {kind} {twice!r:.60} appears twice; name each once")


def check_words(words: Words, knobs: Sequence[Knob]) -> None:
    """Raises InputError if phrases are of unknown knobs, or the question has fields that nobody fills."""
    for name, phrases in (*words.traits.items(), *words.trait_outcomes.items()):
        if name not in [knob.name for knob in knobs if knob.trait]:
            raise InputError(f"space: words have phrases of {name!r:.60}, which is not a trait; leave them out")
        if not isinstance(phrases, tuple | list) or len(phrases) != 2:
            raise InputError(f"space: words of {name} are {phrases!r:.60}; give a phrase with and one without it")
    try:
        words.question.format(**dict.fromkeys(FIELDS, ""))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        fields = ", ".join(f"{{{field}}}" for field in FIELDS)
        raise InputError(
            f"space: question of words has {error}; its fields are {fields}, others {{{{ and }}}}"
        ) from error


def check_limits(
    limits: Mapping[Stratum, Mapping[str, tuple[float, float]]], strata: Sequence[Stratum], knobs: Sequence[Knob]
) -> None:
    """Raises InputError if limits name another stratum or knob, or exceed the range of a knob."""
    known = {knob.name: knob for knob in knobs}
    for stratum, given in limits.items():
        if stratum not in strata:
            raise InputError(f"space: limits name {stratum!r:.60}, which is not a stratum; leave it out")
        for name, (low, high) in given.items():
            if name not in known:
                raise InputError(f"space: limits.{stratum} name {name!r:.60}, which is not a knob; leave it out")
            knob, at = known[name], f"space: limits.{stratum}.{name} is {low:g} to {high:g}"
            if not knob.low <= low <= high <= knob.high:
                raise InputError(f"{at}; choose a part of {knob.low:g} to {knob.high:g}")
            check_grid((low, high), f"space: limits.{stratum}.{name}")
            if knob.whole and (low != int(low) or high != int(high)):
                raise InputError(f"{at}, but the knob is whole; choose whole numbers")
