"""The results of reading tests as a table and as a picture."""

from collections.abc import Sequence

import msgspec

from lakewright.engineer.reading import Interval, Score
from lakewright.experiments.charts.frame import (
    FONT,
    INK,
    draw_text,
    escape_text,
    pick_colour,
)


class Result(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The score of a model asked in a form."""

    model: str
    form: str
    score: Score


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
LINE, LEFT, WIDTH, TOP = 20, 250, 640, 44  # of the picture
WORTH = 1000  # worths are shown in thousandths of p (1 - p)


def format_results(results: Sequence[Result]) -> str:
    """The scores as Markdown, a line for each model and form.

    made: the share of deciding changes that were made. follows: of these, those that follow the evidence, in percent;
    p by Holm: over the models and forms of the table. calibrated: once the model's own leaning is taken off. worth,
    other's, gain: of the designs by the difficulty model, under the evidence that was read and under the other, and the
    difference, in thousandths of p (1 - p).
    """
    from tabulate import tabulate

    from lakewright.experiments.study.inference import correct_by_holm

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
    """The shares that follow the evidence, with their intervals, beside chance, as SVG."""
    height = TOP + LINE * len(results) + 34
    parts = [draw_text(10, 18, "Changes that follow the evidence, %", "start", 'font-weight="650" font-size="14"')]
    for share in (0, 25, 50, 75, 100):
        x, look = _place(share / 100), 'stroke-dasharray="4 3" opacity=".7"' if share == 50 else 'opacity=".14"'
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{TOP - 8}" y2="{height - 26}" stroke="currentColor" {look}/>')
        parts.append(draw_text(x, height - 10, "50, chance" if share == 50 else str(share), "middle"))
    for row, result in enumerate(results):
        y = TOP + LINE * row + 4
        parts.append(draw_text(LEFT - 12, y + 4, f"{_shorten(result.model)[:16]} {result.form}".strip(), "end"))
        parts.append(_draw_share(result.score.follows, y, 0))
        parts.append(_draw_share(result.score.calibrated, y + 5, 1))
    parts.append(_draw_mark(10, 34, 0) + draw_text(20, 38, "as answered", "start"))
    parts.append(_draw_mark(110, 34, 1) + draw_text(120, 38, "calibrated", "start"))
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" color="{INK}"'
    label = escape_text("Changes that follow the evidence, by model and form")
    return f'{opening} aria-label="{label}" {FONT} font-size="11.5" fill="currentColor">{"".join(parts)}</svg>\n'


def _place(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - 20)


def _draw_share(share: Interval | None, y: float, kind: int) -> str:
    if share is None:
        return ""
    line = f'<line x1="{_place(share.low):.1f}" x2="{_place(share.high):.1f}" y1="{y}" y2="{y}"'
    return (
        f'{line} stroke="{pick_colour(kind)}" stroke-width="3" opacity=".45"/>{_draw_mark(_place(share.mean), y, kind)}'
    )


def _draw_mark(x: float, y: float, kind: int) -> str:
    return f'<circle cx="{x:.1f}" cy="{y}" r="3.6" fill="{pick_colour(kind)}"/>'
