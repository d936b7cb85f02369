"""Draws of the engineer, also where the library of linear algebra gives up."""

import numpy as np
import pytest

from lakewright.engineer.random_generators import draw_normal

MEAN, COVARIANCE = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])


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
