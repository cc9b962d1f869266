"""The bound of a spectrum's variance, from its formulas."""

import math

import numpy as np
import pytest
import scipy.linalg

import daskspectral as dsp
from daskspectral.basis import MonomialBasis


def test_the_numbers_from_their_formulas() -> None:
    """Degree 2 on the line by hand: everything from arrays of all rows."""
    n = 300
    x = np.random.default_rng(2).uniform(-1, 2, n)
    fitted = dsp.SpectralDecomposition(basis=MonomialBasis(1, 2), n_components=3).fit(x[:, None])
    found = fitted.variance_bound(x[:, None], delta=0.1)
    values = np.column_stack([x - x.mean(), x**2 - np.mean(x**2)])
    slopes = np.column_stack([np.ones(n), 2 * x])
    lam, v = scipy.linalg.eigh(slopes.T @ slopes / n, values.T @ values / n)
    du = slopes @ v / np.sqrt(lam)
    a = du[:, :, None] * du[:, None]
    log, rank = math.log(2 * 2 / 0.1), 2
    theorem = 3 / lam[0] * rank * np.abs(a).max() * math.sqrt(8 * log / (3 * n))
    second = np.linalg.norm((a @ a).mean(axis=0), 2)
    third = 2 * np.linalg.norm(a, axis=(1, 2)).max() * log / (3 * n)
    deviation = third + math.sqrt(third**2 + 2 * second * log / n)
    change = (slopes @ v) ** 2 - lam * (values @ v) ** 2
    assert found.inverse == pytest.approx(1 / lam[0], rel=1e-10)
    assert found.theorem == pytest.approx(theorem, rel=1e-10)
    assert found.bernstein == pytest.approx(deviation / (1 - deviation) / lam[0], rel=1e-10)
    np.testing.assert_allclose(found.standard_errors[1:], change.std(axis=0) / math.sqrt(n), rtol=1e-9)
