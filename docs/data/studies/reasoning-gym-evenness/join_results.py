"""Joins two results of a study whose runs were made on two machines.

    python docs/data/studies/reasoning-gym-evenness/join_results.py FIRST.json MORE.json JOINED.json

Both must have the same warm-up and test. Where both have a run, the first counts. The difference from the baseline with
its interval by problems (`vs fixed`) is left out, because the answers of the first machine are gone.
"""

import itertools
import sys
from pathlib import Path

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_config, write_atomically
from lakewright.experiments.studies.inference import run_paired_tests
from lakewright.experiments.studies.learning_curves import (
    average_curve,
    find_equal_time,
    tokens_to_best,
    value_at_time,
)
from lakewright.experiments.studies.results import Results, sum_up_arm
from lakewright.experiments.studies.study import StudySpec

SAME = ("budget", "baseline", "valid", "held_out", "probability", "sizes", "constant")


def join_results(first: Results, more: Results, spec: StudySpec) -> Results:
    """The results of both, with all figures that depend on other runs made again. Raises InputError if they differ."""
    for name in SAME:
        if getattr(first, name) != getattr(more, name):
            raise InputError(f"{name} is {getattr(first, name)}, then {getattr(more, name)}: two different studies")
    known = {(run.arm, run.seed): run for run in (*more.runs, *first.runs)}
    shortest = find_equal_time(run.curve for run in known.values())
    baselines = {run.seed: run.curve for run in known.values() if run.arm == first.baseline}
    runs = [
        msgspec.structs.replace(
            run,
            to_best=tokens_to_best(run.curve, baselines.get(run.seed, [])),
            at_equal_time=value_at_time(run.curve, shortest),
        )
        for run in known.values()
    ]
    runs.sort(key=lambda run: (list(spec.arms).index(run.arm), run.seed))
    arms = [list(some) for _, some in itertools.groupby(runs, lambda run: run.arm)]

    def by_seed(outcome):
        return {some[0].arm: {run.seed: outcome(run) for run in some} for some in arms}

    return msgspec.structs.replace(
        first,
        runs=runs,
        arms=[sum_up_arm(some, first.baseline, first.budget, {}, baselines) for some in arms],
        missing=[],
        tests=run_paired_tests(by_seed(lambda run: run.valid), spec.family),
        along=run_paired_tests(by_seed(lambda run: average_curve(run.curve, first.budget)), spec.family),
        likely=run_paired_tests(by_seed(lambda run: run.probability), spec.family),
        equal_time=shortest,
    )


def main(first: Path, more: Path, joined: Path) -> None:
    """Reads two results, and writes what they are together."""
    results = [msgspec.json.decode(path.read_bytes(), type=Results) for path in (first, more)]
    spec = read_config(Path(__file__).with_name("spec.toml"), StudySpec)
    write_atomically(joined, msgspec.json.format(msgspec.json.encode(join_results(*results, spec))) + b"\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
