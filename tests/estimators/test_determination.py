"""R^2 of the regressors, read chunk by chunk, against scikit-learn's on arrays in memory."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

import daskspectral as dsp
from daskspectral.passes.scale import Spread

RNG = np.random.default_rng(0)
SPHERE = dsp.manifolds.Sphere(3)
X = SPHERE.sample(900, RNG)
PAIR = np.column_stack([X[:, 0] ** 2, 1e6 + X[:, 1] ** 3]) + 0.02 * RNG.standard_normal((900, 2))
Y = PAIR[:, 0]
W = RNG.integers(0, 4, 900).astype(float)
pytestmark = pytest.mark.filterwarnings("ignore:the values of y have the mean:daskspectral.errors.FitWarning")


def hermite() -> dsp.HermiteRegressor:
    return dsp.HermiteRegressor(dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 12), 1e-6, random_state=0)


def invariant() -> dsp.InvariantRegressor:
    return dsp.InvariantRegressor(SPHERE, dsp.groups.SignFlips(3), n_eigenfunctions=16, solver="least_squares")


@pytest.mark.parametrize(
    ("make", "reading"), [(hermite, {}), (hermite, {"standardize": True, "columns": [2, 0]}), (invariant, {})]
)
def test_it_is_that_of_scikit_learn(make: Callable[[], Any], reading: dict[str, Any]) -> None:
    est, y = make().fit(dsp.Rows(X[:400], **reading), PAIR[:400]), PAIR
    new, predicted = X[400:], est.predict(X[400:])
    assert est.score(new, y[400:]) == pytest.approx(r2_score(y[400:], predicted), rel=1e-9, abs=1e-9)
    expected = r2_score(y[400:], predicted, sample_weight=W[400:])
    assert est.score(new, y[400:], W[400:]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_rows_are_read_in_pieces() -> None:
    """No block of the predictions holds all rows, and y is never gathered."""
    longest = []

    def look(block: np.ndarray) -> np.ndarray:
        longest.append(len(block))
        return block

    x, y = (da.from_array(a, chunks=(100, *a.shape[1:])).map_blocks(look, meta=a[:0]) for a in (X, Y))
    assert hermite().fit(X, Y).score(x, y) > 0.5
    assert max(longest) == 100


@given(st.integers(0, 10**6), st.lists(st.integers(1, 99), min_size=1, max_size=4, unique=True), st.floats(-1e8, 1e8))
def test_pieces_add_up(seed: int, cuts: list[int], offset: float) -> None:
    rng = np.random.default_rng(seed)
    y, predicted = offset + rng.standard_normal((2, 100, 2))
    w = rng.integers(0, 3, 100).astype(float)
    w[0] = 1.0
    first, *parts = (Spread.of(y[r], w[r], predicted[r]) for r in np.split(np.arange(100), sorted(cuts)))
    total = sum(parts, start=first)
    assert total.weight == w.sum()
    squares = np.cov(y.T, fweights=w.astype(int), ddof=0).diagonal() * w.sum()
    np.testing.assert_allclose(total.mean, np.average(y, axis=0, weights=w), rtol=1e-12)
    np.testing.assert_allclose(total.squares, squares, rtol=1e-6)
    np.testing.assert_allclose(total.residuals, w @ (y - predicted) ** 2, rtol=1e-9)


def test_bad_data() -> None:
    fitted = hermite().fit(X, Y)
    with pytest.raises(ValueError, match="1 row"):
        fitted.score(X[:1], Y[:1])
    with pytest.raises(ValueError, match="2 columns"):
        fitted.score(X, PAIR)
    y = np.where(np.arange(900) == 33, np.nan, Y)
    with pytest.raises(dsp.InvalidRowError, match="row 33"):
        fitted.score(X, y)
    keep = np.arange(900) != 33
    assert fitted.score(dsp.Rows(X, on_invalid="skip"), y) == pytest.approx(fitted.score(X[keep], Y[keep]), rel=1e-12)
