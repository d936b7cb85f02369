"""TOML from outside: what is slow to read or cannot be printed is refused in a line, and at once."""

import time
import tomllib
from pathlib import Path

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import read_raw, toml_table

MANY = 100_000
REFUSED = {
    "many digits": (f"a = {'9' * 5000}", "a whole number has thousands of digits; choose one within 64 bits"),
    "many digits in hexadecimal": (f"a.b = [0x{'f' * 5000}]", "a.b.0: a whole number of 20000 bits; choose one within"),
    "a bit too many": ("a = {b = 18446744073709551616}", "a.b: a whole number of 65 bits; choose one within 64 bits"),
    "a key of many parts": (f"{'a.' * MANY}a = 1", "a key has more than 64 parts; shorten it"),
    "a header of many parts": (f"[{'a.' * MANY}a]", "a key has more than 64 parts; shorten it"),
    "an inline key of many parts": (f"x = {{{'a.' * MANY}a = 1}}", "a key has more than 64 parts; shorten it"),
    "a quoted key of many parts": ('"=".' * MANY + "a = 1", "a key has more than 64 parts; shorten it"),
    "a key after a quote in a comment": (f'# """\n{"a." * MANY}a = 1', "a key has more than 64 parts; shorten it"),
    "a key after four quotes": (f'x = ["""a"""", {{{"a." * MANY}b = 1}}]', "a key has more than 64 parts; shorten it"),
    "many brackets": (f"a = {'[' * MANY}", "its brackets are nested too deeply; nest at most 64"),
    "nested lists": (f"a = {'[' * 100}{']' * 100}", "more than 64 tables deep; nest less"),
    "nested tables": (f"{'[' + 'a.' * 63 + 'a]'}\nb.b.b.b = 1", "more than 64 tables deep; nest less"),
    "much text": (f'a = "{"a" * (1 << 20)}"', "characters of TOML; give at most 1048576"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_slow_to_read_or_cannot_be_printed_is_refused_in_a_line(tmp_path, name):
    text, said = REFUSED[name]
    file: Path = tmp_path / "spec.toml"
    file.write_text(text)
    began = time.process_time()
    with pytest.raises(InputError) as refused:
        read_raw(file)
    assert time.process_time() - began < 5
    assert str(refused.value).startswith(f"{file}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < len(str(file)) + 200


@pytest.mark.parametrize(
    "text",
    [
        "a = [-9223372036854775808, 18446744073709551615, true, 1979-05-27, 1e400, nan]",
        f"{'a.' * 63}a = 1",
        f"a = [{', '.join(['0.5'] * 1000)}]",
        f'a = "{"." * 1000}"  # {"." * 1000}',
        f'a = """\n{"." * 1000}"quoted" \\\n"""',
        f"a = '''\n{'.' * 1000}'quoted'\n'''",
        "",
    ],
)
def test_what_settings_need_is_read_as_it_is(text):
    assert str(toml_table(text, "here")) == str(tomllib.loads(text))


def test_what_is_no_toml_is_left_to_the_caller():
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_table("a = ", "here")
