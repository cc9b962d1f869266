"""Diffusion maps on blocks: against eigenvectors of dense Markov matrices, here and at new points."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_wine

from daskspectral.embedding.diffusion_functions import (
    LandmarkSums,
    landmark_features,
    landmark_map,
    with_sums,
)
from daskspectral.kernels import Gaussian
from tests.solve.common import Array, moons

WINE = {  # the leading eigenvalues of A_bar for wine, standardised with ddof = 1, by independent code
    1.5: [0.99842548, 0.99730533, 0.99600608, 0.99272465, 0.99118375, 0.98808862],
    4: [0.50686037, 0.32640594, 0.15621408, 0.13039475, 0.12254375, 0.10770946],
}


def gaussian(bandwidth: float) -> Gaussian:
    return Gaussian(bandwidth / math.sqrt(2))


def kernel_matrix(x: Array, y: Array, bandwidth: float) -> Array:
    return np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=-1) / bandwidth**2)


def nystrom(k: Array, at: Array, values: Array, psi: Array, alpha: float, symmetric: bool) -> Array:
    """Formula (1.3) at points with the kernel `at` (c, n), from functions psi (n, k) of the points of the fit."""
    q = k.sum(axis=1)
    m = (k / np.outer(q, q) ** alpha).sum(axis=1)
    rows = at / np.outer(at.sum(axis=1), q) ** alpha
    degree = rows.sum(axis=1, keepdims=True)
    return np.asarray((rows / np.sqrt(degree * m) if symmetric else rows / degree) @ psi / values)


def markov(k: Array, alpha: float) -> tuple[Array, Array]:
    """The Markov matrix with density^alpha divided out, and its stationary distribution: no symmetric form anywhere."""
    q = k.sum(axis=1)
    k = k / np.outer(q, q) ** alpha
    m = k.sum(axis=1)
    return k / m[:, None], m / m.sum()


def check(k: Array, values: Array, f: Array, alpha: float, symmetric: bool, tolerance: float) -> None:
    """P f = lambda f for the largest but 1, f of unit norm and orthogonal to constants in its stationary measure."""
    p, stationary = markov(k, alpha)
    np.testing.assert_allclose(values, np.sort(scipy.linalg.eigvals(p).real)[::-1][1:5], atol=tolerance)
    f = f / np.sqrt(stationary)[:, None] if symmetric else f
    np.testing.assert_allclose(p @ f, f * values, atol=100 * tolerance)
    np.testing.assert_allclose(f.T @ (stationary[:, None] * f), np.eye(4), atol=100 * tolerance)
    np.testing.assert_allclose(stationary @ f, 0, atol=tolerance)


def landmark_fit(x: Array, landmarks: Array, alpha: float = 0.0, h: float = 0.5, count: int = 4, **options: Any) -> Any:
    """The three steps over some blocks, added."""
    functions = landmark_features(gaussian(h), landmarks, alpha)
    for step in ("first", "second", "gram") if alpha else ("first", "gram"):
        parts = [LandmarkSums(functions, step)([{"x": b}]) for b in np.array_split(x, 3)]
        sums = {name: np.sum([p[name] for p in parts], axis=0) for name in parts[0]}
        assert sums["uncovered"][0] == 0
        if step != "gram":
            functions = with_sums(functions, sums)
    return landmark_map(functions, sums["gram"], count, **options)


def test_wine_reference_spectra() -> None:
    x = load_wine().data
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    for bandwidth, expected in WINE.items():
        values, _ = landmark_fit(x, x, h=bandwidth, count=6)
        np.testing.assert_allclose(values, expected, rtol=0, atol=6e-9)


@pytest.mark.parametrize(("alpha", "time", "symmetric"), [(0.0, 1, False), (0.5, 0, True), (1.0, 2.5, False)])
def test_all_points(alpha: float, time: float, symmetric: bool) -> None:
    x, new = moons(150), moons(5, seed=1)
    k = kernel_matrix(x, x, 0.5)
    values, functions = landmark_fit(x, x, alpha, time=time, symmetric=symmetric)
    psi = functions(x) / values**time
    check(k, values, psi, alpha, symmetric, 1e-10)
    expected = nystrom(k, kernel_matrix(new, x, 0.5), values, psi, alpha, symmetric)
    np.testing.assert_allclose(functions(new), expected * values**time, atol=1e-7)


@pytest.mark.parametrize(("alpha", "time", "symmetric"), [(0.0, 0, True), (0.7, 1, False)])
def test_landmarks_solve_the_approximated_kernel(alpha: float, time: float, symmetric: bool) -> None:
    """With few landmarks the answer is that of the kernel k(x, Y) K_YY^-1 k(Y, x), decomposed densely."""
    x, new = moons(200), moons(5, seed=1)
    y = x[:40]
    values, functions = landmark_fit(x, y, alpha, time=time, symmetric=symmetric)
    inverse = np.linalg.pinv(kernel_matrix(y, y, 0.5), rcond=1e-10, hermitian=True)
    cross, at = kernel_matrix(x, y, 0.5), kernel_matrix(new, y, 0.5)
    k, psi = cross @ inverse @ cross.T, functions(x) / values**time
    check(k, values, psi, alpha, symmetric, 1e-8)
    expected = nystrom(k, at @ inverse @ cross.T, values, psi, alpha, symmetric)
    np.testing.assert_allclose(functions(new), expected * values**time, atol=1e-5)


def test_points_that_landmarks_do_not_cover_are_counted_and_undefined() -> None:
    x, kernel = moons(80), gaussian(0.5)
    far = np.array([[1e3, 0.0], [0.2, 0.3], [np.nan, 1.0]])
    beside = [[40.0, 0.0], [0.0, 50.0]]
    assert LandmarkSums(landmark_features(kernel, x), "first")([{"x": np.vstack([x, beside])}])["uncovered"][0] == 2
    for share, uncovered in ((0.11, 0), (0.09, 1)):  # of k(x, x), at a distance from the one landmark
        lone = landmark_features(kernel, np.zeros((1, 1)))
        at = np.array([[0.5 * np.sqrt(-np.log(share) / 2)]])
        assert LandmarkSums(lone, "first")([{"x": at}])["uncovered"][0] == uncovered
    for landmarks in (x, x[:40]):
        _, functions = landmark_fit(x, landmarks)
        assert np.isnan(functions(far)).all(axis=1).tolist() == [True, False, True]
        assert np.isfinite(functions(far[1:2])).all()


def test_no_component_left() -> None:
    x = np.zeros((6, 2))
    values, functions = landmark_fit(x, x)
    assert (values.shape, functions(x).shape) == ((0,), (6, 0))
