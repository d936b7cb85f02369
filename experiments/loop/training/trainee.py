"""The `Trainee`: the policy of a run, its problems, and the operations on them that the loop needs."""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.calls import run_call
from lakewright.engineer.cells import Stratum, list_parts
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import vocabulary_of
from lakewright.engineer.guard import check_guard
from lakewright.engineer.multi_turn import MultiTurnEnvironment
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Problem, Verdict
from lakewright.engineer.proposal import check_space
from lakewright.engineer.samplers import make_sampler
from lakewright.engineer.start import check_design_draws, find_start
from lakewright.engineer.tally import Case, Drawn
from lakewright.engineer.teachers import check_teacher
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Example, Excluded, SampledRecord, Validation, write_record
from lakewright.experiments.loop.records.stage_rollouts import read_problems, write_problems
from lakewright.experiments.loop.settings.lake_settings import refuse_lake_only
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.held_out_cells import HeldOutCells
from lakewright.experiments.loop.training.policy_models import load_policy, open_policy
from lakewright.policy.codecs import TextSettings, check_template
from lakewright.policy.models import get_codec, resolve_place
from lakewright.policy.play import DrawnTasks, Play, Tasks, TaskStream
from lakewright.policy.text_play import build_byte_policy, play_texts
from lakewright.policy.training import Answered, rank_and_processes, reference_log_probs, roll_out

EXAMPLES = 12  # held-out problems saved as examples, half of them valid
WRONG = "?"  # a text that is judged beside the reference answer, to see that the judge works
OTHER_CODECS = {
    "tokens": TextSettings.__struct_fields__,
    "bytes": ("batch", "thinking", "prompt", "decoder"),
    "text": (),
}
"""Of each codec the fields of `text` that it does not use."""

JudgedAnswer = tuple[Problem, str, Verdict]


