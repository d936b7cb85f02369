"""The results of a study as a table."""

from collections.abc import Iterator, Sequence

from tabulate import tabulate

from lakewright.experiments.study.inference import PairedTest
from lakewright.experiments.study.prediction import Prediction, Rank
from lakewright.experiments.study.results import ArmResult, Results

HEADER = (
    *("arm", "seeds", "valid %", "s.d.", "IQM % (95 %)", "along %", "forced %", "optimal %", "losses", "k tokens"),
    "k trials",
    *("k engineer", "stages", "kept", "back", "refused", "minutes"),
)

MOST_NAMED = 8  # runs that are not finished


def as_table(results: Results) -> str:
    """One line for each arm, the best first, then the same by map size; or how well the trial predicted.

    IQM: the interquartile mean over seeds, of valid %, with its bootstrap interval. along: the mean valid % on the
    held-out set over the tokens of a run. k trials: thousand tokens of trials and of samplers that score boards, per
    run. kept: trials that kept the current config. back: stages taken back.
    """
    if results.prediction:
        return "\n".join(_prediction_lines(results.prediction, len(results.runs)))
    header = (*HEADER[:8], f"vs {results.baseline or '-'}", *HEADER[8:])
    ordered = sorted(results.arms, key=lambda arm: -arm.valid)
    alignment = ("left", *["right"] * (len(header) - 1))
    arms = tabulate(map(_format_arm, ordered), header, tablefmt="plain", colalign=alignment, disable_numparse=True)
    setting = (
        f"warm-up {results.valid:.1f} % valid of {results.held_out} boards; budget {results.budget} tokens per run"
    )
    missing = [f"not finished: {_list_names(results.missing)}"] * bool(results.missing)
    tests = [*map(_test_line, results.tests), *(f"along: {_test_line(found)}" for found in results.along)]
    return "\n".join(
        [
            *(arms, setting, *tests, *_reward_lines(results, ordered), *_taught_lines(results, ordered)),
            *(*_size_tables(results, ordered), *missing),
        ]
    )


def _list_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _reward_lines(results: Results, arms: Sequence[ArmResult]) -> Iterator[str]:
    """What the proposals of an engineer that may be trained earned before the training after each stage, and after it.

    Means over seeds, of the stages that all seeds have.
    """
    for arm in arms:
        runs = [run.engineer for run in results.runs if run.arm == arm.arm]
        common = min(map(len, runs), default=0)
        for when, place in (("before", 0), ("after", -1)):
            means = [sum(run[stage][place]["reward"] for run in runs) / len(runs) for stage in range(common)]
            if means:
                yield f"{arm.arm}: rewards {when} each training {' '.join(f'{mean:+.2f}' for mean in means)}"


def _taught_lines(results: Results, arms: Sequence[ArmResult]) -> Iterator[str]:
    """How far an engineer does what it was taught, means over seeds, after the stages that all seeds have."""
    for arm in arms:
        runs = [run.as_taught for run in results.runs if run.arm == arm.arm]
        if stages := min(map(len, runs), default=0):
            shares = [f"{100 * sum(run[stage] for run in runs) / len(runs):.0f}" for stage in range(stages)]
            yield f"{arm.arm}: % of changes as taught after each stage {' '.join(shares)}"


def _size_tables(results: Results, arms: Sequence[ArmResult]) -> Iterator[str]:
    """Valid % on each map size, means over seeds, of all boards and of those that force a wait, where that is known."""
    known = (
        ("valid % by size", results.sizes, lambda run: run.sizes),
        ("wait forced", results.forced_sizes, lambda run: run.forced_sizes),
    )
    for title, begun, of in known:
        if begun:
            rows = [
                ("warm-up", begun),
                *((arm.arm, _average_sizes([of(run) for run in results.runs if run.arm == arm.arm])) for arm in arms),
            ]
            header = (title, *(f"{size}x{size}" for size in begun))
            lines = [(name, *(f"{valid[size]:.1f}" for size in begun)) for name, valid in rows]
            alignment = ("left", *["right"] * len(begun))
            yield "\n" + tabulate(lines, header, tablefmt="plain", colalign=alignment, disable_numparse=True)


def _average_sizes(runs: Sequence[dict[int, float]]) -> dict[int, float]:
    return {size: sum(run[size] for run in runs) / len(runs) for size in runs[0]}


def _test_line(found: PairedTest) -> str:
    gain = found.difference
    interval = f"{gain.mean:+.1f} (95 % {gain.low:+.1f} to {gain.high:+.1f})"
    return f"{found.arm} - {found.other}: {interval}, p {found.corrected:.2g} by Holm, {found.seeds} seeds"


def _format_arm(arm: ArmResult) -> tuple[str, ...]:
    against = arm.against
    return (
        arm.arm,
        str(arm.seeds),
        f"{arm.valid:.1f}",
        f"{arm.deviation:.1f}" if arm.seeds > 1 else "",
        f"{arm.middle.mean:.1f} ({arm.middle.low:.1f}-{arm.middle.high:.1f})" if arm.middle and arm.seeds > 1 else "",
        "" if arm.along is None else f"{arm.along:.1f}",
        f"{arm.forced:.1f}",
        f"{arm.optimal:.1f}",
        f"{against.points:+.1f} ± {against.interval:.1f}" if against else "",
        f"{against.losses} of {against.seeds}" if against else "",
        f"{arm.tokens / 1000:.1f}",
        f"{(arm.spent.trials + arm.spent.sampling) / arm.seeds / 1000:.1f}",
        f"{arm.spent.engineer / arm.seeds / 1000:.1f}",
        f"{arm.stages:.1f}",
        f"{arm.kept}/{arm.tried}",
        str(arm.taken_back),
        str(arm.refused),
        f"{arm.seconds / 60:.1f}",
    )


def _prediction_lines(found: Prediction, configs: int) -> Iterator[str]:
    yield f"The trial before, and the gain in valid plans after training, over {configs} configs (Spearman's rho):"
    ranks = (("its score", found.by_score), ("share of informative groups", found.by_informative))
    yield tabulate([(name, *_rank_cells(rank)) for name, rank in ranks], tablefmt="plain", disable_numparse=True)
    yield f"gains {min(found.gains):+.1f} to {max(found.gains):+.1f} points"


def _rank_cells(rank: Rank | None) -> tuple[str, ...]:
    if not rank:
        return "all alike", "", ""
    return f"{rank.rho:+.2f}", f"95 % {rank.low:+.2f} to {rank.high:+.2f}", f"p {rank.p_value:.2g}"
