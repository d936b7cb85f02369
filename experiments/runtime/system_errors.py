"""Errors of the system, a full disk for example, in a line that names the place and the remedy."""

import errno

WRONG_PLACE = (errno.EROFS, errno.ENAMETOOLONG)
SHOWN, MOST_SHOWN = 60, 4095  # letters of a name that is too long, and of any other
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def system_error(error: OSError) -> str:
    """The line."""
    place = f"{error.filename!s:.{SHOWN if error.errno == errno.ENAMETOOLONG else MOST_SHOWN}}"
    return f"{place}: {error.strerror}; {_suggest_remedy(error)}"


def is_of_the_disk(error: OSError) -> bool:
    """Whether another disk would do, or room on this one, so that nothing is wrong with the program."""
    return error.errno in (*NO_ROOM, *WRONG_PLACE)


def _suggest_remedy(error: OSError) -> str:
    if error.errno in NO_ROOM:
        return "make room there, and run the same command again: what is finished is kept"
    if error.errno == errno.ENAMETOOLONG:
        return "choose a shorter name"
    return "choose a folder that can be written" if error.errno == errno.EROFS else "check the path and the disk"
