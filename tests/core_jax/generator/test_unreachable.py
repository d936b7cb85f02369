"""Boards that cannot be drawn are refused: rare strata, wrong counts and seeds, one agent that must wait."""

import pytest

from lakewright.core_jax.config import EnvConfig
from lakewright.core_jax.generator import check_reachable, generate, generator
from tests.support.boards.generated_rows import (
    CONFIG,
    RARE,
    SMALL,
    none_met,
)
from tests.support.refusals import refused


@pytest.mark.parametrize("wait", [True, False])
def test_a_stratum_that_is_not_found_is_given_up_with_size_and_remedy(monkeypatch, wait):
    monkeypatch.setattr(generator, "make_attempts", none_met)
    config = EnvConfig.single(4, 2, 0.25, float(wait))
    waits = "with a forced wait" if wait else "without a forced wait"
    with refused("board 30", 8192, f"4x4 boards for 2 agents with 3 holes {waits}", "met 0", "wait_ratio", "size 4"):
        generate(config, 0, 2000, first=30)
    with refused(0, 4096, "wait_ratio", "hole_ratio", 4):
        check_reachable(config, 0)


def test_what_cannot_be_found_is_given_up_soon(monkeypatch):
    drawn = []
    monkeypatch.setattr(generator, "workers", lambda: 2)
    monkeypatch.setattr(generator, "make_attempts", lambda *given: drawn.append(given[-1].wait) or none_met(*given))
    with refused("board 0:", 8192):
        generate(EnvConfig.single(4, 2, 0.25, 1.0), 0, 100_000)
    assert sum(map(len, drawn)) < 8 * generator.MAX_ATTEMPTS, "not so many for each of the boards"


def test_a_board_that_needs_more_attempts_than_allowed_is_refused_in_every_batch(monkeypatch):
    needed = [generate(RARE, 5, 1, first=index)[3].acceptance[0].drawn for index in range(20)]
    allowed = 3
    late = [index for index, drawn in enumerate(needed) if drawn > allowed]
    assert 0 < len(late) < 20
    monkeypatch.setattr(generator, "MAX_ATTEMPTS", allowed)
    for index in late:
        with refused(f"board {index}:", f"{allowed}"):
            generate(RARE, 5, 1, first=index)
    with refused("board ", f"{allowed} random maps") as caught:
        generate(RARE, 5, 20)
    assert int(str(caught.value).split(":")[0].removeprefix("board ")) in late
    others = [index for index in range(20) if index not in late]
    assert [generate(RARE, 5, 1, first=index)[3].index.tolist() for index in others] == [[index] for index in others]


def test_one_agent_never_has_to_wait():
    with refused("sizes.5.wait_ratio is 0.5", "1 agent"):
        generate(EnvConfig.single(5, 1, 0.2, 0.5), 0, 1)


def test_what_is_reachable_is_not_refused():
    assert check_reachable(CONFIG, 0) is None, "it raises an error otherwise"


@pytest.mark.parametrize(
    ("count", "seed", "first", "problem"),
    [
        (0, 0, 0, ["count", 0, "1 to"]),
        (1, -1, 0, ["seed", -1, "0 to"]),
        (1, 1 << 32, 0, ["seed", 4294967296, "0 to"]),
        (1, 0, -1, ["first", -1, "0 to"]),
        (2, 0, (1 << 32) - 1, ["first", 4294967295, "0 to 4294967294"]),
    ],
)
def test_what_the_generator_cannot_draw_is_refused(count, seed, first, problem):
    with refused(*problem):
        generate(SMALL, seed, count, first=first)
