"""`lakewright bench`: how fast this machine does the work."""

import importlib.util
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions import Json, at_most_one, print_found
from lakewright.experiments.runtime import progress

INSTEAD = Parameter(group=at_most_one(), show_default=False)

app = App()


@app.command(help_epilogue="example: lakewright bench --json")
def bench(
    *,
    agents: Literal[2, 3, 4, 5] | None = None,
    sweeps: Annotated[bool, INSTEAD] = False,
    sampling: Annotated[bool, INSTEAD] = False,
    warmups: Annotated[bool, INSTEAD] = False,
    architectures: Annotated[bool, INSTEAD] = False,
    updates: Annotated[bool, INSTEAD] = False,
    files: Annotated[bool, INSTEAD] = False,
    language: Annotated[str | None, INSTEAD] = None,
    environments: Annotated[bool, INSTEAD] = False,
    pogema: Path | None = None,
    campaign: Annotated[int | None, INSTEAD] = None,
    endurance: Annotated[float | None, INSTEAD] = None,
    seed: int = 0,
    journal: Path | None = None,
    json: Json = False,
) -> int:
    """Measure how fast boards are drawn, solved and verified on this machine.

    Args:
        agents: Only boards with this many agents, in a campaign too.
        sweeps: Measure sweeps instead: workers, Ray, memory, tiny shards.
        sampling: Measure sampling instead: completions per second of the tiny model.
        warmups: Measure warm-ups instead: ours and TRL's SFTTrainer.
        architectures: Measure networks instead: what each learns in the same processor time.
        updates: Measure steps of GRPO instead: prompts read once, or for every answer.
        files: Measure commands on files instead, and the core's own rates.
        language: Measure what speeds up this language model instead: a folder, a GGUF file or a package with one.
        environments: Measure the Gymnasium environments instead: joint moves of random play.
        pogema: A Python that has POGEMA, which is measured with them.
        campaign: Check the labels of so many fresh boards of teams against another solver instead.
        endurance: Watch a run and a sweep for so many minutes each instead: memory, threads, files, processes.
        seed: The same seed gives the same boards of a campaign.
        journal: Keep what a campaign has finished in this file, and resume from there.
    """
    import lakewright.experiments.bench as benches

    given = {"sweeps": sweeps, "sampling": sampling, "warmups": warmups, "architectures": architectures}
    given |= {"updates": updates, "files": files}
    for name in [name for name, wanted in given.items() if wanted]:
        other = getattr(benches, name)
        print_found(other.measure(), json, other.table)
        return 0
    if language:
        print_found(benches.language.measure(language), json, benches.language.table)
        return 0
    if environments:
        print_found(benches.environments.measure(pogema), json, benches.environments.table)
        return 0
    if campaign is not None:
        return _campaign(campaign, seed, journal, agents, json)
    if endurance is not None:
        return _endurance(endurance, json)
    with progress("bench", None, "cases") as bar:
        results = benches.measure(agents, bar.update)
    print_found(results, json, benches.table)
    return 0


def _campaign(boards: int, seed: int, journal: Path | None, agents: int | None, json: bool) -> int:
    """The exit code is 1 where a label is wrong."""
    from lakewright.experiments.campaign import measure, table

    if boards < 1:
        raise InputError(f"--campaign is {boards}; give at least 1")
    if seed < 0:
        raise InputError(f"--seed is {seed}; give 0 or more")
    if importlib.util.find_spec("w9_pathfinding") is None:
        raise InputError("--campaign asks w9-pathfinding, which is not installed; pip install 'lakewright[bench]'")
    with progress("boards", boards, "boards") as bar:
        found = measure(boards, seed, journal, bar.update, agents)
    print_found(found, json, table)
    return int(any(total.wrong for total in found))


def _endurance(minutes: float, json: bool) -> int:
    """The exit code is 1 where anything grows."""
    from lakewright.experiments.campaign import endurance_table, endure

    if not minutes > 0:
        raise InputError(f"--endurance is {minutes:g}; give more than 0 minutes")
    with progress("endurance", None, "looks") as bar:
        watched = endure(minutes, bar.update)
    print_found(watched, json, endurance_table)
    return int(not all(one.flat for one in watched))
