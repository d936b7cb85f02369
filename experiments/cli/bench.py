"""`lakewright bench`: how fast this machine does the work."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from experiments.cli.conventions import Json, at_most_one, print_found
from experiments.runtime import progress

INSTEAD = Parameter(group=at_most_one(), show_default=False)

app = App()


@app.command(help_epilogue="example: lakewright bench --json")
def bench(
    *,
    agents: Literal[2, 3, 5] | None = None,
    sweeps: Annotated[bool, INSTEAD] = False,
    sampling: Annotated[bool, INSTEAD] = False,
    warmups: Annotated[bool, INSTEAD] = False,
    updates: Annotated[bool, INSTEAD] = False,
    json: Json = False,
) -> None:
    """Measure how fast boards are drawn, solved and verified on this machine.

    Args:
        agents: Only boards with this many agents.
        sweeps: Measure sweeps instead: workers, Ray, memory, tiny shards.
        sampling: Measure sampling instead: completions per second of the tiny model.
        warmups: Measure warm-ups instead: ours beside TRL's SFTTrainer.
        updates: Measure steps of GRPO instead: prompts read once, or for every answer.
    """
    import experiments.bench as benches

    given = {"sweeps": sweeps, "sampling": sampling, "warmups": warmups, "updates": updates}
    for name in [name for name, wanted in given.items() if wanted]:
        other = getattr(benches, name)
        print_found(other.measure(), json, other.table)
        return
    with progress("bench", None, "cases") as bar:
        results = benches.measure(agents, bar.update)
    print_found(results, json, benches.table)
