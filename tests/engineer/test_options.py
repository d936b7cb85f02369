"""Options of teachers and samplers: whatever is outside a range is refused before anything runs."""

import inspect
import math
import sys

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.engineer.plugins import load_class
from lakewright.engineer.samplers import SAMPLERS, SamplerSettings, make_sampler
from lakewright.engineer.teachers import TEACHERS, check_teacher, make_teacher
from tests.support.refusals import refused

REGISTRIES = {"teacher": TEACHERS, "sampler": SAMPLERS}
MAKERS = {
    (kind, name): load_class(name, registry, kind, []) for kind, registry in REGISTRIES.items() for name in registry
}
NUMBERS = [
    (kind, name, option)
    for (kind, name), make in MAKERS.items()
    for option, given in inspect.signature(make).parameters.items()
    if isinstance(given.default, int | float) and not isinstance(given.default, bool)
]


def check(kind: str, name: str, options: dict) -> dict:
    """The options as they are taken."""
    return check_teacher(name, options) if kind == "teacher" else SamplerSettings(name, options).options


def test_a_misspelled_teacher_is_told_the_nearest_name():
    with refused("'gian' is unknown", "did you mean gain? choose from fixed"):
        make_teacher("gian")


def test_an_error_in_a_file_names_its_own_line(tmp_path):
    (file := tmp_path / "teaches.py").write_text("import math\n\n\ndef begin():\n    math.sqrt('2')\n\n\nbegin()\n")
    with refused("teaches.py cannot be imported (TypeError: must be real", "correct teaches.py:5"):
        make_teacher(f"{file}:Teaches")


@pytest.mark.parametrize(("kind", "name", "option"), NUMBERS)
def test_every_number_has_a_range_and_nothing_else_passes(kind, name, option):
    for value in (math.nan, math.inf, -1000, "some", True, None):
        with pytest.raises(InputError, match=option):
            pytest.fail(f"{value} passes: {check(kind, name, {option: value})}")


@pytest.mark.parametrize(
    ("kind", "name", "option", "value"),
    [
        ("sampler", "domain_randomisation", "alike", 0),
        ("sampler", "plr", "staleness", 2.0),
        ("sampler", "plr", "replay", 1.1),
        ("sampler", "plr", "beta", 0.0),
        ("sampler", "plr", "capacity", 0),
        ("sampler", "dapo", "rounds", 0),
        ("sampler", "sfl", "mix", 1.5),
        ("sampler", "sfl", "pool", 0.0),
        ("teacher", "thompson", "draws", 10**9),
        ("teacher", "gain", "learners", 10**9),
        ("teacher", "thompson", "decay", 1.2),
        ("teacher", "alp_gmm", "components", 1),
        ("teacher", "static", "tilt", 21),
        ("teacher", "rules", "easier_below", 0.8),
        ("teacher", "rules", "harder_above", 7),
    ],
)
def test_an_option_outside_its_range_is_refused_in_one_line_that_names_it(kind, name, option, value):
    with pytest.raises(InputError, match=option) as caught:
        check(kind, name, {option: value})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("kind", "name"), MAKERS)
def test_the_defaults_are_inside_their_ranges(kind, name):
    arguments = inspect.signature(MAKERS[kind, name]).parameters.values()
    defaults = {given.name: given.default for given in arguments if given.default is not given.empty}
    assert check(kind, name, defaults) == defaults


def test_whole_numbers_pass_for_fractions():
    assert make_teacher("sec", options={"rate": 1}).rate == 1.0
    assert make_sampler("plr", {"replay": 0}).replay == 0.0


@pytest.mark.parametrize("name", [":Longer", "docs/examples/own_parts.py:", ":"])
def test_half_a_name_of_a_class_is_refused_in_one_line(name):
    with refused("name", "module:Class"):
        make_teacher(name)


def test_a_class_of_a_file_may_import_what_is_beside_it(tmp_path):
    (tmp_path / "beside_it.py").write_text("NUMBER = 3\n")
    (tmp_path / "own_class.py").write_text("from beside_it import NUMBER\n\n\nclass Own:\n    number = NUMBER\n")
    before = list(sys.path)
    assert load_class(f"{tmp_path / 'own_class.py'}:Own", {}, "teacher", ())().number == 3
    assert sys.path == before
