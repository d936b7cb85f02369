"""The files of an engineer's folder: what it was begun with, and the versions of its design.

    engineer.json         environment, teacher, settings, seeds
    design.json           the current design, for any trainer to read
    versions/NNNN.json    each version: its design, who made it and why, and what the engineer knew then
    outcomes.jsonl        the outcomes of answers, appended by trainers
    outcomes.index        totals of the outcomes read so far; rebuilt if it is missing or damaged
    traces.index          the same for traces of verifiers
    pins-SEED.jsonl       which version the problems of a source were drawn from

A version exists once its file is there; `design.json` follows.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import (
    LISTING,
    Count,
    Natural,
    convert,
    list_names,
    listed,
    read_config,
    read_raw,
    refuse_file,
    refuse_pipe,
    replacing,
    update_listing,
    write_json,
)
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.environment import Environment
from lakewright.engineer.problems import Problem
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.rollback import RollbackSettings
from lakewright.engineer.settings import EngineerSettings, complete_settings
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.state import check_form
from lakewright.experiments.environments.registry import load_environment
from lakewright.policy.inference import EndpointSettings

FORMAT = 1
HELD_OUT_SEED = 20260617  # apart from those of trainers
OLD_STATE = ("format", "forecast")  # of the state of a version that is no longer the newest: what samplers read

Author = Literal["begin", "engineer", "user", "undo"]


class FolderRollbackSettings(RollbackSettings, frozen=True, forbid_unknown_fields=True):
    """Settings of the rollback of a stage whose trainer does not restore weights by itself."""

    weights: bool = False
    """Whether the trainer restores the weights from before, too."""


class FolderSettings(EngineerSettings, frozen=True, forbid_unknown_fields=True):
    """The settings of the engineer of a folder, and of a model behind a server."""

    fewest_answers: Count = 4
    """Answers without which `next` decides nothing, unless they are to all held-out problems."""
    rollback: FolderRollbackSettings = FolderRollbackSettings()
    """When a design that lowered validation is rolled back."""
    endpoint: EndpointSettings | None = None
    """The server of the teacher `endpoint`."""
    temperature: float = 0.7
    """Temperature of its answers."""
    rollouts: EndpointSettings | None = None
    """The server of the policy under training: proposals are tried on it before one becomes a version."""
    rollout_temperature: float = 1.0
    """Temperature of its answers, as in training."""


class Setup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The arguments that an engineer was begun with: `engineer.json`.

    format: format of the folder. environment: its name. space, parts: the signature of its design space, and what that
    tells of, which earlier folders do not have. teacher, options, settings, rounds, seed: as in `Engineer`. held_out,
    held_out_seed, held_out_design: how many held-out problems there are, drawn from that design, or from version 0,
    with that seed.
    """

    format: int = FORMAT
    environment: str
    space: str
    parts: dict[str, str] = {}
    teacher: str
    options: dict[str, Any] = {}
    settings: FolderSettings = FolderSettings()
    rounds: Count | None = None
    seed: Natural = 0
    held_out: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    held_out_seed: Natural = HELD_OUT_SEED
    held_out_design: Design | None = None

    def __post_init__(self) -> None:
        if self.held_out_design and not self.held_out:
            raise InputError("held_out_design has no effect, because held_out is 0; give held_out, too, or remove it")


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The counts of a reading of outcomes: answers that count, their groups and tokens, lines left out by reason."""

    answers: int = 0
    held_out: int = 0
    groups: int = 0
    tokens: int = 0
    left_out: dict[str, int] = {}


class FirstAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to a held-out problem that is compared with another policy's.

    group: the digest of its group, in hexadecimal digits. number: the answer's number in the group, if it has one.
    """

    group: str
    number: int | None
    valid: bool


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A version of the design: `versions/NNNN.json`.

    by: who made it. parent: the version that `undo` restores; None for the first. line, reasons: why. decisions: the
        engineer's decisions as JSON: the decision that made it, and later decisions that changed nothing, of which only
        the last has its forecast and evidence. waiting: the answers to held-out problems that wait for those to the
        others, by the problem's key. offset: how many bytes of the outcomes the engineer has read. outcomes: the
        SHA-256 of these bytes, which earlier folders do not have. step: the trainer's step at the last decision, -1
        without a decision. counts: counts of the outcomes read for the last decision. state: the engineer's state, of
        older versions its forecast.
    """

    version: int
    by: Author
    parent: int | None
    design: Design
    line: str
    reasons: list[str]
    decisions: list[dict[str, Any]] = []
    waiting: dict[str, FirstAnswer] = {}
    offset: int = 0
    outcomes: str = ""
    step: int = -1
    counts: Counts = Counts()
    state: dict[str, Any]


def shorten_note(note: dict[str, Any]) -> dict[str, Any]:
    """A decision without its forecast and evidence: a version that stays would grow by them with every decision."""
    return {**note, "evidence": None, "forecast": None}


class DesignFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The current design: `design.json`. given: values of the givens, if the space has any."""

    version: Natural
    environment: str
    strata: dict[str, dict[str, int | float]]
    given: dict[str, int | float] = {}


