"""A scripted policy gets the same redesigns in memory, in a folder, by the parts of adapters, and in the closed loop.

What the policy answers follows from problem and stage alone; its second stage is worse than the first, so one design is
given up. Chance comes from the engineer's seed, in the loop from the run's: there memory is given the run's keys.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from lakewright.core_jax.results import RolloutGroup
from lakewright.core_jax.support import write_atomically
from lakewright.engineer import Decision, Engineer, Problem
from lakewright.engineer.difficulty import DifficultySettings
from lakewright.engineer.problems import Group
from lakewright.engineer.start import find_start
from lakewright.engineer.steps import Attempt
from lakewright.engineer.teachers import MODELS, TEACHERS, Reply, Tools
from lakewright.engineer.trial import TrialSettings
from lakewright.experiments.environments.registry import load_environment
from lakewright.experiments.loop import closed_loop
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Rollback,
    Validation,
    find_record,
    write_record,
)
from lakewright.experiments.loop.records.stage_rollouts import read_problems
from lakewright.experiments.loop.redesign import teacher_models
from lakewright.experiments.loop.redesign.run_engineer import RunEngineer, derive_stage_keys
from lakewright.experiments.loop.settings.run_settings import QuestionSettings, RunSettings
from lakewright.experiments.loop.training.trainee import Trainee
from lakewright.experiments.trainers.folder import EngineerFolder
from lakewright.experiments.trainers.recorder import OutcomeRecorder
from lakewright.experiments.trainers.source import ProblemSource
from lakewright.experiments.trainers.versions import HELD_OUT_SEED, FolderSettings
from lakewright.policy.training import GrpoSettings
from tests.support.processes.commands import HOUSE
from tests.support.refusals import refused

ADDITION = f"{HOUSE / 'docs' / 'examples' / 'addition.py'}:Addition"
WORLD = load_environment(ADDITION)
START = find_start(WORLD)
SEED, PROBLEMS, ANSWERS, STAGES = 7, 16, 4, 3
HELD_OUT = WORLD.draw(START, 48, HELD_OUT_SEED)
SKILL = {-1: 0.3, 0: 0.9, 1: 0.35, 2: 0.8}  # of the policy before training, and after each stage
ROUNDS = list(SKILL)
TRIED = TrialSettings(share=0, boards=16, samples=2)
QUICK = ("difficulty", "thompson", "random")
SELF = ("self in tokens", "self in text")
WITHIN = "random within a share"  # of the answers, which trials may take: in some rounds they would take more


def answer(problem: Problem, number: int, copy: str) -> str:
    """The answer of the policy of a stage."""
    chance = random.Random(f"{problem.key} {number} {copy}").random()
    return problem.answer if chance < SKILL[number] - 0.1 * (problem.cell.stratum - 2) else "?"


def answer_group(problem: Problem, number: int, purpose: str = "", count: int = ANSWERS) -> list[str]:
    return [answer(problem, number, f"{purpose}{copy}") for copy in range(count)]


def length(problem: Problem, text: str) -> int:
    """The tokens of an answer, more in later strata, so that gain per token and per problem differ."""
    return len(text) + 2 * problem.cell.stratum**2


def make_groups(problems: list[Problem], number: int) -> list[Group]:
    """The groups of a training, with the tokens of their answers."""
    texts = [answer_group(problem, number) for problem in problems]
    lengths = [sum(length(problem, text) for text in answers) for problem, answers in zip(problems, texts, strict=True)]
    pairs = zip(WORLD.groups(problems, texts), lengths, strict=True)
    return [msgspec.structs.replace(group, tokens=tokens) for group, tokens in pairs]


def greedy(number: int) -> list[str]:
    return [answer(problem, number, "greedy") for problem in HELD_OUT]


def roll_out(problems, samples, number):
    """The policy of a stage in a trial."""
    texts = [answer_group(problem, number, "trial", samples) for problem in problems]
    return WORLD.groups(problems, texts), len(problems) * samples


def decode(prompt, allowed) -> list[str]:
    """A policy that takes tokens by the prompt's length."""
    tokens: list[str] = []
    while choices := allowed(tokens):
        tokens.append(choices[(len(prompt) + len(tokens)) % len(choices)])
    return tokens


