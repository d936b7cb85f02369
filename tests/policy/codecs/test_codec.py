"""Both codecs: from a board to ids, and from a model's ids to a plan."""

import numpy as np
import pytest

from lakewright.core_jax.rows import plan_of, verify_rows
from lakewright.core_jax.types import FAILURE_NAMES, JUMP
from lakewright.policy.codecs import TextCodec, TextSettings, TokensCodec, codec_for, encode_prompt
from lakewright.policy.codecs.tokens import ID
from lakewright.policy.training import judge_answers
from tests.support.boards.generated_rows import rows
from tests.support.boards.sample_boards import as_moves, as_strings, picture
from tests.support.models.small_language_model import language
from tests.support.models.tiny_policy import tasks, tokenizer
from tests.support.refusals import refused

HORIZON = 24
SOME = list(tasks()[:30])


def text(**settings) -> TextCodec:
    return TextCodec(language(), TextSettings(**settings))


CODECS = {"tokens": lambda: TokensCodec(tokenizer()), "text": text}


@pytest.mark.parametrize("name", CODECS)
def test_an_answer_comes_back_as_the_plan_that_it_was_made_of(name):
    codec = CODECS[name]()
    for task in SOME:
        answer = codec.encode_answer(task.board, task.moves)
        assert answer[-1] == codec.tokenizer.eos_token_id
        moves = codec.decode_answer(answer, task.board, HORIZON)
        assert plan_of(moves) == plan_of(task.moves), picture(task.board)


@pytest.mark.parametrize("name", CODECS)
def test_answers_are_judged_by_their_codec(name):
    codec = CODECS[name]()
    answers = [codec.encode_answer(task.board, task.moves) for task in SOME]
    verdicts, _ = judge_answers(SOME, answers, HORIZON, codec)
    assert verdicts.sum_of_costs.tolist() == [task.sum_of_costs for task in SOME]
    unread = judge_answers(SOME[:1], [answers[0][:1]], HORIZON, codec)[0]
    assert [FAILURE_NAMES[code] for code in unread.failure] == ["parse_error"]


def test_the_prompt_is_a_chat_that_waits_for_the_model():
    board = SOME[0].board
    message = language().decode(text().encode_prompt(board))
    assert message == f"<|im_start|>user\n{encode_prompt(board)}<|im_end|>\n<|im_start|>assistant\n"
    assert language().decode(text(thinking=False).encode_prompt(board)) == f"{message}<think>\n\n</think>\n\n"


def test_a_thought_that_the_template_begins_belongs_to_the_answer():
    codec, board = text(), SOME[0].board
    words = language()
    begun = words.encode("assistant\n<think>\n")
    plan = words.encode("agent 0: UP\nagent 1: UP")
    assert codec.decode_text(begun, plan).startswith("<think>agent 0")
    assert codec.decode_text(words.encode("assistant\n"), plan) == "agent 0: UP\nagent 1: UP"
    assert codec.decode_answer(words.encode("<think>agent 0: UP\nagent 1: UP"), board, HORIZON) is None
    moves = codec.decode_answer(words.encode("<think>no</think>agent 0: UP\nagent 1: UP"), board, HORIZON)
    assert moves is not None


def test_a_plan_in_words_gets_the_verdict_of_the_simulator_also_where_it_leaves_the_board():
    rng = np.random.default_rng(0)
    codec = text()
    plans = [["".join(rng.choice(list("UDLRW"), size=rng.integers(1, 7))) for _ in range(2)] for _ in SOME]
    moves = [as_moves(plan, 6) for plan in plans]
    answers = [codec.encode_answer(task.board, own) for task, own in zip(SOME, moves, strict=True)]
    found, played = judge_answers(SOME, answers, HORIZON, codec)
    expected = verify_rows(list(rows()[:30]), plans)
    for task, plan, code, agent, step, verdict in zip(
        SOME, plans, found.failure, found.agent, found.step, expected, strict=True
    ):
        message = picture(task.board) + str(plan)
        assert FAILURE_NAMES[code] == verdict.failure, message
        assert (None if agent < 0 else agent, None if step < 0 else step) == (verdict.agent, verdict.step), message
    assert (played == JUMP).any(), "some leave the board"


def test_plans_beyond_the_horizon_are_not_read():
    codec, board = text(), SOME[0].board
    answer = language().encode(f"agent 0: {'W ' * 9}\nagent 1: W")
    assert codec.decode_answer(answer, board, 8) is None
    assert as_strings(codec.decode_answer(answer, board, 9)) == ["W" * 9, "W"]


def test_an_unknown_codec_is_refused():
    assert (codec_for("text", language()).name, codec_for("tokens", tokenizer()).name) == ("text", "tokens")
    with refused("codec", "'runes'"):
        codec_for("runes", tokenizer())
    assert ID["<eos>"] == tokenizer().eos_token_id
