"""report.html: a run in one file that needs nothing else; the pages of the viewer, one below the other."""

from lakewright.core_jax.support import write_atomically
from lakewright.experiments.loop.records import RunFolder
from lakewright.experiments.view.pages.run_page import report_page
from lakewright.experiments.view.templating.rendering import render


def write_report(folder: RunFolder) -> None:
    """Writes report.html from what the run has finished so far."""
    write_atomically(folder.report, render(report_page(folder), _nowhere, "report").encode())


def _nowhere(address: str, **query: object) -> None:
    """A report leads to no other page."""
