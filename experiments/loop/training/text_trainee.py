"""The trainee of environments whose problems are text: a small transformer that reads bytes, or a language model."""

import itertools
import math
import operator
import random
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import derive_seed
from lakewright.engineer.calls import run_call
from lakewright.engineer.cells import Cell, Stratum, list_parts
from lakewright.engineer.design import Design, by_stratum
from lakewright.engineer.environment import Environment, Problem, Verdict
from lakewright.engineer.guard import is_drawable
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.start import find_start
from lakewright.engineer.tally import Case, Drawn
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import Stage
from lakewright.experiments.loop.records.stage_records import Example, Validation
from lakewright.experiments.loop.records.stage_rollouts import write_answers
from lakewright.experiments.loop.settings.lake_settings import LAKE_ONLY
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee, check_settings, load_policy
from lakewright.policy.model_settings import resolve_shape
from lakewright.policy.models import get_codec
from lakewright.policy.play import DrawnTasks, Play, Tasks, TaskStream
from lakewright.policy.text_play import TextPlay, build_byte_policy, play_texts
from lakewright.policy.training import Answered, answer_groups, rank_and_processes, reference_log_probs

EXAMPLES = 12  # held-out problems saved as examples, half of them valid
WRONG = "?"  # a text that is judged beside the reference answer, to see that the judge works
MOST_CELLS = 200  # that are held out; of a larger grid so many are chosen at random, evenly over the strata
MOST_DRAWS = 20  # of each cell for a test, as a multiple of the problems wanted; a cell may have fewer different ones

JudgedAnswer = tuple[Problem, str, Verdict]


