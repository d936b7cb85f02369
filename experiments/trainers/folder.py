"""The engineer of a folder: reads the outcomes that trainers append, and writes the versions that they draw from.

    folder = EngineerFolder.begin("runs/engineer", environment="addition.py:Addition", teacher="difficulty")
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    ...                                # train, and record
    print(folder.next().line)          # the next version, from what was recorded since the last

Killed at any instant and run again, `next` ends with the same versions: a version is one file that is there or not, and
holds how far the outcomes were read.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, locked
from lakewright.engineer.delta import list_changes
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Problem
from lakewright.engineer.guard import can_draw, check_floor
from lakewright.engineer.redesign import Decision, Engineer
from lakewright.engineer.space import DesignSpace, check_design, normalize_design
from lakewright.engineer.teachers import MODELS, Tools, check_teacher
from lakewright.engineer.trial import RollOut
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.resumable.asked_server import ask_server
from lakewright.experiments.resumable.spending import Spending
from lakewright.experiments.trainers.outcomes import OutcomeReader, Read, count_answers, make_groups, tally_held_out
from lakewright.experiments.trainers.versions import Author, Counts, FolderSettings, Setup, Version, VersionFiles

MOST_HELD_OUT = 100_000


class Report(msgspec.Struct, frozen=True):
    """The result of a command: the version, its design and author, whether it is new, why, and what was read for it.

    complaint: one line on outcomes that were left out; empty where there are none. rolled_back: whether validation
    fell, so that a trainer may go back to the weights before, too.
    """

    version: int
    by: Author
    new: bool
    line: str
    design: dict[str, Any]
    counts: Counts = Counts()
    complaint: str = ""
    rolled_back: bool = False


class Status(msgspec.Struct, frozen=True):
    """A folder as it is. outcomes: by version and stratum, answers and valid ones. pending: answers not read yet."""

    version: int
    by: Author
    environment: str
    teacher: str
    design: dict[str, Any]
    outcomes: dict[str, dict[str, tuple[int, int]]]
    held_out: int
    pending: int
    complaint: str
    edited: bool


class EngineerFolder:
    """An engineer whose state is a folder. `path`: of the folder."""

    def __init__(self, path: str | Path) -> None:
        """Opens a folder. Raises InputError where none was begun there, or its environment has another space now."""
        self.path = Path(path)
        self.files = VersionFiles(path)
        self.setup = self.files.read_setup()
        self.environment = self.files.load_environment()
        self.space = self.environment.space

    @classmethod
    def begin(
        cls,
        path: str | Path,
        environment: str,
        teacher: str = "difficulty",
        design: Design | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        settings: FolderSettings = FolderSettings(),  # noqa: B008 - it is frozen
        held_out: int = 0,
        rounds: int | None = None,
        seed: int = 0,
    ) -> "EngineerFolder":
        """Begins an engineer in a new or empty folder.

        environment: a name, as of `load_environment`; the path of a file is made absolute.
        teacher, options, rounds, seed: as of `Engineer`; teachers that ask a checkpoint are not served.
        design: version 0; by default that of the environment.
        settings: how the engineer works, and how a server is asked.
        held_out: how many held-out problems there are, drawn from version 0.

        Raises InputError where something is not usable, or an engineer is there already.
        """
        files, name = VersionFiles(path), _resolve_environment(environment)
        loaded = load_environment(name)
        start = loaded.start() if design is None else design
        check_design(start, loaded.space)
        _check_teacher(teacher, options or {}, settings, loaded.space)
        if not 0 <= held_out <= MOST_HELD_OUT:
            raise InputError(f"held_out is {held_out}; choose 0 to {MOST_HELD_OUT}")
        setup = Setup(
            environment=name,
            space=loaded.space.signature(),
            teacher=teacher,
            options=dict(options or {}),
            settings=settings,
            rounds=rounds,
            seed=seed,
            held_out=held_out,
        )
        check_floor(settings.guard.floor, len(start.strata), loaded.space)
        setup = convert(msgspec.to_builtins(setup, str_keys=True), Setup, "engineer")  # which checks the numbers
        with locked(files.folder):
            # A kill may have come between version 0 and design.json: then nothing was drawn yet.
            if files.design_path.exists() or files.list_versions() not in ([], [0]):
                raise InputError(f"{path}: an engineer was begun there already; choose another folder")
            files.write_setup(setup)
            folder = cls(path)
            start = msgspec.structs.replace(start, version=0)
            state = folder._make_engineer(start).state_dict()
            first = Version(version=0, by="begin", parent=None, design=start, line="begins", reasons=[], state=state)
            files.write_version(first)
        return folder

    def held_out(self) -> list[Problem]:
        """The held-out problems, on which a policy may be judged; record their answers with split="held_out"."""
        first = self.files.read_version(0).design
        return self.environment.draw(first, self.setup.held_out, self.setup.held_out_seed)

    def next(self, roll_out: RollOut | None = None, *, step: int | None = None) -> Report:
        """Reads the outcomes since the last time, and writes the next version, or leaves the design as it is.

        A `design.json` that was edited by hand becomes a version by "user" instead. Without new outcomes nothing
        happens.

        roll_out: rolls the present policy out, for trials. step: the trainer's; at one that was decided at already,
        as it is again after a trainer resumed, nothing happens.

        Raises InputError where another process works here, or where an edited design is not legal.
        """
        with self._lock():
            current, settled = self._settle()
            if settled:
                return self._report(current, new=True)
            if step is not None and step <= current.step:
                return self._report(current, new=False, line=f"step {step} was decided at already")
            read = self._read(current)
            fresh = read.fresh()
            complaint = read.complaint(self.files.outcomes_path)
            if not fresh:
                line = f"no outcomes since version {current.version} was decided"
                return self._report(current, new=False, line=line, complaint=complaint)
            engineer = self._make_engineer(current.design, current.state, roll_out)
            groups = make_groups(fresh)
            engineer.observe(groups)
            outcomes = tally_held_out(self.space, engineer.held_out or [], fresh)
            decision = engineer.redesign(outcomes)
            following = self._decide(current, decision, engineer, read, count_answers(read, len(groups)))
            following = msgspec.structs.replace(following, step=current.step if step is None else step)
            self.files.write_version(following)
            new = following.version != current.version
            report = self._report(following, new=new, line=decision.summary(), complaint=complaint)
            return msgspec.structs.replace(report, counts=following.counts, rolled_back=decision.rolled_back)

    def undo(self) -> Report:
        """Goes back to the design of the version before, as a new version.

        Once more, and it goes back one more. Raises InputError at the first version.
        """
        with self._lock():
            current, _ = self._settle()
            if current.parent is None:
                raise InputError(f"{self.path}: version {current.version} goes back to none; there is nothing to undo")
            before = self.files.read_version(current.parent)
            line = f"back to version {before.version}"
            following = self._follow(current, before.design, "undo", line)
            following = msgspec.structs.replace(following, parent=before.parent)
            self.files.write_version(following)
            return self._report(following, new=True)

    def status(self) -> Status:
        """The folder as it is; nothing is written."""
        current = self.files.read_version(self.files.newest())
        read = self._read(current)
        counts: dict[str, dict[str, list[int]]] = {}
        for answer in read.answers:
            if answer.line.split == "train":
                strata = counts.setdefault(str(answer.line.version), {})
                pair = strata.setdefault(str(answer.cell.stratum), [0, 0])
                pair[0] += 1
                pair[1] += answer.line.valid
        outcomes = {
            version: {stratum: (total, valid) for stratum, (total, valid) in strata.items()}
            for version, strata in sorted(counts.items(), key=lambda item: int(item[0]))
        }
        return Status(
            version=current.version,
            by=current.by,
            environment=self.setup.environment,
            teacher=self.setup.teacher,
            design=msgspec.to_builtins(current.design, str_keys=True),
            outcomes=outcomes,
            held_out=Counter(answer.line.split for answer in read.answers)["held_out"],
            pending=len(read.fresh()),
            complaint=read.complaint(self.files.outcomes_path),
            edited=self._edited(current) is not None,
        )

    def log(self) -> list[str]:
        """A line for each version, oldest first."""
        lines, before = [], None
        for number in self.files.list_versions():
            version = self.files.read_version(number)
            changes = list_changes(before, version.design, self.space) if before else ""
            parts = [part for part in (version.line, changes if version.by != "engineer" else "") if part]
            stayed = len(version.decisions) - (version.by == "engineer")
            kept = f" (left as it is {stayed} times)" if stayed else ""
            lines.append(f"{number} by {version.by}: {'; '.join(parts)}{kept}")
            before = version.design
        return lines

    def _lock(self) -> Any:
        return locked(self.path, f"{self.path}: another process decides here; wait for it")

    def _read(self, current: Version) -> Read:
        return OutcomeReader(self.files.outcomes_path, self.space, current.design, current.version).read(current.offset)

    def _make_engineer(
        self, design: Design, state: Mapping[str, Any] | None = None, roll_out: RollOut | None = None
    ) -> Engineer:
        setup = self.setup
        engineer = Engineer(
            self.environment,
            setup.teacher,
            design,
            held_out=self.held_out() if state and setup.held_out else None,
            settings=setup.settings,
            options=setup.options,
            tools=self._make_tools(),
            roll_out=roll_out,
            rounds=setup.rounds,
            seed=setup.seed,
        )
        if state:
            # The design is that of the version, which a user or an undo may have made.
            engineer.load_state_dict({**state, "design": msgspec.to_builtins(design, str_keys=True)})
        return engineer

    def _make_tools(self) -> Tools:
        settings = self.setup.settings
        if not settings.endpoint:
            return Tools(settings.evidence, proposals=settings.proposals)
        spending = Spending(self.path / "spending.jsonl")
        ask = ask_server(settings.endpoint, settings.temperature, spending, recorded=True)
        return Tools(settings.evidence, ask=ask, proposals=settings.proposals, inline=True)

    def _settle(self) -> tuple[Version, bool]:
        """The newest version, and whether it is one that a user has just made by editing `design.json`."""
        current = self.files.read_version(self.files.newest())
        edited = self._edited(current)
        if edited is None:
            if not self.files.design_path.exists() or self.files.read_design()[1].version != current.version:
                self.files.write_design(current.design)
            return current, False
        changes = list_changes(current.design, edited, self.space)
        following = self._follow(current, edited, "user", f"design.json was edited: {changes}")
        self.files.write_version(following)
        return following, True

    def _edited(self, current: Version) -> Design | None:
        """The design that a user wrote, None where it is that of the newest version.

        That of the version before, unchanged, was left by a kill between the two files of a new version.
        """
        if not self.files.design_path.exists():
            return None
        name, design = self.files.read_design()
        where = str(self.files.design_path)
        if name != self.setup.environment:
            raise InputError(
                f"{where}: environment is {name!r:.80}, this folder is of {self.setup.environment}; "
                "write its design into a folder of its own"
            )
        if design == current.design:
            return None
        if design.version == current.version - 1 and design == self.files.read_version(design.version).design:
            return None
        check_design(design, self.space, where)
        for stratum, row in design.strata.items():
            if not can_draw(stratum, row, self.environment):
                path = f"{self.space.words.path}.{stratum}"
                raise InputError(f"{where}: {path}: such problems cannot be drawn; change its knobs")
        return normalize_design(design, self.space)

    def _follow(self, current: Version, design: Design, by: Author, line: str) -> Version:
        """The version after the current one, with what the engineer knows as it is."""
        number = current.version + 1
        return Version(
            version=number,
            by=by,
            parent=current.version,
            design=msgspec.structs.replace(design, version=number),
            line=line,
            reasons=[],
            offset=current.offset,
            step=current.step,
            state=current.state,
        )

    def _decide(self, current: Version, decision: Decision, engineer: Engineer, read: Read, counts: Counts) -> Version:
        """The version that a decision leads to; where the design stays, the current one, with the decision added.

        current: the version until now. decision: of the engineer, whose state is noted. read, counts: the outcomes.
        """
        note = msgspec.to_builtins(decision, str_keys=True)
        note["evidence"]["history"] = []  # the other versions tell it
        noted = {"offset": read.offset, "counts": counts, "state": engineer.state_dict()}
        if decision.design.version == current.version:
            return msgspec.structs.replace(current, decisions=[*current.decisions, note], **noted)
        following = self._follow(current, decision.design, "engineer", decision.summary())
        return msgspec.structs.replace(following, reasons=decision.next.reasons, decisions=[note], **noted)

    def _report(self, version: Version, *, new: bool, line: str = "", complaint: str = "") -> Report:
        design = msgspec.to_builtins(self.files.describe_design(version.design))
        line = line or version.line
        return Report(version.version, version.by, new, line, design, complaint=complaint)


def _resolve_environment(name: str) -> str:
    """The name, the path of a file in it made absolute: trainers may run in other folders."""
    file, found, attribute = name.rpartition(".py:")
    return f"{Path(f'{file}.py').resolve()}:{attribute}" if found else name


def _check_teacher(teacher: str, options: Mapping[str, Any], settings: FolderSettings, space: DesignSpace) -> None:
    if teacher in MODELS and teacher != "endpoint":
        raise InputError(
            f"teacher {teacher} asks a checkpoint of a run of lakewright; serve the checkpoint, and choose endpoint"
        )
    if teacher == "endpoint" and settings.endpoint is None:
        raise InputError("teacher endpoint has no server; give endpoint.url and endpoint.model")
    check_teacher(teacher, options, space)
