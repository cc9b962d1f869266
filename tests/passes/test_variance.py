"""Error bars of a spectrum: how often they hold where the truth is known, and how they shrink."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import MonomialBasis

Array = NDArray[Any]
DEGREE = 2


def model(degree: int = DEGREE, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"basis": MonomialBasis(1, degree), "n_components": degree + 1}
    return dsp.SpectralDecomposition(**(defaults | changes))


def test_the_numbers_from_their_formulas() -> None:
    """Degree 2 on the line by hand: everything from arrays of all rows."""
    n = 300
    x = np.random.default_rng(2).uniform(-1, 2, n)
    fitted = model().fit(x[:, None])
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
    assert (found.rank, found.deflated, found.count, found.delta) == (2, 1, n, 0.1)
    assert found.inverse == pytest.approx(1 / lam[0], rel=1e-10)
    assert found.theorem == pytest.approx(theorem, rel=1e-10)
    assert found.theorem_rows == math.ceil(32 / 3 * (rank * np.abs(a).max()) ** 2 * log)
    assert found.deviation == pytest.approx(deviation, rel=1e-10)
    assert deviation < 1
    assert found.bernstein == pytest.approx(deviation / (1 - deviation) / lam[0], rel=1e-10)
    np.testing.assert_allclose(found.eigenvalues, fitted.eigenvalues_)
    np.testing.assert_allclose(found.standard_errors[1:], change.std(axis=0) / math.sqrt(n), rtol=1e-9)
