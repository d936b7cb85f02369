"""`lakewright engineer begin|next|status|undo|log`: the engineer of a trainer elsewhere, by files in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from lakewright.engineer.teachers import DEFAULT_TEACHER
from lakewright.experiments.cli.conventions.options import Flag, Json, Overrides, TeacherName
from lakewright.experiments.cli.conventions.output import (
    encode_line,
    print_error,
    print_found,
    print_result,
    print_summary,
)

if TYPE_CHECKING:
    from lakewright.engineer.design import Design
    from lakewright.experiments.trainers.reports import FolderStatus, NextReport

Folder = Annotated[Path, Parameter(name="DIR")]

app = App()


@app.command(
    usage="Usage: lakewright engineer begin DIR --environment ENVIRONMENT [OPTIONS] [SETTING=VALUE ...]",
    help_epilogue="example: lakewright engineer begin runs/e --environment docs/examples/addition.py:Addition",
)
def begin(
    folder: Folder,
    /,
    *,
    environment: str,
    teacher: TeacherName = DEFAULT_TEACHER,
    option: Annotated[Sequence[str], Parameter(metavar="NAME=VALUE", negative_iterable=(), show_default=False)] = (),
    design: Path | None = None,
    held_out: int = 0,
    held_out_design: Path | None = None,
    rounds: int | None = None,
    seed: int = 0,
    sampler: str = "",
    json: Json = False,
    overrides: Overrides,
) -> None:
    """Begin an engineer: DIR/design.json is what a trainer draws from, DIR/outcomes.jsonl where it appends.

    Args:
        folder: A new folder.
        environment: lake, reasoning_gym:TASK[,TASK...], FILE.py:CLASS, module:CLASS, or an entry point.
        teacher: Who proposes changes: a name, module:Class or FILE.py:Class. endpoint asks a model behind a server.
        option: An option of the teacher, NAME=VALUE; may be repeated.
        design: A JSON file with the first shares and knobs by stratum, such as {"2": {"share": 1, "terms": 3}}, or the
            design.json of another folder.
        held_out: The number of held-out problems; the first version is redesigned from answers to them.
        held_out_design: A JSON file like DESIGN that they are drawn from; by default the first design.
        rounds: The number of redesigns, which schedules need; gain looks no further ahead.
        seed: The seed for the teacher's randomness.
        sampler: How to choose individual problems, keeping the shares: fresh, signal or redraw; by default
            sampler.name.
    """
    from lakewright.core_jax.support import convert
    from lakewright.experiments.jobs.runtime.named_values import set_all
    from lakewright.experiments.trainers.folder import EngineerFolder
    from lakewright.experiments.trainers.versions import FolderSettings

    words = [*overrides, *([f"sampler.name={sampler}"] if sampler else [])]
    begun = EngineerFolder.begin(
        folder,
        environment,
        teacher,
        _read_design(design),
        options=set_all(option),
        settings=convert(set_all(words), FolderSettings, "settings"),
        held_out=held_out,
        held_out_design=_read_design(held_out_design),
        rounds=rounds,
        seed=seed,
    )
    print_found(begun.status(), json, status_text)


def _read_design(path: Path | None) -> "Design | None":
    """A design from its file: its strata, or a folder's `design.json`, whose version and environment do not matter."""
    from lakewright.core_jax.support import convert, read_raw
    from lakewright.engineer.design import Design

    if path is None:
        return None
    raw = read_raw(path)
    of_folder = isinstance(raw, dict) and {"version", "environment", "strata"} <= set(raw)
    parts = {name: raw[name] for name in ("strata", "given") if name in raw} if of_folder else {"strata": raw}
    return convert(parts, Design, str(path))


@app.command(name="next", help_epilogue="example: lakewright engineer next runs/e")
def decide(folder: Folder, /, *, step: int | None = None, json: Json = False) -> int:
    """Read the outcomes since the last version, and write the next one.

    Outcomes that cannot be used are left out; a line on standard error says how many and why, and the exit code is 1.
    Without new outcomes nothing happens.

    Args:
        folder: Where the engineer was begun.
        step: The trainer's step; a repeated step, as after a trainer resumed, decides nothing.
    """
    from lakewright.experiments.trainers.folder import EngineerFolder

    report = EngineerFolder(folder).next(step=step)
    _print_report(report, json)
    return 1 if report.counts.left_out else 0


