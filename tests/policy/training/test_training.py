"""Warm-up, sampling, evaluation and GRPO, on a model of a few thousand weights."""

import math
import os
from copy import deepcopy

import numpy as np
import pytest
import torch

from lakewright.core_jax.config import EnvConfig, SizeConfig
from lakewright.core_jax.results import pool
from lakewright.core_jax.types import FAILURE_NAMES, Failure
from lakewright.engineer.evidence import DeltaGrammar, EvidenceSettings, read_tokens
from lakewright.engineer.lessons import LessonSettings, synthetic_examples
from lakewright.experiments.environments.lake import design_of, lake_space
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TokensCodec, token_ids
from lakewright.policy.codecs.tokens import ID, encode_answer
from lakewright.policy.evaluation import evaluate, outcomes_by_size
from lakewright.policy.inference import answer_tasks, answer_under_grammar
from lakewright.policy.models import load_model, save_checkpoint
from lakewright.policy.training import (
    GrpoSettings,
    WarmupSettings,
    judge_answers,
    train_grpo,
    warm_up,
    warmup,
)
from lakewright.policy.training.warmup import _draw_batches, plan_loss
from tests.support.boards.generated_rows import rows
from tests.support.boards.sample_boards import picture
from tests.support.models.tiny_policy import HORIZON, SHORT, board_play, tasks, tiny_model, tokenizer, weights
from tests.support.refusals import refused

END = ID["<eos>"]


def ended(answers: list[list[int]]) -> list[list[int]]:
    """Answers up to their end."""
    return [answer[: answer.index(END) + 1] if END in answer else answer for answer in answers]


def batched(size: int) -> BoardPlay:
    """Short answers, so many decoded together."""
    play = board_play(6)
    play.codec.batch = size
    return play


@pytest.fixture(scope="module")
def warmed():
    """A model after a short warm-up, and the losses on the way."""
    losses: list[float] = []
    settings = WarmupSettings(steps=100, batch=16, matrix_rate=5e-3, other_rate=5e-3, decay=0.9)
    model = warm_up(tiny_model(), board_play(), tasks()[:20], [], settings, 0, lambda step, loss: losses.append(loss))
    return model, losses


def test_warm_up_lowers_the_loss(warmed):
    _, losses = warmed
    assert len(losses) == 100
    assert losses[0] == pytest.approx(math.log(len(tokenizer())), rel=0.1), "a random model guesses among all words"
    assert np.mean(losses[-5:]) < 0.7 * losses[0]


def test_warm_up_gives_the_same_weights_again(warmed):
    settings = WarmupSettings(steps=3, batch=8)
    one, other = (warm_up(tiny_model(), board_play(), tasks(), [], settings, 4) for _ in range(2))
    for name, weight in weights(one).items():
        assert torch.equal(weight, weights(other)[name]), name


def test_a_batch_of_the_warm_up_holds_its_share_of_other_examples():
    extra = [(token_ids(tokenizer(), ["<now>"]), token_ids(tokenizer(), ["<end>"]))]
    settings = WarmupSettings(batch=16, extra_share=0.25)
    pool_of_batches = _draw_batches(board_play(), tasks(), extra, settings, np.random.default_rng(0))
    assert [len(batch) for batch in pool_of_batches] == [16] * 8
    assert sum(example == extra[0] for batch in pool_of_batches for example in batch) == 8 * 4
    longest = [max(len(prompt) for prompt, _ in batch) for batch in pool_of_batches]
    assert longest != sorted(longest), "batches of like length come in a random order"


def test_boards_alone_are_learned_first_where_the_other_examples_are_to_begin_later(monkeypatch):
    shares = []

    def noted(model, examples, pad):
        shares.append(sum(example == extra[0] for example in examples) / 4)
        return plan_loss(model, examples, pad)

    monkeypatch.setattr(warmup, "plan_loss", noted)
    extra = [(token_ids(tokenizer(), ["<now>"]), token_ids(tokenizer(), ["<end>"]))]
    settings = WarmupSettings(steps=32, batch=4, extra_share=0.25, extra_from=0.4)
    warm_up(tiny_model(), board_play(), tasks(), extra, settings, 0)
    assert shares[:16] == [0.0] * 16, "from the first pool of eight on that begins after the share"
    assert sum(shares[16:]) == 16 * 0.25


def test_greedy_answers_do_not_depend_on_the_batch(warmed):
    asked = list(tasks()[:24])
    progress: list[int] = []
    batches = {
        size: ended(answer_tasks(warmed[0], batched(size), asked, on_progress=progress.append)) for size in (1, 3, 64)
    }
    assert sum(progress) == 3 * len(asked)
    assert len({str(answer) for answer in batches[1]}) > 1, "a warmed model does not answer all boards alike"
    for size in (3, 64):
        for task, one, many in zip(asked, batches[1], batches[size], strict=True):
            assert one == many, f"batch of {size}: {picture(task.board)}"


def test_sampled_answers_differ_and_depend_on_the_seed_of_torch():
    model = tiny_model()

    def sample(seed: int) -> list[list[int]]:
        torch.manual_seed(seed)
        return answer_tasks(model, board_play(4), list(tasks()[:4]), temperature=1.0)

    assert sample(0) == sample(0)
    assert sample(0) != sample(1)


