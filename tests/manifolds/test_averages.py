"""Means over groups on spheres: kernels against sums and quadratures, functions against null spaces and Molien."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.manifolds import Sphere
from daskspectral.manifolds.averages import Average, ElementBlock, FiniteAverage, PermutationAverage, RotationAverage
from daskspectral.manifolds.eigenspace import Functions
from daskspectral.manifolds.zonal import SphereKernel

Array = NDArray[np.float64]


def points(n: int, d: int, seed: int = 0) -> Array:
    return Sphere(d).sample(n, np.random.default_rng(seed))


def permuted(d: int) -> Array:
    return np.array([np.eye(d)[list(p)] for p in permutations(range(d))])


def signed(d: int) -> Array:
    flips = [np.diag(s) for s in product([1.0, -1.0], repeat=d)]
    return np.array([flip @ p for flip in flips for p in permuted(d)])


def beside(first: Array, second: Array) -> Array:
    """All pairs of elements on coordinates side by side."""
    found = np.zeros((len(first) * len(second), *(2 * (first.shape[1] + second.shape[1],))))
    for row, (a, b) in zip(found, product(first, second), strict=True):
        row[: len(a), : len(a)], row[len(a) :, len(a) :] = a, b
    return found


def summed(elements: Array, degree: int, v: Array, w: Array, weights: Array | None = None) -> Array:
    """The mean of Z_l(v_i . g w_j), one element after another."""
    zonal, found = SphereKernel(elements.shape[1], degree), np.zeros((len(v), len(w)))
    shares = np.full(len(elements), 1 / len(elements)) if weights is None else weights
    for g, share in zip(elements, shares, strict=True):
        found += share * zonal.profile(v @ (g @ w.T))
    return found


def rotations(degree: int) -> tuple[Array, Array]:
    """A quadrature of SO(3) in Euler's angles, exact to a degree, and its weights."""
    angles = 2 * np.pi * np.arange(degree + 1) / (degree + 1)
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
    about_z = np.array([[[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]] for a in angles])
    sines = np.sqrt(1 - nodes**2)
    about_y = np.array([[[c, 0, s], [0, 1, 0], [-s, 0, c]] for c, s in zip(nodes, sines, strict=True)])
    found = about_z[:, None, None] @ about_y[:, None] @ about_z
    shares = np.broadcast_to(weights[:, None], found.shape[:3]) / (2 * len(angles) ** 2)
    return found.reshape(-1, 3, 3), shares.ravel()


def reproduced(functions: Functions, v: Array, w: Array) -> Array:
    return np.asarray(functions.values(v) @ functions.values(w).T)


FINITE: dict[str, tuple[Array, Average]] = {
    "S_5": (permuted(5), PermutationAverage((ElementBlock((0, 1, 2, 3, 4)),))),
    "signed, 3": (signed(3), PermutationAverage((ElementBlock((0, 1, 2), signs=True),))),
    "S_3 beside signed, 2": (
        beside(permuted(3), signed(2)),
        PermutationAverage((ElementBlock((0, 1, 2)), ElementBlock((3, 4), signs=True))),
    ),
    "S_4 and -I": (
        np.concatenate([permuted(4), -permuted(4)]),
        PermutationAverage((ElementBlock((0, 1, 2, 3)),), even=True),
    ),
}


@pytest.mark.parametrize("name", FINITE)
@settings(max_examples=8)
@given(degree=st.integers(0, 9), seed=st.integers(0, 2**32 - 1))
def test_sums_over_elements_and_partitions_agree(name: str, degree: int, seed: int) -> None:
    elements, average = FINITE[name]
    d = average.ambient
    v, w = points(4, d, seed), points(5, d, seed + 1)
    wanted = summed(elements, degree, v, w)
    finite = FiniteAverage(elements)
    assert average.dimension(degree) == finite.dimension(degree)
    np.testing.assert_allclose(finite.kernel(degree, v, w), wanted, atol=1e-11)
    for each in (average, finite):
        functions = each.functions(degree)
        assert functions.size == each.dimension(degree)
        np.testing.assert_allclose(reproduced(functions, v, w), wanted, atol=1e-9)


@pytest.mark.parametrize(("vectors", "degree"), [(1, 2), (2, 4), (3, 3), (3, 7), (4, 4)])
def test_rotations_of_several_vectors_are_a_quadrature(vectors: int, degree: int) -> None:
    mixing, d = permuted(vectors), 3 * vectors
    turns, shares = rotations(degree)
    elements = np.array([np.kron(p, turn) for p in mixing for turn in turns])
    weights = np.tile(shares, len(mixing)) / len(mixing)
    v, w = points(3, d), points(4, d, 1)
    wanted = summed(elements, degree, v, w, weights)
    np.testing.assert_allclose(RotationAverage(mixing).kernel(degree, v, w), wanted, atol=1e-11)


def test_circles_are_a_fine_sum() -> None:
    x = np.kron(np.diag([1, -2]), [[0, -1], [1, 0]]).astype(float)
    mirror = np.diag([1.0, -1, 1, -1])
    average = FiniteAverage(np.array([np.eye(4), mirror]), x[None])
    angles = 2 * np.pi * np.arange(401) / 401
    turns = np.zeros((401, 4, 4))
    for k, q in enumerate((1, -2)):
        c, s = np.cos(q * angles), np.sin(q * angles)
        turns[:, 2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = np.array([[c, -s], [s, c]]).transpose(2, 0, 1)
    v, w = points(3, 4), points(4, 4, 1)
    everything = np.concatenate([turns, turns @ mirror])
    for degree in (0, 1, 4, 9):
        np.testing.assert_allclose(average.kernel(degree, v, w), summed(everything, degree, v, w), atol=1e-11)
        assert average.dimension(degree) == FiniteAverage(everything).dimension(degree)


AVERAGES: dict[str, Average] = {
    "finite": FiniteAverage(permuted(4)),
    "partitions": PermutationAverage((ElementBlock((0, 1, 2)), ElementBlock((3, 4), signs=True))),
    "rotations": RotationAverage(permuted(2)),
    "circle": FiniteAverage(np.eye(4)[None], np.kron(np.eye(2), [[0.0, -1], [1, 0]])[None]),
}


@pytest.mark.parametrize("name", AVERAGES)
@settings(max_examples=4)
@given(degree=st.sampled_from([2, 4, 6]), seed=st.integers(0, 2**32 - 1))
def test_derivatives_are_slopes(name: str, degree: int, seed: int) -> None:
    """Along any direction, also off the sphere: functions are constant along rays."""
    average = AVERAGES[name]
    x, step = points(7, average.ambient, seed), 1e-5 * points(7, average.ambient, seed + 1)
    functions = average.functions(degree)
    slopes = (functions.values(x + step) - functions.values(x - step)) / 2e-5
    np.testing.assert_allclose(functions.derivatives(x, step / 1e-5), slopes, atol=2e-6)
    np.testing.assert_allclose(functions.derivatives(x, x), 0, atol=1e-10)
    np.testing.assert_allclose(functions.values(3 * x), functions.values(x), atol=1e-12)
