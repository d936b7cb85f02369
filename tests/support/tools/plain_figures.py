"""Figures worked out a second time in plain Python, from their definitions; tables as a reader sees them."""

import html
import itertools
import math
import random
import re
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, stdev

Z = NormalDist().inv_cdf(0.975)
NUMBER = r"[-+]?\d+(?:\.\d+)?"


def score_interval(count: float, trials: float) -> tuple[float, float]:
    """The rates p of which a count is 1.96 standard deviations off: the roots of (c - n p)^2 = z^2 n p (1 - p)."""
    a, b, c = trials + Z * Z, -(2 * count + Z * Z), count * count / trials
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return max(0.0, (-b - root) / (2 * a)), min(1.0, (-b + root) / (2 * a))


def middle_mean(values: Sequence[float]) -> float:
    """The mean without the least and the largest quarter, rounded down."""
    cut, ordered = len(values) // 4, sorted(values)
    return fmean(ordered[cut : len(values) - cut])


def resampled(
    values: Sequence[float], statistic: Callable[[Sequence[float]], float], most: int = 4000
) -> tuple[float, float]:
    """The percentile bootstrap: of all resamples where these are few, else of `most` that are drawn by chance."""
    n, rng = len(values), random.Random(0)
    few = n**n <= most
    drawn = itertools.product(values, repeat=n) if few else (rng.choices(values, k=n) for _ in range(most))
    found = sorted(statistic(one) for one in drawn)
    outside = int(0.025 * len(found))
    return found[outside], found[-1 - outside]


def paired_p(differences: Sequence[float]) -> float:
    """Two-sided, of Student's t with n - 1 degrees of freedom: its density, added up over atan(t / sqrt(n - 1))."""
    n = len(differences)
    t = fmean(differences) / (stdev(differences) / math.sqrt(n))
    degrees, steps = n - 1, 20_000
    angle = math.atan(abs(t) / math.sqrt(degrees))
    width = (math.pi / 2 - angle) / steps
    tail = width * math.fsum(math.cos(angle + (step + 0.5) * width) ** (degrees - 1) for step in range(steps))
    whole = math.sqrt(math.pi) * math.gamma(degrees / 2) / math.gamma((degrees + 1) / 2)
    return 2 * tail / whole


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p becomes the largest of (m - j) p_(j), j from 0, over those that are no larger; at most 1."""
    m, ordered = len(p_values), sorted(p_values)
    return [min(1.0, max((m - j) * one for j, one in enumerate(ordered) if one <= p)) for p in p_values]


def area_along(points: Sequence[tuple[float, float]], budget: float) -> float:
    """The mean height of the lines between points from 0 to the budget; level before the first and after the last."""
    kept = [(0.0, points[0][1]), *points, (max(budget, points[-1][0]), points[-1][1])]
    total = 0.0
    for (x, y), (later, high) in itertools.pairwise(kept):
        if x >= budget or later <= x:
            continue
        end = min(later, budget)
        total += (end - x) * (y + y + (high - y) * (end - x) / (later - x)) / 2
    return total / budget


def height_at(points: Sequence[tuple[float, float]], place: float) -> float:
    """The height there of the lines between points; level before the first and after the last."""
    if place <= points[0][0]:
        return points[0][1]
    for (x, y), (later, high) in itertools.pairwise(points):
        if place <= later:
            return y + (high - y) * (place - x) / (later - x)
    return points[-1][1]


def first_reached(points: Sequence[tuple[float, float]], height: float) -> float:
    """Where the lines between points are first as high; infinity where never."""
    if points[0][1] >= height:
        return points[0][0]
    for (x, y), (later, high) in itertools.pairwise(points):
        if high >= height:
            return x + (later - x) * (height - y) / (high - y)
    return math.inf


def page_table(page: str, name: str) -> list[dict[str, str]]:
    """The rows of a table of a page, by the heads of its columns."""
    [found] = re.findall(rf'data-table="{re.escape(name)}"><table>(.*?)</table>', page, re.DOTALL)
    head = [_words(cell) for cell in re.findall(r"<th[^>]*>(.*?)</th>", found, re.DOTALL)]
    rows = re.findall(r"<tr>(.*?)</tr>", found.partition("<tbody>")[2], re.DOTALL)
    return [
        dict(zip(head, map(_words, re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)), strict=True)) for row in rows
    ]


def text_table(text: str) -> list[dict[str, str]]:
    """The rows of a table in the terminal, up to its first empty or shorter line, by the heads above its columns.

    The first column begins at the left, so its cells end two spaces before those of the second; all others end where
    their heads do, and what stands behind the last head belongs to the last column.
    """
    header, *lines = text.splitlines()
    ends = [match.end() for match in re.finditer(r"\S+(?: \S+)*", header)]
    heads = [match.group() for match in re.finditer(r"\S+(?: \S+)*", header)]
    rows = []
    for line in lines:
        if len(line) < ends[-2] + 1:
            break
        first = line[: ends[1]]
        name = "" if first.startswith(" ") else re.split(r"\s{2,}", first)[0]
        cells = [name, first.removeprefix(name), *(line[low:high] for low, high in itertools.pairwise(ends[1:-1]))]
        rows.append(dict(zip(heads, (cell.strip() for cell in [*cells, line[ends[-2] :]]), strict=True)))
    return rows


def numbers(text: str) -> list[float]:
    """The numbers in a text, signs included."""
    return [float(found) for found in re.findall(NUMBER, text)]


def _words(cell: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", cell)).strip()
