"""Charts are whole SVG files with their numbers in the right places, and text from outside stays text."""

import re
import struct
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.experiments.viewer.charts import frame
from lakewright.experiments.viewer.charts.frame import COLOURS, Scale, join_pictures, save_picture
from lakewright.experiments.viewer.charts.heat import LETTER, heat_map, ratio_labels
from lakewright.experiments.viewer.charts.lines import Point, Series, line_chart
from lakewright.experiments.viewer.charts.rows import Bar, ChartRow, Mark, row_chart, stacked_bars

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>\"'&\x00\ud800]]>"
numbers = st.floats(-1e9, 1e9)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode())


def points_of(svg: str) -> list[list[tuple[float, float]]]:
    """The corners of every curve."""
    lines = (line.get("points", "").split() for line in parsed(svg).iter(f"{SVG}polyline"))
    return [[tuple(map(float, corner.split(","))) for corner in line] for line in lines]


def test_a_curve_rises_where_its_values_do():
    [curve] = points_of(line_chart("title", [Series("one", [Point(0, 1), Point(1, 2), Point(3, 4)])]))
    xs, ys = zip(*curve, strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True), "up is towards 0 in SVG"
    assert xs[2] - xs[1] == pytest.approx(2 * (xs[1] - xs[0]), abs=0.2)


def test_a_share_of_nothing_lies_on_the_axis_and_no_number_below_it():
    svg = line_chart("t", [Series("a", [Point(0.0, 0.0), Point(1.0, 0.0)])], x_label="x", y_label="%")
    assert "-0." not in "".join(re.findall(r">([^<]*)</text>", svg))


def test_points_without_a_number_are_left_out():
    [curve] = points_of(line_chart("title", [Series("one", [Point(0, 1), Point(1, float("nan")), Point(2, 3)])]))
    assert len(curve) == 2


def test_an_interval_is_drawn_around_its_curve():
    chart = parsed(line_chart("title", [Series("one", [Point(0, 1, 0, 2), Point(1, 1, 0, 2)])]))
    assert len(list(chart.iter(f"{SVG}polygon"))) == 1


@given(st.lists(st.tuples(numbers, numbers), max_size=60))
def test_any_numbers_make_a_chart(pairs):
    curves = points_of(line_chart("title", [Series("one", [Point(*pair) for pair in pairs])]))
    assert sum(map(len, curves)) == len(pairs)


@given(numbers, st.floats(1e-6, 1e9))
def test_ticks_are_few_and_within(low, extent):
    ticks = Scale(low, low + extent, 0, 100).ticks()
    assert 1 <= len(ticks) <= 7, f"{low} to {low + extent}: {ticks}"


def test_bars_stand_on_one_another():
    chart = stacked_bars("title", ["one"], {"a": [10], "b": [30], "c": [0]})
    bars = list(parsed(chart).iter(f"{SVG}rect"))
    tops = [float(bar.get("y")) for bar in bars]
    heights = [float(bar.get("height")) for bar in bars]
    assert len(bars) == 2, "a part without height is not drawn"
    assert heights[1] == pytest.approx(3 * heights[0], abs=0.3)
    assert tops[1] + heights[1] == pytest.approx(tops[0], abs=0.2)


def test_a_heat_map_writes_every_number():
    chart = heat_map("title", ["one", "two"], ["a", "b"], [[1, None], [50, 100]])
    words = [text.text for text in parsed(chart).iter(f"{SVG}text")]
    assert {"1", "50", "100"} <= set(words)


def test_hostile_names_stay_text():
    charts = (
        line_chart(HOSTILE, [Series(HOSTILE, [Point(0, 1)])], x_label=HOSTILE, names={0: HOSTILE}, marks={0: HOSTILE}),
        stacked_bars(HOSTILE, [HOSTILE], {HOSTILE: [1]}),
        heat_map(HOSTILE, [HOSTILE], [HOSTILE], [[1]], HOSTILE),
        join_pictures([row_chart(HOSTILE, [ChartRow(HOSTILE, [Mark(1, words=HOSTILE)])], x_label=HOSTILE)], HOSTILE),
    )
    for svg in charts:
        assert f"{SVG}script" not in {element.tag for element in parsed(svg).iter()}


def test_the_labels_of_a_heat_map_do_not_overlap_and_stay_in_the_picture():
    names = ["0.358498 W", "0.358499 W", "0.4"]
    chart = parsed(heat_map("title", ["a row with a long name", "b"], names, [[1, 2, 3], [4, 5, 6]]))
    texts = {found.text: found for found in chart.iter(f"{SVG}text")}
    middles = [float(texts[name].get("x")) for name in names]
    widths = [LETTER * len(name) for name in names]
    for place in range(2):
        assert middles[place] + widths[place] / 2 < middles[place + 1] - widths[place + 1] / 2, names[place]
    row = texts["a row with a long name"]
    assert float(row.get("x")) - LETTER * len(row.text) >= 0
    assert middles[-1] + widths[-1] / 2 <= float(chart.get("viewBox").split()[2])


