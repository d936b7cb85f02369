"""`lakewright convert`: boards between our rows and the formats of multi-agent path finding."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from experiments.cli.conventions import BOARD_FORMATS, Json, print_summary

app = App()


@app.command(help_epilogue="example: lakewright convert boards.jsonl --out maps")
def convert(
    source: Annotated[Path, Parameter(name="IN")],
    /,
    *,
    out: Path,
    source_format: Annotated[str | None, Parameter(name="--from", choices=BOARD_FORMATS)] = None,
    out_format: Annotated[str | None, Parameter(name="--to", choices=BOARD_FORMATS)] = None,
    json: Json = False,
) -> None:
    """Convert boards, and plans where a format has them, from one format to another.

    Args:
        source: Rows (.jsonl, .parquet), a scenario (.scen), a result file (.txt), maps (.yaml), or a folder of them.
        out: The file to write, by its ending, or a folder of one file for each board.
        source_format: The format of IN, where the ending does not say it.
        out_format: The format to write, where the ending does not say it.
    """
    from experiments.interop import convert as convert_file
    from experiments.runtime import progress

    begun = time.monotonic()
    with progress("convert", None, "boards") as bar:
        boards = convert_file(source, out, source_format, out_format, bar.update)
    print_summary({"boards": boards, "seconds": round(time.monotonic() - begun, 3), "out": str(out)}, json)
