"""R^2 of the regressors, read chunk by chunk, against scikit-learn's on arrays in memory."""

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import r2_score

import daskspectral as dsp

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


def test_invalid_targets_are_rows_left_out() -> None:
    fitted, y, keep = hermite().fit(X, Y), np.where(np.arange(900) == 33, np.nan, Y), np.arange(900) != 33
    with pytest.raises(dsp.InvalidRowError) as caught:
        fitted.score(X, y)
    assert caught.value.row == 33
    assert fitted.score(dsp.Rows(X, on_invalid="skip"), y) == pytest.approx(fitted.score(X[keep], Y[keep]), rel=1e-12)
