"""Diffusion maps on blocks: against dense eigendecompositions written out, and the landmark sums against all points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from daskspectral.kernels import Gaussian
from daskspectral.solve import diffusion
from daskspectral.solve.diffusion import (
    DiffusionFunctions,
    KernelMatrix,
    LandmarkSums,
    exact_map,
    landmark_features,
    landmark_map,
    with_sums,
)
from tests.solve.common import Array, moons

# the leading eigenvalues of A_bar for wine, standardised with ddof = 1, by independent code
WINE = {
    1.5: [0.99842548, 0.99730533, 0.99600608, 0.99272465, 0.99118375, 0.98808862],
    2: [0.95459887, 0.94267604, 0.91399052, 0.85585792, 0.84628197, 0.84003949],
    3: [0.73427593, 0.53628973, 0.36708098, 0.32798142, 0.27127104, 0.25747878],
    4: [0.50686037, 0.32640594, 0.15621408, 0.13039475, 0.12254375, 0.10770946],
    10: [0.09291326, 0.05063221, 0.02773756, 0.01849701, 0.0171292, 0.01311644],
}


def gaussian(bandwidth: float) -> Gaussian:
    return Gaussian(bandwidth / math.sqrt(2))


def kernel_matrix(x: Array, bandwidth: float) -> Array:
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=-1) / bandwidth**2)


def markov(k: Array, alpha: float) -> tuple[Array, Array]:
    """The Markov matrix with density^alpha divided out, and its stationary distribution: no symmetric form anywhere."""
    q = k.sum(axis=1)
    k = k / np.outer(q, q) ** alpha
    m = k.sum(axis=1)
    return k / m[:, None], m / m.sum()


def landmark_fit(x: Array, landmarks: Array, bandwidth: float, alpha: float, blocks: int = 3, **options: Any) -> Any:
    """The three steps over some blocks, added."""
    functions = landmark_features(gaussian(bandwidth), landmarks, alpha)
    for step in ("first", "second", "gram") if alpha else ("first", "gram"):
        parts = [LandmarkSums(functions, step)(b) for b in np.array_split(x, blocks)]
        sums = {name: np.sum([p[name] for p in parts], axis=0) for name in parts[0]}
        assert sums["uncovered"][0] == 0
        if step != "gram":
            functions = with_sums(functions, sums)
    return landmark_map(functions, sums["gram"], 4, **options)


def test_wine_reference_spectra() -> None:
    x = load_wine().data
    x = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    for bandwidth, expected in WINE.items():
        kernel = gaussian(bandwidth)
        values, _ = exact_map(kernel, x, kernel.values(x, x), 6)
        np.testing.assert_allclose(values, expected, rtol=0, atol=6e-9)


@pytest.mark.parametrize(("alpha", "time"), [(0.0, 1), (0.5, 0), (1.0, 2.5)])
def test_markov_eigenvectors(alpha: float, time: float) -> None:
    """P f = lambda f for the Markov matrix, f of unit norm and orthogonal to constants in its stationary measure."""
    x = moons(150)
    kernel = gaussian(0.5)
    values, functions = exact_map(kernel, x, kernel.values(x, x), 4, alpha=alpha, time=time, symmetric=False)
    f = functions(x) / values**time
    p, stationary = markov(kernel_matrix(x, 0.5), alpha)
    np.testing.assert_allclose(p @ f, f * values, atol=1e-12)
    np.testing.assert_allclose(f.T @ (stationary[:, None] * f), np.eye(4), atol=1e-11)
    np.testing.assert_allclose(stationary @ f, 0, atol=1e-12)
    everything = np.sort(scipy.linalg.eigvals(p).real)[::-1]
    np.testing.assert_allclose(values, everything[1:5], atol=1e-12)
    _, plain = exact_map(kernel, x, kernel.values(x, x), 4, alpha=alpha, time=time)
    np.testing.assert_allclose(functions(x) * np.sqrt(stationary)[:, None], plain(x), atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_out_of_sample_loop(alpha: float) -> None:
    """Nystrom's formula (1.3) term by term at points that were not fitted."""
    x, new = moons(60), moons(5, seed=1)
    values, functions = exact_map(gaussian(0.6), x, kernel_matrix(x, 0.6), 2, alpha=alpha, time=1)
    psi = functions(x) / values
    got = functions(new)
    k = kernel_matrix(x, 0.6)
    q = k.sum(axis=1)
    m = (k / np.outer(q, q) ** alpha).sum(axis=1)
    for i, point in enumerate(new):
        row = [math.exp(-sum((a - b) ** 2 for a, b in zip(point, other, strict=True)) / 0.36) for other in x]
        at = sum(row)
        row = [value / (at * q[j]) ** alpha for j, value in enumerate(row)]
        degree = sum(row)
        for c in range(2):
            expected = sum(value / math.sqrt(degree * m[j]) * psi[j, c] for j, value in enumerate(row))
            assert got[i, c] == pytest.approx(expected, abs=1e-13)


