"""Checks of trials: the designs that a trial compared are tried again, on many more problems.

DIR/trial_checks/RUN.stage_NN.json   one comparison each, so that a command that was killed resumes
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from tabulate import tabulate

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import locked
from lakewright.engineer.trial import Trial, try_designs
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import read_record, write_record
from lakewright.experiments.loop.redesign.run_engineer import start_trial
from lakewright.experiments.loop.training.trainee import make_trainee
from lakewright.experiments.studies.run_results import is_finished
from lakewright.experiments.studies.study import CLAIM, Planned, StudyFolder

BINS = 5
HALF = 0.5


class TrialCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison. stated: the probability with which the trial called its best rival better than the current design.

    first, second: by how much the rival's score was above the current design's, in the trial and in its check.
    """

    run: str
    stage: int
    stated: float
    first: float
    second: float
    boards: int

    @property
    def better(self) -> bool:
        """Whether the rival is better, by the check."""
        return self.second > 0


class Reliability(msgspec.Struct, frozen=True):
    """Comparisons for which much the same probability was stated."""

    stated: float
    found: float
    comparisons: int


class TrialReliability(msgspec.Struct, frozen=True):
    """All comparisons. brier: the mean of (stated - better)^2; baseline: the score of stating one half each time.

    right: the share of choices that the check confirms.
    """

    comparisons: int
    brier: float
    baseline: float
    right: float
    bins: list[Reliability]


def check_trials(out: Path, count: int, boards: int) -> TrialReliability:
    """Tries `count` comparisons of a study's finished runs again, on `boards` problems a design, or resumes.

    They are spread evenly over all trials of the study, in the order of its runs. Raises InputError if the study has
    fewer of them, or other boards were asked for before.
    """
    folder = StudyFolder(out)
    plan = CLAIM.read_work(out)
    trials = [trial for planned in plan.runs for trial in _list_trials(folder, planned)]
    if len(trials) < count:
        raise InputError(f"{out}: holds {len(trials)} trials so far; give --count {len(trials)} or fewer")
    chosen = [trials[place] for place in np.linspace(0, len(trials) - 1, count).round().astype(int)]
    with locked(out / "trial_checks"), progress("trials", count, "trials") as bar:
        checks = []
        for planned, stage, number in chosen:
            checks.append(_check_trial(folder, planned, stage, number, boards))
            bar.update()
    return reliability_of(checks)


def reliability_of(checks: list[TrialCheck]) -> TrialReliability:
    """The stated probabilities beside the results of the checks, by fifths of them."""
    stated = np.array([check.stated for check in checks])
    better = np.array([float(check.better) for check in checks])
    places = np.minimum((stated * BINS).astype(int), BINS - 1)
    bins = [
        Reliability(float(stated[mine].mean()), float(better[mine].mean()), int(mine.sum()))
        for mine in (places == place for place in range(BINS))
        if mine.any()
    ]
    right = ((stated > HALF) == (better > HALF)).mean()
    return TrialReliability(
        len(checks), float(((stated - better) ** 2).mean()), float(((HALF - better) ** 2).mean()), float(right), bins
    )


def reliability_table(found: TrialReliability) -> str:
    """The bins, and how good the trials are in one figure."""
    rows = [(f"{part.stated:.2f}", f"{part.found:.2f}", str(part.comparisons)) for part in found.bins]
    header = ("stated probability", "share that is better", "comparisons")
    lines = tabulate(rows, header, tablefmt="plain", colalign=("right",) * len(header), disable_numparse=True)
    return (
        f"{lines}\n{found.comparisons} comparisons; Brier score {found.brier:.3f}, of one half each time "
        f"{found.baseline:.3f}; {100 * found.right:.0f} % of the choices are confirmed"
    )


def _list_trials(folder: StudyFolder, planned: Planned) -> Iterator[tuple[Planned, Stage, int]]:
    """The stages of a finished run whose trial compared something."""
    run = folder.run(planned)
    if not is_finished(run, planned):
        return
    for number, stage in enumerate(run.finished_stages()):
        if stage.trial.exists() and read_record(stage.trial, Trial).leads:
            yield planned, stage, number


def _check_trial(folder: StudyFolder, planned: Planned, stage: Stage, number: int, boards: int) -> TrialCheck:
    path = folder.folder / "trial_checks" / f"{planned.name}.{stage.folder.name}.json"
    if path.exists():
        check = read_record(path, TrialCheck)
        if check.boards != boards:
            raise InputError(
                f"{path}: was made with --boards {check.boards}, not {boards}; give it, or remove the folder"
            )
        return check
    check = _try_again(folder.run(planned), planned, read_record(stage.trial, Trial), number, boards)
    write_record(path, check)
    return check


def _try_again(run: RunFolder, planned: Planned, trial: Trial, number: int, boards: int) -> TrialCheck:
    best = max(range(1, len(trial.leads)), key=lambda place: trial.leads[place].mean)
    more = msgspec.structs.replace(planned.settings.trial, boards=boards)
    settings = msgspec.structs.replace(planned.settings, trial=more)
    designs = [trial.candidates[0].design, trial.candidates[best].design]
    work = start_trial(make_trainee(settings), run.find_standing(number), f"stage {number} second trial")
    again = try_designs(work, designs)
    current, rival = (candidate.score for candidate in again.candidates)
    lead = trial.leads[best]
    return TrialCheck(planned.name, number, lead.better, lead.measured, rival - current, boards)
