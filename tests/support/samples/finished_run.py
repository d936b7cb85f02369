"""A finished run written by hand, in no time: two stages with decisions, rollouts, and plans that fail or do not."""

from pathlib import Path

import msgspec

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import BoardOutcomes, RolloutGroup, statistics_of
from lakewright.core_jax.rows import Row, board_key, write_rows
from lakewright.core_jax.types import FAILURE_NAMES
from lakewright.engineer.cells import Cell
from lakewright.engineer.delta import make_edit
from lakewright.engineer.design import Delta
from lakewright.engineer.evidence import CellGroups, Evidence
from lakewright.engineer.guard import GuardVerdict
from lakewright.engineer.proposal import Proposal
from lakewright.engineer.trial import Signal, Trial, Tried
from lakewright.experiments.environments.lake import design_of, lake_space, problem_of, tally_of
from lakewright.experiments.loop.records.run_folder import RunFolder, Stage
from lakewright.experiments.loop.records.stage_records import (
    DecisionRecord,
    Done,
    Example,
    SampledRecord,
    Validation,
    write_record,
)
from lakewright.experiments.loop.records.stage_rollouts import BoardAnswers, RecordedAnswer, write_answers
from lakewright.experiments.loop.settings.run_settings import RunSettings

ENV = EnvConfig({3: SizeConfig(0.5, 0.25, 0.5), 4: SizeConfig(0.5, 0.25, 0.5)})
NEXT = EnvConfig({3: SizeConfig(0.4, 0.2, 0.5), 4: SizeConfig(0.6, 0.25, 0.5)})
GRID = ["...", ".H.", "..H"]
OTHER = ["...", ".H.", "..."]
SIGNAL = Signal(0.5, 0.4, 0.2)


def board(name: str = "board", grid: list[str] = GRID, **labels: object) -> Row:
    """A 3x3 board of two agents that is solved by two steps of each."""
    solved = {"status": "solvable", "makespan": 2, "sum_of_costs": 3, "wait_required": False, "plan": ["RR", "LW"]}
    return Row(name, 3, 2, grid, [(0, 0), (2, 1)], [(0, 2), (2, 0)], **(solved | labels))  # type: ignore[arg-type]


def outcomes(valid: int) -> BoardOutcomes:
    """Of 40 boards."""
    failures = dict.fromkeys(FAILURE_NAMES[1:], 0) | {"hole": 40 - valid}
    return BoardOutcomes(40, valid, valid // 2, valid // 4, failures, 10, valid // 8)


def examples(name: str) -> list[Example]:
    """A plan that arrives after a wait, and one that meets a hole at t = 2."""
    row, other = (board(name, grid, wait_required=True) for grid in (GRID, OTHER))
    return [example(row, ["WRR", "LWW"], "none", -1, -1), example(other, ["RD", "LW"], "hole", 0, 1)]


def example(row: Row, plan: list[str], failure: str, agent: int, step: int) -> Example:
    """A plan for a board."""
    return Example(problem_of(row), "", failure, step, {"plan": plan, "agent": agent})


def rollouts() -> list[RecordedAnswer]:
    """A group of four plans: one arrives, and three step into the hole."""
    return [RecordedAnswer(["RR", "LW"], "none", -1, -1), *[RecordedAnswer(["RD", "LW"], "hole", 0, 1)] * 3]


def validate(stage: Stage, valid: int, name: str = "board") -> None:
    """Writes what a stage's policy made of the held-out boards, and that it is finished."""
    sizes = {3: tally_of(outcomes(valid)), 4: tally_of(outcomes(valid // 2))}
    stage.folder.mkdir(parents=True, exist_ok=True)
    if not stage.train_log.exists():
        steps = [{"step": n, "reward": 0.1 * n, "valid": 0.2, "frac_reward_zero_std": 0.5} for n in (1, 2, 3)]
        stage.train_log.write_bytes(b"".join(msgspec.json.encode(step) + b"\n" for step in steps))
    write_answers(stage.plans, [_kept(found) for found in examples(name)])
    write_record(stage.validation, Validation(sizes, examples(name), {}, "10"))
    write_record(stage.done, Done(90.0, {}))


def _kept(given: Example) -> BoardAnswers:
    answer = RecordedAnswer(given.plan, given.failure, given.agent, given.place)
    return BoardAnswers(board_key(given.row), [answer])


def redesign(stage: Stage, text: str = "too hard") -> None:
    """Writes a stage's boards and rollouts, the evidence, the proposal, and its trial."""
    write_record(stage.design_file, design_of(ENV))
    rows = [board("first"), board("second", OTHER, wait_required=True)]
    write_rows(stage.boards, rows)
    first, second = map(board_key, rows)
    groups = [RolloutGroup(first, 4, 1, 0.2, 0.1, 0.1, {"hole": 3}), RolloutGroup(second, 4, 4, 1.0, 0.0, 0.0)]
    stage.groups.write_bytes(b"".join(msgspec.json.encode(group) + b"\n" for group in groups))
    write_answers(stage.rollouts, [BoardAnswers(first, rollouts())])
    write_record(stage.sampled, SampledRecord({}, "fresh", {"tokens": 100}, {}))
    cells = [CellGroups(Cell(3, (0.25, False)), statistics_of(groups))]
    now, later = design_of(ENV), design_of(NEXT)
    seen = {3: tally_of(outcomes(10))}
    write_record(stage.evidence, Evidence(design=now, outcomes=seen, round=0, rounds=2, groups=cells))
    delta = Delta({3: make_edit(lake_space(), text[:500], {"data_ratio": -0.1, "hole_ratio": -0.05})})
    verdict = GuardVerdict("projected", [text], later)
    write_record(stage.proposal, DecisionRecord("self", Proposal(text, text, delta, ""), verdict, {}))
    write_record(stage.trial, Trial([Tried(now, SIGNAL, {}), Tried(later, SIGNAL, {})], 1, 50))


def begin(path: Path, stages: int = 2, **settings: object) -> RunFolder:
    """A run on which nothing is done yet."""
    run = RunFolder(path)
    rows = msgspec.to_builtins(ENV.sizes, str_keys=True)
    run.open(RunSettings(design=rows, warmup_design=rows, seed=7, stages=stages, teacher="self", **settings))
    write_rows(run.validation, [board("board"), board("other", OTHER, wait_required=True)])
    return run


def finish(path: Path, text: str = "too hard", name: str = "board", **settings: object) -> RunFolder:
    """A finished run. text: what its engineer said; name: the id of the boards that are shown."""
    run = begin(path, **settings)
    validate(run.warmup, 8, name)
    for number, valid in enumerate((16, 32)):
        redesign(run.stage(number), text)
        validate(run.stage(number), valid, name)
    return run