def test_lanczos_agrees_with_dense() -> None:
    x = moons(400)
    kernel = gaussian(0.4)
    start = np.random.default_rng(0).standard_normal(len(x))
    values, functions = exact_map(kernel, x, KernelMatrix.kept(kernel, x), 3, start=start)
    k = kernel_matrix(x, 0.4)
    m = k.sum(axis=1)
    a = k / np.sqrt(np.outer(m, m))
    wanted, vectors = scipy.linalg.eigh(a, subset_by_index=(len(x) - 4, len(x) - 2))
    np.testing.assert_allclose(values, wanted[::-1], atol=1e-12)
    got = functions(x) / values
    np.testing.assert_allclose(np.abs(np.sum(got * vectors[:, ::-1], axis=0)), 1, atol=1e-12)


def test_blocks_that_are_kept_and_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffusion, "_BLOCK_ENTRIES", 600)
    x = moons(100)
    kernel = gaussian(0.4)
    v = np.random.default_rng(0).standard_normal((100, 2))
    computed = KernelMatrix(kernel, x)
    assert [len(block) for block in computed.computed()] == [6] * 16 + [4]
    np.testing.assert_array_equal(computed @ v, KernelMatrix.kept(kernel, x) @ v)
    np.testing.assert_allclose(computed @ v, kernel_matrix(x, 0.4) @ v, atol=1e-10)
    functions = landmark_features(kernel, x[:10])
    assert [(rows.start, rows.stop) for rows in functions.slices(100)] == [(0, 60), (60, 100)]


@pytest.mark.parametrize(("alpha", "symmetric"), [(0.0, False), (0.7, True)])
def test_every_point_a_landmark_is_exact(alpha: float, symmetric: bool) -> None:
    x = moons(90)
    kernel = gaussian(0.3)
    wanted, exact = exact_map(kernel, x, kernel.values(x, x), 4, alpha=alpha, symmetric=symmetric)
    values, functions = landmark_fit(x, x, 0.3, alpha, symmetric=symmetric)
    np.testing.assert_allclose(values, wanted, atol=1e-8)
    a, b = functions(x), exact(x)
    np.testing.assert_allclose(a * np.sign(np.sum(a * b, axis=0)), b, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_landmarks_solve_the_approximated_kernel(alpha: float) -> None:
    """With few landmarks the answer is that of the kernel k(x, Y) K_YY^-1 k(Y, x), decomposed densely."""
    x = moons(200)
    y = x[:40]
    values, functions = landmark_fit(x, y, 0.5, alpha, time=0)
    cross = np.exp(-((x[:, None] - y[None]) ** 2).sum(axis=-1) / 0.25)
    approximated = cross @ np.linalg.pinv(kernel_matrix(y, 0.5), rcond=1e-10, hermitian=True) @ cross.T
    p, stationary = markov(approximated, alpha)
    np.testing.assert_allclose(values, np.sort(scipy.linalg.eigvals(p).real)[::-1][1:5], atol=1e-8)
    f = functions(x)
    np.testing.assert_allclose(f.T @ f, np.eye(4), atol=1e-7)
    f /= np.sqrt(stationary)[:, None]
    np.testing.assert_allclose(p @ f, f * values, atol=1e-6)


@settings(max_examples=15)
@given(st.integers(1, 12), st.sampled_from([0.0, 1.0]), st.integers(0, 2**16))
def test_sums_under_any_blocks(blocks: int, alpha: float, seed: int) -> None:
    x = moons(60, seed)
    one, _ = landmark_fit(x, x, 0.4, alpha, blocks=1)
    several, _ = landmark_fit(x, x, 0.4, alpha, blocks=blocks)
    np.testing.assert_allclose(several, one, atol=1e-9)


def test_uncovered_points_are_counted() -> None:
    x = np.vstack([moons(100), [[40.0, 0.0], [0.0, 50.0]]])
    functions = landmark_features(gaussian(0.5), x[:100])
    first = LandmarkSums(functions, "first")(x)
    assert first["uncovered"][0] == 2


def test_far_points_are_undefined() -> None:
    x = moons(80)
    kernel = gaussian(0.5)
    far = np.array([[1e3, 0.0], [0.2, 0.3], [np.nan, 1.0]])
    _, exact = exact_map(kernel, x, kernel.values(x, x), 2)
    _, few = landmark_fit(x, x[:40], 0.5, 0.0)
    for functions in (exact, few):
        np.testing.assert_array_equal(
            np.isnan(functions(far)), [[True] * functions.width, [False] * functions.width, [True] * functions.width]
        )


def test_no_component_left() -> None:
    x = np.zeros((6, 2))
    kernel = gaussian(1.0)
    values, functions = exact_map(kernel, x, kernel.values(x, x), 3)
    assert values.shape == (0,)
    assert isinstance(functions, DiffusionFunctions)
    assert functions(x).shape == (6, 0)
