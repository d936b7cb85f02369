"""A finished run on problems in text, written by hand: two stages with decisions, rollouts and a forecast."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from lakewright.core_jax.support import write_atomically
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta, Design
from lakewright.engineer.difficulty import DifficultySettings, make_forecast, observe_groups
from lakewright.engineer.environment import Environment
from lakewright.engineer.evidence import Evidence
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.outcomes import Outcomes
from lakewright.engineer.problems import Problem
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.seen import group_by_cell
from lakewright.engineer.steps import Next
from lakewright.engineer.trial import Signal, Trial, Tried
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    Example,
    SampledRecord,
    Validation,
    write_record,
)
from lakewright.experiments.loop.records.stage_rollouts import write_problems
from lakewright.experiments.loop.settings.run_settings import RunSettings
from tests.support.processes.commands import HOUSE

ADDITION = HOUSE / "docs" / "examples" / "addition.py"
ROWS = {2: {"share": 0.5, "terms": 2, "carry": 0.5}, 3: {"share": 0.5, "terms": 2, "carry": 0.5}}
LATER = {2: {"share": 0.4, "terms": 3, "carry": 0.5}, 3: {"share": 0.6, "terms": 2, "carry": 0.25}}
SIGNAL = Signal(0.5, 0.4, 0.2)
WRONG = "no idea"


def finish_text(path: Path, name: str = f"{ADDITION}:Addition", wrong: str = WRONG) -> RunFolder:
    """A finished run. name: of the environment, like `Addition`. wrong: an answer that is not valid."""
    run, environment = RunFolder(path), load_environment(name)
    run.open(RunSettings(environment=name, codec="bytes", stages=2, teacher="rules"))
    held_out = environment.draw(_design(environment, ROWS), 40, seed=4)  # none comes twice
    write_problems(run.held_out, held_out)
    validate_text(run.warmup, environment, held_out, 8, wrong)
    for number, valid in enumerate((16, 32)):
        redesign_text(run.stage(number), environment, wrong, number)
        validate_text(run.stage(number), environment, held_out, valid, wrong)
    return run


def validate_text(stage: Stage, environment: Environment, held_out: Sequence[Problem], valid: int, wrong: str) -> None:
    """Writes a policy's answers to the held-out problems, of which the first are valid, and that it is finished."""
    texts = [problem.answer if place < valid else wrong for place, problem in enumerate(held_out)]
    verdicts = environment.verdicts(held_out, texts)
    outcomes = Outcomes.of(environment.space, held_out, verdicts)
    given = list(zip(held_out, texts, verdicts, strict=True))
    examples = [
        Example(problem, text, verdict.failure or "none") for problem, text, verdict in given[valid - 2 : valid + 2]
    ]
    by_trait = {stratum: dict(tally.traits) for stratum, tally in outcomes.items()}
    stage.folder.mkdir(parents=True, exist_ok=True)
    lines = [_line(problem, [(text, verdict.failure)]) for problem, text, verdict in given]
    write_atomically(stage.plans, b"".join(lines))
    write_record(stage.validation, Validation(dict(outcomes), examples, by_trait, outcomes.valid), lake=False)
    write_record(stage.done, Done(90.0, {}))


def redesign_text(stage: Stage, environment: Environment, wrong: str, number: int) -> None:
    """Writes a stage's problems and rollouts, its forecast, the evidence, the proposal, its trial and what is next."""
    space = environment.space
    design, later = _design(environment, ROWS), _design(environment, LATER)
    problems = environment.draw(design, 8, seed=2 + number)
    answers = [[problem.answer, wrong] if place % 2 else [wrong, wrong] for place, problem in enumerate(problems)]
    groups = environment.groups(problems, answers)
    pairs = [(problem.cell, group) for problem, group in zip(problems, groups, strict=True)]
    figures = ("completions", "valid", "reward", "deviation", "spread", "failures")
    lines = [{"board": group.key} | {name: getattr(group, name) for name in figures} for group in groups]
    write_record(stage.design_file, design, lake=False)
    write_problems(stage.problems, problems)
    write_atomically(stage.groups, msgspec.json.Encoder().encode_lines(lines))
    kept = []
    for problem, texts in list(zip(problems, answers, strict=True))[1::2]:
        verdicts = environment.verdicts([problem] * len(texts), texts)
        kept.append(_line(problem, [(text, one.failure) for text, one in zip(texts, verdicts, strict=True)]))
    write_atomically(stage.rollouts, b"".join(kept))
    statistics = environment.statistics(problems)
    write_record(stage.sampled, SampledRecord(statistics, "fresh", {"tokens": 100}, {}), lake=False)
    forecast = make_forecast(design, observe_groups(pairs), [], DifficultySettings(), space)
    write_record(stage.difficulty, forecast, lake=False)
    evidence = Evidence(
        design=design, outcomes={}, round=number, rounds=2, groups=group_by_cell(pairs), forecast=forecast
    )
    write_record(stage.evidence, evidence, lake=False)
    _decide(stage, environment, (design, later))


def _design(environment: Environment, rows: dict[int, dict[str, float]]) -> Design:
    """The design of these rows; knobs that they do not name are at the end of their range."""
    columns = environment.space.columns
    complete = {
        stratum: {column.name: row.get(column.name, column.high) for column in columns} for stratum, row in rows.items()
    }
    return environment.space.design(complete)


def _decide(stage: Stage, environment: Environment, designs: tuple[Design, Design]) -> None:
    """Writes a proposal from the first design to the second, its trial, and that it is trained on."""
    design, later = designs
    delta = Delta({2: make_edit(environment.space, "too easy", {"terms": 1, "share": -0.1})})
    write_record(
        stage.proposal,
        DecisionRecord("rules", Proposal("", "", delta), GuardVerdict("accepted", [], later), {}),
        lake=False,
    )
    write_record(stage.trial, Trial([Tried(design, SIGNAL, {}), Tried(later, SIGNAL, {})], 1, 50), lake=False)
    write_record(stage.next, Next(later, "trial", ["accepted", "tried, and it gives more signal"]), lake=False)


def _line(problem: Problem, answers: Sequence[tuple[str, str]]) -> bytes:
    found = [{"text": text, "failure": failure or "none"} for text, failure in answers]
    return msgspec.json.encode({"problem": problem.key, "answers": found}) + b"\n"
