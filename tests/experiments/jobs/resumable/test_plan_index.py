"""Plans are found by the ids of their boards, whatever letters these hold."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.core_jax.rows import PlanRow
from lakewright.experiments.boards.files import PlanIndex

NAMES = st.lists(st.text(st.sampled_from("ab\0\\0"), max_size=4), unique=True, min_size=1, max_size=20)


@given(names=NAMES)
def test_each_board_gets_its_own_plan(tmp_path_factory, names):
    index = PlanIndex(tmp_path_factory.mktemp("index") / "plans")
    for place, name in enumerate(names):
        index.add(PlanRow(name, [str(place)]))
    index.commit()
    assert index.find_plans(pa.array([*names, "none"])).to_pylist() == [
        *([str(place)] for place in range(len(names))),
        None,
    ]
    with pytest.raises(ValueError, match="has a plan in an earlier line; remove one of them"):
        index.add(PlanRow(names[0], ["again"]))
