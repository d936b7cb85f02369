"""Evidence from the files of a run."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from lakewright.core_jax.config import hole_ratio_of
from lakewright.core_jax.generator import Acceptance
from lakewright.core_jax.results import Group, statistics_of
from lakewright.core_jax.rows import Row, read_all
from lakewright.engineer.delta import ConfigDelta, difference
from lakewright.engineer.difficulty import Forecast
from lakewright.engineer.evidence import Case, CellGroups, Evidence, Round, SizeStatistics
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Decision, Example, Sampled, Validation, read
from lakewright.experiments.loop.records.stage_rollouts import read_rollouts
from lakewright.experiments.loop.settings import RunSettings

PREFERRED = "another proposal of yours, which the trial preferred"
LAST_STEPS = 8  # steps of the log whose means are the figures of a training
NO_EVIDENCE = ("step", "step_time")  # the place in the log, and the clock: the machine's matter, another at every run


def gather(settings: RunSettings, stages: Sequence[Stage], forecast: Forecast | None = None) -> Evidence:
    """The evidence after the last of `stages`, which has no decision yet; `stages` begin with the first."""
    *past, now = stages
    validation = read(now.validation, Validation)
    return Evidence(
        config=now.config(),
        teams=settings.teams,
        outcomes=validation.sizes,
        forced=validation.forced,
        history=[_round(stage) for stage in past],
        summary=_summary(past[-1]) if past else "",
        round=len(past),
        rounds=settings.stages,
        boards=len(read_all(now.boards)),
        groups=cell_groups(read_rollouts(now)),
        training={**_hyperparameters(settings), **_figures(now)},
        statistics=read(now.sampled, Sampled).sizes,
        forecast=forecast,
        cases=[_case(example) for example in validation.examples if example.failure != "none"],
    )


def cell_groups(rollouts: Iterable[tuple[Row, Group]]) -> list[CellGroups]:
    """The groups by size, hole ratio and forced wait of their boards, in that order."""
    cells: dict[tuple[int, float, bool], list[Group]] = {}
    for row, group in rollouts:
        cells.setdefault((row.size, float(row.hole_ratio or 0), bool(row.wait_required)), []).append(group)
    return [CellGroups(*cell, statistics_of(members)) for cell, members in sorted(cells.items())]


def statistics_of_boards(rows: Sequence[Row], acceptance: Iterable[Acceptance]) -> dict[int, SizeStatistics]:
    """Statistics of labelled boards by size. `acceptance`: of their strata, or of none of them."""
    parts = list(acceptance)
    return {
        size: _statistics([row for row in rows if row.size == size], [part for part in parts if part.size == size])
        for size in sorted({row.size for row in rows})
    }


def _round(stage: Stage) -> Round:
    note = "; ".join(stage.following().reasons)
    undone = stage.taken_back() is not None
    return Round(stage.config(), read(stage.validation, Validation).sizes, _change(stage), note, undone)


def _summary(stage: Stage) -> str:
    """The teacher's own summary after a stage; empty if it was not asked, as the stage was taken back."""
    return read(stage.proposal, Decision).proposal.summary if stage.proposal.exists() else ""


def _change(stage: Stage) -> ConfigDelta | None:
    """What the engineer proposed; where the trial preferred another of its proposals, what that one changed."""
    if not stage.proposal.exists():
        return None
    decision, config, following = read(stage.proposal, Decision), stage.config(), stage.next_config()
    if decision.proposal.delta is None or following in (config, decision.verdict.config):
        return decision.proposal.delta
    return difference(config, following.sizes, PREFERRED)


def _statistics(rows: Sequence[Row], parts: Sequence[Acceptance]) -> SizeStatistics:
    def mean(field: str) -> float:
        return float(np.mean([getattr(row, field) for row in rows]))

    holes = [hole_ratio_of(row.size, row.agents, sum(line.count("H") for line in row.grid)) for row in rows]
    drawn = sum(part.drawn for part in parts)
    return SizeStatistics(
        boards=len(rows),
        hole_ratio=float(np.mean(holes)),
        wait_ratio=mean("wait_required"),
        makespan=mean("makespan"),
        sum_of_costs=mean("sum_of_costs"),
        acceptance=sum(part.met for part in parts) / drawn if drawn else None,
    )


def _hyperparameters(settings: RunSettings) -> dict[str, float | str]:
    parts = {"grpo": settings.grpo, "reward": settings.reward}
    return {
        f"{name}.{field}": value
        for name, part in parts.items()
        for field, value in msgspec.structs.asdict(part).items()
        if type(value) in (int, float, str)  # other values are defaults, or describe the host
    }


def _figures(stage: Stage) -> dict[str, float | str]:
    """The means of the last steps' figures."""
    log = stage.steps()[-LAST_STEPS:]
    last = log[-1] if log else {}
    names = [name for name, value in last.items() if isinstance(value, int | float) and name not in NO_EVIDENCE]
    return {name: float(np.mean([line[name] for line in log if line.get(name) is not None])) for name in names}


def _case(example: Example) -> Case:
    row = example.row
    return Case(row.size, row.grid, row.starts, row.goals, example.plan, example.failure, example.agent, example.step)
