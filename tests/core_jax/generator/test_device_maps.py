"""Maps on accelerators, on a CPU: the boards and labels of `generate` are those of the host's way."""

import dataclasses

import jax
import numpy as np
import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.errors import InputError, TooRareError
from lakewright.core_jax.generator import Batch, check_reachable, device_attempts, device_maps, generate, generator
from lakewright.core_jax.solver.accelerator import sizes
from tests.support.boards.sample_boards import assert_every
from tests.support.refusals import refused

SIZE, SEED, COUNT = 5, 5, 100
CONFIG = EnvConfig.single(SIZE, 2, hole_ratio=0.3, wait_ratio=0.5)


@pytest.fixture
def on_device(monkeypatch):
    """Has `generate` take the way of accelerators, in blocks of 64 boards."""
    monkeypatch.setattr(generator, "on_gpu", lambda: True)
    monkeypatch.setattr(device_maps, "BLOCKS", (64,))


def assert_same(found: Batch, expected: Batch) -> None:
    assert found.acceptance == expected.acceptance
    assert found.index.tolist() == expected.index.tolist()
    same = jax.tree.map(
        lambda one, other: (one == other).reshape(len(one), -1).all(axis=1), found.boards, expected.boards
    )
    assert_every(np.stack(jax.tree.leaves(same)).all(axis=0), expected.boards)
    for name in ("status", "certificate", "makespan", "sum_of_costs", "wait_required"):
        one, other = getattr(found.labels, name), getattr(expected.labels, name)
        assert_every(one == other, expected.boards, found=one, expected=other)
    steps = min(found.labels.moves.shape[2], expected.labels.moves.shape[2])
    one, other = (labels.moves[..., :steps] for labels in (found.labels, expected.labels))
    assert_every((one == other).all(axis=(1, 2)), expected.boards)


