"""The run folder: its files, each of which is whole or absent.

    config.json  validation.parquet  warmup/  stage_00/  stage_01/ ...  best (a link to the best checkpoint)
    report.html  spending.jsonl (of an endpoint)

docs/loop.md says what each file of a stage holds. `Stage` has their names; a stage is finished once done.json exists.
"""

import contextlib
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import check_digest, locked, read_raw
from lakewright.engineer.design import Design
from lakewright.engineer.difficulty import Calibration, Forecast
from lakewright.engineer.evidence import Evidence, read_evidence
from lakewright.engineer.steps import Next, decide_next
from lakewright.engineer.trial import Trial
from lakewright.experiments.jobs.resumable.claims import Claim, list_differences
from lakewright.experiments.jobs.runtime.named_values import list_words
from lakewright.experiments.loop.records.lake_form import from_lake
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    EngineerTraining,
    Rollback,
    Validation,
    find_record,
    read_record,
)
from lakewright.experiments.loop.settings.older_settings import complete_run
from lakewright.experiments.loop.settings.run_settings import RunSettings

FORMAT = 2
MOST_NAMED = 5  # settings that differ


class RunConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """config.json."""

    format: int
    settings: RunSettings


CLAIM = Claim("run", "config.json", RunConfig, FORMAT, "lakewright run", complete=complete_run)


class Stage:
    """The files of one stage, or of the warm-up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.design_file = folder / "env.json"
        self.sampled = folder / "sampled.json"
        self.boards = folder / "boards.parquet"
        self.problems = folder / "problems.jsonl"  # of environments other than the lake
        self.checkpoint = folder / "checkpoint"
        self.train_log = folder / "train.jsonl"
        self.excluded = folder / "excluded.json"
        self.groups = folder / "groups.jsonl"
        self.rollouts = folder / "rollouts.jsonl"
        self.plans = folder / "plans.jsonl"
        self.validation = folder / "validation.json"
        self.examination = folder / "examination.json"
        self.rollback = folder / "rollback.json"
        self.difficulty = folder / "difficulty.json"
        self.evidence = folder / "evidence.json"
        self.proposal = folder / "proposal.json"
        self.engineer = folder / "engineer.json"
        self.engineer_checkpoint = folder / "engineer"
        self.trial = folder / "trial.json"
        self.next = folder / "next.json"
        self.done = folder / "done.json"
        self.scratch = folder / ".scratch"  # files of TRL; removed once the stage is done
        self.resumed = self.scratch / "resumed.json"
        self.launched = self.scratch / "launched.json"

    @property
    def saved_problems(self) -> Path | None:
        """The file of the stage's problems, in text or boards of the lake; None before they are drawn."""
        return next((path for path in (self.problems, self.boards) if path.exists()), None)

    @property
    def onward(self) -> Path:
        """The weights that the next stage continues from: those trained as an engineer too, if there are any."""
        return self.engineer_checkpoint if self.engineer_checkpoint.exists() else self.checkpoint

    def design(self) -> Design:
        """The design that the stage's problems are drawn from."""
        return read_record(self.design_file, Design)

    def read_next(self) -> Next:
        """The design of the next stage, and why; from the other files in folders without next.json."""
        if self.next.exists():
            return read_record(self.next, Next)
        verdict = read_record(self.proposal, DecisionRecord).verdict
        if self.rolled_back():
            return Next(verdict.design, "rollback", verdict.reasons)
        return decide_next(verdict, self.design(), find_record(self.trial, Trial))

    def rolled_back(self) -> Rollback | None:
        """The record of the rollback, if the stage is rolled back."""
        found = find_record(self.rollback, Rollback)
        return found if found and found.rolled_back else None

    def read_evidence(self) -> Evidence:
        """Everything known after the stage. Raises InputError if its file holds something else."""
        return read_evidence(read_raw(self.evidence), str(self.evidence), {2: lambda raw: from_lake(raw, Evidence)})

    def read_steps(self) -> list[dict[str, Any]]:
        """The figures of each step of the training; empty if it has no log. Raises InputError on a damaged log."""
        if not self.train_log.exists():
            return []
        check_digest(self.train_log)
        try:
            return msgspec.json.Decoder(dict[str, Any]).decode_lines(self.train_log.read_bytes())
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{self.train_log}: not lines of JSON ({error}); correct the file") from error

    def read_calibration(self) -> Calibration | None:
        """Calibration of the difficulty model's forecast of this stage; None for the first, which has no forecast."""
        forecast = self.read_forecast()
        return forecast.calibration if forecast else None

    def read_forecast(self) -> Forecast | None:
        """The forecast after the stage; None in folders of older versions."""
        return find_record(self.difficulty, Forecast)

    def engineer_figures(self) -> list[dict[str, float]]:
        """The figures of each group that `self_trained` was trained on, and last of those after; empty without."""
        training = find_record(self.engineer, EngineerTraining)
        return [group.figures for group in training.groups] if training else []

    def next_design(self) -> Design:
        """The design that was decided on after the stage."""
        return self.read_next().design