@app.command(help_epilogue="example: lakewright engineer undo runs/e")
def undo(folder: Folder, /, *, json: Json = False) -> None:
    """Go back to the design of the version before, as a new version.

    Args:
        folder: Where the engineer was begun.
    """
    from lakewright.experiments.trainers.folder import EngineerFolder

    _print_report(EngineerFolder(folder).undo(), json)


@app.command(help_epilogue="example: lakewright engineer status runs/e")
def status(folder: Folder, /, *, json: Json = False) -> None:
    """Show the version, its design, the outcomes by version and stratum, and what is not read yet.

    Args:
        folder: Where the engineer was begun.
    """
    from lakewright.experiments.trainers.folder import EngineerFolder

    print_found(EngineerFolder(folder).status(), json, status_text)


@app.command(help_epilogue="example: lakewright engineer log runs/e")
def log(folder: Folder, /, *, json: Json = False) -> None:
    """Print a line for each version: who made it, why, and what changed.

    Args:
        folder: Where the engineer was begun.
    """
    from lakewright.experiments.trainers.folder import EngineerFolder

    print_found(EngineerFolder(folder).log(), json, "\n".join)


@app.command(help_epilogue="example: lakewright engineer draw runs/e --count 32 --out problems.jsonl")
def draw(
    folder: Folder,
    /,
    *,
    count: int = 32,
    out: Path | None = None,
    held_out: Flag = False,
    first: int | None = None,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Write problems of the current version, a line each, for a program in any language.

    Add `answers`, a list of texts, to each line, and `record` judges and records them.

    Args:
        folder: Where the engineer was begun.
        count: How many problems.
        out: The file; by default standard output.
        held_out: Write all held-out problems instead.
        first: The place of the first problem; a place always has the same problem. By default the next free place.
        seed: The seed of the problems.
    """
    from lakewright.experiments.trainers.exchange import draw_lines, refuse_inside, write_lines

    refuse_inside(folder, out)
    lines = draw_lines(folder, count, seed=seed, first=first, held_out=held_out)
    if out is None:
        for line in lines:
            print_result(encode_line(line))
    else:
        write_lines(out, lines)
        print_summary({"problems": len(lines), "first": lines[0].place if lines else 0}, json)


@app.command(help_epilogue="example: lakewright engineer record runs/e answers.jsonl --out rewards.jsonl")
def record(
    folder: Folder, source: Annotated[Path, Parameter(name="FILE")], /, *, out: Path | None = None, json: Json = False
) -> None:
    """Judge and record answers: a line with `place` and `answers` for each problem, or a run of verifiers or prime-rl.

    Further fields of a line: `split` and `seed` as in the lines of `draw`; `tokens` and `outcomes` (verdicts or
    rewards) for each answer; and `group`, a name that differs between two rounds on one problem. A line that is
    recorded again counts once.

    Args:
        folder: Where the engineer was begun.
        source: The file, or the folder of a run with traces.jsonl.
        out: A file for the rewards, validity and failures, a line for each line.
    """
    from lakewright.experiments.trainers.exchange import record_lines, refuse_inside, write_lines
    from lakewright.experiments.trainers.traces import TRACES, record_traces

    refuse_inside(folder, out)
    if source.is_dir() or source.name == TRACES:
        copied = record_traces(folder, source)
        print_found(
            copied,
            json,
            lambda one: (
                f"{one.recorded} episodes recorded, {one.before} before; left out: "
                + (", ".join(f"{count} with {reason}" for reason, count in one.left_out.items()) or "none")
            ),
        )
        return
    found = record_lines(folder, source)
    if out is not None:
        write_lines(out, found)
    counts = {"answers": sum(len(one.valid) for one in found), "valid": sum(sum(one.valid) for one in found)}
    print_found(counts, json, lambda counts: f"{counts['answers']} answers recorded, {counts['valid']} valid")


def show_version(folder: Path, version: int | None, stage: int | None, *, json: bool) -> None:
    """Prints a version of a folder, for `lakewright engineer show`.

    Args:
        folder: The folder of an engineer.
        version: The version; by default the newest.
        stage: A stage, which only runs have.
        json: Whether to print JSON.

    Raises InputError if a stage is given, and on a version that is not there.
    """
    from lakewright.core_jax.errors import InputError
    from lakewright.experiments.trainers.folder import EngineerFolder
    from lakewright.experiments.trainers.reports import describe_version

    if stage is not None:
        raise InputError(f"stage is {stage}, but {folder} holds an engineer and no run; give --version")
    opened = EngineerFolder(folder)
    numbers = opened.files.list_versions()
    if version is not None and version not in numbers:
        raise InputError(
            f"version is {version}; {folder} has {numbers[0]} to {numbers[-1]}: choose one; see engineer log"
        )
    shown = opened.files.read_version(numbers[-1] if version is None else version)
    print_found(shown, json, lambda one: describe_version(one, opened.space))


def _print_report(report: "NextReport", json: bool) -> None:
    print_found(report, json, lambda report: f"version {report.version}: {report.line}")
    if report.complaint:
        print_error(report.complaint)


def status_text(status: "FolderStatus") -> str:
    """The status as a table."""
    lines = [f"version {status.version} by {status.by}, {status.environment}, teacher {status.teacher}"]
    for stratum, row in status.design["strata"].items():
        lines.append(f"  {stratum}: {' '.join(f'{name} {value:.4g}' for name, value in row.items())}")
    lines += _list_signal(status)
    for version, strata in status.outcomes.items():
        parts = [f"{stratum} {valid} of {total} valid" for stratum, (total, valid) in strata.items()]
        lines.append(f"outcomes of version {version}: {', '.join(parts)}")
    lines.append(f"{status.held_out} held-out answers, {status.pending} answers not read yet")
    if any(cost := (status.spent.engineer, status.spent.trials)):
        lines.append(f"decisions took {cost[0]} tokens of the engineer and {cost[1]} of trials")
    if status.trials.left_out:
        held = f"{status.trials.held} trials were held, {status.trials.left_out} left out"
        lines.append(f"{held}; the last: {status.trials.reason}")
    if status.sampler != "fresh":
        done = status.sampling
        lines.append(f"sampler {status.sampler}: {done.again} of {status.places} places got another problem")
        if done.scored:
            lines[-1] += f", {done.barren} without signal; {done.scored} groups and {done.tokens} tokens to find out"
    if status.edited:
        lines.append("design.json was edited; lakewright engineer next makes it a version")
    return "\n".join([*lines, *_list_faults(status), *status.suspects, *filter(None, [status.complaint])])


def _list_faults(status: "FolderStatus") -> list[str]:
    """Lines with the numbers of all lines so far that do not count, or not whole, by reason."""
    lines = []
    for name, said in (("left_out", "left out"), ("dropped", "without a failure"), ("undrawn", "from another design")):
        if counts := status.faults.get(name):
            reasons = ", ".join(f"{count} with {reason}" for reason, count in counts.items())
            lines.append(f"of all lines, {sum(counts.values())} {said}: {reasons}")
    return lines


def _list_signal(status: "FolderStatus") -> list[str]:
    """Lines with the share of groups that teach something, of the newest version that has groups."""
    versions = {
        version: {stratum: one for stratum, one in strata.items() if one.groups}
        for version, strata in status.strata.items()
    }
    newest = next((version for version, strata in reversed(versions.items()) if strata), None)
    if newest is None:
        return []
    lines = [
        f"  {stratum}: {one.signal:.0%} of {one.groups} groups; {one.solved:.0%} solved, {one.out_of_reach:.0%} out of "
        f"reach; {one.wasted:.0%} of the tokens without signal"
        for stratum, one in versions[newest].items()
    ]
    return [f"groups of version {newest} whose rewards differ:", *lines]
