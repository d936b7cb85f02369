"""Keys have the bits of JAX's, without JAX; draws work also where the library of linear algebra gives up."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewright.engineer.random_generators import Key, check_key, draw_normal, fold_key, make_key, numpy_rng, split_key
from lakewright.engineer.teachers import MODELS, TEACHERS, make_teacher
from tests.support.environments.odd_spaces import RAGGED, Odd, know_everything
from tests.support.refusals import refused

MEAN, COVARIANCE = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])
WORDS = st.integers(0, 2**32 - 1)
KEYS = st.builds(Key, WORDS, WORDS)
STEPS = st.tuples(st.just("fold"), WORDS) | st.tuples(st.just("split"), st.integers(1, 5))
EVIDENCE = know_everything(Odd(RAGGED), RAGGED.uniform())


def typed(key):
    """The key of JAX with these words."""
    return jax.random.wrap_key_data(key.words(), impl="threefry2x32")


def words_of(key):
    return tuple(int(word) for word in jax.random.key_data(key))


def same(key, other):
    return (key.high, key.low) == words_of(other)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_seed_makes_the_key_of_jax(seed):
    assert same(make_key(seed), jax.random.key(seed))


@given(KEYS, st.integers(1, 9))
def test_a_key_splits_into_the_keys_of_jax(key, count):
    parts = split_key(key, count)
    assert len(parts) == count
    assert all(map(same, parts, jax.random.split(typed(key), count)))


@given(KEYS, WORDS)
def test_a_key_is_folded_with_a_number_as_by_jax(key, data):
    assert same(fold_key(key, data), jax.random.fold_in(typed(key), data))


@given(st.integers(0, 2**31), st.lists(STEPS, max_size=6))
def test_any_chain_of_them_leads_to_the_draws_of_jax(seed, chain):
    ours, theirs = make_key(seed), jax.random.key(seed)
    for what, number in chain:
        ours = fold_key(ours, number) if what == "fold" else split_key(ours, number)[-1]
        theirs = fold_key(theirs, number) if what == "fold" else split_key(theirs, number)[-1]
    drawn = numpy_rng(ours).integers(2**63, size=4)
    assert np.array_equal(drawn, np.random.default_rng(np.asarray(jax.random.key_data(theirs))).integers(2**63, size=4))
    assert np.array_equal(drawn, numpy_rng(theirs).integers(2**63, size=4))


def test_keys_of_another_implementation_of_jax_are_split_by_jax():
    one, same, again = (jax.random.key(3, impl="rbg") for _ in range(3))
    assert [words_of(part) for part in split_key(one, 3)] == [words_of(part) for part in jax.random.split(same, 3)]
    assert words_of(fold_key(again, 5)) == words_of(jax.random.fold_in(again, 5))


@pytest.mark.parametrize("key", [0, None, np.zeros(2, np.uint32), "key<fry>"])
def test_what_is_no_key_is_refused(key):
    with refused("here: key", "make_key"):
        check_key(key, "here")
    check_key(make_key(0), "here")
    check_key(jax.random.key(0), "here")


@pytest.mark.parametrize("teacher", sorted(set(TEACHERS) - {*MODELS, "matched_random"}))
def test_every_teacher_proposes_the_same_by_a_key_of_jax(teacher):
    for seed in range(3):
        by_ours, by_theirs = make_teacher(teacher), make_teacher(teacher)
        found = by_ours.propose(EVIDENCE, EVIDENCE.design, RAGGED, make_key(seed))
        assert found == by_theirs.propose(EVIDENCE, EVIDENCE.design, RAGGED, jax.random.key(seed))
        assert by_ours.state_dict() == by_theirs.state_dict()


def give_up(*_, **__):
    raise np.linalg.LinAlgError("Eigenvalues did not converge")


def test_draws_are_those_of_the_eigenvectors():
    expected = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 5, method="eigh")
    assert np.array_equal(draw_normal(np.random.default_rng(0), MEAN, COVARIANCE, 5), expected)


def test_where_no_eigenvectors_are_found_draws_have_the_same_distribution(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigh", give_up)
    with pytest.raises(np.linalg.LinAlgError):
        np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 5, method="eigh")
    drawn = draw_normal(np.random.default_rng(0), MEAN, COVARIANCE, 40_000)
    assert drawn.mean(0) == pytest.approx(MEAN, abs=0.04)
    assert np.cov(drawn.T) == pytest.approx(COVARIANCE, abs=0.06)
    again = draw_normal(np.random.default_rng(0), MEAN, COVARIANCE, 40_000)
    assert np.array_equal(drawn, again)