class EditedError(Exception):
    """A user changed `design.json` after it was read."""


class VersionFiles:
    """The files of a folder, apart from outcomes and pins."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()  # code of an environment may change the working folder
        self.setup_path = self.folder / "engineer.json"
        self.design_path = self.folder / "design.json"
        self.outcomes_path = self.folder / "outcomes.jsonl"
        self.index_path = self.folder / "outcomes.index"
        self.traces_path = self.folder / "traces.index"
        self._noted: bytes | None = None

    def read_setup(self) -> Setup:
        """The arguments that the engineer was begun with.

        Raises InputError if they are missing, or in another format.
        """
        refuse_file(self.folder)
        if not self.setup_path.exists():
            raise InputError(f"{self.folder}: holds no engineer; lakewright engineer begin makes one")
        raw = complete_settings(read_raw(self.setup_path))
        if isinstance(raw, dict) and isinstance(raw.get("settings"), dict):
            raw["settings"].setdefault("fewest_answers", 1)  # earlier versions decided on any answer
        setup = convert(raw, Setup, str(self.setup_path))
        if setup.format != FORMAT:
            raise InputError(
                f"{self.setup_path}: format is {setup.format}, this version reads {FORMAT}; "
                "use the version that wrote it"
            )
        return setup

    def write_setup(self, setup: Setup) -> None:
        """Writes the setup of the engineer."""
        with listed(self.setup_path):
            write_json(self.setup_path, msgspec.to_builtins(setup, str_keys=True))

    def load_environment(self) -> Environment:
        """The environment of the folder. Raises InputError if its space has changed since the beginning."""
        setup = self.read_setup()
        environment = load_environment(setup.environment)
        if environment.space.signature() != setup.space:
            changes = describe_changed_parts(setup.parts, environment.space) if setup.parts else ""
            raise InputError(
                f"{self.setup_path}: the design space of {setup.environment} has changed since this folder was created"
                f"{f': {changes}' if changes else ''}; restore it, or begin another folder"
            )
        return environment

    def draw_held_out(self, environment: Environment) -> list[Problem]:
        """The held-out problems of the folder, whose environment is given."""
        setup = self.read_setup()
        design = setup.held_out_design or self.read_version(0).design
        return environment.draw(design, setup.held_out, setup.held_out_seed)

    def list_versions(self) -> list[int]:
        """The numbers of all versions, in order. Raises InputError if one is missing that has been there."""
        versions = self.folder / "versions"
        names = list_names(versions)  # before the files, as another process may write more
        found = _read_numbers(file.name for file in versions.glob("*.json"))
        before = _read_numbers(names) | set(range(max(found, default=0)))
        if lost := sorted(before - found):
            raise InputError(
                f"{self.version_path(lost[0])}: is missing, but {LISTING} beside it, or a later version, shows that it "
                "existed; restore it"
            )
        return sorted(found)

    def newest(self) -> int:
        """The number of the newest version. Raises InputError without a version."""
        numbers = self.list_versions()
        if not numbers:
            raise InputError(f"{self.folder}: versions is empty; begin another folder")
        return numbers[-1]

    def version_path(self, number: int) -> Path:
        """The file of a version."""
        return self.folder / "versions" / f"{number:04d}.json"

    def read_version(self, number: int) -> Version:
        """A version. Raises InputError if its file is missing or damaged."""
        return read_config(self.version_path(number), Version)

    def read_newest(self) -> Version:
        """The newest version. Raises InputError if its file is missing or damaged, or its state is of another form."""
        version = self.read_version(self.newest())
        try:
            check_form(version.state)
        except InputError as error:
            raise InputError(f"{self.version_path(version.version)}: {error}") from error
        return version

    def load_state(self, engineer: Engineer, state: Mapping[str, Any]) -> None:
        """Restores the newest version's state. Raises InputError, with its file, if it is of another form or space."""
        try:
            engineer.load_state_dict(state)
        except InputError as error:
            raise InputError(f"{self.version_path(self.newest())}: {error}") from error

    def read_decisions(self) -> list[dict[str, Any]]:
        """The engineer's decisions, oldest first, as versions note them."""
        return [note for number in self.list_versions() for note in self.read_version(number).decisions]

    def find_settled(self, current: Version) -> int:
        """The version that each trainer has by now, if it fetches its problems ahead by less than a decision."""
        while not current.decisions and current.version:  # of a user, or of an undo
            current = self.read_version(current.version - 1)
        confirmed = len(current.decisions) > (current.by == "engineer")
        return current.version if confirmed else max(0, current.version - 1)

    def read_forecast(self, number: int) -> Forecast | None:
        """The forecast of the difficulty model at the last decision about a version; None before the first."""
        path, known = self.version_path(number), self.read_version(number).state.get("forecast")
        return convert(known, Forecast | None, str(path), "forecast")  # type: ignore[arg-type]

    def note_design(self) -> None:
        """Notes the `design.json` that a decision begins with."""
        self._noted = self._read_bytes()

    def write_version(self, version: Version) -> None:
        """Writes a version, then the design. Raises EditedError as `write_design`, before or after the version."""
        self._check_noted()
        self._write_file(version)
        self.write_design(version.design)
        self.shorten_states(version.version)

    def shorten_states(self, newest: int) -> None:
        """Leaves the whole state to the newest version, of which an engineer is restored; older ones keep the forecast.

        A state grows with the number of versions, so with one in each a folder would grow with its square.
        """
        for number in reversed(range(newest)):
            version = self.read_version(number)
            state = {name: version.state[name] for name in OLD_STATE if name in version.state}
            if state == version.state:
                update_listing(self.version_path(number))  # after a kill
                return
            self._write_file(msgspec.structs.replace(version, state=state))

    def _write_file(self, version: Version) -> None:
        path = self.version_path(version.version)
        with listed(path):
            write_json(path, msgspec.to_builtins(version, str_keys=True))

    def write_design(self, design: Design) -> None:
        """Replaces `design.json`. Raises EditedError, and leaves it, if it isn't what was noted or written last."""
        data = msgspec.json.format(msgspec.json.encode(self.describe_design(design))) + b"\n"
        with replacing(self.design_path) as beside:
            with open(beside, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # here, so that no time is left between the comparison and the renaming
            self._check_noted()
        self._noted = data

    def _check_noted(self) -> None:
        if self._read_bytes() != self._noted:
            raise EditedError

    def _read_bytes(self) -> bytes | None:
        refuse_pipe(self.design_path)
        return self.design_path.read_bytes() if self.design_path.exists() else None

    def describe_design(self, design: Design) -> DesignFile:
        """A design as `design.json` has it."""
        rows = {str(stratum): row for stratum, row in design.strata.items()}
        return DesignFile(design.version, self.read_setup().environment, rows, design.given)

    def read_design(self) -> tuple[str, Design]:
        """The environment and the design of `design.json`, unchecked. Raises InputError on another form."""
        found = read_config(self.design_path, DesignFile)
        design = convert({"strata": found.strata, "given": found.given}, Design, str(self.design_path))
        return found.environment, msgspec.structs.replace(design, version=found.version)


def _read_numbers(names: Iterable[str]) -> set[int]:
    """The numbers of the versions among some files; copies and the like, whose names are others, are not versions."""
    found = (re.fullmatch(r"([0-9]{4}|[1-9][0-9]{4,9})\.json", name) for name in names)
    return {int(name[1]) for name in found if name}


def describe_space(space: DesignSpace) -> dict[str, Any]:
    """The fields of a `Setup` that tell of a design space."""
    return {"space": space.signature(), "parts": describe_parts(space)}


def describe_parts(space: DesignSpace) -> dict[str, str]:
    """The parts of a space that its signature tells of, by name, each with its limits."""
    strata = {f"stratum {stratum}": f"number {place + 1}" for place, stratum in enumerate(space.strata)}
    knobs = {
        f"knob {knob.name}": "a trait" if knob.trait else f"{knob.low:g} to {knob.high:g}{' whole' * knob.whole}"
        for knob in space.knobs
    }
    return strata | knobs | {f"given {given.name}": "" for given in space.givens}


def describe_changed_parts(before: Mapping[str, str], space: DesignSpace) -> str:
    """The differences of a space from earlier parts, the first few; empty without any."""
    now = describe_parts(space)
    lines = [f"{name} is gone" for name in before if name not in now]
    lines += [f"{name} is new" for name in now if name not in before]
    lines += [f"{name} was {before[name]}, now {now[name]}" for name in now if before.get(name, now[name]) != now[name]]
    return ", ".join(lines[:4]) + (", ..." if len(lines) > 4 else "")
