"""The results of a study as a table."""

from collections.abc import Callable, Iterator, Sequence

from tabulate import tabulate

from lakewright.experiments.studies.inference import PairedTest, Rank, TrialPrediction
from lakewright.experiments.studies.learning_curves import Reached
from lakewright.experiments.studies.results import ArmResult, Results
from lakewright.experiments.studies.run_results import RunResult, StratumRates

FIRST = ("arm", "seeds", "valid %", "s.d.", "IQM % (95 %)", "along %")
LAST = ("losses", "k tokens", "k trials", "k engineer", "stages", "kept", "back", "refused", "minutes")

MOST_NAMED = 8  # runs that are not finished


def tabulate_results(results: Results) -> str:
    """One line for each arm, the best first, then the same by stratum; or how well the trial predicted.

    IQM: the interquartile mean over seeds, of valid %, with its bootstrap interval. along: the mean valid % on the
    held-out set over the tokens of a run. k to best: thousand tokens until the baseline's best on that set, and their
    share of the baseline's own. k trials: thousand tokens of trials and of samplers that score problems, per run. kept:
    trials after which the design stayed. back: stages rolled back. p %: the mean probability of the reference answer.
    equal time %: valid % on the held-out set after the processor time of the shortest run.
    """
    if results.prediction:
        return "\n".join(_prediction_lines(results.prediction, results))
    ordered = sorted(results.arms, key=lambda arm: -arm.valid)
    rows = [_format_arm(arm, results) for arm in ordered]
    header = tuple(rows[0]) if rows else (*FIRST, *LAST)
    alignment = ("left", *["right"] * (len(header) - 1))
    cells = [tuple(row.values()) for row in rows]
    arms = tabulate(cells, header, tablefmt="plain", colalign=alignment, disable_numparse=True)
    problems = results.words.problems
    sure = "" if results.probability is None else f", {results.probability:.1f} % probability of the reference"
    equal = "" if results.equal_time is None else f"; equal time is {results.equal_time:.0f} s of a processor"
    setting = (
        f"warm-up {results.valid:.1f} % valid of {results.held_out} {problems}{sure}; "
        f"budget {results.budget} tokens per run{equal}"
    )
    missing = [f"not finished: {_join_names(results.missing)}"] * bool(results.missing)
    missing += [f"{name} cannot finish: {reason}" for name, reason in list(results.unable.items())[:MOST_NAMED]]
    tests = [
        *map(_test_line, results.tests),
        *(f"along: {_test_line(test)}" for test in results.along),
        *(f"p: {_test_line(test)}" for test in results.likely),
    ]
    return "\n".join(
        [
            *(arms, setting, *tests, *_reward_lines(results, ordered), *_taught_lines(results, ordered)),
            *(*_stratum_tables(results, ordered), *_stopped_lines(results), *missing),
        ]
    )


def _stopped_lines(results: Results) -> Iterator[str]:
    """Lines with the runs that successive halving stopped, their stages, and the tokens that this saved."""
    if results.stopped and results.stopped.stages:
        named = _join_names([f"{name} after {count}" for name, count in results.stopped.stages.items()])
        yield f"stopped early, after how many stages: {named}; about {results.stopped.saved} tokens saved"


