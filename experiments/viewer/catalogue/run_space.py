"""The environment of a run, as its pages show it: design space, words, and measures."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from lakewright.core_jax.errors import InputError
from lakewright.engineer.cells import SHARE, Cell, Knob, Stratum, Value, stratum_of
from lakewright.engineer.delta import describe_changes
from lakewright.engineer.design import Design, DesignRow
from lakewright.engineer.space import DesignSpace
from lakewright.engineer.steps import Next
from lakewright.engineer.tally import Tally, pool_tallies
from lakewright.engineer.windows import find_ends
from lakewright.engineer.words import Words
from lakewright.experiments.environments.lake import lake_space
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Validation, read_record
from lakewright.experiments.loop.settings.run_settings import RunSettings

CountPart = Callable[[Tally], tuple[int, int]]
LAKE = "lake"
CLIPPED = re.compile(r"\w+\.(.+)\.(\w+): (proposed \S+, applied \S+)")  # a reason of the guard
FINE = 0.5  # the span of a knob from which two digits after the point are enough

SOURCES = {
    "proposal": "the engineer's proposal, after the guard",
    "trial": "the proposal that gave the most signal in the trial",
    "rollback": "the design from before, because this stage was rolled back",
    "current": "the same design again",
}


class Measure(NamedTuple):
    """A share of the answers to the held-out problems.

    name: in addresses. title, short: in charts, and in the terminal. where: the problems with a trait, in a sentence.
    counts: the numbers of answers with the property, and of all answers; 0 if an environment doesn't know it.
    """

    name: str
    title: str
    short: str
    where: str
    counts: CountPart

    def share(self, tally: Tally) -> float:
        """The share; 0 without such problems."""
        counted, of = self.counts(tally)
        return counted / of if of else 0.0


VALID = Measure("valid", "valid", "valid", "", lambda tally: (tally.valid, tally.problems))


class RunSpace(NamedTuple):
    """The design space of a run. lake: whether it is the lake's. problem: why its environment cannot be loaded."""

    space: DesignSpace
    lake: bool = False
    problem: str = ""

    @property
    def listing(self) -> str:
        """The address below which the problems of the run are listed."""
        return "boards/run" if self.lake else "problems"

    @property
    def measures(self) -> list[Measure]:
        """Valid answers, those that have a grade, and those to problems that have a trait."""
        space, words = self.space, self.space.words
        found = [VALID, *(Measure(*words.grade_rate(name), _count_grade(name)) for name in space.grades)]
        for knob in (space.knobs[place] for place in space.traits):
            rate = words.trait_rate(knob)
            found.append(Measure(*rate._replace(title=f"valid, {rate.title}"), _count_trait(knob.name)))
        return found

    def label(self, stratum: Stratum) -> str:
        """A stratum for people."""
        return self.space.words.label(stratum)

    def describe_cell(self, cell: Cell) -> str:
        """A cell for people, such as `short, digits 2, carry`; a stratum that is a number is named as one."""
        pairs = zip(self.space.knobs, cell.values, strict=False)  # a run that has only begun names no knobs
        parts = [
            self.space.words.trait(knob, bool(value)) if knob.trait else f"{knob.name} {format_value(knob, value)}"
            for knob, value in pairs
        ]
        label = self.label(cell.stratum)
        return ", ".join([f"{self.space.words.stratum} {label}" if label.isdigit() else label, *parts])

    def describe_design(self, design: Design) -> str:
        """A design in a line: for each stratum its share and the values of its knobs."""
        lines, named = [], not self.space.words.columns
        for stratum in self.space.sort_strata(design.strata):
            row = design.strata[stratum]
            values = [(column.short, format_ends(column, row)) for column in self.space.columns]
            shown = ", ".join(map(" ".join, values)) if named else " ".join(value for _, value in values)
            lines.append(f"{stratum}: {shown}")
        return " · ".join(lines)


def find_space(folder: RunFolder, settings: RunSettings) -> RunSpace:
    """The design space of a run; if its environment cannot be loaded, as far as the records of the run tell."""
    if settings.environment == LAKE:
        return RunSpace(lake_space(), lake=True)
    try:
        space = load_environment(settings.environment).space
        _check_columns(folder, settings, space)
    except InputError as error:
        return RunSpace(gather_space(folder, settings), problem=str(error))
    return RunSpace(space)


def _check_columns(folder: RunFolder, settings: RunSettings, space: DesignSpace) -> None:
    """Raises InputError if the records of a run have other knobs or strata than its environment has by now."""
    names, tops = [column.name for column in space.columns], {column.top for column in space.columns}
    for design in _list_designs(folder, settings):
        for stratum, row in design.strata.items():
            if stratum not in space.ranks or [name for name in row if name not in tops] != names:
                raise InputError(
                    f"environment {settings.environment!r:.80}: the run has {stratum!s:.40} with {', '.join(row):.80}, "
                    f"the environment has {', '.join(names):.80}; use the version that the run was made with"
                )