def draw_on_host(config: EnvConfig, size: int, count: int) -> Batch:
    """The boards as the host draws them, whatever `on_device` says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator, "on_gpu", lambda: False)
        return generate(config, SEED, count)[size]


@pytest.mark.parametrize(
    ("size", "hole_ratio", "wait_ratio"),
    [
        (5, 0.3, 0.5),
        *(pytest.param(*case, marks=pytest.mark.deep) for case in ((3, 0.0, 0.5), (4, 0.45, 1.0), (8, 0.3, 0.75))),
    ],
)
def test_boards_and_labels_are_those_of_the_hosts_way(on_device, size, hole_ratio, wait_ratio):
    config = EnvConfig.single(size, 2, hole_ratio=hole_ratio, wait_ratio=wait_ratio)
    assert_same(generate(config, SEED, COUNT)[size], draw_on_host(config, size, COUNT))


@pytest.mark.deep
def test_floods_that_must_go_deeper_change_no_board(on_device, monkeypatch):
    monkeypatch.setattr(device_maps, "flood_depth", lambda size: 4)
    deeper = []
    go_deeper = device_maps._Flooding._go_deeper
    monkeypatch.setattr(device_maps._Flooding, "_go_deeper", lambda self: deeper.append(1) or go_deeper(self))
    found = generate(CONFIG, SEED, COUNT)[SIZE]
    assert len(deeper) > 2, "two blocks should go deeper more than once"
    assert_same(found, draw_on_host(CONFIG, SIZE, COUNT))


def test_a_full_device_gets_smaller_blocks_and_loses_no_board(on_device, monkeypatch):
    plain, tried = device_maps._draw_block, []

    def draw_block(size, given, *more):
        tried.append(given.block)
        if given.block > 64:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1 byte")
        return plain(size, given, *more)

    monkeypatch.setattr(device_maps, "_draw_block", draw_block)
    monkeypatch.setattr(device_maps, "choose_draw_sizes", lambda *_: sizes.Sizes(1 << 10, 1 << 10, 32))
    found = generate(CONFIG, SEED, COUNT)[SIZE]
    assert tried == [1 << 10, 64, 64], "one large block, then as many small ones as there are boards"
    assert_same(found, draw_on_host(CONFIG, SIZE, COUNT))


@pytest.mark.parametrize("said", ["INTERNAL: the device is lost\nwith details", "RESOURCE_EXHAUSTED: Out of memory"])
def test_a_device_that_disappears_or_has_no_room_at_all_is_one_line(on_device, monkeypatch, said):
    def fail(*_):
        raise jax.errors.JaxRuntimeError(said)

    monkeypatch.setattr(device_maps, "begin_boards", fail)
    for use in (lambda: generate(CONFIG, SEED, COUNT), lambda: check_reachable(CONFIG, SEED)):
        with pytest.raises(InputError, match=r"^the device stopped at a block of 64 boards \([^\n]*\); free"):
            use()


def test_flags_of_64_bits_change_no_board(on_device):
    plain = generate(CONFIG, SEED, COUNT)[SIZE]
    with jax.enable_x64(True):
        assert_same(generate(CONFIG, SEED, COUNT)[SIZE], plain)


@pytest.mark.parametrize(("memory", "block"), [(1 << 23, 1 << 12), (1 << 26, 1 << 14), (1 << 30, 1 << 18)])
def test_a_block_fits_into_the_memory_of_a_thread(memory, block):
    found = device_maps.choose_draw_sizes(8, 10**6, memory)
    assert (found.block, found.block % found.flood) == (block, 0)
    layers = 3 * device_maps.flood_depth(8) // 2 + 2 + sizes.STATES
    # Two words for 64 cells, two plans of 72 steps for each board, and 65 random numbers.
    assert found.flood * layers * 4 * 2 * 64 + found.block * (2 * 72 + 4 * 65) <= memory
    assert device_maps.choose_draw_sizes(8, 10**5, memory).block <= 1 << 16


def test_a_memory_too_small_for_any_block_is_refused():
    with refused("8x8", "5 MiB", "1 MiB"):
        device_maps.choose_draw_sizes(8, 100, 1 << 20)


def test_the_words_of_all_saved_layers_are_numbered_by_int32():
    found = device_maps.choose_draw_sizes(11, 10**6, 1 << 40)
    assert found.flood * (3 * device_maps.flood_depth(11) // 2 + 2) * 11**2 < 1 << 31


def test_boards_that_do_not_suit_the_device_are_drawn_by_the_host(on_device, monkeypatch):
    monkeypatch.setattr(device_maps, "memory_per_thread", lambda: 1 << 17)
    monkeypatch.setattr(device_maps, "draw_boards", lambda *given, **more: pytest.fail("the device has no room"))
    monkeypatch.setattr(generator, "make_attempts", lambda *given: pytest.fail("the host draws"))
    with pytest.raises(pytest.fail.Exception, match="the host draws"):
        generate(CONFIG, SEED, COUNT)


def test_a_board_that_is_drawn_needs_no_deeper_flood():
    flags = np.array([True, False, False])
    none = np.zeros(3, np.int32)
    progress = device_attempts.BoardProgress((), none, none, none, none + 7, is_open=flags, is_deep=~flags)
    assert device_attempts.count_open(progress).tolist() == [1, 0, 7]


def test_a_board_that_no_attempt_makes_is_named(on_device, monkeypatch):
    monkeypatch.setattr(generator, "MAX_ATTEMPTS", 1)
    with pytest.raises(TooRareError, match=r"^board \d+: none of 1 random maps .* 5x5 boards for 2 agents"):
        generate(CONFIG, SEED, COUNT)


@pytest.mark.parametrize("wait", [False, True])
def test_attempts_that_meet_a_stratum_are_those_of_the_hosts_way(on_device, wait):
    source = generator._Source.of(CONFIG, SIZE, SEED)
    lanes = generator.Lanes(np.full(64, wait), np.zeros(64, int), np.arange(64) + 7)
    found = device_maps.find_met(SIZE, source.holes, source.streams, lanes.wait, lanes.number)
    lanes = dataclasses.replace(
        lanes, wait=np.resize(lanes.wait, 512), index=np.zeros(512, int), number=np.arange(512) + 7
    )
    assert found.tolist() == source.make_attempts(lanes).met[:64].tolist()


def test_the_same_configs_are_reachable_on_a_device(on_device, monkeypatch):
    check_reachable(CONFIG, SEED)
    monkeypatch.setattr(generator, "REACHED", 512)
    monkeypatch.setattr(generator, "REACH_ATTEMPTS", 512)
    said = []
    for on_gpu in (True, False):
        monkeypatch.setattr(generator, "on_gpu", lambda on_gpu=on_gpu: on_gpu)
        with pytest.raises(TooRareError, match=r"^only \d+ of 512 random maps") as refused:
            check_reachable(CONFIG, SEED)
        said.append(str(refused.value))
    assert said[0] == said[1]
