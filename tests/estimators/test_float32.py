"""Single precision: with its rank cut, float32 finds the first eigenvalues that float64 finds with the same cut."""

from __future__ import annotations

import numpy as np
import pytest

from daskspectral import SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial

X = np.random.default_rng(0).standard_normal((6000, 3))
LANDMARKS = np.random.default_rng(1).standard_normal((120, 3))


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(1.5), Exponential(1.0), Matern(1.5, 2.0), Polynomial(4)],
    ids=["gaussian", "exponential", "matern", "polynomial"],
)
def test_the_first_25_eigenvalues_are_those_of_float64(kernel: Kernel) -> None:
    def fitted(dtype: str) -> SpectralDecomposition:
        return SpectralDecomposition(kernel=kernel, landmarks=LANDMARKS, n_components=25, dtype=dtype, rtol=1e-6).fit(X)

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