class RunFolder:
    """The files of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder = folder.absolute()  # because code of an environment may change the working folder
        self.config = folder / "config.json"
        self.validation = folder / "validation.parquet"
        self.held_out = folder / "held_out.jsonl"  # of environments other than the lake
        self.report = folder / "report.html"
        self.spending = folder / "spending.jsonl"
        self.best_link = folder / "best"
        self.warmup = Stage(folder / "warmup")

    @property
    def saved_held_out(self) -> Path | None:
        """The file of the held-out problems, in text or boards of the lake; None before they are drawn."""
        return next((path for path in (self.held_out, self.validation) if path.exists()), None)

    def locked(self) -> AbstractContextManager[None]:
        """Keeps other processes from running in this folder. Raises InputError if one does."""
        return locked(self.folder)

    def stage(self, number: int) -> Stage:
        """The files of stage `number`, from 0; -1 is the warm-up."""
        return Stage(self.folder / f"stage_{number:02d}") if number >= 0 else self.warmup

    def find_stage(self, name: str) -> Stage:
        """The stage, or the warm-up, of that folder name."""
        return Stage(self.folder / name)

    def find_standing(self, number: int) -> Stage:
        """The stage, or the warm-up, whose policy the run continues with after stage `number`."""
        stage = self.stage(number)
        compared = find_record(stage.rollback, Rollback)
        return self.find_stage(compared.weights) if compared else stage

    def find_best(self) -> Stage | None:
        """The finished stage, or the warm-up, with most valid plans on the held-out set; of equals the last."""
        stages = [stage for stage in (self.warmup, *self.finished_stages()) if stage.validation.exists()]
        return max(
            reversed(stages),
            key=lambda stage: read_record(stage.validation, Validation).pooled.valid_rate,
            default=None,
        )

    def link_best(self) -> None:
        """Lets the path `best` in the folder lead to the checkpoint of the best stage, by a link that moves with it.

        A file or folder of that name that is not a link stays. On a file system without links the path is not made.
        """
        best, beside = self.find_best(), self.folder / ".best"
        if best is None or (self.best_link.exists() and not self.best_link.is_symlink()):
            return
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)  # left by a run that was killed
            beside.symlink_to(best.checkpoint.relative_to(self.folder))
            os.replace(beside, self.best_link)

    def finished_stages(self) -> list[Stage]:
        """The stages that count, in order."""
        stages = (self.stage(number) for number in range(self.settings().stages))
        return [stage for stage in stages if stage.done.exists()]

    def open(self, settings: RunSettings) -> None:
        """Starts the run, or checks that the folder holds this very run. Raises InputError if it holds another.

        A run that has trained nothing yet gives way to another: most likely it was refused for what it asked for.
        """
        self.check_settings(settings)
        trained = self._has_trained()
        if not trained and CLAIM.is_in(self.folder) and self.settings() != settings:
            self.validation.unlink(missing_ok=True)  # before the claim: the other run has other held-out boards
        CLAIM.take_folder(self.folder, RunConfig(FORMAT, settings), replace=not trained)

    def check_settings(self, settings: RunSettings) -> None:
        """Raises InputError if a run with other settings has trained here: the words that give its own continue it."""
        if not self._has_trained() or not CLAIM.is_in(self.folder):
            return
        there, here = CLAIM.read_work(self.folder), RunConfig(FORMAT, settings)
        if differing := list_differences(there, here):
            old, new = (msgspec.to_builtins(config.settings, str_keys=True) for config in (there, here))
            words = list(list_words(old, new))
            more = len(differing) - MOST_NAMED
            named = [*differing[:MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]
            raise InputError(
                f"{self.folder / CLAIM.file}: holds another run: {', '.join(named)}; to continue that run add "
                f"{' '.join(words)}, or choose another folder"
            )

    def _has_trained(self) -> bool:
        return self.warmup.folder.exists() or self.stage(0).folder.exists()

    def settings(self) -> RunSettings:
        """The settings of the run. Raises InputError without a run, or if it has another format."""
        return CLAIM.read_work(self.folder).settings
