"""The design that a user wrote into `design.json` of a folder, which becomes a version."""

from lakewright.core_jax.errors import InputError
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment
from lakewright.engineer.guard import check_draws
from lakewright.engineer.space import normalize_design
from lakewright.engineer.space_checks import check_design
from lakewright.experiments.trainers.versions import Version, VersionFiles


class IllegalEditError(InputError):
    """An edited `design.json` that cannot be a version."""


def find_edit(files: VersionFiles, environment: Environment, current: Version) -> Design | None:
    """The design that a user wrote, None if it is the newest version.

    The version before, unchanged, was left by a kill between the two files of a new version.

    Args:
        files: the files of the folder.
        environment: the folder's environment.
        current: the newest version.

    Raises IllegalEditError if it belongs to another environment, has a version that is not there, or is not legal.
    """
    if not files.design_path.exists():
        return None
    try:
        return _read_edit(files, environment, current)
    except InputError as error:
        if not str(error).startswith(str(files.design_path)):
            raise  # of another file, which is damaged
        raise IllegalEditError(str(error)) from error


def _read_edit(files: VersionFiles, environment: Environment, current: Version) -> Design | None:
    """As `find_edit`, of a file that exists."""
    name, design = files.read_design()
    where, mine = str(files.design_path), files.read_setup().environment
    if name != mine:
        raise InputError(
            f"{where}: environment is {name!r:.80}, but this folder belongs to {mine}; write its design into a folder "
            "of its own"
        )
    if design == current.design:
        return None
    if design.version > current.version:
        raise InputError(
            f"{where}: version is {design.version}, but the newest here is {current.version}; restore the versions "
            f"that are missing, or write version {current.version}"
        )
    if design.version == current.version - 1 and design == files.read_version(design.version).design:
        return None
    check_design(design, environment.space, where)
    check_draws(design, environment, where)
    return normalize_design(design, environment.space)
