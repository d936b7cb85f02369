"""The pages of the site that are made rather than written: the front page from README.md, and the reference.

The reference of commands, settings, teachers and samplers is made by reference.py, that of the Python API from the
doors. MkDocs calls `on_config` and `on_files`. A door is a room's `__init__.pyi`, which lists what the room offers.
"""

import ast
import gc
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.append(str(Path(__file__).parent))  # MkDocs reads this file, not its folder
from reference import make_pages

gc.disable()  # MkDocs keeps all pages to the end, and looking for garbage among them takes a tenth of the time

ROOT = Path(__file__).parents[2]
WINGS = ("core_jax", "policy", "engineer", "experiments")
ROOM = """# lakewright.{room}

::: lakewright.{room}
    options:
      members: {offered}
"""
WING = """# lakewright.{wing}

::: lakewright.{wing}
    options:
      members: false
{modules}
"""
MODULE = """
## {module}

::: {module}
    options:
      heading_level: 3
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the pages that the navigation does not name to the guide and the notebook, and the reference to its end."""
    named = {page for entry in config.nav for section in entry.values() for page in _pages(section)}
    sections = {name: section for entry in config.nav for name, section in entry.items()}
    sections["Guide"] += sorted(page.name for page in Path(config.docs_dir).glob("*.md") if page.name not in named)
    sections["Results"].append({"Lab notebook": ["lab/index.md", *_studies(Path(config.docs_dir) / "lab")]})
    sections["Reference"] += make_pages()
    sections["Reference"] += [
        {wing: [_address(name) for name in dict.fromkeys((wing, *_rooms(wing)))]} for wing in WINGS
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the front page, and a page for each wing and room."""
    front = (ROOT / "README.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=front))
    for address, content in make_pages().items():
        files.append(File.generated(config, address, content=content))
    for wing in WINGS:
        rooms = _rooms(wing)
        if wing not in rooms:
            files.append(File.generated(config, _address(wing), content=_of_wing(wing)))
        for room in rooms:
            files.append(File.generated(config, _address(room), content=_of_room(room)))
    return files


def _pages(section: Any) -> Iterator[str]:
    """The pages of a section of the navigation, and of the sections in it."""
    if isinstance(section, str):
        yield section
    else:
        for part in section.values() if isinstance(section, dict) else section:
            yield from _pages(part)


def _studies(lab: Path) -> list[str]:
    """The pages of the notebook, in the order of its index."""
    named = dict.fromkeys(re.findall(r"^\| \[.*?\]\(([\w-]+\.md)\) \|", (lab / "index.md").read_text(), re.M))
    return [f"lab/{name}" for name in named]


def _rooms(wing: str) -> list[str]:
    """The rooms of a wing that have a door, the wing itself among them if it has one."""
    doors = sorted((ROOT / wing).rglob("__init__.pyi"))
    return [".".join(door.parent.relative_to(ROOT).parts) for door in doors]


def _address(name: str) -> str:
    return f"reference/{name}.md"


def _of_room(room: str) -> str:
    """What a room offers."""
    door = ROOT / room.replace(".", "/") / "__init__.pyi"
    imports = [node for node in ast.parse(door.read_text()).body if isinstance(node, ast.ImportFrom)]
    offered = [alias.name for node in imports for alias in node.names]
    return ROOM.format(room=room, offered=sorted(offered, key=str.lower))


def _of_wing(wing: str) -> str:
    """The files at the top of a wing, which belong to no room."""
    files = sorted(file.stem for file in (ROOT / wing).glob("*.py") if file.stem != "__init__")
    return WING.format(wing=wing, modules="".join(MODULE.format(module=f"lakewright.{wing}.{file}") for file in files))
