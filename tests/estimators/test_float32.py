"""Single precision: with its rank cut, float32 finds the first eigenvalues that float64 finds with the same cut."""

from __future__ import annotations

import numpy as np
import pytest

from daskspectral import SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from daskspectral.operators import Cross

X = np.random.default_rng(0).standard_normal((6000, 3))
LANDMARKS = np.random.default_rng(1).standard_normal((120, 3))


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.5), Exponential(1.0), Matern(1.5, 2.0), Polynomial(4)],
    ids=["gaussian", "exponential", "matern", "polynomial"],
)
def test_the_first_25_eigenvalues_are_those_of_float64(kernel: Kernel) -> None:
    def fitted(dtype: str) -> SpectralDecomposition:
        options = {"kernel": kernel, "landmarks": LANDMARKS, "n_components": 25, "rtol": 1e-6, "min_support": 10.0}
        return SpectralDecomposition(**options, solver="cut", dtype=dtype).fit(X)

    double, single = fitted("float64"), fitted("float32")
    error = np.abs(single.eigenvalues_ - double.eigenvalues_) / np.maximum(1, double.eigenvalues_)
    assert 0 < error.max() < 1e-3
    assert (single.eigenvalues_ > -1e-5).all()
    assert single.rank_ == double.rank_
    assert single.set_params(rtol=None).fit_moments(single.moments_).rank_ == double.rank_  # it is the default
    for name in ("gram", "form"):  # the features are of single precision, their sums are not
        theirs, ours = single.moments_.arrays[name], double.moments_.arrays[name]
        assert ours.dtype == theirs.dtype == np.float64
        assert 1e-9 < np.abs(theirs - ours).max() / np.abs(ours).max() < 1e-5


@pytest.mark.parametrize("kernel", [Gaussian(1.5), Matern(1.5, 2.0), Matern(2.5, 1.5)], ids=repr)
def test_a_penalised_solution_is_closer_to_that_of_float64_than_a_cut_one(kernel: Kernel) -> None:
    """Of wide kernels float32 sees few directions; noise may not take the place of the others."""

    def fitted(dtype: str, solver: str = "penalised") -> np.ndarray:
        options = {"kernel": kernel, "landmarks": LANDMARKS, "n_components": 12, "dtype": dtype, "solver": solver}
        return SpectralDecomposition(**options).fit(X).eigenvalues_

    double = fitted("float64")
    by_cut, penalised = (np.abs(fitted("float32", solver) - double).max() for solver in ("cut", "penalised"))
    assert penalised < by_cut


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Matern(2.5, 5.0)], ids=repr)
@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_correlations_of_wide_kernels(kernel: Kernel, penalty: float) -> None:
    """The norm's pseudo-inverse does not raise the rounding of the sums to a penalty that hides all functions."""
    x, y = X[:3000, :2], X[:3000, :2] + 0.5 * np.random.default_rng(2).standard_normal((3000, 2))
    options = {"kernel": kernel, "n_landmarks": 60, "n_components": 3, "penalty": penalty, "random_state": 0}
    found = SpectralDecomposition(Cross(center=True), dtype="float32", **options).fit((x, y)).singular_values_
    correlation = 1 / np.sqrt(1.25)  # of x and x + noise; Mehler: its powers
    np.testing.assert_allclose(found, [correlation, correlation, correlation**2], rtol=0.03)
