"""`lakewright bench`: how fast this machine does the work."""

import dataclasses
import importlib.util
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import ExecutorOptions, Json, at_most_one
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.jobs.executors.choice import HERE, ExecutorChoice
from lakewright.experiments.jobs.runtime.library_setup import prepare_training
from lakewright.experiments.jobs.runtime.progress_bars import progress

INSTEAD = Parameter(group=at_most_one(), show_default=False)

app = App()


@dataclasses.dataclass(frozen=True)
class WorldOptions:
    """Options of `--worlds`."""

    kinds: str = ""
    """Only these kinds of worlds, with commas between them."""
    teachers: str = ""
    """These teachers, with commas between them."""
    seeds: int | None = None
    """Worlds of each kind; 5 by default."""


@app.command(help_epilogue="example: lakewright bench --json")
def bench(
    *,
    agents: Literal[2, 3, 4, 5] | None = None,
    sweeps: Annotated[bool, INSTEAD] = False,
    sampling: Annotated[bool, INSTEAD] = False,
    files: Annotated[bool, INSTEAD] = False,
    environments: Annotated[bool, INSTEAD] = False,
    trainers: Annotated[bool, INSTEAD] = False,
    digests: Annotated[bool, INSTEAD] = False,
    worlds: Annotated[bool, INSTEAD] = False,
    scored: Annotated[WorldOptions, Parameter(name="*")] = WorldOptions(),
    pogema: Path | None = None,
    campaign: Annotated[int | None, INSTEAD] = None,
    corruption: Annotated[int | None, INSTEAD] = None,
    case: int | None = None,
    commands: str = "",
    seed: int = 0,
    journal: Path | None = None,
    where: Annotated[ExecutorOptions, Parameter(name="*")] = ExecutorOptions(),  # noqa: B008
    json: Json = False,
) -> int:
    """Measure how fast boards are drawn, solved and verified on this machine.

    Args:
        agents: Only boards with this many agents, in a campaign too.
        sweeps: Measure sweeps instead: workers, Ray, memory, tiny shards.
        sampling: Measure sampling instead: completions per second of the tiny model.
        files: Measure commands on files instead, and the core's own rates.
        environments: Measure the Gymnasium environments instead: joint moves of random play.
        trainers: Measure what an engineer's folder costs a step of a trainer instead.
        digests: Measure what share of commands lists and checks the SHA-256 of files instead.
        worlds: Score teachers in simulated worlds of known truth instead, from no redesign (0) to an oracle (1).
        pogema: A Python that has POGEMA, which is measured with them.
        campaign: Check the labels of this many fresh boards of teams against another solver instead.
        corruption: Damage so many files that commands read, one at a time, and judge what the commands do instead.
        case: Only the case of this number of a corruption campaign.
        commands: Only commands of a corruption campaign whose name holds one of these texts, with commas between them.
        seed: The same seed gives the same boards or damages of a campaign.
        journal: Keep what a campaign has finished in this file, and resume from there.
    """
    if worlds or scored != WorldOptions():
        return _score_worlds(scored, json, chosen=worlds)
    if sweeps or sampling or files or trainers or digests:
        return _measure_other(sweeps, sampling, files, trainers, json)
    if campaign is not None:
        return _check_labels(campaign, seed, journal, agents, where.chosen(), json)
    if where.chosen() != HERE:
        raise InputError("--executor and --workers are for --campaign; rates are measured in this process")
    if corruption is not None:
        return _corrupt_files(corruption, case, commands, seed, journal, json)
    return _measure_environments(pogema, json) if environments else _measure_core(agents, json)


def _measure_core(agents: int | None, json: bool) -> int:
    from lakewright.experiments.bench import lake
    from lakewright.experiments.bench.measurement import format_table

    with progress("bench", None, "cases") as bar:
        results = lake.measure_rates(agents, bar.update)
    print_found(results, json, format_table)
    return 0


def _measure_environments(pogema: Path | None, json: bool) -> int:
    from lakewright.experiments.bench import environments  # which needs an extra
    from lakewright.experiments.bench.measurement import format_table

    print_found(environments.measure_rates(pogema), json, format_table)
    return 0


def _measure_other(sweeps: bool, sampling: bool, files: bool, trainers: bool, json: bool) -> int:
    """Measures what one of the options names, without any what digests cost."""
    from lakewright.experiments.bench import digests as of_digests
    from lakewright.experiments.bench import files as of_files
    from lakewright.experiments.bench import sampling as of_sampling
    from lakewright.experiments.bench import sweeps as of_sweeps
    from lakewright.experiments.bench import trainers as of_trainers

    chosen = ((sweeps, of_sweeps), (sampling, of_sampling), (files, of_files), (trainers, of_trainers))
    if other := next((measured for wanted, measured in chosen if wanted), None):
        print_found(other.measure_rates(), json, other.format_table)
        return 0
    from lakewright.experiments.cli.app import main

    print_found(of_digests.measure_rates(main), json, of_digests.format_table)
    return 0


def _score_worlds(options: WorldOptions, json: bool, *, chosen: bool) -> int:
    if not chosen:
        raise InputError("--kinds, --teachers and --seeds are for --worlds; add it, or leave them out")
    from lakewright.experiments.bench import world_scores

    count = world_scores.SEEDS if options.seeds is None else options.seeds
    if not 1 <= count <= 1000:
        raise InputError(f"--seeds is {count}; give 1 to 1000")
    kinds = options.kinds.split(",") if options.kinds else list(world_scores.KINDS)
    asked = options.teachers.split(",") if options.teachers else list(world_scores.USUAL)
    with progress("worlds", len(kinds) * (len(asked) + 2) * count, "runs") as bar:
        found = world_scores.score_teachers(kinds, asked, count, bar.update)
    print_found(found, json, world_scores.format_table)
    return 0


def _check_labels(
    boards: int, seed: int, journal: Path | None, agents: int | None, where: ExecutorChoice, json: bool
) -> int:
    """The exit code is 1 if a label is wrong; the arguments are the options of the command."""
    from lakewright.experiments.label_checks.campaign import check_labels, format_totals

    if boards < 1:
        raise InputError(f"--campaign is {boards}; give at least 1")
    if seed < 0:
        raise InputError(f"--seed is {seed}; give 0 or more")
    if importlib.util.find_spec("w9_pathfinding") is None:
        raise InputError("--campaign asks w9-pathfinding, which is not installed; pip install 'lakewright[bench]'")
    with progress("boards", boards, "boards") as bar:
        found = check_labels(boards, seed, journal, bar.update, agents, where)
    print_found(found, json, format_totals)
    return int(any(total.wrong for total in found))


def _corrupt_files(count: int, case: int | None, commands: str, seed: int, journal: Path | None, json: bool) -> int:
    """The exit code is 1 if a result is silently different, or a command ends in a traceback or not at all.

    The arguments are the options of the command.
    """
    if count < 1:
        raise InputError(f"--corruption is {count}; give at least 1")
    for name, value in (("--seed", seed), ("--case", case or 0)):
        if value < 0:
            raise InputError(f"{name} is {value}; give 0 or more")
    prepare_training()
    from lakewright.experiments.cli.app import main  # which imports this file
    from lakewright.experiments.corruption.campaign import corrupt_files, format_totals, has_faults

    with progress("corruption", count, "cases") as bar:
        found = corrupt_files(main, count, seed, journal, case, bar.update, commands)
    print_found(found, json, format_totals)
    return int(has_faults(found))
