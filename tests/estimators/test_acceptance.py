"""Spectra that are known in closed form, met to a stated accuracy."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral import RankWarning, SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Sphere
from daskspectral.operators import Laplacian
from tests.common import reference_arrays

Array = NDArray[Any]
LIMITS = reference_arrays("limits")


def multiplicity(d: int, s: int) -> int:
    """N(d, s): spherical harmonics of degree s in d variables."""
    return 1 if s == 0 else (2 * s + d - 2) * math.comb(s + d - 3, s - 1) // s


def on_sphere(n: int, d: int, seed: int) -> Array:
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def error_21(found: Array, d: int) -> float:
    """Equation (21): sum |1/l - 1/l'| over sum 1/l."""
    degrees = [s for s in range(1, 8) for _ in range(multiplicity(d, s))][: len(found)]
    true = np.array([s * (s + d - 2) for s in degrees])
    return float(np.sum(np.abs(1 / true - 1 / found)) / np.sum(1 / true))


@pytest.mark.parametrize("constant", [None, False])
@pytest.mark.parametrize(("d", "degree", "largest"), [(3, 4, 0.010), (5, 3, 0.013)])
def test_sphere(d: int, degree: int, largest: float, constant: bool | None) -> None:
    estimator = SpectralDecomposition(
        Laplacian(Sphere(d)),
        Polynomial(degree),
        n_components=25,
        n_landmarks=200,
        constant=constant,
        random_state=0,
    ).fit(on_sphere(100_000, d, 1))
    assert abs(estimator.eigenvalues_[0]) < 1e-8
    assert error_21(estimator.eigenvalues_[1:], d) <= largest
    assert estimator.rank_ == sum(multiplicity(d, s) for s in range(degree + 1))


@pytest.mark.parametrize("seed", range(5))
def test_normal_in_one_dimension_has_nothing_spurious(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((20_000, 1))
    estimator = SpectralDecomposition(kernel=Polynomial(3), n_landmarks=200, random_state=seed)
    with pytest.warns(RankWarning, match="rank 4 on these data, fewer than n_components=16: 4 eigenvalues"):
        estimator.fit(x)
    np.testing.assert_allclose(estimator.eigenvalues_, [0, 1, 2, 3], atol=1e-12, rtol=0.05)
    assert estimator.rank_ == 4
    hermite = [np.ones_like(x), x, (x**2 - 1) / math.sqrt(2), (x**3 - 3 * x) / math.sqrt(6)]
    overlap = np.abs([np.mean(estimator.transform(x)[:, [k]] * h) for k, h in enumerate(hermite)])
    np.testing.assert_allclose(overlap, 1, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_small_bandwidth_has_no_spurious_small_eigenvalues(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((20_000, 5))
    plain = {"kernel": Gaussian(0.3), "n_landmarks": 200, "n_components": 5, "random_state": seed}
    estimator = SpectralDecomposition(
        **plain, solver="cut", landmarks="uniform", exclude_landmarks=True, min_support=10.0
    )
    with pytest.warns(RankWarning, match="basis functions rest on fewer than min_support=10"):
        estimator.fit(x)
    assert abs(estimator.eigenvalues_[0]) < 1e-10
    assert (estimator.eigenvalues_[1:] >= 10).all()
    # with all rows and all functions: a cut alone leaves 13 values below 0.5, and 1 is the first true one
    penalised = SpectralDecomposition(**plain, landmarks="uniform").fit(x)
    assert abs(penalised.eigenvalues_[0]) < 1e-10
    assert (penalised.eigenvalues_[1:] >= 1).all()


def reference_kernel(name: str, parameter: float) -> Kernel:
    if name == "polynomial":
        return Polynomial(int(parameter))
    return Gaussian(parameter / math.sqrt(2)) if name == "gaussian" else Exponential(parameter)


@pytest.mark.parametrize("key", LIMITS)
def test_biased_limits_of_the_ambient_form(key: str) -> None:
    """s(s+d-2) + (g'/g)^2 for degree s, as the mean over each multiplet, n = 5e4."""
    _, dimension, name, parameter = key.split("_")
    d, table = int(dimension[1:]), LIMITS[key]
    # the exponential kernel's 200 functions resolve the low degrees only, slowly; a polynomial has its own degrees
    highest = {"exponential": 2, "polynomial": min(4, int(float(parameter)))}.get(name, 4)
    multiplets = [multiplicity(d, s) for s in range(highest + 1)]
    estimator = SpectralDecomposition(
        kernel=reference_kernel(name, float(parameter)),
        n_components=sum(multiplets),
        constant=False,
        landmarks=on_sphere(200, d, 2),
        min_support=0.0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)  # the widest kernels do not resolve the highest degrees
        found = estimator.fit(on_sphere(50_000, d, 1)).eigenvalues_
    borders = np.concatenate([[0], np.cumsum(multiplets)])
    whole = borders[1:][borders[1:] <= len(found)]
    assert len(whole) >= 2
    means = [found[a:b].mean() for a, b in zip(borders, whole, strict=False)]
    tolerance = 0.02 if name == "exponential" else 0.005
    np.testing.assert_allclose(means, table[: len(whole), 3], rtol=tolerance)


def test_the_limits_hold_the_formula() -> None:
    for key in LIMITS:
        d = int(key.split("_")[1][1:])
        s, plain, slope, biased = LIMITS[key].T
        np.testing.assert_allclose(plain, s * (s + d - 2))
        np.testing.assert_allclose(biased, plain + slope**2)
