"""The tokens codec: boards and plans go to tokens and back, and any answer at all becomes a plan or nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewright.core_jax.types import DELTAS, JUMP, MOVES, PAD, WAIT, Failure
from lakewright.policy.codecs import VOCABULARY, build_tokenizer, decode_answer, token_ids
from lakewright.policy.codecs.tokens import CELLS, ID, cell_ids, encode_answer, encode_prompt_tokens
from lakewright.policy.tasks import BoardTask, augment_task, rotate_moves
from lakewright.policy.training.reward import play_plans
from tests.support.boards import search_oracle as oracle
from tests.support.boards.generated_rows import COUNT
from tests.support.boards.sample_boards import as_lists, as_strings, each, mixed_boards, picture
from tests.support.deep import count_examples
from tests.support.models.tiny_policy import ENGINEER_TOKENS, HORIZON, padded, tasks, tokenizer

END = ID["<eos>"]
STARTS = np.array([[0, 0], [1, 1]], np.int32)


def cell(row: int, column: int) -> int:
    return ID[f"{row},{column}"]


def decode(answer: list[int], size: int = 3, horizon: int = HORIZON) -> np.ndarray | None:
    return decode_answer(answer, size, STARTS, horizon)


class Choices:
    """In place of a random generator: one given symmetry and order of agents."""

    def __init__(self, turns: int, mirror: int, order: list[int]) -> None:
        self.drawn, self.order = iter((turns, mirror)), order

    def integers(self, _: int) -> int:
        return next(self.drawn)

    def permutation(self, count: int) -> np.ndarray:
        assert count == len(self.order)
        return np.array(self.order)


def board_of_prompt(prompt: list[int]) -> tuple[list[str], list[tuple], list[tuple]]:
    """Reads a prompt's words back: rows, starts and goals."""
    words = [VOCABULARY[token] for token in prompt]
    size = int(words[1].removeprefix("<size_").removesuffix(">"))
    parts, part = {"free": [], "<starts>": [], "<goals>": [], "<plan>": []}, "free"
    for word in words[2:]:
        if word in parts:
            part = word
        else:
            parts[part].append(tuple(map(int, word.split(","))))
    grid = ["".join("." if (row, column) in parts["free"] else "H" for column in range(size)) for row in range(size)]
    return grid, parts["<starts>"], parts["<goals>"]


def test_a_prompt_shows_the_whole_board():
    boards = [task.board for task in tasks()] + each(mixed_boards(0, 40, 10)) + each(mixed_boards(0, 9, 6, agents=3))
    boards += each(mixed_boards(0, 9, 10, agents=5))
    for board in boards:
        prompt = encode_prompt_tokens(board)
        assert board_of_prompt(prompt) == as_lists(board), picture(board)
        assert (prompt[0], prompt[-1]) == (ID["<bos>"], ID["<plan>"])


@pytest.mark.parametrize("agents", [1, 3, 5])
def test_a_plan_of_any_team_goes_to_cells_and_back_on_the_largest_board(agents):
    for number, board in enumerate(each(mixed_boards(1, 6, 10, agents=agents))):
        moves = np.random.default_rng(number).integers(5, size=(agents, 7)).astype(np.int8)
        cells = np.asarray(board.starts)[:, None] + np.cumsum(np.array(DELTAS)[moves], axis=1)
        moves[((cells < 0) | (cells > 9)).any((1, 2))] = WAIT  # who would leave the board stays
        found = decode_answer(encode_answer(board, moves), 10, np.asarray(board.starts), 7)
        assert np.array_equal(found, moves), picture(board)


