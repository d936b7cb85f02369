"""`lakewright bench`: how fast this machine does the work, and how well teachers do in worlds of known truth."""

from collections.abc import Sequence
from typing import Literal

from cyclopts import App

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import Json
from lakewright.experiments.cli.conventions.output import print_found
from lakewright.experiments.jobs.runtime.progress_bars import progress

EXAMPLE = "example: lakewright bench --json"
# Options of former versions: commands by now, or campaigns of this repository, which the package does not hold.
COMMANDS = ("sampling", "worlds")
CAMPAIGNS = {
    **{name: name for name in ("sweeps", "files", "environments", "trainers", "digests", "corruption")},
    "campaign": "labels",
}

app = App(
    name="bench",
    help="Measure how fast boards are drawn, solved and verified on this machine.",
    help_epilogue=EXAMPLE,
)


def update_spelling(words: Sequence[str]) -> Sequence[str]:
    """The words of a command, with `bench --worlds` of former versions as `bench worlds`.

    Raises InputError on a campaign, with the command that runs it in a clone of the repository.
    """
    if not words or words[0] != "bench":
        return words
    named = words[1:2] and words[1] in COMMANDS
    for word in () if named else words[1:]:
        name = word.removeprefix("--").partition("=")[0] if word.startswith("--") else ""
        if name in CAMPAIGNS:
            command = f"python -m tests.campaigns {CAMPAIGNS[name]} --help"
            raise InputError(f"--{name}: is not in the package; in a clone of the repository, run `{command}`")
        if name in COMMANDS:
            return ["bench", name, *(other for other in words[1:] if other != word)]
    return words


@app.default
def bench(*, agents: Literal[2, 3, 4, 5] | None = None, json: Json = False) -> None:
    """Measure how fast boards are drawn, solved and verified on this machine.

    Args:
        agents: Only boards with this many agents.
    """
    from lakewright.experiments.bench import lake
    from lakewright.experiments.bench.measurement import format_table

    with progress("bench", None, "cases") as bar:
        results = lake.measure_rates(agents, bar.update)
    print_found(results, json, format_table)


@app.command(help_epilogue="example: lakewright bench sampling --json")
def sampling(*, json: Json = False) -> None:
    """Measure completions per second of the tiny model and of the pretrained policy."""
    from lakewright.experiments.bench import sampling as of_sampling

    print_found(of_sampling.measure_rates(), json, of_sampling.format_table)


@app.command(help_epilogue="example: lakewright bench worlds --kinds gaps,lake --teachers gain,my_module:MyTeacher")
def worlds(*, kinds: str = "", teachers: str = "", seeds: int = 5, json: Json = False) -> None:
    """Score teachers in simulated worlds of known truth, from no redesign (0) to an oracle (1).

    Args:
        kinds: Only these kinds of worlds, with commas between them; by default all: even, gaps, ladder, rates, slopes,
            twists, apart, torn, noisy, rote, guided, normed, stuck, broken, lapses, skewed, shared, fading, many, lake.
        teachers: These teachers, with commas between them; by default gain, difficulty, coaching, thompson,
            proportional, rlve and learning_progress.
        seeds: Worlds of each kind.
    """
    from lakewright.experiments.bench import world_scores

    if not 1 <= seeds <= 1000:
        raise InputError(f"--seeds is {seeds}; give 1 to 1000")
    chosen = kinds.split(",") if kinds else list(world_scores.KINDS)
    asked = teachers.split(",") if teachers else list(world_scores.USUAL)
    with progress("worlds", len(chosen) * (len(asked) + 2) * seeds, "runs") as bar:
        found = world_scores.score_teachers(chosen, asked, seeds, bar.update)
    print_found(found, json, world_scores.format_scores)
