"""The lake in TRL's own trainer: what plans and games earn, and the examples with a tiny random model."""

import json
import runpy
import sys
from pathlib import Path

import msgspec
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.rows import Row
from lakewright.experiments.boards.episodes.trl_tasks import LakePlay, LakePrompts, plan_reward
from tests.support.models.tool_calling_model import tool_calling_checkpoint
from tests.support.refusals import refused
from tests.support.tools.text_games import joint_moves

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
SMALL = {"size": 4, "agents": 2, "hole_ratio": 0.2, "boards": 16}


@pytest.fixture(scope="module")
def prompts() -> LakePrompts:
    return LakePrompts(**SMALL)


@pytest.fixture(scope="module")
def play() -> LakePlay:
    return LakePlay(**SMALL)


def write_plan(row: Row) -> str:
    return "\n".join(f"agent {agent}: {' '.join(moves or 'W')}" for agent, moves in enumerate(row.plan))


def test_certified_plans_earn_everything_and_chatter_nothing(prompts):
    rows = [msgspec.json.decode(line, type=Row) for line in prompts.train_dataset["row"]]
    plans = [write_plan(row) for row in rows]
    assert plan_reward(plans, prompts.train_dataset["row"]) == [1.0] * 16
    said = [[{"role": "assistant", "content": plan}] for plan in plans]
    assert plan_reward(said, prompts.train_dataset["row"], prompts=[], trainer_state=None) == [1.0] * 16
    assert plan_reward(["I do not know."] * 16, prompts.train_dataset["row"]) == [0.0] * 16


def test_of_a_plan_within_chatter_only_the_last_counts_and_an_unclear_one_earns_nothing(prompts):
    line = prompts.train_dataset["row"][0]
    plan = write_plan(msgspec.json.decode(line, type=Row))
    first = plan_reward([f"Let me think.\nagent 0: UP\n\n{plan}"], [line])
    assert first == [1.0]
    assert plan_reward([f"{plan} or not"], [line]) == [0.0]
    said = [{"role": "assistant", "content": "agent 0: UP"}, {"role": "tool", "content": plan}]
    assert plan_reward([said, [said[1]], [{"role": "assistant", "content": plan}], f"[THINK]{plan}"], [line] * 4) == [
        *(0.0, 0.0, 1.0, 0.0)
    ]


def test_the_certified_plan_wins_every_game(prompts, play):
    env = play.environment_factory()
    for number, line in enumerate(prompts.train_dataset["row"]):
        picture = env.reset(**play.train_dataset[number])
        row = msgspec.json.decode(line, type=Row)
        assert [picture.splitlines()[line][column] for line, column in row.starts] == ["a", "b"], row
        assert env.get_reward() == 0
        for moves in joint_moves(row):
            told = env.move(moves)
        assert told.endswith("The game is won."), row
        assert env.get_reward() == 1


def test_a_broken_rule_ends_the_game_and_what_is_no_move_does_not(play):
    env = play.environment_factory()
    env.reset(**play.train_dataset[0])
    for wrong, message in [
        (["UP"], ["2 moves"]),
        ("UP", ["2 moves"]),
        (["UP", "JUMP"], ["'JUMP'", "UP"]),
        ([1, 2], [1, "UP"]),
    ]:
        with refused(*message):
            env.move(wrong)
    told = ""
    while "lost" not in told:
        told = env.move(["up", "up"])
    assert "illegal_move" in told or "hole" in told
    with pytest.raises(InputError, match="the game is over"):
        env.move(["WAIT", "WAIT"])
    assert env.get_reward() == 0


def test_transformers_describes_the_tool_from_its_types_and_its_words(play):
    schema = get_json_schema(play.environment_factory().move)["function"]
    assert schema["name"] == "move"
    assert schema["parameters"]["properties"]["moves"]["items"] == {"type": "string"}


def test_trl_lets_a_model_play_by_tool_calls_and_rewards_the_game(prompts, play, tmp_path, monkeypatch):
    """The trainer, its tool loop and its parser are TRL's own; only the words of the model are scripted."""
    tokenizer = AutoTokenizer.from_pretrained(tool_calling_checkpoint())
    model = AutoModelForCausalLM.from_pretrained(tool_calling_checkpoint())
    games = {
        number: joint_moves(msgspec.json.decode(line, type=Row))
        for number, line in enumerate(prompts.train_dataset["row"])
    }
    seen: list[str] = []

    def say(prompt_ids: list[int]) -> list[int]:
        """The next move of the certified plan of the board that the prompt shows; at the end nothing more."""
        text = tokenizer.decode(prompt_ids)
        seen.append(text)
        step = text.count("<tool_response>")
        board = next(number for number in games if env_picture(play, number) in text)
        if step == len(games[board]):
            return tokenizer.encode("Done.<|im_end|>")
        call = {"name": "move", "arguments": {"moves": games[board][step]}}
        return tokenizer.encode(f"<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>")

    def generate_single_turn(self, prompt_ids, *_, **__):
        return [say(ids) for ids in prompt_ids], None

    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", generate_single_turn)
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(
            str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=2,
            num_generations=2,
            max_completion_length=4096,
            report_to="none",
            use_cpu=True,
        ),
        train_dataset=play.train_dataset,
        environment_factory=play.environment_factory,
        processing_class=tokenizer,
    )
    trainer.train()
    logged = {name: value for line in trainer.state.log_history for name, value in line.items()}
    assert logged["rewards/PlayedLake/mean"] == 1.0, seen[-1]
    assert logged["tools/failure_frequency"] == 0


def env_picture(play: LakePlay, board: int) -> str:
    return play.environment_factory().reset(board=board).strip()


@pytest.mark.parametrize("example", ["trl_prompts.py", "trl_play.py"])
def test_the_examples_train_a_tiny_random_model(example, tmp_path, monkeypatch):
    torch.manual_seed(0)
    monkeypatch.setattr(sys, "argv", [example, str(tool_calling_checkpoint()), str(tmp_path)])
    done = runpy.run_path(str(EXAMPLES / example))
    assert (tmp_path / "checkpoint-2").is_dir(), done
