"""The closed loop in miniature: what it leaves, what it never touches again, and what it makes of bad answers."""

import shutil
from pathlib import Path

import msgspec
import pytest
from tiny import ENV, tiny_run

from core_jax.config import EnvConfig, holes_of
from core_jax.errors import InputError
from core_jax.formats import Row, read_all
from engineer.evidence import Evidence
from engineer.teachers.registry import TEACHERS
from engineer.tokens import evidence_tokens, tokens_delta
from experiments import loop, steps
from experiments.runs import FORMAT, Decision, Done, RunConfig, RunFolder, Validation, read
from policy.models import load_checkpoint

CHECKPOINT = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
TRAINED = {"train.jsonl", "validation.json", "done.json", *(f"checkpoint/{name}" for name in CHECKPOINT)}
STAGE = TRAINED | {"env.json", "boards.parquet", "evidence.json", "proposal.json"}
FILES = {"config.json", "validation.parquet"}
FILES |= {f"warmup/{name}" for name in TRAINED} | {f"stage_{i:02d}/{name}" for i in (0, 1) for name in STAGE}


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Few made-up examples for the engineer, and one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "SYNTHETIC", 50)
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A function that gives the finished run of a teacher."""
    done: dict[str, RunFolder] = {}

    def of(teacher: str) -> RunFolder:
        if teacher not in done:
            done[teacher] = RunFolder(tmp_path_factory.mktemp("runs") / teacher)
            loop.run(tiny_run(teacher=teacher), done[teacher])
        return done[teacher]

    return of


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and time of every file."""
    return {name: ((folder / name).read_bytes(), (folder / name).stat().st_mtime_ns) for name in files(folder)}


def decision(run: RunFolder, number: int) -> Decision:
    return read(run.stage(number).proposal, Decision)


def grids(rows: list[Row]) -> list[tuple]:
    return [(row.grid, row.starts, row.goals) for row in rows]


@pytest.mark.parametrize("teacher", TEACHERS)
def test_a_run_of_each_teacher_leaves_every_file_and_no_litter(finished, teacher):
    assert files(finished(teacher).folder) == FILES
    assert {decision(finished(teacher), number).teacher for number in (0, 1)} == {teacher}


@pytest.mark.parametrize("teacher", TEACHERS)
def test_each_stage_is_drawn_from_the_config_that_was_decided_before_it(finished, teacher):
    run = finished(teacher)
    assert run.stage(0).config() == ENV
    for number in (0, 1):
        config, count = run.stage(number).config(), tiny_run().grpo.boards
        rows = read_all(run.stage(number).boards)
        assert len(rows) == count
        for row in rows:
            holes = sum(line.count("H") for line in row.grid)
            assert holes == holes_of(row.size, 2, config.sizes[row.size].hole_ratio), row.id
    assert run.stage(1).config() == decision(run, 0).verdict.config


def test_the_fixed_teacher_keeps_the_config_and_another_changes_it(finished):
    assert finished("fixed").stage(1).config() == ENV
    assert finished("random").stage(1).config() != ENV


def test_every_record_can_be_read_and_tells_its_stage(finished):
    run = finished("self")
    assert read(run.config, RunConfig) == RunConfig(FORMAT, tiny_run(teacher="self"))
    held_out = read_all(run.validation)
    assert len(held_out) == 2 * 4
    for number in (0, 1):
        stage = run.stage(number)
        outcomes = read(stage.validation, Validation).sizes
        evidence = read(stage.evidence, Evidence)
        assert (evidence.config, evidence.outcomes) == (stage.config(), outcomes)
        assert (evidence.round, evidence.rounds, evidence.history) == (number, 2, [])
        assert {size: found.boards for size, found in outcomes.items()} == {3: 4, 4: 4}
        assert set(read(stage.done, Done).versions) >= {"lakewright", "jax", "torch", "trl"}
        load_checkpoint(stage.checkpoint)


def test_training_is_logged_step_by_step(finished):
    run, settings = finished("self"), tiny_run()
    for stage, count, figures in (
        (run.warmup, settings.warmup.steps, {"step", "loss"}),
        (run.stage(0), settings.grpo.steps, {"step", "reward", "valid", "frac_reward_zero_std", "failure/hole"}),
    ):
        lines = msgspec.json.Decoder(dict).decode_lines(stage.train_log.read_bytes())
        assert len(lines) == count
        assert all(set(line) >= figures for line in lines)


def test_training_changes_the_checkpoint(finished):
    run = finished("self")
    weights = [stage.checkpoint / "model.safetensors" for stage in (run.warmup, run.stage(0))]
    assert weights[0].stat().st_size == weights[1].stat().st_size


def test_the_checkpoint_itself_answers_the_evidence_in_words_of_the_delta(finished):
    for number in (0, 1):
        asked = decision(finished("self"), number).proposal
        evidence = read(finished("self").stage(number).evidence, Evidence)
        assert asked.prompt == " ".join(evidence_tokens(evidence))
        assert asked.delta == tokens_delta(asked.answer.split())
        assert asked.error == ""


