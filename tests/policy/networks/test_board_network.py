"""The board network: a causal model whose answers are walks on the free cells of the board that its prompt names."""

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.support import convert
from lakewright.core_jax.types import Failure
from lakewright.policy.board_play import BoardPlay
from lakewright.policy.codecs import TokensCodec, build_tokenizer
from lakewright.policy.codecs.tokens import CELLS, FIRST_CELL, ID, MAX_TOKEN_SIZE, encode_answer, encode_prompt_tokens
from lakewright.policy.evaluation import evaluate
from lakewright.policy.inference import sample
from lakewright.policy.model_settings import BoardNetworkSettings, ModelSettings
from lakewright.policy.models import answers_only_plans, build_model, load_checkpoint, save_checkpoint
from lakewright.policy.networks.joint_step import LOW
from lakewright.policy.tasks import BoardTask
from lakewright.policy.training import GrpoSettings, WarmupSettings, train_grpo, warm_up
from tests.support.models.tiny_policy import HORIZON, tasks, weights

TINY = ModelSettings(architecture="board", board=BoardNetworkSettings(channels=6, iterations=3, hidden=8, layers=2))
WORDS = build_tokenizer()
PLAY = BoardPlay(TokensCodec(WORDS), HORIZON)
PAD, END = ID["<pad>"], ID["<eos>"]
SOME = tasks()[:8] + tasks()[-8:]


def network(seed: int = 0, **changes: object):
    """A network of random weights."""
    board = msgspec.structs.replace(TINY.board, **changes)
    return build_model(msgspec.structs.replace(TINY, board=board), WORDS, seed).eval()


def prompt_and_answer(task: BoardTask) -> tuple[list[int], list[int]]:
    return encode_prompt_tokens(task.board), encode_answer(task.board, task.moves)


def logits_of(model, rows: list[list[int]], before: int = 0) -> torch.Tensor:
    """The logits of rows, padded to one length, `before` of it on the left."""
    longest = max(map(len, rows)) + before
    padded = [[PAD] * before + row + [PAD] * (longest - before - len(row)) for row in rows]
    with torch.inference_mode():
        return model(input_ids=torch.tensor(padded)).logits


@given(st.integers(0, 3), st.lists(st.integers(0, len(SOME) - 1), min_size=1, max_size=4))
def test_padding_and_other_boards_of_the_batch_change_nothing(before, chosen):
    model, pairs = network(), [prompt_and_answer(SOME[number]) for number in chosen]
    together = logits_of(model, [prompt + answer for prompt, answer in pairs], before)
    for number, (prompt, answer), found in zip(chosen, pairs, together, strict=True):
        places = slice(before + len(prompt) - 1, before + len(prompt) + len(answer) - 1)
        alone = logits_of(model, [prompt + answer])[0, len(prompt) - 1 : -1]
        assert torch.allclose(found[places], alone, atol=1e-4), f"board {number}"


def test_a_choice_depends_on_nothing_that_comes_later():
    model = network()
    for task in SOME:
        prompt, answer = prompt_and_answer(task)
        whole = logits_of(model, [prompt + answer])[0]
        for length in range(len(answer)):
            part = logits_of(model, [prompt + answer[:length]])[0, -1]
            assert torch.allclose(whole[len(prompt) + length - 1], part, atol=1e-4), f"{task.board}: word {length}"


def test_only_free_neighbours_can_be_named_and_an_answer_ends_after_whole_steps():
    model = network()
    for task in SOME:
        prompt, answer = prompt_and_answer(task)
        agents, free = len(task.moves), set(prompt) & set(range(FIRST_CELL, FIRST_CELL + len(CELLS)))
        where = [prompt[prompt.index(ID["<starts>"]) + 1 + agent] for agent in range(agents)]
        for place, logits in enumerate(logits_of(model, [prompt + answer])[0, len(prompt) - 1 : -1]):
            cell = where[place % agents]
            beside = {word for word in free if _steps_between(word, cell) <= 1}
            possible = set((logits > LOW).nonzero().flatten().tolist())
            assert possible <= beside | {END}, f"{task.board}: word {place}"
            assert (END in possible) == (place % agents == 0)
            assert possible - {END}, "an agent may always stay, or go where another will be"
            where[place % agents] = answer[place]


