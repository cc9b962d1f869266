"""Spectra that are known in closed form, met to a stated accuracy, and single precision beside double."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from daskspectral import RankWarning, SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.operators import Laplacian
from tests.common import reference_arrays

LIMITS = reference_arrays("limits")


def multiplicity(d: int, s: int) -> int:
    """N(d, s): spherical harmonics of degree s in d variables."""
    return 1 if s == 0 else (2 * s + d - 2) * math.comb(s + d - 3, s - 1) // s


@pytest.mark.parametrize(("d", "degree", "largest"), [(3, 4, 0.02), (5, 3, 0.035)])
def test_sphere(d: int, degree: int, largest: float) -> None:
    """The error of equation (21): sum |1/l - 1/l'| over sum 1/l."""
    x = Sphere(d).sample(20_000, np.random.default_rng(1))
    model = SpectralDecomposition(Laplacian(Sphere(d)), Polynomial(degree), n_components=25, n_landmarks=100)
    model.set_params(random_state=0).fit(x)
    assert abs(model.eigenvalues_[0]) < 1e-8
    true = np.array([s * (s + d - 2) for s in range(1, 8) for _ in range(multiplicity(d, s))][:24])
    assert np.sum(np.abs(1 / true - 1 / model.eigenvalues_[1:])) / np.sum(1 / true) <= largest
    assert model.rank_ == sum(multiplicity(d, s) for s in range(degree + 1))


def test_small_bandwidth_has_no_spurious_small_eigenvalues() -> None:
    x = np.random.default_rng(0).standard_normal((20_000, 5))
    plain: dict[str, Any] = {"kernel": Gaussian(0.3), "n_landmarks": 200, "n_components": 5, "random_state": 0}
    cut = SpectralDecomposition(**plain, solver="cut", landmarks="uniform", exclude_landmarks=True, min_support=10.0)
    with pytest.warns(RankWarning, match="basis functions rest on fewer than"):
        assert (cut.fit(x).eigenvalues_[1:] >= 10).all()
    # with all rows and all functions: a cut alone leaves 13 values below 0.5, and 1 is the first true one
    assert (SpectralDecomposition(**plain, landmarks="uniform").fit(x).eigenvalues_[1:] >= 1).all()


def reference_kernel(name: str, parameter: float) -> Kernel:
    if name == "polynomial":
        return Polynomial(int(parameter))
    return Gaussian(parameter / math.sqrt(2)) if name == "gaussian" else Exponential(parameter)


@pytest.mark.parametrize("key", [pytest.param(k, marks=[pytest.mark.slow] * (i % 6 > 0)) for i, k in enumerate(LIMITS)])
def test_biased_limits_of_the_ambient_form(key: str) -> None:
    """s(s+d-2) + (g'/g)^2 for degree s, as the mean over each multiplet, n = 5e4."""
    _, dimension, name, parameter = key.split("_")
    d, table = int(dimension[1:]), LIMITS[key]
    s, plain, slope, biased = table.T
    np.testing.assert_allclose([plain, biased], [s * (s + d - 2), plain + slope**2])
    # the exponential kernel's 200 functions resolve the low degrees only, slowly; a polynomial has its own degrees
    highest = {"exponential": 2, "polynomial": min(4, int(float(parameter)))}.get(name, 4)
    multiplets = [multiplicity(d, s) for s in range(highest + 1)]
    kernel, draw = reference_kernel(name, float(parameter)), Sphere(d).sample
    model = SpectralDecomposition(kernel=kernel, n_components=sum(multiplets), constant=False, min_support=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the widest kernels do not resolve the highest degrees
        model.set_params(landmarks=draw(200, np.random.default_rng(2))).fit(draw(50_000, np.random.default_rng(1)))
    found, borders = model.eigenvalues_, np.concatenate([[0], np.cumsum(multiplets)])
    whole = borders[1:][borders[1:] <= len(found)]
    assert len(whole) >= 2
    means = [found[a:b].mean() for a, b in zip(borders, whole, strict=False)]
    np.testing.assert_allclose(means, biased[: len(whole)], rtol=0.02 if name == "exponential" else 0.005)


def test_the_first_eigenvalues_of_single_precision_are_those_of_double() -> None:
    x, landmarks = (np.random.default_rng(seed).standard_normal((n, 3)) for seed, n in ((0, 3000), (1, 80)))
    options: dict[str, Any] = {"kernel": Matern(1.5, 2.0), "landmarks": landmarks, "n_components": 20}
    options |= {"rtol": 1e-6, "solver": "cut", "min_support": 10.0}
    double, single = (SpectralDecomposition(**options, dtype=dtype).fit(x) for dtype in ("float64", "float32"))
    error = np.abs(single.eigenvalues_ - double.eigenvalues_) / np.maximum(1, double.eigenvalues_)
    assert 0 < error.max() < 1e-3
    assert single.rank_ == double.rank_
    assert single.set_params(rtol=None).fit_moments(single.moments_).rank_ == double.rank_  # it is the default
    for name in ("gram", "form"):  # the features are of single precision, their sums are not
        theirs, ours = single.moments_.arrays[name], double.moments_.arrays[name]
        assert ours.dtype == theirs.dtype == np.float64
        assert 1e-9 < np.abs(theirs - ours).max() / np.abs(ours).max() < 1e-5