class Trainee:
    """The policy that a run trains, and the form of its problems for it, which is a `Play`.

    environment: draws problems, and says what may be changed. start: the design of the first stage. Problems and
    answers are texts here, for a small transformer of bytes or a language model; a subclass may have a `Play` of other
    tasks, and records of another form.
    """

    environment: Environment
    start: Design
    scores: ClassVar[bool] = True  # whether a validation scores the reference answers, too

    def __init__(self, settings: RunSettings, environment: Environment | None = None) -> None:
        self.settings, self.asks_checkpoint = settings, settings.asks_checkpoint
        self._begin(environment)
        check_settings(settings, self.environment, self.start)

    def _begin(self, environment: Environment | None) -> None:
        """Sets environment and first design. Raises InputError if the settings don't suit them."""
        settings = self.settings
        self.given: dict[str, list[int]] = {}  # that the problems of a run have in turn, by name
        self.environment = environment or load_environment(settings.environment)
        space = self.environment.space
        if settings.design:  # which has no givens
            given = find_start(self.environment).given if space.givens else {}
            self.start = space.design(by_stratum(settings.design), **given)
        else:
            self.start = find_start(self.environment)
        warmup = settings.warmup_design
        self.warmup_design = space.design(by_stratum(warmup), **self.start.given) if warmup else None
        refuse_lake_only(settings)

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in which a small model answers as the engineer."""
        return vocabulary_of(self.environment.space).tokens

    def write_record(self, path: Path, record: msgspec.Struct) -> None:
        """Writes a record of a stage in the form of the environment."""
        write_record(path, record, lake=False)

    def problems_file(self, stage: Stage) -> Path:
        """The file of a stage's problems."""
        return stage.problems

    def held_out_file(self, folder: RunFolder) -> Path:
        """The file of the held-out problems of a run."""
        return folder.held_out

    def make_case(self, example: Example) -> Case:
        """A held-out problem whose answer failed, from an example of folders of earlier versions."""
        problem = example.problem
        text = f"{problem.prompt}\nanswer: {example.answer}"
        return Case(problem.cell.stratum, text, example.failure, example.place)

    def hold_out(self, folder: RunFolder) -> list[Problem]:
        """The held-out problems of a run, drawn once and saved in its folder."""
        path = self.held_out_file(folder)
        if not path.exists():
            write_problems(path, self.draw_held_out())
        return read_problems(path)

    @functools.cached_property
    def _held_out_cells(self) -> HeldOutCells:
        return HeldOutCells(self.environment, self.start, self.settings.validation)

    def count_held_out(self) -> int:
        """Approximate number of held-out problems."""
        return len(self._held_out_cells.choose()) * self.settings.validation.boards

    def draw_held_out(self) -> list[Problem]:
        """`validation.boards` problems of each of the cells that are held out."""
        return self._held_out_cells.draw()

    def draw_test(self, known: Collection[str]) -> list[Problem]:
        """Different problems of each of the cells that are held out, all of them new. known: keys to leave out."""
        return self._held_out_cells.draw_new(known)

    def draw_problems(
        self, design: Design, count: int, seed: int, first: int, on_progress: Callable[[int], object]
    ) -> tuple[list[Problem], Sequence[Any]]:
        """The problems first .. first + count - 1 of a design and a seed, and the acceptance of attempts at them.

        Args:
            on_progress: gets the number of further problems.
        """
        problems = self.environment.draw(design, count, seed, first)
        on_progress(count)
        return problems, []

    def count_problems(self, problems: Sequence[Problem], acceptance: Sequence[Any]) -> dict[Stratum, Drawn]:
        """Statistics of the problems that were drawn, by stratum."""
        return self.environment.statistics(problems)

    def make_task(self, problem: Problem) -> Any:
        """A problem as a task of the policy."""
        return problem

    def build_model(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """A model of random weights, which knows the engineer's words."""
        settings = self.settings
        return build_byte_policy(settings.model, derive_seed(settings.seed, "model"), settings.device, self.words)

    def load_start(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """The model that the run begins with."""
        return load_policy(self.settings, self.settings.start) if self.settings.start else self.build_model()

    def make_play(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Play[Any]:
        """The prompts for a model, and the judging of its answers."""
        return play_texts(
            model,
            tokenizer,
            self.environment.verdicts,
            self.environment.space.failures,
            text=self.settings.text,
            key=lambda problem: problem.key,
        )

    def check_start(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, held_out: Sequence[Problem]
    ) -> None:
        """Raises InputError if the model to begin with cannot answer: codec, prompts and reference answers must fit."""
        self.check_problems(held_out)
        if (codec := get_codec(model)) != self.settings.codec:
            raise InputError(f"codec is {self.settings.codec}, but the model has {codec}; set codec={codec}")
        check_template(self.settings.start, tokenizer, self.settings.system_turn)
        play = self.make_play(model, tokenizer)
        for problem in held_out:
            play.encode_prompt(problem)
            if problem.answer:
                play.encode_reference(problem)

    def rehearse(self) -> None:
        """Draws the held-out problems and checks them as before the warm-up. Raises InputError if that fails."""
        check_design_draws(self.environment, self.start)
        held_out, start = self.draw_held_out(), self.settings.start
        if not start or Path(resolve_place(start)).is_dir():
            self.check_start(*self.load_start(), held_out)
        else:  # the model would be fetched or converted
            self.check_problems(held_out)

    def check_problems(self, held_out: Sequence[Problem]) -> None:
        """Raises InputError if the warm-up lacks a reference answer, or a problem of a stratum cannot be judged."""
        if self.settings.warmup.steps and not all(problem.answer for problem in held_out):
            raise InputError(
                "warmup.steps: the environment gives no reference answers to learn from; give warmup.steps=0 and start"
            )
        for problem in {problem.cell.stratum: problem for problem in held_out}.values():
            self.environment.verdicts([problem] * 2, [problem.answer, WRONG])

    def stream_references(self, first: int) -> AbstractContextManager[Tasks[Any]]:
        """The tasks of the warm-up, from the place `first` in their stream, drawn while training.

        They are from the warm-up's design, or from all cells of the grid in turn.
        """
        environment, seed = self.environment, derive_seed(self.settings.seed, "warm-up problems")
        cells = [environment.space.complete_cell(cell, self.start) for cell in self._held_out_cells.drawable]

        def draw(begin: int, count: int) -> list[Problem]:
            if self.warmup_design is not None:
                return environment.draw(self.warmup_design, count, seed, begin)
            places = range(begin, begin + count)
            return [environment.draw_one(cells[place % len(cells)], seed, place) for place in places]

        return nullcontext(DrawnTasks(draw, first))

    def stream_problems(self, stage: Stage, number: int) -> AbstractContextManager[TaskStream[Any]]:
        """Tasks that are drawn, and recorded, while a stage is trained; in each process others."""
        rank, _ = rank_and_processes()
        seed = derive_seed(self.settings.seed, f"stage {number} problems" + f" of process {rank}" * (rank > 0))
        design = stage.design()

        def draw(begin: int, count: int) -> list[Problem]:
            return self.environment.draw(design, count, seed, begin)

        return nullcontext(DrawnTasks(draw, recorded=True))

    def list_taken(self, tasks: TaskStream[Any]) -> list[Problem]:
        """The problems that were drawn while a stage was trained."""
        return list(tasks.taken)

    def save_problems(self, stage: Stage, tasks: TaskStream[Any]) -> None:
        """Saves the problems that were drawn while a stage was trained, and their statistics."""
        problems = self.list_taken(tasks)
        figures = {"fresh": len(problems), "scored": 0, "replayed": 0, "tokens": 0}
        record = SampledRecord(self.count_problems(problems, []), self.settings.sampler.name, figures, {})
        self.write_record(stage.sampled, record)
        write_problems(self.problems_file(stage), problems)
        if self.settings.exclude:  # of the lake alone
            write_record(stage.excluded, Excluded(tasks.replaced))

    def record_validation(
        self, held_out: Sequence[Problem], answered: Sequence[Answered], model: PreTrainedModel, play: Play[Any]
    ) -> Validation:
        """The record of a policy's greedy answers to held-out problems.

        Args:
            held_out, answered: the problems, and the answer to each.
            model, play: the policy.
        """
        texts = [str(one.judged.details[0]) for one in answered]
        verdicts = self.environment.verdicts(held_out, texts)
        outcomes = Outcomes.of(self.environment.space, held_out, verdicts)
        chosen = _choose_answers(list(zip(held_out, texts, verdicts, strict=True)))
        return Validation(
            outcomes=dict(outcomes),
            examples=[
                Example(problem, text[:2000], verdict.failure or "none", verdict.place)
                for problem, text, verdict in chosen
            ],
            by_trait={stratum: dict(tally.traits) for stratum, tally in outcomes.items()},
            valid=outcomes.valid,
            probability=_average_probabilities(model, play, [problem for problem in held_out if problem.answer]),
            cases=self._describe_failed(chosen),
        )

    def _describe_failed(self, judged: list[JudgedAnswer]) -> list[Case]:
        """All answers that failed, as the environment describes them."""
        where = f"{type(self.environment).__name__}.cases"
        problems, answers, verdicts = [one[0] for one in judged], [one[1] for one in judged], [one[2] for one in judged]
        cases = run_call(where, lambda: self.environment.cases(problems, answers, verdicts, len(judged)))
        return list(list_parts(where, cases, Case))

    def describe_answers(self, answered: Answered, play: Play[Any]) -> dict[str, Any]:
        """A group of answers as a line of rollouts.jsonl."""
        judged = answered.judged
        pairs = zip(judged.details, judged.failures, strict=True)
        return {
            "problem": answered.key,
            "answers": [{"text": str(text), "failure": failure or "none"} for text, failure in pairs],
        }

    def roll_out(
        self,
        checkpoint: Path,
        problems: Sequence[Problem],
        samples: int,
        seed: int,
        on_progress: Callable[[int], None],
    ) -> tuple[list[RolloutGroup], int]:
        """`samples` answers of a checkpoint to each problem: a group for each, and the tokens generated.

        Args:
            checkpoint: the policy.
            problems, samples: the problems, and the number of answers to each.
            seed: seed for sampling.
            on_progress: gets how many more answers there are.
        """
        tasks, temperature = list(map(self.make_task, problems)), self.settings.grpo.temperature
        with open_policy(self.settings, checkpoint) as (model, tokenizer, policy):
            play = self.make_play(model, tokenizer)
            return roll_out(policy, play, tasks, samples, temperature=temperature, seed=seed, on_progress=on_progress)


def check_settings(settings: RunSettings, environment: Environment, start: Design) -> None:
    """Raises InputError if settings don't suit an environment, or would have no effect in it."""
    if isinstance(environment, MultiTurnEnvironment):
        name = f"environment {settings.environment!r:.80}"
        raise InputError(f"{name}: has several turns, and a run trains on one; use it in a trainer, such as TRL")
    usual = RunSettings()
    for name in OTHER_CODECS[settings.codec]:
        if (value := getattr(settings.text, name)) != getattr(usual.text, name):
            said = f"text.{name} is {value!r:.60}, which the codec {settings.codec} does not use"
            raise InputError(f"{said}; leave it out")
    check_guard(settings.guard, len(start.strata), environment.space)
    check_teacher(settings.teacher, settings.teacher_options, environment.space)
    check_space(make_sampler(settings.sampler.name, settings.sampler.options), environment.space)


def make_trainee(settings: RunSettings) -> Trainee:
    """The trainee of a run by its settings. Raises InputError if the environment cannot be used."""
    if settings.environment == "lake":
        from lakewright.experiments.loop.training.lake_trainee import LakeTrainee  # which is a trainee

        return LakeTrainee(settings)
    return Trainee(settings)


def _average_probabilities(
    model: PreTrainedModel, play: Play[Problem], problems: Sequence[Problem]
) -> dict[Stratum, float]:
    """The mean probability of the reference answer on each stratum."""
    found: dict[Stratum, list[float]] = {}
    for problem, log_prob in zip(problems, reference_log_probs(model, play, problems), strict=True):
        found.setdefault(problem.cell.stratum, []).append(math.exp(log_prob))
    return {stratum: sum(known) / len(known) for stratum, known in found.items()}


def _choose_answers(judged: list[JudgedAnswer]) -> list[JudgedAnswer]:
    """Some valid answers and some that fail, spread evenly over the set."""
    chosen: list[JudgedAnswer] = []
    for valid in (True, False):
        found = [one for one in judged if one[2].valid is valid]
        chosen += found[:: max(1, len(found) // (EXAMPLES // 2))][: EXAMPLES // 2]
    return chosen
