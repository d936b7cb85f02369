"""Problems in text: asked, answered, judged, learned, by bytes and by a language model."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch

from lakewright.policy.codecs import TextSettings
from lakewright.policy.models import get_codec, load_checkpoint, load_model, save_checkpoint
from lakewright.policy.play import DrawnTasks
from lakewright.policy.text_play import build_byte_policy, key_of_prompt, play_texts
from lakewright.policy.training import (
    GrpoSettings,
    WarmupSettings,
    answer_groups,
    reference_log_probs,
    roll_out,
    train_grpo,
    warm_up,
)
from tests.support.models.small_language_model import language, language_model
from tests.support.models.text_problems import (
    FAILURES,
    Problem,
    Verdict,
    byte_play,
    draw_pairs,
    draw_sums,
    judge,
)
from tests.support.models.tiny_policy import tiny_model, tokenizer
from tests.support.refusals import refused

ASKED = draw_pairs(10**6, 100)


@pytest.fixture(scope="module")
def warmed():
    """A model after a short warm-up, and its play."""
    model, play = byte_play()
    settings = WarmupSettings(steps=64, batch=32, matrix_rate=1e-2, other_rate=1e-2, decay=0.9)
    return warm_up(model, play, DrawnTasks(draw_pairs), [], settings, 0), play


def measure(model, play, problems) -> tuple[float, float]:
    """The share of greedy answers that are valid, and the mean log-probability of the reference answers."""
    valid = [made.judged.valid[0] for made in answer_groups(model, play, problems)]
    return float(np.mean(valid)), float(reference_log_probs(model, play, problems).mean())


def test_a_byte_policy_learns_by_warm_up_and_then_by_grpo(tmp_path, warmed):
    first, play = warmed
    settings = GrpoSettings(steps=12, prompts=16, group=8, learning_rate=1e-3, guided=True)
    drawn = DrawnTasks(draw_pairs, 5000)
    last = train_grpo(deepcopy(first), play, drawn, settings, seed=0, scratch=tmp_path)
    accuracies, chances = zip(*(measure(model, play, ASKED) for model in (byte_play()[0], first, last)), strict=True)
    assert accuracies[0] == 0
    assert accuracies[1] < accuracies[2] > 0.3, "one of 36 answers is right by chance"
    assert list(chances) == sorted(chances)


@pytest.mark.deep
def test_a_byte_policy_learns_to_add(tmp_path):
    model, play = byte_play("0.6M")
    held_out = draw_sums(10**6, 1000)
    model = warm_up(model, play, DrawnTasks(draw_sums), [], WarmupSettings(steps=300), 0)
    warmed, _ = measure(model, play, held_out)
    grpo = GrpoSettings(steps=60, guided=True)
    model = train_grpo(model, play, DrawnTasks(draw_sums, 500_000), grpo, seed=0, scratch=tmp_path)
    assert 0.1 < warmed < measure(model, play, held_out)[0]


def test_grpo_reports_the_groups_of_each_problem(tmp_path):
    model, play = byte_play()
    logs, groups, answers = [], [], []
    problems = draw_pairs(0, 8)
    train_grpo(
        *(model, play, problems, GrpoSettings(steps=2, prompts=4, group=3)),
        seed=0,
        scratch=tmp_path,
        on_step=logs.append,
        on_groups=groups.extend,
        on_answers=answers.extend,
    )
    assert [group.key for group in groups] == [key_of_prompt(problem) for problem in problems]
    for made, group, problem in zip(answers, groups, problems, strict=True):
        assert made.prompt == play.encode_prompt(problem)
        said = [play.codec.decode_answer(answer) for answer in made.answers]
        assert list(made.judged.details) == said
        assert group.valid == sum(text == problem.answer for text in said)
        assert sum(group.failures.values()) == 3 - group.valid
    assert sum(log["sampled/tokens"] for log in logs) == sum(made.tokens for made in answers)
    for log in logs:
        assert log["valid"] + sum(log[f"failure/{name}"] for name in FAILURES) == pytest.approx(1)


def test_samples_depend_on_their_seed_and_greedy_answers_on_nothing(warmed):
    groups, tokens = roll_out(*warmed, ASKED[:8], 4, seed=1)
    assert (groups, tokens) == roll_out(*warmed, ASKED[:8], 4, seed=1)
    assert groups != roll_out(*warmed, ASKED[:8], 4, seed=2)[0]
    assert [group.completions for group in groups] == [4] * 8
    greedy = [made.answers for made in answer_groups(*warmed, ASKED[:8])]
    assert greedy == [answer_groups(*warmed, [problem])[0].answers for problem in ASKED[:8]]
    assert answer_groups(*warmed, []) == []


def test_log_probabilities_of_reference_answers_are_exact(warmed):
    model, play = warmed
    problems = [*ASKED[:5], Problem("longer than the others", "ab"), Problem("", "")]
    expected = []
    for problem in problems:
        prompt, answer = play.encode_prompt(problem), play.encode_reference(problem)
        with torch.inference_mode():
            scores = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        expected.append(float(scores.gather(-1, torch.tensor(answer)[:, None]).sum()))
    for batch in (1, 3, 64):
        assert reference_log_probs(model, play, problems, batch) == pytest.approx(expected, abs=1e-4)


def test_a_checkpoint_of_bytes_answers_as_the_model_did(tmp_path):
    model, play = byte_play(seed=3)
    save_checkpoint(tmp_path / "one", model, play.tokenizer)
    loaded, words = load_checkpoint(tmp_path / "one", "bytes", device="cpu")
    again = play_texts(loaded, words, judge, FAILURES, text=TextSettings(max_tokens=4))
    problems = draw_pairs(0, 6)
    assert get_codec(loaded) == "bytes"
    assert [made.answers for made in answer_groups(loaded, again, problems)] == [
        made.answers for made in answer_groups(model, play, problems)
    ]
    with refused("codec", "'bytes'", "'tokens'"):
        load_checkpoint(tmp_path / "one", device="cpu")
    save_checkpoint(tmp_path / "other", model, tokenizer())
    with refused("words", "version's codec 'bytes'"):
        load_model(tmp_path / "other", device="cpu")


def test_a_language_model_learns_problems_in_its_chat(tmp_path):
    model = language_model()
    play = play_texts(model, language(), judge, FAILURES, text=TextSettings(max_tokens=6))
    losses, logs = [], []
    settings = WarmupSettings(steps=20, batch=4, matrix_rate=5e-2, other_rate=5e-2)
    model = warm_up(model, play, draw_pairs(0, 8), [], settings, 0, lambda _, loss: losses.append(loss))
    assert losses[-1] < 0.8 * losses[0]
    grpo = GrpoSettings(steps=1, prompts=2, group=2)
    train_grpo(model, play, draw_pairs(0, 2), grpo, seed=0, scratch=tmp_path, on_step=logs.append)
    assert logs[0]["completions/max_length"] <= 6
    with refused("grpo: 1", 2):
        train_grpo(model, play, draw_pairs(0, 1), grpo, seed=0, scratch=tmp_path)


def test_what_the_model_has_no_room_for_is_refused():
    model, play = byte_play()
    play.encode_prompt(Problem("x" * 27, ""))
    with refused("29 tokens", "4", "32"):
        answer_groups(model, play, [Problem("x" * 28, "")])
    assert play.encode_reference(Problem("", "123"))[-1] == play.tokenizer.eos_token_id
    with refused("'1234'", "5 tokens", "4"):
        play.encode_reference(Problem("", "1234"))


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ([Verdict(True, 1.0, "")], ["1 verdicts on 2 answers"]),
        ([Verdict(True, 1.0, "wrong")] * 2, ["valid", "failure 'wrong'"]),
        ([Verdict(False, 0.0, "odd")] * 2, ["invalid", "failure 'odd'", "empty, wrong"]),
        ([Verdict(True, math.nan, "")] * 2, ["nan", "finite"]),
    ],
)
def test_verdicts_that_contradict_themselves_are_refused(verdicts, told):
    model, play = byte_play(judge=lambda problems, answers: verdicts)
    with refused("judge: ", *told):
        answer_groups(model, play, draw_pairs(0, 2))


def test_models_that_know_boards_only_are_refused():
    with refused("codec", "'tokens'"):
        play_texts(tiny_model(), tokenizer(), judge, FAILURES)
    with refused("model.architecture"):
        build_byte_policy("board", 0)