def gather_space(folder: RunFolder, settings: RunSettings) -> DesignSpace:
    """The strata, knobs, failures and grades that the records of a run name, with the ranges that they show."""
    designs = list(_list_designs(folder, settings))
    tallies = list(_list_tallies(folder))
    named = [stratum for design in designs for stratum in design.strata] + list(map(stratum_of, settings.design))
    named += [stratum for strata in tallies for stratum in strata]
    pooled = pool_tallies(tally for strata in tallies for tally in strata.values())
    rows = [row for design in designs for row in design.strata.values()]
    given = dict.fromkeys(name for row in rows for name in row)
    first, *names = [name for name in given if name.removesuffix("_high") not in given or name[-5:] != "_high"] or [
        SHARE.name
    ]
    traits = [name for name in pooled.traits if name not in names]
    return DesignSpace(
        dict.fromkeys(named) or ("all",),
        [_gather_knob(name, rows, pooled) for name in [*names, *traits]],
        share=Knob(name=first),
        ranked=True,
        failures=tuple(pooled.failures) or ("wrong",),
        grades=tuple(pooled.grades),
    )


def format_value(column: Knob, value: Value) -> str:
    """A value of a column in a table: whole if they all are, with two digits or more if they are needed."""
    if column.whole:
        return f"{value:g}"
    return f"{value:.2f}" if column.span >= FINE else f"{value:.4g}"


def format_ends(column: Knob, row: DesignRow) -> str:
    """The value of a column in a row, or both ends of its window, such as `2 to 6`."""
    return " to ".join(format_value(column, end) for end in dict.fromkeys(find_ends(row, column)))


def describe_next(following: Next, design: Design, number: int, about: RunSpace) -> str:
    """The next design and the reason for it, in two sentences.

    Args:
        following: the decision about the next design.
        design: the design of the stage.
        number: number of the stage.
        about: the run's design space.
    """
    changes = "" if following.design == design else f": {describe_changes(design, following.design, about.space)}"
    why = f" Why: {'; '.join(map(shorten_reason, following.reasons))}." if following.reasons else ""
    drawn = f"After stage {number}, the {about.space.words.problems} to train on are drawn from"
    return f"{drawn} {SOURCES[following.source]}{changes}.{why}"


def sort_reasons(reasons: Sequence[str], words: Words | None = None) -> tuple[list[str], list[str]]:
    """The reasons of a guard's verdict for people: values that it clipped, and all others. words: label the strata."""
    label, clipped, others = words.label if words else str, list[str](), list[str]()
    for reason in reasons:
        if found := CLIPPED.fullmatch(reason):
            clipped.append(f"{label(stratum_of(found[1]))} {found[2].replace('_', ' ')}: {found[3]}")
        else:
            others.append(reason)
    return clipped, others


def shorten_reason(reason: str) -> str:
    """A reason for a design, in which the values that the guard clipped are counted."""
    status, _, said = reason.partition("projected: ")
    clipped, others = sort_reasons(said.split("; "))
    return "; ".join([f"{status}the guard clipped {len(clipped)} of the changes", *others]) if clipped else reason


def _gather_knob(name: str, rows: Sequence[DesignRow], pooled: Tally) -> Knob:
    if name in pooled.traits:
        return Knob(name=name, trait=True)
    values = [row[one] for row in rows for one in (name, f"{name}_high") if one in row]
    whole = all(isinstance(value, int) for value in values)  # a design has floats in a knob that is not whole
    return Knob(name=name, low=min(values), high=max(values), whole=whole)


def _list_designs(folder: RunFolder, settings: RunSettings) -> Iterator[Design]:
    for number in range(settings.stages):
        stage = folder.stage(number)
        if stage.design_file.exists():
            yield stage.design()
        if stage.next.exists():
            yield stage.next_design()


def _list_tallies(folder: RunFolder) -> Iterator[dict[int | str, Tally]]:
    for stage in (folder.warmup, *folder.finished_stages()):
        if stage.validation.exists():
            yield read_record(stage.validation, Validation).outcomes


def _count_grade(name: str) -> CountPart:
    return lambda tally: (tally.grades[name], tally.problems) if name in tally.grades else (0, 0)


def _count_trait(name: str) -> CountPart:
    return lambda tally: (tally.traits[name].valid, tally.traits[name].problems) if name in tally.traits else (0, 0)
