"""Means over groups on spheres: functions against sums over elements."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.manifolds import Sphere
from daskspectral.manifolds.averages import Average, ElementBlock, FiniteAverage, PermutationAverage
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


def summed(elements: Array, degree: int, v: Array, w: Array) -> Array:
    """The mean of Z_l(v_i . g w_j), one element after another."""
    zonal = SphereKernel(elements.shape[1], degree)
    return np.asarray(sum(zonal.between(v, w @ g.T) for g in elements) / len(elements))


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
    for each in (average, finite):
        functions = each.functions(degree)
        assert functions.size == each.dimension(degree)
        np.testing.assert_allclose(reproduced(functions, v, w), wanted, atol=1e-9)