def ask(messages, schema, seed) -> Reply:
    """A language model that edits one stratum, by the length of what it is shown."""
    strata = list(schema["properties"]["edits"]["properties"])
    edit = {"reason": "too hard", "share": 0.05, "carry": -0.1}
    chosen = strata[len(messages[-1]["content"]) % len(strata)]
    return Reply(json.dumps({"edits": {chosen: edit}, "summary": "s"}), 50)


class Case(NamedTuple):
    """A teacher, how it is asked, and the settings of its engineer."""

    teacher: str
    tools: Tools | None
    settings: RunSettings

    @property
    def engineer(self) -> Any:
        """The settings of the engineer of a run with these settings."""
        return teacher_models.make_engineer(self.settings, WORLD, START).settings


def make_case(name: str) -> Case:
    teacher = name.partition(" ")[0]
    settings = RunSettings(
        environment=ADDITION,
        codec="bytes",
        seed=SEED,
        stages=STAGES,
        teacher=teacher,
        grpo=GrpoSettings(steps=1, prompts=PROBLEMS, group=ANSWERS),
        trial=TrialSettings(boards=12, samples=2, share=0.8) if name == WITHIN else TRIED,
        engineer=QuestionSettings(asked_first=True),
    )
    how = {"decode": decode} if "tokens" in name else {"ask": ask} if "text" in name else {}
    return Case(teacher, Tools(settings.evidence, **how) if how else None, settings)


class Told(NamedTuple):
    """A decision, and the state of the engineer after it."""

    decision: Decision
    state: dict[str, Any]


def in_memory(case: Case, further: Callable[[int], dict[str, Any]] = lambda number: {}) -> Iterator[Told]:
    """Round by round. further: arguments of `Engineer.redesign`."""
    how = {"held_out": HELD_OUT, "settings": case.engineer, "tools": case.tools, "rounds": STAGES + 1, "seed": SEED}
    engineer = Engineer(WORLD, case.teacher, START, **how)
    for number in ROUNDS:
        if number >= 0:
            engineer.observe(make_groups(engineer.draw(PROBLEMS), number))
        last = number == ROUNDS[-1]
        engineer.roll_out = None if last else lambda problems, samples, _, now=number: roll_out(problems, samples, now)
        yield Told(engineer.redesign(WORLD.tallies(HELD_OUT, greedy(number)), **further(number)), engineer.state_dict())


def plain(value: Any) -> Any:
    return json.loads(json.dumps(msgspec.to_builtins(value, str_keys=True)))


def assert_noted(folder: EngineerFolder, told: Told) -> None:
    """Asserts that the newest version has this decision and this state."""
    version = folder.files.read_version(folder.files.newest())
    expected = plain(told.decision)
    expected["evidence"]["history"] = []  # which the state has
    assert version.decisions[-1] == expected
    assert version.design.version == told.decision.design.version
    known = plain(told.state) | {"drawn": 0}  # by the trainer
    assert version.state == known


def begin(case: Case, path: Path) -> EngineerFolder:
    settings = FolderSettings(**msgspec.structs.asdict(case.engineer))
    how = {"settings": settings, "held_out": len(HELD_OUT), "rounds": STAGES + 1, "seed": SEED}
    return EngineerFolder.begin(path, ADDITION, case.teacher, **how)


def decide(folder: EngineerFolder, case: Case, number: int) -> None:
    last = number == ROUNDS[-1]
    policy = None if last else lambda problems, samples, _: roll_out(problems, samples, number)
    folder.next(policy, case.tools.ask if case.tools else None, step=number + 1)


def write_lines(folder: EngineerFolder, problems: list[Problem], texts: list[list[str]], number: int, split: str):
    """Appends lines as a trainer of one's own does."""
    lines = []
    for place, (problem, answers) in enumerate(zip(problems, texts, strict=True)):
        terms, carry = problem.cell.values
        like = {"version": problem.version, "key": problem.key, "group": f"{split} {number} {place}", "split": split}
        like |= {"stratum": problem.cell.stratum, "knobs": {"terms": terms, "carry": carry}}
        for copy, verdict in enumerate(WORLD.verdicts([problem] * len(answers), answers)):
            found = {"valid": verdict.valid, "failure": verdict.failure, "reward": verdict.reward, "answer": copy}
            lines.append(json.dumps(like | found | {"tokens": length(problem, answers[copy])}) + "\n")
    with open(folder.files.outcomes_path, "a", encoding="utf-8") as file:
        file.writelines(lines)