class TextTrainee(Trainee[Problem]):
    """A policy that answers problems in text."""

    answers, references, lake = "answers", "reference answers", False

    def __init__(self, settings: RunSettings, environment: Environment | None = None) -> None:
        super().__init__(settings)
        self.environment = environment or load_environment(settings.environment)
        space = self.environment.space
        if settings.design:  # which has no givens
            given = find_start(self.environment).given if space.givens else {}
            self.start = space.design(by_stratum(settings.design), **given)
        else:
            self.start = find_start(self.environment)
        warmup = settings.warmup_design
        self.warmup_design = space.design(by_stratum(warmup), **self.start.given) if warmup else None
        _refuse_lake_only(settings)
        check_settings(settings, self.environment, self.start)

    def count_held_out(self) -> int:
        """As `Trainee.count_held_out`."""
        return len(self._choose_cells()) * self.settings.validation.boards

    def _list_cells(self) -> list[Cell]:
        """The cells of the grid of the start's strata that can be drawn."""
        environment = self.environment
        cells = environment.space.grid(self.start.strata)
        return [cell for cell in cells if is_drawable(environment, cell, self.start)]

    def _choose_cells(self) -> list[Cell]:
        """The cells that are held out: the cells of `_list_cells`, at most MOST_CELLS, or one of each stratum."""
        cells = self._list_cells()
        if len(cells) <= MOST_CELLS:
            return cells
        random.Random(derive_seed(self.settings.validation.seed, "held-out cells")).shuffle(cells)
        strata = [[cell for cell in cells if cell.stratum == stratum] for stratum in self.start.strata]
        in_turn = [cell for turn in itertools.zip_longest(*strata) for cell in turn if cell]
        return in_turn[: max(MOST_CELLS, len(strata))]

    def draw_held_out(self) -> list[Problem]:
        """`validation.boards` problems of each of the cells that are held out."""
        chosen, environment = self.settings.validation, self.environment
        cells, problems = self._choose_cells(), []
        with progress("held-out problems", len(cells) * chosen.boards, "problems") as bar:
            for cell in cells:
                complete = environment.space.complete_cell(cell, self.start)
                seed = derive_seed(chosen.seed, f"held-out {cell}")
                problems += environment.draw_cell(complete, chosen.boards, seed)
                bar.update(chosen.boards)
        return list({problem.key: problem for problem in problems}.values())

    def draw_test(self, known: Collection[str]) -> list[Problem]:
        """`validation.boards` different problems of each of the cells that are held out, all of them new.

        A problem that several cells draw is of the first of them. A cell has fewer problems if MOST_DRAWS times as many
        draws hold no more.

        Args:
            known: keys of problems that are left out.
        """
        count, cells = self.settings.validation.boards, self._choose_cells()
        taken, problems = set(known), list[Problem]()
        with progress("problems of the test", len(cells), "cells") as bar:
            for cell in cells:
                new = self._draw_new(cell, count, taken)
                taken.update(new)
                problems += new.values()
                bar.update(1)
        return problems

    def _draw_new(self, cell: Cell, count: int, taken: Collection[str]) -> dict[str, Problem]:
        """At most `count` problems of a cell, by key, all of them free."""
        complete = self.environment.space.complete_cell(cell, self.start)
        seed = derive_seed(self.settings.validation.seed, f"held-out {cell}")
        new: dict[str, Problem] = {}
        for first in range(0, count * MOST_DRAWS, count):
            drawn = self.environment.draw_cell(complete, count, seed, first)
            new |= {problem.key: problem for problem in drawn if problem.key not in taken}
            if len(new) >= count:
                break
        return dict(itertools.islice(new.items(), count))

    def draw_problems(
        self, design: Design, count: int, seed: int, first: int, on_progress: Callable[[int], object]
    ) -> tuple[list[Problem], list[Any]]:
        """As `Trainee.draw_problems`."""
        problems = self.environment.draw(design, count, seed, first)
        on_progress(count)
        return problems, []

    def count_problems(self, problems: Sequence[Problem], acceptance: Sequence[Any]) -> dict[Stratum, Drawn]:
        """As `Trainee.count_problems`."""
        return self.environment.statistics(problems)

    def make_task(self, problem: Problem) -> Problem:
        """The problem itself."""
        return problem

    def build_model(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """A transformer that reads bytes, and knows the engineer's words."""
        settings = self.settings
        return build_byte_policy(settings.model, derive_seed(settings.seed, "model"), settings.device, self.words)

    def make_play(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> TextPlay[Problem]:
        """As `Trainee.make_play`."""
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
        """As `Trainee.check_start`: the codec, prompts and reference answers must fit the model."""
        self.check_problems(held_out)
        if (codec := get_codec(model)) != self.settings.codec:
            raise InputError(f"codec is {self.settings.codec}, but the model has {codec}; set codec={codec}")
        play = self.make_play(model, tokenizer)
        for problem in held_out:
            play.encode_prompt(problem)
            if problem.answer:
                play.encode_reference(problem)

    def check_problems(self, held_out: Sequence[Problem]) -> None:
        """Raises InputError if the warm-up lacks a reference answer, or a problem of a stratum cannot be judged."""
        if self.settings.warmup.steps and not all(problem.answer for problem in held_out):
            raise InputError(
                "warmup.steps: the environment gives no reference answers to learn from; give warmup.steps=0 and start"
            )
        for problem in {problem.cell.stratum: problem for problem in held_out}.values():
            self.environment.verdicts([problem] * 2, [problem.answer, WRONG])

    def stream_references(self, warmup: Stage, first: int) -> AbstractContextManager[Tasks[Problem]]:
        """Problems drawn while training: from the warm-up's design, or from all cells of the grid in turn."""
        environment, seed = self.environment, derive_seed(self.settings.seed, "warm-up problems")
        cells = [environment.space.complete_cell(cell, self.start) for cell in self._list_cells()]

        def draw(begin: int, count: int) -> list[Problem]:
            if self.warmup_design is not None:
                return environment.draw(self.warmup_design, count, seed, begin)
            places = range(begin, begin + count)
            return [environment.draw_one(cells[place % len(cells)], seed, place) for place in places]

        return nullcontext(DrawnTasks(draw, first))

    def stream_problems(self, stage: Stage, number: int) -> AbstractContextManager[DrawnTasks[Problem]]:
        """As `Trainee.stream_problems`."""
        rank, _ = rank_and_processes()
        seed = derive_seed(self.settings.seed, f"stage {number} problems" + f" of process {rank}" * (rank > 0))
        design = stage.design()

        def draw(begin: int, count: int) -> list[Problem]:
            return self.environment.draw(design, count, seed, begin)

        return nullcontext(DrawnTasks(draw, recorded=True))

    def list_taken(self, tasks: TaskStream[Problem]) -> list[Problem]:
        """The tasks themselves."""
        return list(tasks.taken)

    def validate_stage(self, stage: Stage, held_out: Sequence[Problem]) -> None:
        """As `Trainee.validate_stage`."""
        model, tokenizer = load_policy(self.settings, stage.checkpoint)
        play = self.make_play(model, tokenizer)
        with progress("validation", len(held_out), "problems") as bar:
            answered = answer_groups(model, play, list(held_out), on_progress=bar.update)
        texts = [str(one.judged.details[0]) for one in answered]
        verdicts = self.environment.verdicts(held_out, texts)
        outcomes = Outcomes.of(self.environment.space, held_out, verdicts)
        write_answers(stage.plans, [self.describe_answers(one, play) for one in answered])
        chosen = _choose_answers(list(zip(held_out, texts, verdicts, strict=True)))
        record = Validation(
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
        self.write_record(stage.validation, record)

    def _describe_failed(self, judged: list[JudgedAnswer]) -> list[Case]:
        """All answers that failed, as the environment describes them."""
        where = f"{type(self.environment).__name__}.cases"
        problems, answers, verdicts = [one[0] for one in judged], [one[1] for one in judged], [one[2] for one in judged]
        cases = run_call(where, lambda: self.environment.cases(problems, answers, verdicts, len(judged)))
        return list(list_parts(where, cases, Case))

    def describe_answers(self, answered: Answered, play: Play[Problem]) -> dict[str, Any]:
        """As `Trainee.describe_answers`: the texts."""
        judged = answered.judged
        pairs = zip(judged.details, judged.failures, strict=True)
        return {
            "problem": answered.key,
            "answers": [{"text": str(text), "failure": failure or "none"} for text, failure in pairs],
        }


def _refuse_lake_only(settings: RunSettings) -> None:
    """Raises InputError if a setting that only the lake has is not the usual one."""
    for name, remedy in LAKE_ONLY.items():
        read = operator.attrgetter(name)
        if (value := read(settings)) != read(RunSettings()):
            raise InputError(f"{name} is {value!r:.60}, which only the lake has; {remedy}")
    if settings.codec == "tokens" and resolve_shape(settings.model).architecture != "board":
        raise InputError("codec is tokens, which only the lake has; set codec=bytes, or text for a pretrained model")


def _average_probabilities(
    model: PreTrainedModel, play: TextPlay[Problem], problems: Sequence[Problem]
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
