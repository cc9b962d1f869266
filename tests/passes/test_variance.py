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
from daskspectral.operators import Transfer

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


def test_what_cannot_be_bounded_is_refused() -> None:
    x = np.random.default_rng(8).standard_normal((400, 2))
    functions = MonomialBasis(2, 2)
    with pytest.raises(ValueError, match=r"not fitted"):
        model().variance_bound(x)
    two_sided = model(operator=Transfer(), basis=functions, n_components=3).fit(x)
    with pytest.raises(ValueError, match=r"for symmetric operators, and transfer is solved by 'singular'"):
        two_sided.variance_bound(x)
    fitted = model(basis=functions, n_components=3).fit(x)
    wrong: tuple[Any, ...] = (0, 1, 0.0, 1.0, -0.1, math.nan, "0.1")
    for delta in wrong:
        with pytest.raises(ValueError, match=r"delta is the probability of being wrong, between 0 and 1; it is"):
            fitted.variance_bound(x, delta=delta)
    with pytest.raises(ValueError, match=r"ridge=0"):
        model(basis=functions, ridge=0.1).fit(x).variance_bound(x)
    with pytest.raises(ValueError, match=r"sample weight is 0"):
        fitted.variance_bound(x, sample_weight=np.zeros(400))
    with pytest.raises(TypeError, match=r"unexpected keyword argument"):
        fitted.variance_bound(x, checkpoint="here")