def assert_folder_decides_alike(case: Case, path: Path) -> None:
    """The lines of `outcomes.jsonl` written by hand, and problems drawn from the present version."""
    folder = begin(case, path)
    for number, told in zip(ROUNDS, in_memory(case), strict=True):
        if number >= 0:
            design = folder.files.read_version(folder.files.newest()).design
            problems = WORLD.draw(design, PROBLEMS, SEED, first=PROBLEMS * number)
            write_lines(folder, problems, [answer_group(one, number) for one in problems], number, "train")
        write_lines(folder, HELD_OUT, [[text] for text in greedy(number)], number, "held_out")
        decide(folder, case, number)
        assert_noted(folder, told)


def assert_adapter_decides_alike(case: Case, path: Path) -> None:
    """The source and the recorder, of which adapters are made."""
    folder = begin(case, path)
    source, recorder = ProblemSource(path, SEED), OutcomeRecorder(path)
    for number, told in zip(ROUNDS, in_memory(case), strict=True):
        for problem in source.take(PROBLEMS) if number >= 0 else ():
            texts = answer_group(problem, number)
            recorder.record(problem, texts, tokens=[length(problem, text) for text in texts])
        for problem, text in zip(folder.held_out(), greedy(number), strict=True):
            recorder.record(problem, [text], split="held_out")
        decide(folder, case, number)
        assert_noted(folder, told)


class Scripted(Trainee):
    """The scripted policy in the closed loop."""

    def draw_held_out(self) -> list[Problem]:
        return HELD_OUT

    def draw_problems(self, design, count, seed, first, on_progress):
        return WORLD.draw(design, count, SEED, first=PROBLEMS * self.number), []

    def roll_out(self, checkpoint, problems, samples, seed, on_progress):
        return roll_out(problems, samples, self.number - 1)


def validate_stage(trainee: Scripted, stage: Stage, held_out) -> None:
    number = -1 if stage.folder.name == "warmup" else int(stage.folder.name[-2:])
    outcomes = WORLD.tallies(held_out, greedy(number))
    by_trait = {stratum: dict(tally.traits) for stratum, tally in outcomes.items()}
    write_record(stage.validation, Validation(dict(outcomes), [], by_trait, outcomes.valid, cases=[]), lake=False)
    trainee.number = number + 1


def warm_up(trainee: Scripted, warmup: Stage, held_out) -> None:
    warmup.checkpoint.mkdir(parents=True)
    validate_stage(trainee, warmup, held_out)


def train_stage(trainee: Scripted, stage: Stage, previous: Stage, number: int, tokens: float) -> None:
    groups = make_groups(read_problems(stage.problems), number)
    lines = [RolloutGroup(*(getattr(group, name) for name in RolloutGroup.__struct_fields__)) for group in groups]
    write_atomically(stage.groups, msgspec.json.Encoder().encode_lines(lines))
    write_atomically(stage.train_log, b'{"step": 0, "reward": 0.5}\n')
    stage.checkpoint.mkdir(parents=True)


def script_steps(patch: pytest.MonkeyPatch) -> None:
    """Has the closed loop take the scripted steps in place of its own."""
    steps = {"warm_up_run": warm_up, "train_stage": train_stage, "validate_stage": validate_stage}
    for name, stand_in in {"make_trainee": Scripted, **steps}.items():
        patch.setattr(closed_loop, name, stand_in)