def test_a_plan_goes_to_cells_and_back():
    for task in tasks():
        answer = encode_answer(task.board, task.moves)
        moves = decode_answer(answer, task.size, task.board.starts, HORIZON)
        expected = padded(task)
        expected[:, : (len(answer) - 1) // 2][expected[:, : (len(answer) - 1) // 2] == PAD] = WAIT
        assert moves is not None, picture(task.board)
        assert np.array_equal(moves, expected), picture(task.board) + f"{as_strings(moves)} {as_strings(expected)}"


def test_an_answer_interleaves_the_cells_of_the_agents():
    answer = [cell(0, 1), cell(1, 0), cell(0, 1), cell(2, 0), END]
    assert as_strings(decode(answer)) == ["RW", "LD"]


def test_what_follows_the_end_is_not_read():
    answer = [cell(0, 1), cell(1, 0), END]
    assert np.array_equal(decode(answer), decode([*answer, ID["<pad>"], END, cell(9, 9)]))


def test_an_answer_of_nothing_but_its_end_is_a_plan_of_no_moves():
    assert (decode([END]) == PAD).all()


@pytest.mark.parametrize("cells", [(cell(0, 2), cell(1, 0)), (cell(1, 1), cell(1, 2)), (cell(9, 9), cell(0, 1))])
def test_a_jump_of_the_first_agent_is_an_illegal_move(cells):
    moves = decode([*cells, END])
    assert moves[0, 0] == JUMP
    assert moves[1, 0] != JUMP


def test_a_cell_off_the_board_is_an_illegal_move_though_it_is_a_neighbour():
    starts = np.array([[2, 2], [0, 0]], np.int32)
    for off in (cell(2, 3), cell(3, 2)):
        assert as_strings(decode_answer([off, cell(0, 1), END], 3, starts, HORIZON)) == ["J", "R"]


def test_a_jump_is_judged_an_illegal_move_of_its_agent_and_step():
    task = tasks()[0]
    moves = np.full((2, HORIZON), PAD, np.int8)
    moves[:, 0] = WAIT
    moves[1, 1] = JUMP
    found = play_plans([task], moves[None])
    assert (found.failure[0], found.agent[0], found.step[0]) == (Failure.ILLEGAL_MOVE, 1, 1), picture(task.board)


UNREADABLE = {
    "nothing": [],
    "no end": [cell(0, 1), cell(1, 0)],
    "a cell short": [cell(0, 1), cell(1, 0), cell(0, 2), END],
    "a word that is no cell": [cell(0, 1), ID["<goals>"], END],
    "a word of the engineer": [cell(0, 1), len(VOCABULARY) + 1, END],
    "padding before the end": [cell(0, 1), cell(1, 0), ID["<pad>"], ID["<pad>"], END],
    "a step too long": [cell(0, 0), cell(1, 1)] * 5 + [END],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_answer_that_cannot_be_read_is_no_plan(name):
    assert decode(UNREADABLE[name], horizon=4) is None


def test_an_answer_of_the_whole_horizon_is_a_plan():
    assert as_strings(decode([cell(0, 0), cell(1, 1)] * 4 + [END], horizon=4)) == ["WWWW", "WWWW"]


@settings(max_examples=count_examples(300))
@given(st.lists(st.integers(0, 220) | st.sampled_from([END, *range(ID["0,0"], ID["0,0"] + 33)]), max_size=45))
def test_any_tokens_are_a_plan_or_none_and_never_an_exception(answer):
    for size in (3, 5):
        moves = decode(answer, size, horizon=12)
        if moves is not None:
            assert moves.shape == (2, 12)
            assert set(np.unique(moves)) <= {PAD, *range(len(DELTAS)), JUMP}


@settings(max_examples=count_examples(100))
@given(st.integers(0, COUNT - 1), st.lists(st.tuples(*[st.sampled_from(MOVES)] * 2), max_size=HORIZON))
def test_any_walk_on_the_board_comes_back_as_it_was_written(number, walk):
    task = tasks()[number]
    moves = np.full((2, HORIZON), PAD, np.int8)
    for step, letters in enumerate(walk):
        moves[:, step] = [MOVES.index(letter) for letter in letters]
    walked = np.asarray(task.board.starts)[:, None] + np.cumsum(np.array((*DELTAS, (0, 0)))[moves], axis=1)
    if ((walked >= 0) & (walked < task.size)).all():
        answer = [*cell_ids(walked[:, : len(walk)]).T.reshape(-1), END]
        assert np.array_equal(decode_answer(answer, task.size, task.board.starts, HORIZON), moves), picture(task.board)


def test_the_tokenizer_reads_prompts_as_the_codec_writes_them():
    prompt = encode_prompt_tokens(tasks()[0].board)
    text = " ".join(tokenizer().convert_ids_to_tokens(prompt))
    assert tokenizer()(text).input_ids == prompt
    assert token_ids(build_tokenizer(), CELLS) == [ID[word] for word in CELLS]
    assert len(tokenizer()) == len({*VOCABULARY, *ENGINEER_TOKENS})


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("mirror", [0, 1])
@pytest.mark.parametrize("turns", range(4))
def test_a_turned_and_mirrored_task_keeps_its_plan_valid_at_its_cost(turns, mirror, order):
    turned = [augment_task(task, Choices(turns, mirror, order)) for task in tasks()]
    found = play_plans(turned, np.stack([padded(task) for task in turned]))
    for i, (task, image) in enumerate(zip(tasks(), turned, strict=True)):
        cost = (found.failure[i], found.sum_of_costs[i])
        assert cost == (Failure.NONE, task.sum_of_costs), picture(task.board) + picture(image.board)
    grid, starts, goals = as_lists(turned[0].board)
    assert oracle.optima(grid, starts, goals).makespan == tasks()[0].makespan, picture(turned[0].board)


def test_the_sixteen_symmetries_make_sixteen_boards():
    lopsided = next(task for task in tasks() if task.size == 5)
    images = {
        str(as_lists(augment_task(lopsided, Choices(turns, mirror, order)).board))
        for turns in range(4)
        for mirror in (0, 1)
        for order in ([0, 1], [1, 0])
    }
    assert len(images) == 16
    assert str(as_lists(lopsided.board)) in images


def test_a_symmetry_keeps_waits_and_padding():
    for turns in range(4):
        for mirror in (False, True):
            moves = rotate_moves(turns, mirror)
            assert (moves[WAIT], moves[PAD]) == (WAIT, PAD)
            assert sorted(moves[:WAIT]) == list(range(WAIT))


def test_a_task_of_augmentation_is_drawn_with_every_symmetry():
    rng, task = np.random.default_rng(0), next(task for task in tasks() if task.size == 5)
    images: set[str] = {str(as_lists(augment_task(task, rng).board)) for _ in range(400)}
    assert len(images) == 16
    assert isinstance(task, BoardTask)
