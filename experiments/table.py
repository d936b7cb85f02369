"""A run as numbers: the table in the terminal, and the same as JSON."""

from typing import Any

from core_jax.config import EnvConfig
from core_jax.outcomes import Outcomes, pool
from experiments.runs import Decision, RunFolder, Stage, Validation, read

HEADER = ("", "valid %", "opt. makespan %", "opt. cost %", "forced wait %", "boards drawn from (size: share hole wait)")


def as_json(folder: RunFolder) -> dict[str, Any]:
    """Every finished stage, the warm-up first, with its config, its outcomes pooled and per size, and the decision."""
    return {"folder": str(folder.folder), "stages": [_stage(name, stage) for name, stage in _stages(folder)]}


def as_table(folder: RunFolder) -> str:
    """A line for each finished stage, and its commonest failures below."""
    lines: list[tuple[str, ...]] = [HEADER]
    for name, stage in _stages(folder):
        outcomes = pool(read(stage.validation, Validation).sizes.values())
        lines.append((name, *_rates(outcomes), _config_line(stage)))
        lines.append(("", "", "", "", "", f"failures: {_failure_line(outcomes)}"))
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER) - 1)]
    return "\n".join(_aligned(line, widths) for line in lines)


def _aligned(line: tuple[str, ...], widths: list[int]) -> str:
    name, *figures, boards = line
    numbers = [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *numbers, boards]).rstrip()


def _stages(folder: RunFolder) -> list[tuple[str, Stage]]:
    warm = [("warm-up", folder.warmup)] if folder.warmup.done.exists() else []
    return warm + [(f"stage {number}", stage) for number, stage in enumerate(folder.finished_stages())]


def _stage(name: str, stage: Stage) -> dict[str, Any]:
    sizes = read(stage.validation, Validation).sizes
    found: dict[str, Any] = {"name": name, "pooled": pool(sizes.values()), "sizes": sizes}
    if stage.env.exists():
        decision = read(stage.proposal, Decision)
        found |= {"config": stage.config(), "delta": decision.proposal.delta, "verdict": decision.verdict}
    return found


def _rates(outcomes: Outcomes) -> list[str]:
    counts = (outcomes.valid, outcomes.optimal_makespan, outcomes.optimal_sum_of_costs)
    waits = outcomes.wait_valid / outcomes.wait_boards if outcomes.wait_boards else 0.0
    return [f"{100 * rate:.1f}" for rate in (*(outcomes.rate(count) for count in counts), waits)]


def _config_line(stage: Stage) -> str:
    return describe(stage.config()) if stage.env.exists() else "certified plans"


def describe(config: EnvConfig) -> str:
    """A config in a line: for each size its share, hole ratio and wait ratio."""
    cells = sorted(config.sizes.items())
    return " · ".join(f"{size}: {c.data_ratio:.2f} {c.hole_ratio:.2f} {c.wait_ratio:.2f}" for size, c in cells)


def _failure_line(outcomes: Outcomes) -> str:
    commonest = sorted(((count, name) for name, count in outcomes.failures.items() if count), reverse=True)
    return ", ".join(f"{name.replace('_', ' ')} {count}" for count, name in commonest) or "none"