def test_a_random_model_answers_under_the_grammar_with_deltas_alone():
    config = EnvConfig({3: SizeConfig(0.5, 0.2, 0.5), 4: SizeConfig(0.5, 0.2, 0.5)})
    space = lake_space()
    grammar = DeltaGrammar(space, config.sizes)
    lessons = LessonSettings().build_lessons("regret", EvidenceSettings())
    prompts = [
        prompt for prompt, _ in synthetic_examples(4, design_of(config), space, 3, np.random.default_rng(0), lessons)
    ]
    answers = []
    for seed, prompt in enumerate(prompts):
        answers.append(answer_under_grammar(tiny_model(seed), tokenizer(), prompt, grammar.allowed))
        assert set(read_tokens(answers[-1], space).edits) <= {3, 4}, answers[-1]
    assert any(len(answer) > 1 for answer in answers), "some of four random models edit something"


def test_the_grammar_decoder_takes_the_likeliest_of_the_allowed_words():
    prompt, allowed = ["<now>", "<size_3>"], ("<data+1>", "<hole+1>", "<wait+1>")
    answer = answer_under_grammar(
        tiny_model(), tokenizer(), prompt, lambda progress: () if len(progress) == 3 else allowed
    )
    with torch.inference_mode():
        for length in range(3):
            ids = torch.tensor([token_ids(tokenizer(), [*prompt, *answer[:length]])])
            scores = tiny_model()(input_ids=ids).logits[0, -1, token_ids(tokenizer(), allowed)]
            assert answer[length] == allowed[int(scores.argmax())]


def test_grpo_changes_the_weights_and_logs_its_figures_without_a_word_of_trl(tmp_path, warmed, recwarn):
    logs: list[dict] = []
    before = weights(warmed[0])
    settings = GrpoSettings(steps=2, prompts=8, group=8, learning_rate=1e-3, temperature=0.7)
    trained = train_grpo(
        *(deepcopy(warmed[0]), board_play(12), list(tasks()[:16]), settings),
        seed=0,
        scratch=tmp_path / "scratch",
        on_step=logs.append,
    )
    assert [log["step"] for log in logs] == [1, 2]
    for log in logs:
        shares = [log[f"failure/{name}"] for name in FAILURE_NAMES[1:]] + [log["valid"]]
        assert sum(shares) == pytest.approx(1), log
        assert 0 <= log["reward"] <= 1
        assert 0 <= log["frac_reward_zero_std"] <= 1
    assert any(log["reward"] > 0 for log in logs), "after the warm-up some answers can be read"
    after = weights(trained)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(weight).all() for weight in after.values())
    assert not [str(warned.message) for warned in recwarn if "rollout_func" in str(warned.message)]
    assert "TRL_EXPERIMENTAL_SILENCE" not in os.environ, "a library sets no environment variable"


OPTIONS = [  # every loss; and the other options, each with one of them
    {"loss_type": "grpo", "beta": 0.01},
    {"loss_type": "bnpo", "scale_rewards": "none"},
    {"loss_type": "dr_grpo", "scale_rewards": "batch", "epsilon_high": 0.28},
    *({"loss_type": name} for name in ("cispo", "sapo", "luspo", "vespo")),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_of_grpo_trains(tmp_path, warmed, options):
    save_checkpoint(tmp_path / "model", warmed[0], tokenizer())
    model, words = load_model(tmp_path / "model")
    settings = GrpoSettings(steps=1, prompts=8, group=8, learning_rate=1e-3, temperature=0.7, **options)
    trained = train_grpo(
        *(model, BoardPlay(TokensCodec(words), 12), list(tasks()[:8]), settings), seed=0, scratch=tmp_path / "scratch"
    )
    before, after = weights(warmed[0]), weights(trained)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(torch.isfinite(weight).all() for weight in after.values())


def test_too_few_boards_for_a_step_of_grpo_are_refused(tmp_path):
    with refused("grpo: 3", 4):
        train_grpo(tiny_model(), board_play(6), list(tasks()[:3]), SHORT["grpo"], seed=0, scratch=tmp_path)


def test_an_evaluation_counts_every_board_once(warmed):
    asked = list(tasks()[:40])
    verdicts, plans = evaluate(warmed[0], board_play(6), asked)
    sizes = outcomes_by_size(asked, verdicts.failure, verdicts.makespan, verdicts.sum_of_costs)
    assert plans.shape == (40, 2, 6)
    assert {size: found.boards for size, found in sizes.items()} == {
        size: sum(task.size == size for task in asked) for size in sorted({task.size for task in asked})
    }
    for found in sizes.values():
        assert found.valid + sum(found.failures.values()) == found.boards
        assert found.wait_valid <= found.wait_boards
    assert pool(sizes.values()).valid == int((verdicts.failure == Failure.NONE).sum())


def test_certified_plans_are_counted_as_valid_and_optimal():
    asked = list(tasks())
    verdicts, _ = judge_answers(asked, [encode_answer(task.board, task.moves) for task in asked], HORIZON)
    found = pool(outcomes_by_size(asked, verdicts.failure, verdicts.makespan, verdicts.sum_of_costs).values())
    assert (found.boards, found.valid, found.optimal_sum_of_costs) == (len(asked),) * 3
    assert (found.wait_boards, found.wait_valid) == (sum(row.wait_required for row in rows()),) * 2
    assert 0 < found.optimal_makespan <= found.boards
