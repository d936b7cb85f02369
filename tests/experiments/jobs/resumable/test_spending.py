"""What tries may cost is kept line by line, whatever happens to the process or the disk."""

import resource

import msgspec
import pytest

from lakewright.core_jax.errors import InputError
from lakewright.experiments.jobs.resumable.spending import Spending
from lakewright.policy.inference import Charge
from tests.support.machines.kills import cut_off
from tests.support.refusals import refused


def spend(path, *charges):
    with Spending(path) as spending:
        for charge in charges:
            spending.add(charge)


def test_the_last_charge_of_a_try_counts_also_after_a_line_was_cut_off(tmp_path):
    path = tmp_path / "spending.jsonl"
    assert Spending(path).count_tokens() == (0, 0)
    for charge in (Charge("a", 10, 100), Charge("b", 20, 200), Charge("a", 9, 50)):
        spend(path, charge)
    assert Spending(path).count_tokens() == (29, 250)
    cut_off(path, then=b'{"attempt":"c","tok')  # killed here, before it was sent
    assert Spending(path).count_tokens() == (29, 250)
    spend(path, Charge("c", 1, 1))
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


CHARGES = (Charge("a", 10, 100), Charge("a", 9, 50), Charge("b", 20, 200))


def test_a_charge_that_was_changed_is_refused_also_where_a_kill_came_before_the_file_was_listed(tmp_path):
    path = tmp_path / "spending.jsonl"
    spend(path, *CHARGES)
    cut_off(path)
    path.write_bytes(path.read_bytes().replace(b'"tokens_out":50', b'"tokens_out":10'))
    with refused("spending.jsonl:2:"):
        Spending(path).count_tokens()


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_charge_that_was_lost_is_noticed(tmp_path, kept):
    path = tmp_path / "spending.jsonl"
    spend(path, *CHARGES)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    with pytest.raises(InputError, match=r"spending.jsonl: was changed after it was written"):
        Spending(path).count_tokens()


def test_charges_of_earlier_versions_are_counted_and_added_to(tmp_path):
    path = tmp_path / "spending.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines(CHARGES))
    assert Spending(path).count_tokens() == (29, 250)
    spend(path, Charge("c", 1, 1))
    assert Spending(path).count_tokens() == (30, 251)
