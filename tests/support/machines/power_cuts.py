"""A power cut, played in this process: it ends at a renaming, and nothing is cleaned up."""

import os
import shutil
from pathlib import Path

import pytest


class PowerCutError(BaseException):
    """The end of a process that cleans nothing up."""


def cut_power(patch: pytest.MonkeyPatch, renamings: int, before: bool) -> None:
    """The process ends after so many renamings, at once or just before the next; nothing is cleaned up."""
    done, dead = 0, False

    def ending(real):
        def rename(source, target):
            nonlocal done, dead
            if ".part/" in str(target):  # inside what is not yet in its place
                return real(source, target)
            dead = before and done == renamings
            if not dead:
                real(source, target)
                done += 1
                dead = not before and done == renamings
            if dead:
                raise PowerCutError
            return None

        return rename

    def unless_dead(real):
        return lambda *given, **options: None if dead else real(*given, **options)

    for owner, name in ((os, "replace"), (os, "rename")):
        patch.setattr(owner, name, ending(getattr(owner, name)))
    for owner, name in ((Path, "unlink"), (shutil, "rmtree"), (os, "unlink"), (os, "remove")):
        patch.setattr(owner, name, unless_dead(getattr(owner, name)))
