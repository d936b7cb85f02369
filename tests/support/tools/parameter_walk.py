"""Where a reader goes who follows one parameter through a stage of the closed loop.

    python -m tests.support.tools.parameter_walk settings reward held_out trial guard rollback

A tiny run of the lake is made, and its second stage is followed from its design to the engineer's decision. A function
holds a parameter if it is given it, or a record with it as a field, or an object with one of these behind attributes
that the function reads. Each function is read once, when it is first called, from top to bottom: the reader goes into
what it calls, and comes back. A stay is a stretch in one file, and a return is a stay in a file where the reader was
before: returns = stays - files.
"""

import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import msgspec

from lakewright.engineer.settings import EngineerSettings
from lakewright.experiments.loop import closed_loop
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer
from lakewright.experiments.loop.training.trainee import make_trainee
from tests.support.processes.commands import HOUSE, elsewhere
from tests.support.samples.tiny_runs import tiny_run

WINGS = tuple(str(HOUSE / wing) for wing in ("core_jax", "policy", "engineer", "experiments"))


class Walk:
    """The files of a parameter's walk, in order, one for each stay."""

    def __init__(self, parameter: Any) -> None:
        self.copies = [parameter]
        self.stays: list[str] = []
        self._read = set[CodeType]()
        self._open = list[tuple[FrameType, str]]()  # functions that hold the parameter and are being read

    @property
    def files(self) -> set[str]:
        """The files that the walk comes through."""
        return set(self.stays)

    @property
    def returns(self) -> int:
        """How often the walk comes back to a file."""
        return len(self.stays) - len(self.files)

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Follows a call or its end, for `sys.setprofile`."""
        if event == "call" and frame.f_code not in self._read and frame.f_code.co_filename.startswith(WINGS):
            if self._holds(frame):
                self._read.add(frame.f_code)
                self._open.append((frame, frame.f_code.co_filename))
                self._stay(frame.f_code.co_filename)
        elif event == "return" and self._open and self._open[-1][0] is frame:
            self._open.pop()
            if self._open:
                self._stay(self._open[-1][1])

    def _stay(self, file: str) -> None:
        if self.stays[-1:] != [file]:
            self.stays.append(file)

    def _holds(self, frame: FrameType) -> bool:
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        return any(self._is_in(frame.f_locals.get(name), code.co_names) for name in names)

    def _is_in(self, value: Any, read: tuple[str, ...], depth: int = 2) -> bool:
        """Whether a value is the parameter, a record of it, or an object with it among the attributes that are read."""
        if any(value is one for one in self.copies):
            return True
        if isinstance(value, msgspec.Struct):
            return any(getattr(value, name, None) is one for name in value.__struct_fields__ for one in self.copies)
        held = getattr(value, "__dict__", {}) if depth else {}
        return any(self._is_in(held[name], read, depth - 1) for name in read if name in held)


def follow(name: str, run: RunFolder) -> Walk:
    """The walk of a parameter through the second stage of a run, whose first one is finished."""
    settings = tiny_run(teacher="rules", stages=2)
    trainee = make_trainee(settings)
    run.open(settings)
    held_out = closed_loop.prepare_run(trainee, run)
    engineer = RunEngineer(trainee, run, held_out)
    known = {"settings": trainee.settings, "held_out": held_out}
    walk = Walk(known[name] if name in known else getattr(trainee.settings, name))
    for number in range(2):
        sys.setprofile(walk if number else None)
        try:
            closed_loop._run_stage(trainee, run, number, held_out)
            closed_loop._redesign_after_stage(trainee, engineer, number)
        finally:
            sys.setprofile(None)
        closed_loop._mark_done(run, run.stage(number), closed_loop._read_clocks())
        if hasattr(EngineerSettings, name) and engineer.engineer:
            walk.copies.append(getattr(engineer.engineer.settings, name))  # a copy that the engineer has checked
    return walk


def main(names: list[str]) -> None:
    """Prints the walks."""
    for name in names:
        walk = follow(name, RunFolder(elsewhere() / f"walk of {name}"))
        print(f"{name}: {len(walk.stays)} stays in {len(walk.files)} files, {walk.returns} returns")
        for file in walk.stays:
            print(f"    {Path(file).relative_to(HOUSE)}")


if __name__ == "__main__":
    main(sys.argv[1:])
