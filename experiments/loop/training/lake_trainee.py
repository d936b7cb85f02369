"""The trainee of the lake: policies that plan for boards."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from lakewright.core_jax.config import EnvConfig, hole_ratio_of, with_teams
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.generator import Acceptance, can_draw_all, generate, generate_in_turn
from lakewright.core_jax.rows import Row, board_of, read_all, rows_of, symmetric_fingerprint
from lakewright.core_jax.support import derive_seed
from lakewright.core_jax.types import FAILURE_NAMES, Failure
from lakewright.engineer.cells import Stratum
from lakewright.engineer.design import Design
from lakewright.engineer.environment import Environment, choose_evenly
from lakewright.engineer.problems import Problem
from lakewright.engineer.tally import Case, Drawn, Tally
from lakewright.experiments.environments.lake import Lake, config_of, design_of, problem_of, row_of, tally_of
from lakewright.experiments.jobs.runtime.progress_bars import progress
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import Example, Validation, write_record
from lakewright.experiments.loop.records.stage_rollouts import BoardAnswers, RecordedAnswer
from lakewright.experiments.loop.settings.lake_settings import first_boards, warmup_boards
from lakewright.experiments.loop.settings.run_settings import RunSettings
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.policy.board_play import BoardPlay, PlayedPlan, check_chat_model
from lakewright.policy.codecs import TextCodec, build_tokenizer, check_template, codec_for
from lakewright.policy.evaluation import outcomes_by_size
from lakewright.policy.model_settings import resolve_shape
from lakewright.policy.models import build_model
from lakewright.policy.play import Play, Tasks, TaskStream
from lakewright.policy.tasks import BoardTask, task_of
from lakewright.policy.tasks import row_of_task as row_of_task
from lakewright.policy.training import Answered, BoardTaskStream, rank_and_processes, tasks_of, with_hole_ratios

EXAMPLES = 6  # boards saved as examples, of each kind: valid plans on boards that force a wait, and failures
VALID, UNREAD = FAILURE_NAMES[Failure.NONE], FAILURE_NAMES[Failure.PARSE_ERROR]


class LakeTrainee(Trainee):
    """A policy that plans for the agents on boards, in tokens of cells, in text or as a board network."""

    environment: Lake
    scores = False

    def _begin(self, environment: Environment | None) -> None:
        self.environment = Lake(self.settings.agents, self.settings.teams)
        self.given = {"agents": list(self.settings.teams)} if self.settings.teams else {}
        self.start = design_of(first_boards(self.settings))
        if self.settings.codec == "bytes":
            raise InputError("codec is bytes, which cannot write boards of the lake; set environment, or codec=tokens")

    def write_record(self, path: Path, record: msgspec.Struct) -> None:
        """See `Trainee.write_record`."""
        write_record(path, record, lake=True)

    def problems_file(self, stage: Stage) -> Path:
        """See `Trainee.problems_file`."""
        return stage.boards

    def held_out_file(self, folder: RunFolder) -> Path:
        """See `Trainee.held_out_file`."""
        return folder.validation

    def make_case(self, example: Example) -> Case:
        """See `Trainee.make_case`."""
        row = example.row
        ends = {"grid": row.grid, "starts": row.starts, "goals": row.goals}
        data = ends | {"plan": example.plan, "agent": example.agent}
        return Case(row.size, "", example.failure, example.place, data)

    def draw_held_out(self) -> list[Problem]:
        """Boards of each size, hole ratio and wait ratio of the settings; without those that teams cannot have.

        Raises InputError if a team is left without boards.
        """
        chosen, teams, configs = self.settings.validation, self.settings.teams, self._list_configs()
        if teams:
            configs = [config for config in configs if can_draw_all(config)]
        drawable = {config.agents for config in configs}
        if missing := [agents for agents in teams if agents not in drawable]:
            raise InputError(
                f"validation: no boards for {missing[0]} agents can be drawn at its ratios; give it other ratios"
            )
        rows: list[Row] = []
        with progress("held-out boards", len(configs) * chosen.boards, "boards") as bar:
            for config in configs:
                ((size, cell),) = config.sizes.items()
                seed = derive_seed(chosen.seed, f"held-out {size} {cell.hole_ratio} {cell.wait_ratio}")
                rows += rows_of(generate(config, seed, chosen.boards, bar.update), config)
        return list(map(problem_of, rows))

    def _list_configs(self) -> list[EnvConfig]:
        """A config for each team, size, hole ratio and wait ratio."""
        chosen, settings = self.settings.validation, self.settings
        return [
            EnvConfig.single(size, team.agents, hole, wait)
            for team in with_teams(config_of(self.start), settings.teams)
            for size in team.sizes
            for hole in chosen.hole_ratios
            for wait in chosen.wait_ratios
        ]

    def count_held_out(self) -> int:
        """See `Trainee.count_held_out`: also the boards of cells that cannot be drawn because trying takes minutes."""
        return len(self._list_configs()) * self.settings.validation.boards

    def draw_test(self, known: Collection[str]) -> list[Problem]:
        """As a held-out set, of which some boards may be known."""
        return self.draw_held_out()

    def rehearse(self) -> None:
        """Does nothing: the lake's generator needs no test."""

    def draw_problems(
        self, design: Design, count: int, seed: int, first: int, on_progress: Callable[[int], object]
    ) -> tuple[list[Problem], list[Acceptance]]:
        """See `Trainee.draw_problems`; the teams of the run alternate."""
        rows, acceptance = self.environment.draw_rows(design, count, seed, first, on_progress)
        return list(map(problem_of, rows)), acceptance

    def count_problems(self, problems: Sequence[Problem], acceptance: Sequence[Acceptance]) -> dict[Stratum, Drawn]:
        """See `Trainee.count_problems`. acceptance: by stratum of boards, or empty."""
        rows = list(map(row_of, problems))
        return {
            size: _count_boards(
                [row for row in rows if row.size == size], [part for part in acceptance if part.size == size]
            )
            for size in sorted({row.size for row in rows})
        }

    def make_task(self, problem: Problem) -> BoardTask:
        """See `Trainee.make_task`."""
        return task_of(row_of(problem))

    def build_model(self) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
        """A model of the shape of the settings, which knows the engineer's words unless it is a board network."""
        settings = self.settings
        words = self.words if resolve_shape(settings.model).architecture == "qwen3" else ()
        tokenizer = build_tokenizer(words)
        return build_model(settings.model, tokenizer, derive_seed(settings.seed, "model"), settings.device), tokenizer

    def make_play(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> BoardPlay:
        """See `Trainee.make_play`."""
        settings = self.settings
        return BoardPlay(codec_for(settings.codec, tokenizer, settings.text), settings.horizon, settings.reward)

    def check_start(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, held_out: Sequence[Problem]
    ) -> None:
        """See `Trainee.check_start`: a language model must end its answers."""
        check_template(self.settings.start, tokenizer, self.settings.system_turn)
        codec = codec_for(self.settings.codec, tokenizer, self.settings.text)
        if isinstance(codec, TextCodec):
            check_chat_model(self.settings.start, model, codec, self.make_task(held_out[0]))

    def stream_references(self, first: int) -> AbstractContextManager[Tasks[BoardTask]]:
        """A fixed set, or boards drawn while training."""
        settings = self.settings
        seed, boards = derive_seed(settings.seed, "warm-up boards"), settings.warmup.boards
        config = warmup_boards(settings)
        if settings.warmup.fresh:
            configs = with_hole_ratios(config, settings.warmup.hole_ratios)
            return BoardTaskStream(configs, seed, first, teams=settings.teams, excluded=_fingerprint_excluded(settings))
        with progress("warm-up boards", boards, "boards") as bar:
            made = generate_in_turn(with_teams(config, settings.teams), seed, boards, bar.update)
        return nullcontext(tasks_of(*made))

    def stream_problems(self, stage: Stage, number: int) -> BoardTaskStream:
        """See `Trainee.stream_problems`."""
        settings, (rank, _) = self.settings, rank_and_processes()
        seed = derive_seed(settings.seed, f"stage {number} boards" + f" of process {rank}" * (rank > 0))
        config, excluded = config_of(stage.design()), _fingerprint_excluded(settings)
        return BoardTaskStream((config,), seed, recorded=True, teams=settings.teams, excluded=excluded)

    def list_taken(self, tasks: TaskStream[BoardTask]) -> list[Problem]:
        """See `Trainee.list_taken`."""
        return [problem_of(row_of_task(task, f"drawn_{place:07d}")) for place, task in enumerate(tasks.taken)]

    def record_validation(
        self, held_out: Sequence[Problem], answered: Sequence[Answered], model: PreTrainedModel, play: Play[BoardTask]
    ) -> Validation:
        """See `Trainee.record_validation`."""
        rows, plans = list(map(row_of, held_out)), [one.judged.details[0] for one in answered]
        tasks = list(map(task_of, rows))
        forced = [pair for pair in zip(tasks, plans, strict=True) if pair[0].wait_required]
        waits = _tally_plans([task for task, _ in forced], [plan for _, plan in forced])
        answers = [_list_answers(one, play)[0] for one in answered]
        return Validation(
            outcomes=_tally_plans(tasks, plans),
            examples=_choose_examples(rows, answers),
            by_trait={size: {"wait_ratio": tally} for size, tally in waits.items()},
            valid="".join("01"[plan.failure == Failure.NONE] for plan in plans),
        )

    def describe_answers(self, answered: Answered, play: Play[BoardTask]) -> dict[str, Any]:
        """See `Trainee.describe_answers`: the plans for a board."""
        return msgspec.to_builtins(BoardAnswers(answered.key, _list_answers(answered, play)))


def _list_answers(answered: Answered, play: Play[BoardTask]) -> list[RecordedAnswer]:
    """The plans for a board, with their verdicts."""
    assert isinstance(play, BoardPlay)
    texts = (play.codec.decode_text(answered.prompt, answer) for answer in answered.answers)
    judged = zip(answered.judged.details, texts, strict=True)
    return [RecordedAnswer.from_moves(one.moves, one.failure, one.agent, one.step, text) for one, text in judged]


def _tally_plans(tasks: Sequence[BoardTask], plans: Sequence[PlayedPlan]) -> dict[Stratum, Tally]:
    """The tallies of plans by map size."""
    columns = np.array([(plan.failure, plan.makespan, plan.sum_of_costs) for plan in plans], int).reshape(-1, 3).T
    counted = outcomes_by_size(tasks, *columns)
    return {size: tally_of(found) for size, found in counted.items()}


def _choose_examples(rows: list[Row], answers: list[RecordedAnswer]) -> list[Example]:
    """Valid plans on boards that force a wait, and failures, each kind spread evenly over the set."""
    both = list(zip(rows, answers, strict=True))
    valid = [one for one in both if one[1].failure == VALID and one[0].wait_required]
    failed = [one for one in both if one[1].failure not in (VALID, UNREAD)]
    return [
        Example(problem_of(row), found.text, found.failure, found.step, {"plan": found.plan, "agent": found.agent})
        for row, found in [*choose_evenly(valid, EXAMPLES), *choose_evenly(failed, EXAMPLES)]
    ]


def _count_boards(rows: Sequence[Row], parts: Sequence[Acceptance]) -> Drawn:
    def mean(field: str) -> float:
        return float(np.mean([getattr(row, field) for row in rows]))

    holes = [hole_ratio_of(row.size, row.agents, sum(line.count("H") for line in row.grid)) for row in rows]
    drawn = sum(part.drawn for part in parts)
    return Drawn(
        problems=len(rows),
        knobs={"hole_ratio": float(np.mean(holes)), "wait_ratio": mean("wait_required")},
        measures={"makespan": mean("makespan"), "sum_of_costs": mean("sum_of_costs")},
        acceptance=sum(part.met for part in parts) / drawn if drawn else None,
    )


def _fingerprint_excluded(settings: RunSettings) -> frozenset[bytes]:
    """The fingerprints of the boards that must not be trained on, such as a benchmark's.

    They are the same for boards that are turned, mirrored or have their agents in another order.
    """
    if not settings.exclude:
        return frozenset()
    return frozenset(symmetric_fingerprint(board_of(row)) for row in read_all(Path(settings.exclude)))
