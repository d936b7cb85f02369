"""Two pictures of the docs, made from a run of the demo:

python -m tests.support.tools.demo_pictures runs/demo docs/images
"""

import sys
from pathlib import Path

import cyclopts

from lakewright.core_jax.errors import InputError
from lakewright.core_jax.support import write_atomically
from lakewright.experiments.loop.records.history import Chapter, read_chapters
from lakewright.experiments.loop.records.run_folder import RunFolder
from lakewright.experiments.loop.records.stage_records import Example
from lakewright.experiments.viewer.catalogue.run_space import RunSpace, find_space
from lakewright.experiments.viewer.charts.frame import join_pictures
from lakewright.experiments.viewer.pages.run_charts import rates_chart, strata_chart
from lakewright.experiments.viewer.pictures.board_pictures import strip_svg
from lakewright.experiments.viewer.pictures.played_plans import describe_ending


def write_pictures(folder: RunFolder, out: Path) -> None:
    """Writes board.svg, the longest valid plan on a board that forces a wait, and curves.svg.

    Raises InputError if the run has no such plan yet.
    """
    history = read_chapters(folder)
    write_atomically(out / "board.svg", strip_svg(_choose_example(folder, history)).encode())
    write_atomically(out / "curves.svg", curves_svg(history, find_space(folder, folder.settings())).encode())


def curves_svg(history: list[Chapter], about: RunSpace) -> str:
    """The curves over the tokens as one picture on white."""
    return join_pictures([rates_chart(history, about), strata_chart(history, about)])


def _choose_example(folder: RunFolder, history: list[Chapter]) -> Example:
    last = history[-1].validation.examples if history else []
    valid = [example for example in last if example.failure == "none" and example.row.wait_required]
    if not valid:
        raise InputError(f"{folder.folder}: has no valid plan with a forced wait to draw; train longer")
    return max(valid, key=lambda example: describe_ending(example).step)


def main(run_folder: Path, out: Path, /) -> None:
    """Writes the pictures of the docs.

    Args:
        run_folder: The folder of a finished run.
        out: The folder of the pictures.
    """
    write_pictures(RunFolder(run_folder), out)


if __name__ == "__main__":
    try:
        cyclopts.run(main)
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