def _join_names(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _reward_lines(results: Results, arms: Sequence[ArmResult]) -> Iterator[str]:
    """The rewards of an engineer's proposals before the training after each stage, and after it.

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
    """The share of an engineer's changes that follow the taught rule, means over seeds, after common stages."""
    for arm in arms:
        runs = [run.as_taught for run in results.runs if run.arm == arm.arm]
        if stages := min(map(len, runs), default=0):
            shares = [f"{100 * sum(run[stage] for run in runs) / len(runs):.0f}" for stage in range(stages)]
            yield f"{arm.arm}: % of changes as taught after each stage {' '.join(shares)}"


def _stratum_tables(results: Results, arms: Sequence[ArmResult]) -> Iterator[str]:
    """Valid % on each stratum, means over seeds, of all problems and, if known, of those that have a trait."""
    known: list[tuple[str, StratumRates, Callable[[RunResult], StratumRates]]] = [
        (f"valid % by {results.words.token}", results.sizes, lambda run: run.sizes),
        ("wait forced", results.forced_sizes, lambda run: run.forced_sizes),
    ]
    known += [(name, begun, lambda run, name=name: run.traits[name]) for name, begun in results.traits.items()]  # type: ignore[misc]
    for title, begun, of in known:
        if begun:
            guessed = [("one answer to all", results.constant)] if begun is results.sizes and results.constant else []
            rows = [
                *guessed,
                ("warm-up", begun),
                *((arm.arm, _average_strata([of(run) for run in results.runs if run.arm == arm.arm])) for arm in arms),
            ]
            header = (title, *map(results.words.label, begun))
            lines = [(name, *(_format_rate(valid.get(stratum)) for stratum in begun)) for name, valid in rows]
            alignment = ("left", *["right"] * len(begun))
            yield "\n" + tabulate(lines, header, tablefmt="plain", colalign=alignment, disable_numparse=True)


def _average_strata(runs: Sequence[StratumRates]) -> StratumRates:
    return {stratum: sum(run[stratum] for run in runs) / len(runs) for stratum in runs[0]}


def _format_rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"


def _test_line(found: PairedTest) -> str:
    gain = found.difference
    interval = f"{gain.mean:+.1f} (95 % {gain.low:+.1f} to {gain.high:+.1f})"
    return f"{found.arm} - {found.other}: {interval}, p {found.corrected:.2g} by Holm, {found.seeds} seeds"


def _format_arm(arm: ArmResult, results: Results) -> dict[str, str]:
    """The cells of an arm by the names of their columns."""
    against, several = arm.against, arm.seeds > 1
    first = (
        arm.arm,
        str(arm.seeds),
        f"{arm.valid:.1f}",
        f"{arm.deviation:.1f}" if several else "",
        f"{arm.middle.mean:.1f} ({arm.middle.low:.1f}-{arm.middle.high:.1f})" if arm.middle and several else "",
        "" if arm.along is None else f"{arm.along:.1f}",
    )
    rates = {"forced": arm.forced, "optimal": arm.optimal} if results.lake else arm.rates
    last = (
        f"{against.losses} of {against.seeds}" if against else "",
        f"{arm.tokens / 1000:.1f}",
        f"{(arm.spent.trials + arm.spent.sampling) / arm.seeds / 1000:.1f}",
        f"{arm.spent.engineer / arm.seeds / 1000:.1f}",
        f"{arm.stages:.1f}",
        f"{arm.unchanged}/{arm.tried}",
        str(arm.rolled_back),
        str(arm.refused),
        f"{arm.seconds / 60:.1f}",
    )
    return {
        **dict(zip(FIRST, first, strict=True)),
        **({"k to best": _format_reached(arm.to_best)} if any(one.to_best for one in results.arms) else {}),
        **({"p %": _format_rate(arm.probability)} if results.probability is not None else {}),
        **({"equal time %": _format_rate(arm.at_equal_time)} if results.equal_time is not None else {}),
        **{f"{name} %": _format_rate(rate) for name, rate in rates.items()},
        f"vs {results.baseline or '-'}": f"{against.points:+.1f} ± {against.interval:.1f}" if against else "",
        **dict(zip(LAST, last, strict=True)),
    }


def _format_reached(found: Reached | None) -> str:
    """The tokens, their share of the baseline's own, and the number of seeds that get there, if not all do."""
    if found is None:
        return ""
    some = f" ({found.reached} of {found.seeds})" if found.reached < found.seeds else ""
    if found.tokens is None or found.share is None:
        return f"never{some}"
    return f"{found.tokens / 1000:.1f} x{found.share:.2f}{some}"


def _prediction_lines(found: TrialPrediction, results: Results) -> Iterator[str]:
    answers, designs = results.words.answers, results.words.designs
    over = f"over {len(results.runs)} {designs}"
    yield f"The trial before, and the gain in valid {answers} after training, {over} (Spearman's rho):"
    ranks = (("its score", found.by_score), ("share of informative groups", found.by_informative))
    yield tabulate([(name, *_rank_cells(rank)) for name, rank in ranks], tablefmt="plain", disable_numparse=True)
    yield f"gains {min(found.gains):+.1f} to {max(found.gains):+.1f} points"


def _rank_cells(rank: Rank | None) -> tuple[str, ...]:
    if not rank:
        return "all alike", "", ""
    return f"{rank.rho:+.2f}", f"95 % {rank.low:+.2f} to {rank.high:+.2f}", f"p {rank.p_value:.2g}"
