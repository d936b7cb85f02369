"""Configs of boards: errors that help, files that round-trip, counts that add up."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.config import EnvConfig, SizeConfig, hole_ratio_of, holes_of
from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_config

FIVE = {"data_ratio": 1.0, "hole_ratio": 0.3, "wait_ratio": 0.5}
TOML = "agents = 3\n[sizes.5]\ndata_ratio = 1.0\nhole_ratio = 0.3\nwait_ratio = 0.5\n"
ratios = st.floats(0, 1)


def five(**changes) -> dict:
    """A legal config of one size, with changes to it."""
    return {"sizes": {"5": FIVE | changes}}


def without(field: str) -> dict:
    return {"sizes": {"5": {name: value for name, value in FIVE.items() if name != field}}}


def refusal(path) -> str:
    """The one line with which a config file is refused."""
    with pytest.raises(InputError) as caught:
        read_config(path, EnvConfig)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


# a config, and what its error must say: field, value, remedy
REFUSED = {
    "unknown field": ({**five(), "agent": 2}, ["'agent'", "= 2", "choose from sizes, agents"]),
    "unknown field of a size": (five(holes=3), ["sizes.5", "'holes'", "= 3", "choose from data_ratio"]),
    "hole ratio too high": (five(hole_ratio=0.6), ["sizes.5.hole_ratio", "0.6", "choose 0 to 0.5"]),
    "wait ratio negative": (five(wait_ratio=-0.1), ["sizes.5.wait_ratio", "-0.1", "choose 0 to 1"]),
    "data ratio too high": (five(data_ratio=1.5), ["sizes.5.data_ratio", "1.5", "choose 0 to 1"]),
    "data ratios sum to less": (five(data_ratio=0.5), ["data_ratio", "0.5", "divide each by 0.5"]),
    "ratio of a wrong type": (five(hole_ratio="many"), ["sizes.5.hole_ratio", "'many'", "expected `float`"]),
    "ratio null": (five(hole_ratio=None), ["sizes.5.hole_ratio", "None", "expected `float`"]),
    "agents of a wrong type": ({**five(), "agents": 2.5}, ["agents", "2.5", "expected `int`"]),
    "too many agents": ({**five(), "agents": 9}, ["agents", "9", "choose 1 to 8"]),
    "no agents": ({**five(), "agents": 0}, ["agents", "0", "choose 1 to 8"]),
    "size not a number": ({"sizes": {"big": FIVE}}, ["sizes", "'big'", "expected `int`"]),
    "size not an object": ({"sizes": {"5": 3}}, ["sizes.5", "3", "expected an object"]),
    "size too large": ({"sizes": {"17": FIVE}}, ["sizes.17", "17", "choose 3 to 16"]),
    "size too small": ({"sizes": {"2": FIVE}}, ["sizes.2", "2", "choose 3 to 16"]),
    "no free cells": ({"sizes": {"3": FIVE}, "agents": 5}, ["sizes.3", "9 cells", "fewer agents"]),
    "no sizes": ({"sizes": {}}, ["sizes", "empty", "name at least one"]),
    "sizes a list": ({"sizes": [5]}, ["sizes", "[5]", "expected `object`"]),
    "sizes missing": ({"agents": 2}, ["'sizes'", "missing", "add it"]),
    "hole ratio missing": (without("hole_ratio"), ["sizes.5", "'hole_ratio'", "missing", "add it"]),
    "not an object": ([1, 2], ["[1, 2]", "expected an object"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_config_is_refused_with_field_value_and_remedy(name, tmp_path):
    config, said = REFUSED[name]
    path = tmp_path / "env.json"
    path.write_bytes(msgspec.json.encode(config))
    message = refusal(path)
    assert all(part in message for part in said), message


def test_a_bad_toml_value_is_refused_like_json(tmp_path):
    path = tmp_path / "env.toml"
    path.write_text(TOML.replace("0.3", "0.7"))
    assert "sizes.5.hole_ratio is 0.7; choose 0 to 0.5" in refusal(path)


def test_what_is_not_json_or_toml_is_refused(tmp_path):
    for ending, content in (("json", b"{"), ("json", b""), ("json", b"\xff"), ("toml", b"= 1"), ("toml", b"\xff")):
        path = tmp_path / f"env.{ending}"
        path.write_bytes(content)
        message = refusal(path)
        assert f"not {ending.upper()}" in message
        assert "correct the file" in message


def test_a_missing_file_is_named(tmp_path):
    assert "No such file" in refusal(tmp_path / "nowhere.json")
    assert "check the path" in refusal(tmp_path)


def test_json_and_toml_say_the_same(tmp_path):
    (tmp_path / "env.json").write_bytes(msgspec.json.encode({**five(), "agents": 3}))
    (tmp_path / "env.toml").write_text(TOML)
    read = [read_config(tmp_path / name, EnvConfig) for name in ("env.json", "env.toml")]
    assert read == [EnvConfig.single(5, 3, 0.3, 0.5)] * 2


def test_two_agents_are_the_default():
    assert EnvConfig({5: SizeConfig(**FIVE)}).agents == 2


def test_replacing_the_sizes_keeps_the_agents_and_checks_again():
    config = EnvConfig.single(5, 3, 0.3, 0.5)
    assert config.replace({6: SizeConfig(1, 0, 0)}) == EnvConfig.single(6, 3, 0, 0)
    with pytest.raises(ValueError, match=r"sizes\.6\.hole_ratio is 0\.9"):
        config.replace({6: SizeConfig(1, 0.9, 0)})


@given(st.dictionaries(st.integers(4, 10), st.tuples(st.floats(0.1, 1), st.floats(0, 0.5), ratios), min_size=1))
def test_a_config_round_trips_through_json(drawn):
    total = math.fsum(share for share, *_ in drawn.values())
    config = EnvConfig({size: SizeConfig(share / total, *rest) for size, (share, *rest) in drawn.items()}, agents=4)
    assert msgspec.json.decode(msgspec.json.encode(config), type=EnvConfig) == config


@given(st.integers(3, 10), st.integers(1, 4), st.floats(0, 0.5))
def test_holes_are_the_nearest_number_to_their_ratio(size, agents, hole_ratio):
    free = size * size - 2 * agents
    holes = holes_of(size, agents, hole_ratio)
    assert 0 <= holes <= free
    assert abs(holes - hole_ratio * free) <= 0.5
    assert holes_of(size, agents, hole_ratio_of(size, agents, holes)) == holes


def test_a_board_without_room_for_holes_has_a_hole_ratio_of_zero():
    assert hole_ratio_of(4, 8, 0) == 0


def test_half_a_hole_is_a_hole():
    assert holes_of(5, 2, 0.5) == 11
    assert holes_of(3, 2, 0.5) == 3
    assert holes_of(4, 2, 0.0) == 0
