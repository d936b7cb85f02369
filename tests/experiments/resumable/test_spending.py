"""What tries may cost is kept line by line, whatever happens to the process or the disk."""

import resource

import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.resumable.spending import Spending
from lakewright.policy.inference import Charge


def test_the_last_charge_of_a_try_counts_also_after_a_line_was_cut_off(tmp_path):
    path = tmp_path / "spending.jsonl"
    assert Spending(path).count_tokens() == (0, 0)
    for charge in (Charge("a", 10, 100), Charge("b", 20, 200), Charge("a", 9, 50)):
        Spending(path).add(charge)
    assert Spending(path).count_tokens() == (29, 250)
    with open(path, "ab") as lines:
        lines.write(b'{"attempt":"c","tok')  # killed here, before it was sent
    assert Spending(path).count_tokens() == (29, 250)
    Spending(path).add(Charge("c", 1, 1))
    assert Spending(path).count_tokens() == (30, 251)


def test_on_a_full_disk_a_charge_is_refused_whole(tmp_path):
    spending = Spending(tmp_path / "spending.jsonl")
    spending.add(Charge("a", 10, 100))
    before = (tmp_path / "spending.jsonl").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(OSError, match=r"No space left|File too large"):
            spending.add(Charge("b", 20, 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "spending.jsonl").read_bytes() == before


def test_a_damaged_line_is_named_and_never_counted_as_nothing(tmp_path):
    (tmp_path / "spending.jsonl").write_bytes(b'{"attempt":"a","tokens_in":-1,"tokens_out":0}\n')
    with pytest.raises(InputError, match=r"spending.jsonl:1: "):
        Spending(tmp_path / "spending.jsonl").count_tokens()
