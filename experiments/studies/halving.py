"""Successive halving of a search over random configs: after each round the better half continues.

All configs are trained for one stage; those that go on for as many stages again, and so forth (Jamieson and Talwalkar,
2016). Which runs continue follows from files of finished stages alone, so a study that was killed decides as before.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.token_budget import count_run_tokens
from lakewright.experiments.studies.run_results import RunResult, held_out_valid, is_finished
from lakewright.experiments.studies.study import Plan, Planned, StudyFolder


class RoundOver(Exception):  # noqa: N818
    """A run has trained for all stages of a round."""


class Stopped(msgspec.Struct, frozen=True):
    """The runs that were stopped early. stages: the stages of each run, by name. saved: tokens.

    `saved` counts what each would have spent, had it spent as much as a finished run.
    """

    stages: dict[str, int]
    saved: int


def count_stages(number: int) -> int:
    """The stages that a run has behind it after a round, from 0."""
    return 2**number


def stop_after(run: RunFolder, stages: int) -> None:
    """Raises RoundOver if a run has finished `stages` stages."""
    if len(run.finished_stages()) >= stages:
        raise RoundOver


def choose_survivors(runs: Sequence[Planned], folder: StudyFolder, number: int) -> list[Planned]:
    """The runs that go on after a round: the better half of the configs, by valid % on the held-out set.

    Of configs that are equally good the earlier are better. One with a run that is not at the end of the round,
    because it failed, doesn't go on.
    """
    arms: dict[str, list[Stage | None]] = {}
    for planned in runs:
        arms.setdefault(planned.arm, []).append(_find_end(folder.run(planned), planned, number))
    scores = {
        arm: float(np.mean([held_out_valid(end) for end in ends if end])) for arm, ends in arms.items() if all(ends)
    }
    best = sorted(scores, key=lambda arm: -scores[arm])[: math.ceil(len(arms) / 2)]
    return [planned for planned in runs if planned.arm in best]


def find_stopped(plan: Plan, folder: StudyFolder, finished: Sequence[RunResult]) -> Stopped | None:
    """The runs that were stopped early so far; None in a study without rounds."""
    if not plan.spec.configs or plan.spec.configs.rounds == 1:
        return None
    runs, stages = plan.runs, dict[str, int]()
    for number in range(plan.spec.configs.rounds - 1):
        ended = [planned for planned in runs if _find_end(folder.run(planned), planned, number)]
        begun = any(folder.run(planned).stage(count_stages(number)).folder.exists() for planned in runs)
        if len(ended) < len(runs) and not begun:  # where the next round has begun, what is missing has failed
            break
        further = choose_survivors(runs, folder, number)
        stages |= {planned.name: count_stages(number) for planned in ended if planned not in further}
        runs = further
    return Stopped(stages, _count_saved(folder, stages, finished))


def _find_end(run: RunFolder, planned: Planned, number: int) -> Stage | None:
    """The stage with which a run ended a round; None if it has not."""
    wanted = count_stages(number)
    done = [stage for place in range(wanted) if (stage := run.stage(place)).done.exists()]
    return done[-1] if len(done) == wanted or is_finished(run, planned) else None


def _count_saved(folder: StudyFolder, stages: Mapping[str, int], finished: Sequence[RunResult]) -> int:
    if not finished:
        return 0
    whole = float(np.mean([run.tokens.total for run in finished]))
    parts = [count_run_tokens(RunFolder(folder.folder / "runs" / name), count).total for name, count in stages.items()]
    return round(sum(max(whole - part, 0) for part in parts))