def assert_loop_decides_alike(case: Case, path: Path, patch: pytest.MonkeyPatch) -> None:
    """The closed loop, of which each step is a record."""
    script_steps(patch)
    if case.tools:
        patch.setattr(teacher_models, "make_run_tools", lambda *_: case.tools)
    run = RunFolder(path)
    closed_loop.run(case.settings, run)

    def tell(number: int) -> dict[str, Any]:
        evidence = run.stage(number).read_evidence()
        keys = derive_stage_keys(case.settings, number)
        return {"training": evidence.training, "statistics": evidence.statistics, "keys": keys}

    for number, told in zip(ROUNDS, in_memory(case, tell), strict=True):
        stage, decision = run.stage(number), told.decision
        assert plain(stage.read_forecast()) == plain(decision.forecast)
        assert plain(stage.read_evidence()) == plain(decision.evidence)
        record = find_record(stage.proposal, DecisionRecord)
        attempts = [*record.refused, Attempt(record.proposal, record.verdict)] if record else []
        assert plain(attempts) == plain(decision.attempts)
        assert plain(stage.read_next()) == plain(decision.next)
        found = find_record(stage.rollback, Rollback)
        assert (found and found.comparison, bool(found and found.rolled_back)) == (
            decision.comparison,
            decision.rolled_back,
        )
        trial = msgspec.json.decode(stage.trial.read_bytes()) if stage.trial.exists() else None
        assert trial == plain(decision.trial)


NAMES = [name for name in TEACHERS if name not in MODELS]
CASES = [
    pytest.param(name, marks=() if name in (*QUICK, *SELF, WITHIN) else pytest.mark.deep)
    for name in (*NAMES, *SELF, WITHIN)
]


@pytest.mark.parametrize("name", CASES)
def test_the_closed_loop_decides_as_an_engineer_in_memory(name, tmp_path, monkeypatch):
    assert_loop_decides_alike(make_case(name), tmp_path / "run", monkeypatch)


@pytest.mark.parametrize("assert_alike", [assert_folder_decides_alike, assert_adapter_decides_alike])
@pytest.mark.parametrize("name", [case for case in CASES if "tokens" not in case.values[0]])
def test_a_folder_decides_as_an_engineer_in_memory(name, assert_alike, tmp_path):
    assert_alike(make_case(name), tmp_path / "engineer")


def test_a_run_whose_first_groups_have_no_lengths_goes_on_per_problem(tmp_path, monkeypatch):
    case = make_case("fixed")
    script_steps(monkeypatch)
    new, old = RunFolder(tmp_path / "new"), RunFolder(tmp_path / "old")
    closed_loop.run(case.settings, new)
    assert list(new.stage(1).read_forecast().tokens) == [1, 2, 3, 4]

    def train_as_before(trainee, stage, previous, number, tokens) -> None:
        train_stage(trainee, stage, previous, number, tokens)
        if number == 0:
            lines = map(json.loads, stage.groups.read_bytes().splitlines())
            before = [{name: value for name, value in line.items() if name != "tokens"} for line in lines]
            write_atomically(stage.groups, msgspec.json.Encoder().encode_lines(before))

    monkeypatch.setattr(closed_loop, "train_stage", train_as_before)
    closed_loop.run(case.settings, old)
    forecasts = [old.stage(number).read_forecast() for number in (0, 1)]
    assert [one.tokens for one in forecasts] == [msgspec.UNSET, msgspec.UNSET]


def test_a_run_of_an_environment_whose_strata_had_an_order_is_refused_in_one_line(tmp_path, monkeypatch):
    case, run = make_case("fixed"), RunFolder(tmp_path / "run")
    of_then = msgspec.structs.replace(case.settings, difficulty=DifficultySettings(model="regression"))
    case = case._replace(settings=of_then)
    assert_loop_decides_alike(case, run.folder, monkeypatch)
    run.stage(STAGES - 1).done.unlink()
    run.stage(STAGES - 1).next.unlink()
    trainee = Scripted(case.settings)
    monkeypatch.setattr(trainee.environment.space, "ranked", False)
    with refused("difficulty.json:", "ranked=True"):
        RunEngineer(trainee, run, HELD_OUT).redesign(STAGES - 1)


def test_the_script_has_trials_that_take_too_many_answers():
    told = [one.decision for one in in_memory(make_case(WITHIN))][:-1]
    print([(bool(one.trial), one.next.untried) for one in told])
    assert {bool(one.trial) for one in told} == {True, False}


def test_the_script_has_a_first_redesign_trials_and_a_rollback():
    told = [one.decision for one in in_memory(make_case("gain"))]
    assert told[0].design != START
    assert told[0].trial
    assert [one.rolled_back for one in told] == [False, False, True, False]
    assert told[2].next.source == "rollback"
