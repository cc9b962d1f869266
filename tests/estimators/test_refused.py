"""Bad input is refused before any task is sent; warnings of what the data cannot give."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.kernels import Gaussian, Polynomial
from tests.estimators.common import N, X, make

LAZY = da.from_array(X, chunks=(500, 3))
BAD_DATA: dict[str, tuple[Any, type[Exception], str]] = {
    "empty": (X[:0], ValueError, r"X is empty: 0 sample\(s\)"),
    "complex": (X + 1j, ValueError, "Complex data not supported: X has dtype complex128"),
    "unknown blocks": (LAZY[LAZY[:, 0] > 0], ValueError, r"dask array with blocks of unknown size; call X\."),
    "few rows": (X[:19], ValueError, "X has 19 rows, fewer than n_landmarks=20"),
}


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize("kind", BAD_DATA)
def test_bad_data_before_any_task(kind: str) -> None:
    bad, error, message = BAD_DATA[kind]
    for options in ({}, {"standardize": True, "kernel": None, "landmarks": "kmeans++"}):
        with pytest.raises(error, match=message):
            make(**options).fit(bad)


LARGE = dsp.operators.Laplacian(dsp.manifolds.Sphere(5))
BAD_PARAMETERS: list[tuple[dict[str, Any], str]] = [
    ({"n_components": True}, "n_components must be a whole number of 1 or more; it is True"),
    ({"n_landmarks": X[:5]}, r"n_landmarks is how many .* array of shape \(5, 3\).* as landmarks="),
    ({"kernel": "gaussian"}, r"kernel must be one of daskspectral.kernels \(Gaussian, Exponential, Matern"),
    ({"operator": LARGE}, r"Sphere\(d=5\) lives in 5 dimensions and the data have 3 columns"),
    ({"landmarks": "random"}, r"landmarks must be 'uniform' or 'kmeans\+\+' or .*; it is 'random'"),
    ({"landmark_sample": 19, "landmarks": "leverage"}, "landmark_sample must be a whole number of 20 or"),
    ({"columns": [True, False, True]}, "columns must be a list of distinct numbers"),
    ({"standardize": "no"}, "standardize must be True or False; it is 'no'"),
    ({"rtol": 1.0}, r"rtol must lie in \[0, 1\) for dtype float64"),
]


@pytest.mark.usefixtures("no_tasks")
@pytest.mark.parametrize(("changes", "message"), BAD_PARAMETERS, ids=[str(bad)[:40] for bad, _ in BAD_PARAMETERS])
def test_bad_parameters_before_any_task(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**({"standardize": True} | changes)).fit(X)


def test_numbers_that_overflow(fitted: dsp.SpectralDecomposition) -> None:
    with pytest.raises(ValueError, match="the moments are not finite"):
        make(kernel=Polynomial(6)).fit(1e60 * X)
    few = X[:60].copy()
    few[3, 1] = -1e160
    for model in (make(), dsp.DiffusionMap(2.0), dsp.SDPEmbedding(2.0), dsp.KernelEmbedding()):
        with pytest.raises(dsp.InvalidRowError, match=r"row 3 .* X holds -1e\+160 in column 1"):
            model.fit(few)
    found = np.asarray(fitted.transform(da.from_array(few, chunks=(2, -1)), on_invalid="skip"))
    assert np.flatnonzero(np.isnan(found).all(axis=1)).tolist() == [3]


def test_the_median_of_very_small_and_very_large_data() -> None:
    """The spectrum scales with the units, up to where powers of them overflow, and this is said."""
    kernel = Gaussian("median")
    plain = make(kernel=kernel).fit(X).eigenvalues_
    for unit in (2.0**-240, 2.0**240):
        found = make(kernel=kernel).fit(unit * X).eigenvalues_
        np.testing.assert_allclose(found * unit**2, plain, rtol=1e-9, atol=1e-9)
    for unit in (1e-300, 1e-80, 1e80, 1e150):
        with pytest.raises(ValueError, match="the median distance of the points is"):
            make(kernel=kernel).fit(unit * X)


def test_a_failed_fit_leaves_the_estimator_as_it_was(fitted: dsp.SpectralDecomposition) -> None:
    estimator = clone(fitted).fit(X)
    with pytest.raises(dsp.InvalidRowError):
        estimator.fit(np.full_like(X, np.nan))
    np.testing.assert_array_equal(estimator.transform(X[:5]), fitted.transform(X[:5]))


def test_warnings_of_the_rank() -> None:
    advice = "polynomials of degree 1 in 3 variables have 4 dimensions"
    with pytest.warns(dsp.RankWarning, match=rf"rank 4 .* n_components=5: 4 eigenvalues are returned; {advice}"):
        estimator = make(kernel=Polynomial(1)).fit(X)
    assert estimator.transform(X).shape == (N, len(estimator.eigenvalues_)) == (N, 4)
    with pytest.warns(dsp.RankWarning, match="only 8 of 20 landmarks could be chosen by"):
        make(landmarks="kmeans++", exclude_landmarks=False).fit(np.repeat(X[:8], 100, axis=0))
    with pytest.raises(ValueError, match="their median distance is 0 and sets no"):
        make(kernel=Gaussian("median")).fit(np.ones((100, 2)))
