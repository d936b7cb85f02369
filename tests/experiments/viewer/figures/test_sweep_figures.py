"""Each figure of a sweep's page, worked out again from the rows of its shards.

Where figures of a sweep are shown: the page of the sweep (a statistic with its interval, by two axes), `cells.json` and
the pictures. Of the last two, tests/experiments/boards/sweep/test_cells.py checks rates, quantiles and areas.
"""

from pathlib import Path
from statistics import fmean, stdev

import pyarrow.parquet as pq
import pytest

from tests.support.samples.tiny_sweep import SPEC, make
from tests.support.servers.viewer_client import client, page
from tests.support.tools.plain_figures import Z, numbers, page_table, score_interval


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A sweep of 3x3 boards of two hole ratios."""
    out = tmp_path_factory.mktemp("figures") / "sweep"
    make(SPEC, out)
    return out


def rows_of(folder: Path, ratio: str) -> list[dict]:
    rows = [row for file in (folder / "shards").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    return [row for row in rows if f"{row['hole_ratio']:g}" == ratio]


def asked(folder: Path, statistic: str) -> list[dict[str, str]]:
    return page_table(page(client(folder), f"/sweep/sweep?statistic={statistic}"), "answer")


@pytest.mark.parametrize("statistic", ["solvable", "undecided"])
def test_shares_have_the_interval_of_their_counts_also_where_none_or_all_are(folder, statistic):
    """Of 80 boards without a hole all are solvable: that is 95.4 to 100 %, and not 100 plus or minus nothing."""
    table = asked(folder, statistic)
    assert [row["hole ratio"] for row in table] == ["0", "0.4"]
    for row in table:
        boards = rows_of(folder, row["hole ratio"])
        count = sum(one["status"] == statistic for one in boards)
        assert int(row["boards"]) == len(boards) == 80
        assert float(row[statistic]) == pytest.approx(100 * count / 80, rel=1e-3)
        low, high = (100 * end for end in score_interval(count, 80))
        assert numbers(row["95 %"]) == pytest.approx([low, high], rel=1e-3, abs=1e-3)
        assert high - low > 3


def test_means_have_the_interval_of_their_standard_error(folder):
    for row in asked(folder, "sum_of_costs"):
        costs = [one["sum_of_costs"] for one in rows_of(folder, row["hole ratio"]) if one["sum_of_costs"] is not None]
        half = Z * stdev(costs) / len(costs) ** 0.5
        assert float(row["sum of costs"]) == pytest.approx(fmean(costs), rel=1e-3)
        assert numbers(row["95 %"]) == pytest.approx([fmean(costs) - half, fmean(costs) + half], rel=1e-3)