@pytest.mark.parametrize("teacher", ["self", "random"])
def test_running_again_changes_no_file(finished, teacher):
    before = state(finished(teacher).folder)
    loop.run(tiny_run(teacher=teacher), finished(teacher))
    assert state(finished(teacher).folder) == before


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seed": 1}, "seed is 0 there and 1 now"),
        ({"stages": 3}, "stages is 2 there and 3 now"),
        ({"teacher": "rules"}, "teacher is 'self' there and 'rules' now"),
        ({"env": EnvConfig.single(3, 2, 0.2, 0.5)}, "env.sizes.3.data_ratio is 0.5 there and 1.0 now"),
        ({"horizon": 9}, "horizon is 8 there and 9 now"),
    ],
)
def test_other_settings_on_the_same_folder_are_refused_and_nothing_is_lost(finished, changes, difference):
    before = state(finished("self").folder)
    with pytest.raises(InputError, match=f"config.json: {difference}; give the same settings to resume, or another"):
        loop.run(msgspec.structs.replace(tiny_run(teacher="self"), **changes), finished("self"))
    assert state(finished("self").folder) == before


def test_a_fresh_run_of_the_same_seed_draws_the_same_boards_and_another_seed_others(finished, tmp_path):
    one, same, other = finished("fixed"), RunFolder(tmp_path / "same"), RunFolder(tmp_path / "other")
    faster = msgspec.structs.replace(tiny_run().grpo, learning_rate=1e-3)
    loop.run(tiny_run(teacher="fixed", grpo=faster), same)
    loop.run(tiny_run(teacher="fixed", seed=1, stages=1), other)
    for number in (0, 1):
        assert read_all(same.stage(number).boards) == read_all(one.stage(number).boards)
    assert grids(read_all(other.stage(0).boards)) != grids(read_all(one.stage(0).boards))
    assert grids(read_all(one.stage(0).boards)) != grids(read_all(one.stage(1).boards)), "each stage has its own boards"
    assert read_all(other.validation) == read_all(one.validation), "the held-out set is the same for every seed"
    assert not {str(grid) for grid in grids(read_all(one.validation))} - {str(g) for g in grids(read_all(other.validation))}


GARBAGE = {
    "nothing": [],
    "no end": ["<size_3>"],
    "words out of order": ["<size_3>", "<size_3>", "<end>"],
    "a size that is not there": ["<size_9>", "<data+1>", "<because_frontier>", "<end>"],
    "no words of the engineer": ["0,1", "<pad>", "<end>"],
    "any letters": ["\x00", "\n", "\u202e", "'; drop table"],
    "half a surrogate pair": ["\ud800"],
    "no words at all": [None, 7, b"\xff", 1e999],
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_answer_that_is_garbage_is_recorded_as_refused_and_the_config_kept(finished, tmp_path, monkeypatch, name):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("self").folder, run.folder)
    shutil.rmtree(run.stage(1).folder)
    run.stage(0).done.unlink()
    run.stage(0).proposal.unlink()
    monkeypatch.setattr(loop, "answer_under_grammar", lambda *_: GARBAGE[name])
    loop.run(tiny_run(teacher="self"), run)
    for number in (0, 1):
        found = decision(run, number)
        assert (found.verdict.status, found.verdict.config) == ("refused", ENV)
        assert found.verdict.reasons
        assert found.proposal.delta is None or found.proposal.delta.edits.keys() == {9}
    assert files(run.folder) == FILES


def test_a_config_whose_boards_cannot_be_found_is_refused_and_the_old_one_kept(finished, tmp_path, monkeypatch):
    def unreachable(config: EnvConfig, seed: int) -> None:
        raise InputError("0 of 1 3x3 boards found; change wait_ratio of size 3")

    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("random").folder, run.folder)
    shutil.rmtree(run.stage(1).folder)
    run.stage(0).done.unlink()
    run.stage(0).proposal.unlink()
    monkeypatch.setattr(loop, "check_reachable", unreachable)
    loop.run(tiny_run(teacher="random"), run)
    assert decision(run, 0).verdict.reasons == ["0 of 1 3x3 boards found; change wait_ratio of size 3"]
    assert run.stage(1).config() == ENV


@pytest.mark.parametrize("name", ["env.json", "boards.parquet", "evidence.json", "validation.json", "proposal.json"])
def test_a_file_that_was_damaged_is_named_and_nothing_is_lost(finished, tmp_path, name):
    run = RunFolder(tmp_path / "run")
    shutil.copytree(finished("fixed").folder, run.folder)
    number = 0 if name == "proposal.json" else 1
    following = {"env.json": ["boards.parquet"], "boards.parquet": ["checkpoint"], "validation.json": ["evidence.json"]}
    following |= {"evidence.json": ["proposal.json"], "proposal.json": ["../stage_01/env.json"]}
    damaged = run.stage(number).folder / name
    damaged.write_bytes(damaged.read_bytes()[:40])
    for left in following[name]:
        path = run.stage(number).folder / left
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    run.stage(1).done.unlink()
    before = state(run.folder)
    with pytest.raises(InputError, match=f"stage_0{number}/{name}"):
        loop.run(tiny_run(teacher="fixed"), run)
    assert state(run.folder) == before
