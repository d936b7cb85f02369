"""The tables and pictures of docs/results.md, made from the raw results in docs/data/studies.

    python docs/site/results.py                           # makes all of them anew
    python docs/site/results.py studies/frontier          # after taking in the results of a study, by its folder's name

docs/data/studies/NAME.json is results.json of a study. In docs/results.md the lines between `<!-- made: NAME -->` and
`<!-- end -->` are its table, and docs/images/NAME.svg and NAME-curves.svg its pictures.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from core_jax.support import read_config, write_atomically
from experiments.study import Results, as_table, curves_svg, study_svg

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "results.md"
MADE = re.compile(r"(<!-- made: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)


def main(studies: Sequence[str]) -> None:
    """Takes in the results of finished studies, and makes the page's tables and pictures."""
    for study in map(Path, studies):
        shutil.copyfile(study / "results.json", DOCS / "data" / "studies" / f"{study.name}.json")
    for path, content in made().items():
        write_atomically(path, content.encode())


def made() -> dict[Path, str]:
    """What each file should hold: the page with its tables, and the pictures."""
    found = {path.stem: read_config(path, Results) for path in sorted((DOCS / "data" / "studies").glob("*.json"))}
    pictures = {DOCS / "images" / f"{name}.svg": study_svg(results) for name, results in found.items()}
    curves = {
        DOCS / "images" / f"{name}-curves.svg": curves_svg(results)
        for name, results in found.items()
        if not results.prediction
    }
    page = MADE.sub(lambda place: f"{place[1]}\n```\n{as_table(found[place[2]])}\n```\n\n{place[3]}", PAGE.read_text())
    return {PAGE: page} | pictures | curves


if __name__ == "__main__":
    main(sys.argv[1:])
