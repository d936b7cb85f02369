"""Charts are whole SVG files with their numbers in the right places, and text from outside stays text."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.experiments.charts.bars import stacked_bars
from lakewright.experiments.charts.frame import Scale
from lakewright.experiments.charts.heat import LETTER, heat_map, ratio_labels
from lakewright.experiments.charts.lines import Point, Series, line_chart

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


def test_ratios_are_labelled_with_as_few_digits_as_tell_them_apart():
    assert ratio_labels([0.1, 0.358498, 0.4]) == ["0.1", "0.36", "0.4"]
    assert ratio_labels([0.358498, 0.36, 0.4]) == ["0.358", "0.36", "0.4"]
    assert ratio_labels([0.3, 0.3]) == ["0.3", "0.3"]
