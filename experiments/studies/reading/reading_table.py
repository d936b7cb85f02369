"""The results of reading tests as a table and as a picture."""

from collections.abc import Sequence

import msgspec

from lakewright.engineer.reading import Interval, Score
from lakewright.experiments.viewer.charts.frame import COLOURS, join_pictures
from lakewright.experiments.viewer.charts.rows import ChartRow, Mark, row_chart

RULE = "the rule"
HEADER = (
    "model",
    "form",
    "pairs",
    "unread",
    "made",
    "follows (95 %)",
    "p by Holm",
    "calibrated (95 %)",
    "worth",
    "other's",
    "gain",
)
LEGEND = {"as answered": Mark(0, "disc", COLOURS[0]), "calibrated": Mark(0, "ring", COLOURS[1])}
WORTH = 1000  # worths are shown in thousandths of p (1 - p)


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score of a model asked in a form."""

    model: str
    form: str
    score: Score


def format_results(results: Sequence[Result]) -> str:
    """The scores as Markdown, a line for each model and form.

    made: the share of deciding changes that were made. follows: the ones that follow the evidence, in percent;
    p by Holm: over the models and forms of the table. calibrated: once the model's own leaning is taken off. worth,
    other's, gain: for the designs by the difficulty model, under the evidence that was read and under the other, and
    the difference, in thousandths of p (1 - p).
    """
    from tabulate import tabulate

    from lakewright.experiments.studies.inference import correct_by_holm

    asked = [result for result in results if result.model != RULE]
    corrected = iter(correct_by_holm([result.score.p_value for result in asked]))
    rows = [_list_cells(result, None if result.model == RULE else next(corrected)) for result in results]
    return tabulate(rows, HEADER, tablefmt="github", disable_numparse=True)


def _list_cells(result: Result, p_value: float | None) -> list[str]:
    score = result.score
    return [
        _shorten(result.model),
        result.form,
        str(score.pairs),
        str(score.unread),
        f"{100 * score.made / score.deciding:.0f} %" if score.deciding else "",
        _format_share(score.follows),
        "" if p_value is None else f"{p_value:.3f}",
        _format_share(score.calibrated),
        f"{WORTH * score.true.mean:+.1f}",
        f"{WORTH * score.exchanged.mean:+.1f}",
        f"{WORTH * score.gain.mean:+.1f} ({WORTH * score.gain.low:+.1f} to {WORTH * score.gain.high:+.1f})",
    ]


def _format_share(share: Interval | None) -> str:
    return "" if share is None else f"{100 * share.mean:.0f} ({100 * share.low:.0f}-{100 * share.high:.0f})"


def _shorten(model: str) -> str:
    """The last part of a path, without the ending of a file."""
    return model.rstrip("/").rpartition("/")[2].removesuffix(".gguf")


def draw_results(results: Sequence[Result]) -> str:
    """The shares that follow the evidence, with their intervals, beside chance, as SVG on white."""
    rows = [
        ChartRow(
            f"{_shorten(result.model)[:26]} {result.form}".strip(),
            [
                mark._replace(x=100 * share.mean, interval=(100 * share.low, 100 * share.high), words=name)
                for (name, mark), share in zip(
                    LEGEND.items(), (result.score.follows, result.score.calibrated), strict=True
                )
                if share is not None
            ],
        )
        for result in results
    ]
    title = "Changes that follow the evidence, %"
    return join_pictures([row_chart(title, rows, x_range=(-2, 102), lines={50: "chance"}, legend=LEGEND)])