@pytest.mark.parametrize("draw", [heat_map, row_chart, line_chart, stacked_bars])
def test_a_long_title_stays_in_the_picture(draw):
    title = "a title that is much longer than what is drawn, such as that of a study with many words"
    given = {heat_map: (["a"], ["b"], [[1]]), row_chart: (ROWS,), line_chart: ([],), stacked_bars: (["a"], {"b": [1]})}
    chart = parsed(draw(title, *given[draw]))
    assert float(chart.get("viewBox").split()[2]) > 8 * len(title)


def test_what_the_numbers_of_a_heat_map_are_stays_in_the_picture():
    said = "the chance that a board with a forced wait has the larger value; dark is far from one half"
    chart = parsed(heat_map("title", ["a"], ["b"], [[1]], said))
    [text] = [found for found in chart.iter(f"{SVG}text") if found.text == said]
    assert float(text.get("x")) + LETTER * len(said) <= float(chart.get("viewBox").split()[2])


def test_ratios_are_labelled_with_as_few_digits_as_tell_them_apart():
    assert ratio_labels([0.1, 0.358498, 0.4]) == ["0.1", "0.36", "0.4"]
    assert ratio_labels([0.358498, 0.36, 0.4]) == ["0.358", "0.36", "0.4"]
    assert ratio_labels([0.3, 0.3]) == ["0.3", "0.3"]


ROWS = [
    ChartRow("first", [Mark(1.0, interval=(0.5, 2.0))], Bar(1.0, COLOURS[0], "1.0")),
    ChartRow("second", [Mark(3.0)]),
]


def test_the_marks_of_rows_lie_where_their_numbers_are():
    chart = parsed(row_chart("title", ROWS, x_range=(0, 4)))
    marks = [place for group in chart.iter(f"{SVG}g") if (place := group.get("transform"))]
    (x1, y1), (x2, y2) = (map(float, re.findall(r"[\d.]+", place)) for place in marks)
    [bar] = chart.iter(f"{SVG}rect")
    low = float(bar.get("x"))
    assert x1 - low == pytest.approx(float(bar.get("width")))
    assert x2 - low == pytest.approx(3 * (x1 - low), abs=0.3)
    assert y2 > y1, "rows go from top to bottom"
    said = {title.text for title in chart.iter(f"{SVG}title")}
    assert said == {"first: 1 (0.5 to 2)", "second: 3"}


def test_long_names_of_rows_stay_in_the_picture_and_can_be_left_out():
    long = [ChartRow("a name that is much longer than others", [Mark(1.0)])]
    chart = parsed(row_chart("title", long))
    [name] = [text for text in chart.iter(f"{SVG}text") if text.text == long[0].name]
    assert float(name.get("x")) - 6 * len(name.text) >= 0
    assert long[0].name not in {text.text for text in parsed(row_chart("title", long, named=False)).iter(f"{SVG}text")}


def test_pictures_stand_side_by_side_in_rows_without_overlap():
    one, other = heat_map("one", ["a"], ["b"], [[1]]), row_chart("other", ROWS)
    whole = parsed(join_pictures([one, other, one], "title", columns=2))
    (x1, y1, w1, h1), (x2, y2, w2, _), (x3, y3, _, h3) = (
        [float(svg.get(name)) for name in ("x", "y", "width", "height")] for svg in whole.findall(f"{SVG}svg")
    )
    assert (x1 + w1 <= x2, y1) == (True, y2)
    assert (x3, y1 + h1 <= y3) == (x1, True)
    assert x2 + w2 <= float(whole.get("width"))
    assert y3 + h3 <= float(whole.get("viewBox").split()[3])


def test_a_picture_is_written_as_png_where_there_is_a_font_and_else_only_as_svg(tmp_path, monkeypatch):
    svg = join_pictures([row_chart("title", ROWS)])
    monkeypatch.setattr(frame, "_has_font", lambda: True)
    assert [path.name for path in save_picture(svg, tmp_path / "fonts", "plot")] == ["plot.svg", "plot.png"]
    png = (tmp_path / "fonts" / "plot.png").read_bytes()
    assert struct.unpack(">2I", png[16:24])[0] == 2 * int(parsed(svg).get("width")), "a PNG is twice as large"
    monkeypatch.setattr(frame, "_has_font", lambda: False)
    with pytest.warns(UserWarning, match="plot.png is not written: this machine has no fonts"):
        assert [path.name for path in save_picture(svg, tmp_path / "none", "plot")] == ["plot.svg"]


def test_labels_of_marks_that_are_close_do_not_overlap():
    points = [Point(x, x) for x in range(101)]
    marks = {0: "stage 0", 1: "stage 1", 50: "stage 2"}
    picture = line_chart("title", [Series("curve", points)], marks=marks)
    assert [word for word in marks.values() if f">{word}<" in picture] == ["stage 0", "stage 2"]
    assert picture.count('stroke-dasharray="2 3"') == 3


def test_the_label_of_a_mark_at_the_end_stays_in_the_picture():
    picture = line_chart("title", [Series("curve", [Point(0, 0), Point(9, 1)])], marks={9: "stage 2"})
    assert re.search(r'text-anchor="end"[^>]*>stage 2<', picture)
