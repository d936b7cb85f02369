"""Errors in a single line that names the place and the remedy: for bad input, and from the system."""

import difflib
import errno
from collections.abc import Iterable

WRONG_PLACE = (errno.EROFS, errno.ENAMETOOLONG)
SHOWN, MOST_SHOWN = 60, 4095  # letters of a name that is too long, and of any other
CLOSE = 0.7  # of the ratio of difflib: a name that is nearly right
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class InputError(ValueError):
    """Something given from outside (config, row, plan, checkpoint, folder) cannot be used; the CLI exits with 2."""

    def __init__(self, problem: str) -> None:
        super().__init__(one_line(problem))


class TooRareError(InputError):
    """Boards that were asked for do not exist, or are too rare among random ones: ask for others, or for fewer."""


def one_line(text: str) -> str:
    """Text from outside, such as a name in a file, as a terminal may show it: what is not printable is spelled out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def suggest(name: object, choices: Iterable[object]) -> str:
    """The remedy for a name that is not among the choices: `did you mean gain? choose from fixed, gain`."""
    listed = [str(choice) for choice in choices]
    near = difflib.get_close_matches(str(name)[:SHOWN], listed, n=1, cutoff=CLOSE)
    return f"{f'did you mean {near[0]}? ' if near else ''}choose from {', '.join(listed) or 'none'}"


def system_error(error: OSError) -> str:
    """The line of an error of the system, a full disk for example."""
    place = f"{error.filename!s:.{SHOWN if error.errno == errno.ENAMETOOLONG else MOST_SHOWN}}"
    return f"{place}: {error.strerror}; {_suggest_remedy(error)}"


def is_of_the_disk(error: OSError) -> bool:
    """Whether another disk would do, or room on this one, so that nothing is wrong with the program."""
    return error.errno in (*NO_ROOM, *WRONG_PLACE)


def _suggest_remedy(error: OSError) -> str:
    if error.errno in NO_ROOM:
        return "free disk space and run the same command again; finished parts are reused"
    if error.errno == errno.ENAMETOOLONG:
        return "choose a shorter name"
    return "choose a folder that can be written" if error.errno == errno.EROFS else "check the path and the disk"
