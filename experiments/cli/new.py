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

STARTER = Path(__file__).parents[1] / "environments" / "starter.py"
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
    files = Path(f"{name}.py"), Path(f"test_{name}.py")
    for file in files:
        if file.exists():
            raise InputError(f"{file}: is there already; choose another name, or move the file away")
    if importlib.util.find_spec(name):
        raise InputError(f"NAME is {name}, which Python has a module of already; choose another name")
    from lakewright.core_jax.support import write_atomically

    kind = "".join(part.capitalize() for part in name.split("_"))
    texts = STARTER.read_text().replace("Starter", kind), TEST.format(module=name, name=kind)
    for file, text in zip(files, texts, strict=True):
        write_atomically(file, text.encode())
    print_found({"files": list(map(str, files)), "next": f"lakewright check {files[0]}:{kind}"}, json, _tell)


def _tell(made: dict[str, object]) -> str:
    first, second = made["files"]  # type: ignore[misc]
    return f"wrote {first} and {second}; next: {made['next']}, pytest {second}"
