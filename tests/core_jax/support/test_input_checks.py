"""Configs from outside: what would be read as something else, or never end, is refused in one line."""

import os
import subprocess
import sys

import msgspec
import pytest

from lakewright.core_jax.support import read_config, read_raw
from tests.support.refusals import refused


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """A config of one number, and of one that it may hold."""

    size: int
    deeper: "Shape | None" = None


@pytest.mark.parametrize("name", ["shape.json", "shape.toml"])
def test_a_byte_order_mark_is_no_part_of_a_config(tmp_path, name):
    text = "size = 3\n" if name.endswith(".toml") else '{"size": 3}'
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert read_config(tmp_path / name, Shape) == Shape(3)


@pytest.mark.parametrize("text", ['{"size": 3, "size": 4}', '{"size": 3, "deeper": {"size": 1, "\\u0073ize": 2}}'])
def test_a_key_given_twice_is_refused(tmp_path, text):
    path = tmp_path / "shape.json"
    path.write_text(text)
    with refused("shape.json:", "'size'"):
        read_raw(path)


def test_a_named_pipe_is_refused_at_once_and_what_a_command_prints_is_read(tmp_path):
    os.mkfifo(tmp_path / "shape.json")
    with refused("shape.json", "pipe"):
        read_raw(tmp_path / "shape.json")
    program = "from lakewright.core_jax.support import read_raw; print(read_raw('/dev/stdin'))"
    ended = subprocess.run([sys.executable, "-c", program], input='{"size": 3}', capture_output=True, text=True)
    assert ended.stdout == "{'size': 3}\n"
