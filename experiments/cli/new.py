"""`lakewright new`: files to begin with."""

import importlib.util
import keyword
import re
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from lakewright.core_jax.errors import InputError
from lakewright.experiments.cli.conventions.options import Json
from lakewright.experiments.cli.conventions.output import print_found

STARTER = '''"""An environment: it draws problems from a design and judges answers."""

from lakewright.engineer import DesignSpace, Environment, Knob, Problem, Verdict


class Starter(Environment):
    """Words to write backwards, with small letters only or also with capitals."""

    # What the engineer may change. A stratum has a share of the problems; here there are two, from easy to hard.
    # A level such as `length` is a value that all problems have; it changes by at most `reach` in a round.
    # A trait such as `capitals` is the share of problems that have a property.
    # Failures are all the ways in which an answer can be wrong; the engineer reads how often each occurs.
    space = DesignSpace(
        strata=("one_word", "two_words"),
        knobs=(
            Knob(name="length", meaning="letters in a word", low=4, high=12, step=1, reach=2, whole=True),
            Knob(name="capitals", meaning="the share of problems with capitals", trait=True),
        ),
        ranked=True,  # strata are in order of difficulty; leave it out if they are not
        failures=("wrong_length", "wrong"),
    )

    def make(self, cell, rng):
        """A problem of a cell: `cell.stratum`, and the knobs by name. Take all randomness from `rng`."""
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = []
        for _ in range(2 if cell.stratum == "two_words" else 1):
            word = "".join(rng.choice(letters) for _ in range(cell["length"]))
            words.append(word.capitalize() if cell["capitals"] else word)
        text = " ".join(words)
        return Problem(prompt=f"Write backwards: {text}", answer=text[::-1])

    def judge(self, problem, answer):
        """The verdict on any text. A reward is a finite number; a failure is one of the space's."""
        if answer == problem.answer:
            return Verdict(valid=True, reward=1.0)
        failure = "wrong" if len(answer) == len(problem.answer) else "wrong_length"
        return Verdict(valid=False, reward=0.0, failure=failure)
'''
TEST = '''"""The environment keeps what every environment promises."""

from {module} import {name}

from lakewright.engineer.testing import check_environment


def test_the_environment_keeps_its_promises():
    assert check_environment({name}(), seconds=5).faults == []
'''

app = App(name="new", help="Write files to begin with.", help_epilogue="example: lakewright new environment rhymes")


@app.command(help_epilogue="example: lakewright new environment rhymes")
def environment(name: Annotated[str, Parameter(name="NAME")], /, *, json: Json = False) -> None:
    """Write NAME.py, an environment to begin with, and test_NAME.py, its test. Both work as they are.

    Args:
        name: A name for the module, such as rhymes.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise InputError(f"NAME is {name!r:.60}; choose small letters, digits and _, such as rhymes")
    kind = "".join(part.capitalize() for part in name.split("_"))
    if keyword.iskeyword(kind) or re.search(rf"import .*\b{kind}\b", STARTER):
        raise InputError(f"NAME is {name}, whose class {kind} has a name that the file uses; choose another name")
    files = Path(f"{name}.py"), Path(f"test_{name}.py")
    for file in files:
        if file.exists():
            raise InputError(f"{file}: exists already; choose another name, or move the file away")
    if importlib.util.find_spec(name):
        raise InputError(f"NAME is {name}, the name of a Python module; choose another name")
    from lakewright.core_jax.support import write_atomically

    texts = STARTER.replace("Starter", kind), TEST.format(module=name, name=kind)
    for file, text in zip(files, texts, strict=True):
        write_atomically(file, text.encode())
    made = {"environment": str(files[0]), "test": str(files[1]), "next": f"lakewright check {files[0]}:{kind}"}
    print_found(made, json, _describe_made)


def _describe_made(made: dict[str, str]) -> str:
    return f"wrote {made['environment']} and {made['test']}; next: {made['next']}, pytest {made['test']}"
