"""What half an hour makes of the tiny model, and whether GRPO is worth its cost.

    lakewright study trainee --out study --seeds 3

For each seed: a warm-up, and from its end two ways to spend the same minutes, GRPO (`grpo`) and more supervised
learning (`sft`). After each, greedy plans for boards that are in no training set: `natural` ones, drawn uniformly and
kept if solvable, and `forced` ones, on which every optimal plan waits.

Every part leaves its files and is skipped where they are, so a study that was killed repeats at most one part.
"""

from pathlib import Path

import msgspec

from lakewright.core_jax.support import convert, locked
from lakewright.experiments.loop import check_machine
from lakewright.experiments.loop.records import read, write
from lakewright.experiments.loop.settings import load_settings
from lakewright.experiments.resumable import Claim
from lakewright.experiments.runtime import print_on_terminal
from lakewright.experiments.study.trainee.arms import run_arm
from lakewright.experiments.study.trainee.held_out import KINDS, held_out_tasks
from lakewright.experiments.study.trainee.records import ARMS, FORMAT, Part, Result, StudySettings
from lakewright.experiments.study.trainee.summary import plot, summary_of

CLAIM = Claim("study of the trainee", "config.json", StudySettings, FORMAT, "lakewright study trainee")


def trainee_settings(preset: str, overrides: list[str], seeds: int, boards: int, sft_rate: float) -> StudySettings:
    """The settings of a study, from a preset with overrides. Raises InputError naming setting, value and remedy."""
    run = msgspec.to_builtins(load_settings(preset, overrides), str_keys=True)
    given = {"run": run, "seeds": seeds, "boards": boards, "sft_rate": sft_rate}
    return convert(given, StudySettings, "command line")


def study_trainee(settings: StudySettings, folder: Path) -> Result:
    """Runs the study in `folder`, or resumes it.

    Raises InputError where the folder holds another study, or the machine lacks what the runs need.
    """
    check_machine(settings.run)
    with locked(folder):
        CLAIM.take(folder, settings)
        parts = _parts(settings, folder)
        result = Result(settings, parts, summary_of(parts))
        write(folder / "result.json", result)
        plot(result, folder / "result.svg")
    return result


def _parts(settings: StudySettings, folder: Path) -> dict[int, dict[str, Part]]:
    held_out = {kind: held_out_tasks(kind, settings.run, settings.boards) for kind in KINDS}
    parts: dict[int, dict[str, Part]] = {}
    for seed in range(settings.seeds):
        parts[seed] = {}
        for arm in ARMS:
            place = folder / f"seed{seed}" / arm
            if not (place / "part.json").exists():
                print_on_terminal(f"seed {seed}: {ARMS[arm]}")
                write(place / "part.json", run_arm(settings, seed, arm, place, held_out))
            parts[seed][arm] = read(place / "part.json", Part)
    return parts
