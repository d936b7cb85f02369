"""The engineer of a folder: reads the outcomes that trainers append, and writes the design versions that they use.

    folder = EngineerFolder.begin("runs/engineer", environment="addition.py:Addition")
    source, recorder = ProblemSource(folder.path), OutcomeRecorder(folder.path)
    ...                                # train, and record
    print(folder.next().line)          # the next version, from the outcomes recorded since the last

Killed at any instant and run again, `next` ends with the same versions: a version is one file that exists or not, and
notes how far the outcomes were read.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import convert, locked
from lakewright.engineer.delta import describe_changes
from lakewright.engineer.design import Design
from lakewright.engineer.guard import check_guard
from lakewright.engineer.number_limits import is_whole_number
from lakewright.engineer.problems import Problem
from lakewright.engineer.redesign import Engineer
from lakewright.engineer.samplers import choose_sampler
from lakewright.engineer.settings import read_settings
from lakewright.engineer.signal import measure_signal
from lakewright.engineer.start import check_design_draws, complete_design, find_start
from lakewright.engineer.steps import Decision
from lakewright.engineer.teachers import DEFAULT_TEACHER, Ask, Tools
from lakewright.engineer.trial import RollOut
from lakewright.experiments.environments.registry import load_environment, resolve_name
from lakewright.experiments.trainers.asking import answer_held_out, check_served_teacher, make_folder_tools
from lakewright.experiments.trainers.design_edits import find_edit
from lakewright.experiments.trainers.outcome_index import EMPTY, Prefix, read_index, write_index
from lakewright.experiments.trainers.outcomes import Find, OutcomeReader, OutcomeTotals, Take
from lakewright.experiments.trainers.pins import count_sampling
from lakewright.experiments.trainers.reports import FolderStatus, NextReport, count_answers, count_spent, count_trials
from lakewright.experiments.trainers.source import find_served_policy
from lakewright.experiments.trainers.stratum_counts import list_suspects, sort_counts
from lakewright.experiments.trainers.versions import (
    Author,
    EditedError,
    FolderSettings,
    Setup,
    Version,
    VersionFiles,
    describe_space,
    shorten_note,
)

MOST_EDITS = 3  # of design.json, while one decision is made


class EngineerFolder:
    """An engineer whose state is a folder. `path`: of the folder."""

    def __init__(self, path: str | Path) -> None:
        """Opens a folder. Raises InputError if it has no engineer, or another space now."""
        self.files = VersionFiles(path)
        self.path = self.files.folder
        self.setup = self.files.read_setup()
        self.environment = self.files.load_environment()
        self.space = self.environment.space

    @classmethod
    def begin(
        cls,
        path: str | Path,
        environment: str,
        teacher: str = DEFAULT_TEACHER,
        design: Design | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        settings: FolderSettings | Mapping[str, Any] | None = None,
        held_out: int = 0,
        held_out_design: Design | None = None,
        rounds: int | None = None,
        seed: int = 0,
        sampler: str = "",
    ) -> "EngineerFolder":
        """Begins an engineer in a new or empty folder.

        Args:
            environment: a name, as in `load_environment`; the path of a file is made absolute.
            teacher, options, rounds, seed, sampler: as in `Engineer`. `endpoint` asks a model behind a server; `self`
                asks the policy under training, through an argument of `next`.
            design: version 0, by default the environment's first design; its givens are the environment's by default.
            settings: settings of the engineer and of a server, or a table of some, such as `{"trial.boards": 50}`.
            held_out, held_out_design: the number of held-out problems, and their design; by default version 0.

        Raises InputError if one is not usable, a stratum has no problems, or the folder has an engineer already.
        """
        files, name = VersionFiles(path), resolve_name(environment)
        loaded = load_environment(name)
        start = find_start(loaded) if design is None else complete_design(design, loaded)
        target = None if held_out_design is None else complete_design(held_out_design, loaded, "held_out_design")
        known = read_settings(settings, FolderSettings)
        known = msgspec.structs.replace(known, sampler=choose_sampler(known.sampler, sampler, loaded.space))
        check_served_teacher(teacher, options or {}, known, loaded, held_out=held_out, rounds=rounds)
        setup = Setup(
            environment=name,
            **describe_space(loaded.space),
            teacher=teacher,
            options=dict(options or {}),
            settings=known,
            rounds=rounds,
            seed=seed,
            held_out=held_out,
            held_out_design=target,
        )
        check_guard(known.guard, len(start.strata), loaded.space)
        for drawn in filter(None, (start, target)):
            check_design_draws(loaded, drawn)
        setup = convert(msgspec.to_builtins(setup, str_keys=True), Setup, "engineer")  # which checks the numbers
        with locked(files.folder):
            # A kill may have come between version 0 and design.json: then nothing was drawn yet.
            if files.design_path.exists() or files.list_versions() not in ([], [0]):
                raise InputError(f"{path}: already holds an engineer; choose another folder")
            files.write_setup(setup)
            folder = cls(files.folder)
            state, line = folder._make_engineer(start).state_dict(), "the first design"
            files.write_version(
                Version(version=0, by="begin", parent=None, design=start, line=line, reasons=[], state=state)
            )
        return folder

    def held_out(self) -> list[Problem]:
        """The held-out problems, on which a policy may be judged; record their answers with split="held_out"."""
        return self.files.draw_held_out(self.environment)

    def next(self, roll_out: RollOut | None = None, ask: Ask | None = None, *, step: int | None = None) -> NextReport:
        """Reads the outcomes since the last time, and writes the next version, or leaves the design unchanged.

        A `design.json` that was edited by hand becomes a version by "user" instead, also if it is edited while the
        engineer decides. Without new outcomes nothing happens. If a model that is the engineer doesn't
        answer, or would cost too much, nothing is decided either, and the outcomes are read again the next time.

        roll_out: samples the current policy, so that proposals are tried before one becomes a version; by default
        at the server `rollouts` of the settings, if any. Before there are any outcomes, it answers the held-out
        problems, and the first version is redesigned from that, just as from answers to them that were recorded.
        ask: asks the current policy, if the teacher is `self`. step: the trainer's step; at a step that was decided
        already, as after a trainer resumed, nothing happens. With a step, another process that decides here is waited
        for, because training should not end for it.

        Raises InputError if `step` is not a whole number, if another process works here and `step` is None, and if an
        edited design is not legal. So it does if the teacher is `self` and there is no `ask`, or if the server
        `rollouts` doesn't answer.
        """
        if step is not None and not is_whole_number(step):
            raise InputError(f"next: step is {step!r:.30}; give a whole number, at least 0")
        return self._repeat_if_edited(lambda: self._decide(roll_out, ask, step), waits=step is not None)

    def _decide(self, roll_out: RollOut | None, ask: Ask | None, step: int | None) -> NextReport:
        current, settled = self._settle_design()
        if settled:
            return self._make_report(current, new=True)
        if step is not None and step <= current.step:
            return self._make_report(current, new=False, line=f"step {step} was decided already")
        unanswered: list[str] = []
        tools = make_folder_tools(self.setup, self.path, ask, unanswered)
        served = find_served_policy(self.setup.settings, self.environment, self.path / "trial-spending.jsonl")
        policy = roll_out or served

        @functools.cache  # made only if there are outcomes
        def engineer() -> Engineer:
            return self._make_engineer(current.design, current.state, policy, tools)

        totals, digest = self._read_outcomes(
            current, lambda groups: engineer().observe(groups), lambda: engineer().held_out or []
        )
        first = self.setup.held_out if current.by == "begin" and not current.decisions else 0
        # A kill may have come while the answers before training were recorded.
        if first and policy and (not totals.pending or 0 < len(totals.tested.untrained) < first):
            answer_held_out(self.path, self.environment, self.held_out(), policy, totals.tested.untrained)
            return self._decide(roll_out, ask, step)
        if not totals.pending:
            line = f"no outcomes since version {current.version} was decided"
            line += f"; record answers to the {first} held-out problems, or begin with rollouts.url" if first else ""
            return self._make_report(current, new=False, line=line, totals=totals)
        fewest = self.setup.settings.fewest_answers
        if totals.pending < fewest and not 0 < self.setup.held_out <= totals.tested.count:
            line = f"{count_answers(totals.pending)} since version {current.version} was decided"
            line += f", and fewest_answers is {fewest}; record more"
            return self._make_report(current, new=False, line=line, totals=totals)
        decision = engineer().redesign(totals.tested.tally())
        if unanswered and decision.design.version == current.version:
            return self._make_report(current, new=False, line=f"undecided: {unanswered[0]}", totals=totals)
        following = self._make_version(current, decision, engineer())
        following = msgspec.structs.replace(
            following,
            offset=totals.offset,
            outcomes=digest,
            counts=totals.count_fresh(),
            waiting=totals.tested.waiting,
            step=current.step if step is None else step,
        )
        self.files.write_version(following)
        write_index(self.files.index_path, totals.make_index(digest))
        changed, cost = following.version != current.version, count_spent(following.decisions[-1:])
        line = f"{decision.line}; from {count_answers(totals.pending)}"
        report = self._make_report(following, new=changed, line=line, totals=totals)
        return msgspec.structs.replace(report, rolled_back=decision.rolled_back, spent=cost)

    def undo(self) -> NextReport:
        """Goes back to the design of the version before, as a new version.

        Called again, it goes back one more version. Raises InputError at the first version.
        """
        return self._repeat_if_edited(self._undo)

    def _undo(self) -> NextReport:
        current, _ = self._settle_design()
        if current.parent is None:
            raise InputError(f"{self.path}: version {current.version} is the first; there is nothing to undo")
        before = self.files.read_version(current.parent)
        following = self._make_following(current, before.design, "undo", f"back to version {before.version}")
        following = msgspec.structs.replace(following, parent=before.parent)
        self.files.write_version(following)
        return self._make_report(following, new=True)

    def status(self) -> FolderStatus:
        """The present state of the folder; nothing is written."""
        current = self.files.read_newest()
        places, sampling = count_sampling(self.path)
        decisions = self.files.read_decisions()
        totals, _ = self._read_outcomes(current)
        counts = sort_counts(totals.strata.count_all(), self.space)
        return FolderStatus(
            version=current.version,
            by=current.by,
            environment=self.setup.environment,
            teacher=self.setup.teacher,
            design=msgspec.to_builtins(current.design, str_keys=True),
            outcomes={
                version: {name: (count.answers, count.valid) for name, count in strata.items()}
                for version, strata in counts.items()
            },
            strata={
                version: {name: measure_signal(count) for name, count in strata.items()}
                for version, strata in counts.items()
            },
            suspects=list_suspects(counts, self.space),
            held_out=totals.held_out,
            pending=totals.pending,
            complaint=totals.complaint(self.files.outcomes_path),
            edited=find_edit(self.files, self.environment, current) is not None,
            spent=count_spent(decisions),
            sampler=self.setup.settings.sampler.name,
            places=places,
            sampling=sampling,
            trials=count_trials(decisions),
            faults={name: dict(counts) for name, counts in totals.faults.items()},
        )

    def log(self) -> list[str]:
        """A line for each version, oldest first."""
        lines, before = [], None
        for number in self.files.list_versions():
            version = self.files.read_version(number)
            changes = describe_changes(before, version.design, self.space) if before else ""
            parts = [part for part in (version.line, changes if version.by == "undo" else "") if part]
            stayed = len(version.decisions) - (version.by == "engineer")
            unchanged = f" (unchanged {stayed} time{'s' * (stayed > 1)})" if stayed else ""
            lines.append(f"{number} by {version.by}: {'; '.join(parts)}{unchanged}")
            before = version.design
        return lines

    def _repeat_if_edited(self, decide: Callable[[], NextReport], *, waits: bool = False) -> NextReport:
        """The report of a decision, made again if `design.json` was edited meanwhile, which then is a version.

        Raises InputError if another process decides here, unless this one waits for it.
        """
        with locked(self.path, f"{self.path}: another process decides here; wait for it", waits=waits):
            for _ in range(MOST_EDITS):
                self.files.note_design()
                try:
                    return decide()
                except EditedError:
                    continue
        raise InputError(
            f"{self.files.design_path}: was edited {MOST_EDITS} times while the engineer decided; try again"
        )

    def _read_outcomes(
        self, current: Version, take: Take | None = None, find_held_out: Find | None = None
    ) -> tuple[OutcomeTotals, str]:
        """The outcomes after the index, and the SHA-256 of all whole lines; arguments as in `OutcomeReader.read`."""
        path = self.files.outcomes_path
        prefix, index = Prefix(path), read_index(self.files.index_path, EMPTY)
        # A kill may have come between the version and the index, which then ends before the version; never after it.
        if index.offset > current.offset or prefix.digest(index.offset) != index.digest:
            index = EMPTY
        if current.outcomes and current.outcomes != prefix.digest(current.offset):
            raise InputError(
                f"{path}: its first {current.offset} bytes changed since version {current.version} was decided; the "
                "file is append-only: restore it, or begin another folder"
            )
        find_design = functools.cache(lambda version: self.files.read_version(version).design)
        reader = OutcomeReader(path, self.space, current.design, current.version, index, find_design)
        expected = self.files.find_settled(current)
        totals = reader.read(current.offset, take, find_held_out, current.waiting, expected)
        return totals, prefix.digest(totals.offset)

    def _make_engineer(
        self,
        design: Design,
        state: Mapping[str, Any] | None = None,
        roll_out: RollOut | None = None,
        tools: Tools | None = None,
    ) -> Engineer:
        setup = self.setup
        engineer = Engineer(
            self.environment,
            setup.teacher,
            design,
            held_out=self.held_out() if state and setup.held_out else None,
            settings=setup.settings,
            options=setup.options,
            tools=tools or make_folder_tools(self.setup, self.path),
            roll_out=roll_out,
            rounds=setup.rounds,
            seed=setup.seed,
        )
        if state:
            # The design is that of the version, which a user or an undo may have made.
            self.files.load_state(engineer, {**state, "design": msgspec.to_builtins(design, str_keys=True)})
        return engineer

    def _settle_design(self) -> tuple[Version, bool]:
        """The newest version, and whether it is one that a user has just made by editing `design.json`."""
        current = self.files.read_newest()
        self.files.shorten_states(current.version)  # those that a kill, or an earlier version of this program, left
        edited = find_edit(self.files, self.environment, current)
        if edited is None:
            if not self.files.design_path.exists() or self.files.read_design()[1].version != current.version:
                self.files.write_design(current.design)
            return current, False
        changes = describe_changes(current.design, edited, self.space)
        following = self._make_following(current, edited, "user", f"design.json was edited: {changes}")
        self.files.write_version(following)
        return following, True

    def _make_following(self, current: Version, design: Design, by: Author, line: str) -> Version:
        """The version after the current one, with the engineer's knowledge unchanged."""
        number = current.version + 1
        return Version(
            version=number,
            by=by,
            parent=current.version,
            design=msgspec.structs.replace(design, version=number),
            line=line,
            reasons=[],
            offset=current.offset,
            outcomes=current.outcomes,
            waiting=current.waiting,
            step=current.step,
            state=current.state,
        )

    def _make_version(self, current: Version, decision: Decision, engineer: Engineer) -> Version:
        """The version that a decision leads to; if the design stays, the current one, with the decision added.

        current: the version until now. decision: the engineer's decision, whose state is noted.
        """
        note = msgspec.to_builtins(decision, str_keys=True)
        note["evidence"]["history"] = []  # the other versions tell it
        state = engineer.state_dict()
        if decision.design.version == current.version:
            made = int(current.by == "engineer")  # the decision that made the version stays whole, as does the last
            earlier = [*current.decisions[:made], *map(shorten_note, current.decisions[made:])]
            return msgspec.structs.replace(current, decisions=[*earlier, note], state=state)
        following = self._make_following(current, decision.design, "engineer", decision.line)
        return msgspec.structs.replace(following, reasons=decision.next.reasons, decisions=[note], state=state)

    def _make_report(
        self, version: Version, *, new: bool, line: str = "", totals: OutcomeTotals | None = None
    ) -> NextReport:
        design = msgspec.to_builtins(self.files.describe_design(version.design))
        report = NextReport(version.version, version.by, new, line or version.line, design)
        return totals.describe_in(report, self.files.outcomes_path) if totals else report