def _steps_between(word: int, other: int) -> int:
    ends = [divmod(cell - FIRST_CELL, MAX_TOKEN_SIZE) for cell in (word, other)]
    return abs(ends[0][0] - ends[1][0]) + abs(ends[0][1] - ends[1][1])


def test_answers_hardly_ever_collide_where_rules_are_kept_and_do_where_they_are_not():
    collisions = {Failure.VERTEX_CONFLICT, Failure.SWAP_CONFLICT}

    def collided(model) -> int:
        verdicts, _ = evaluate(model, PLAY, list(tasks()), temperature=1.0)
        return sum(failure in collisions for failure in verdicts.failure.tolist())

    torch.manual_seed(0)
    assert 5 * collided(network()) < collided(network(keeps_rules=False))


@pytest.mark.parametrize("distances", [True, False])
def test_what_is_decoded_word_by_word_is_what_the_model_says_in_one_piece(distances):
    model = network(cost_to_go=distances)
    prompts = [encode_prompt_tokens(task.board) for task in SOME]
    torch.manual_seed(0)
    found = sample(model, WORDS, prompts, copies=3, max_new_tokens=24, temperature=2.0, batch=18)
    assert len({len(answer) for answer in found.answers}) > 2, "some boards end before others"
    for row, (answer, said) in enumerate(zip(found.answers, found.log_probs, strict=True)):
        prompt = prompts[row // 3]
        logits = logits_of(model, [prompt + answer])[0, len(prompt) - 1 : -1] / 2.0
        expected = logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None]).squeeze(-1)
        assert torch.allclose(torch.tensor(said), expected, atol=1e-4), f"row {row}: {answer}"


def test_a_checkpoint_says_what_the_model_said(tmp_path):
    model, (prompt, answer) = network(), prompt_and_answer(SOME[0])
    save_checkpoint(tmp_path / "checkpoint", model, WORDS)
    loaded, words = load_checkpoint(tmp_path / "checkpoint")
    assert {file.suffix for file in (tmp_path / "checkpoint").glob("*.*")} == {".json", ".safetensors"}
    assert torch.equal(logits_of(loaded.eval(), [prompt + answer]), logits_of(model, [prompt + answer]))
    assert answers_only_plans(loaded)
    assert words.get_vocab() == WORDS.get_vocab()


def test_a_warm_up_lowers_the_loss():
    losses: list[float] = []
    settings = WarmupSettings(steps=80, batch=16, matrix_rate=1e-2, other_rate=1e-2)
    warm_up(network(channels=16, hidden=32), PLAY, tasks(), [], settings, 0, lambda step, loss: losses.append(loss))
    assert sum(losses[-5:]) < 0.75 * sum(losses[:5]), losses


def test_a_step_of_grpo_changes_the_weights(tmp_path):
    model = network()
    before = weights(model)
    settings = GrpoSettings(steps=1, prompts=4, group=4, learning_rate=1e-2, optimizer="muon", guided=True)
    logs: list[dict] = []
    play = BoardPlay(TokensCodec(WORDS), 8)
    train_grpo(model, play, list(tasks()[:8]), settings, seed=0, scratch=tmp_path, on_step=logs.append)
    assert 0 <= logs[0]["valid"] <= 1
    assert any(not torch.equal(before[name], weight) for name, weight in weights(model).items())
    assert all(weight.isfinite().all() for weight in weights(model).values())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"architecture": "board", "board": {"channels": 0}}, "channels"),
        ({"architecture": "board", "board": {"iterations": 1000}}, "iterations"),
        ({"architecture": "lattice"}, "architecture"),
    ],
)
def test_settings_out_of_range_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        convert(settings, ModelSettings, "model")
