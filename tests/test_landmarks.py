"""Landmarks against brute force: dense Schur complements, plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral import landmarks

Array = NDArray[np.float64]


def gaussian(a: Array, b: Array) -> Array:
    return np.asarray(np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / 2))


def points(m: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((m, d))


def choose(method: str, x: Array, p: int, seed: int = 0) -> NDArray[np.intp]:
    return landmarks.choose(method, x, p, np.random.default_rng(seed), gram=gaussian)


@pytest.mark.parametrize("method", landmarks.METHODS)
@given(m=st.integers(1, 30), d=st.integers(1, 4), fraction=st.floats(0.01, 1), seed=st.integers(0, 1000))
def test_distinct_indices_fixed_by_the_seed(method: str, m: int, d: int, fraction: float, seed: int) -> None:
    p = max(1, int(fraction * m))
    x = 10 * points(m, d, seed)
    x.flags.writeable = False
    chosen = choose(method, x, p, seed)
    assert chosen.dtype == np.intp
    assert len(set(chosen.tolist())) == len(chosen)
    assert len(chosen) == p or method == "cholesky"
    assert chosen.min() >= 0
    assert chosen.max() < m
    assert np.array_equal(chosen, choose(method, x, p, seed))


def test_kmeans_plus_plus_draws_by_squared_distance() -> None:
    x = np.array([[0.0], [1.0], [3.0]])
    pairs = np.zeros((3, 3))
    rng = np.random.default_rng(0)
    for _ in range(6000):
        first, second = landmarks.kmeans_plus_plus(x, 2, rng)
        pairs[first, second] += 1
    square = (x - x.T) ** 2
    assert np.abs(pairs / 6000 - square / square.sum(axis=1, keepdims=True) / 3).max() < 0.03


@given(m=st.integers(1, 25), d=st.integers(1, 3), seed=st.integers(0, 1000))
def test_farthest_point_against_brute_force(m: int, d: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(-3, 4, (m, d)).astype(float)  # integers: exact ties and duplicates
    distinct = len(np.unique(x, axis=0))
    chosen = choose("farthest", x, m, seed)
    expected = chosen[:1]
    while len(expected) < distinct:
        nearest = [min(np.sum((row - x[j]) ** 2) for j in expected) for row in x]
        expected = np.append(expected, np.argmax(nearest))
    assert np.array_equal(chosen, expected)


@pytest.mark.parametrize("kernel", [gaussian, lambda a, b: (1 + a @ b.T) ** 3])
@pytest.mark.parametrize("diagonal", [None, "given"])
def test_pivots_against_dense_schur_complements(kernel: landmarks.Gram, diagonal: str | None) -> None:
    x = points(150, 3)
    residual = kernel(x, x)
    given = None if diagonal is None else lambda a: kernel(a, a).diagonal()
    expected = []
    for _ in range(12):
        pivot = int(np.argmax(residual.diagonal()))
        expected.append(pivot)
        residual = residual - np.outer(residual[:, pivot], residual[pivot]) / residual[pivot, pivot]
    chosen = landmarks.pivoted_cholesky(x, 12, np.random.default_rng(0), kernel, diagonal=given)
    assert chosen.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pivots_stop_at_the_rank(dtype: type) -> None:
    x = points(80, 5)
    chosen = landmarks.pivoted_cholesky(x, 40, np.random.default_rng(0), lambda a, b: (a @ b.T).astype(dtype))
    assert len(chosen) == 5
    assert np.linalg.matrix_rank(x[chosen]) == 5
    assert len(choose("cholesky", np.repeat(x, 3, axis=0), 200)) == 80


@given(m=st.integers(2, 40), d=st.integers(1, 4), seed=st.integers(0, 1000))
def test_median_distance_against_the_double_loop(m: int, d: int, seed: int) -> None:
    x = points(m, d, seed)
    loop = [np.linalg.norm(x[i] - x[j]) for i in range(m) for j in range(i + 1, m)]
    rng = np.random.default_rng(seed)
    assert landmarks.median_distance(x, rng) == pytest.approx(np.median(loop), rel=1e-13)
    assert landmarks.median_distance(2.0**600 * x, rng) == pytest.approx(2.0**600 * np.median(loop), rel=1e-13)
