"""Spectra and eigenfunctions against enumeration, tables and scipy's functions."""

import itertools
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import eval_gegenbauer, eval_legendre

from daskspectral.manifolds import Interval, Manifold, PeriodicBox, Product, Sphere

Array = NDArray[Any]


def kernel(manifold: Manifold, level: int, x: Array) -> Array:
    """sum_k phi_k(x_i) phi_k(x_j), the same for every basis."""
    values = manifold.eigenfunctions(level).values(x)
    return np.asarray(values @ values.T)


@pytest.mark.parametrize(("d", "level"), [(2, 11), (3, 0), (4, 2), (7, 300), (11, 1)])
def test_sphere_multiplicities_count_harmonic_polynomials(d: int, level: int) -> None:
    below = comb(d + level - 3, level - 2) if level > 1 else 0
    assert Sphere(d).multiplicity(level) == comb(d + level - 1, level) - below
    assert Sphere(d).eigenvalue(level) == level * (level + d - 2)


@pytest.mark.parametrize(("d", "degree"), [(3, 40), (4, 12), (5, 9), (30, 2)])
def test_kernels_of_spheres_are_gegenbauer_polynomials(d: int, degree: int) -> None:
    x, a = Sphere(d).sample(60, np.random.default_rng(0)), (d - 2) / 2
    for level in {0, 1, degree}:
        size = Sphere(d).multiplicity(level)
        expected = size * eval_gegenbauer(level, a, x @ x.T) / eval_gegenbauer(level, a, 1.0)
        np.testing.assert_allclose(kernel(Sphere(d), level, x), expected, atol=1e-10 * size)


@pytest.mark.parametrize(
    ("lower", "upper"), [([0.0, 0.0], [2 * np.pi] * 2), ([-1, 0, 2], [1, 1, 5]), ([0, 1], [1, 1 + np.sqrt(2)])]
)
def test_box_by_enumeration(lower: list[float], upper: list[float]) -> None:
    box = PeriodicBox(lower, upper)
    x = np.random.default_rng(0).uniform(lower, upper, (7, len(lower)))
    wave = 2 * np.pi / (np.array(upper) - lower)
    grid = np.array(list(itertools.product(range(-9, 10), repeat=len(lower)))) * wave
    eigenvalues = np.sum(grid**2, axis=1)
    np.testing.assert_allclose(box.eigenvalues(60), np.sort(eigenvalues)[:60], rtol=1e-12, atol=1e-9)
    for level in range(8):
        waves = np.exp(1j * (x @ grid[np.abs(eigenvalues - box.eigenvalue(level)) < 1e-6].T))
        assert waves.shape[1] == box.multiplicity(level)
        np.testing.assert_allclose(kernel(box, level, x), (waves @ waves.conj().T).real, atol=1e-11)


def test_products_by_enumeration() -> None:
    """Distinct sums in order with all their terms."""
    factors = (Interval([0.0], [1.3]), Sphere(3), Sphere(4))
    manifold = Product(Product(factors[0], factors[1]), factors[2])
    assert manifold.factors == factors == Product(factors[0], Product(factors[1], factors[2])).factors
    sums = {
        levels: sum(f.eigenvalue(i) for f, i in zip(factors, levels, strict=True))
        for levels in itertools.product(range(12), range(30), range(30))
    }
    values = np.unique(np.round(list(sums.values()), 7))
    for level in (3, 60, *range(60)):
        terms = tuple(sorted(t for t, s in sums.items() if abs(s - values[level]) < 1e-6))
        assert manifold.eigenvalue(level) == pytest.approx(values[level], abs=1e-6)
        assert manifold.terms(level) == terms
    x = manifold.sample(4, np.random.default_rng(0))
    parts = x[:, :1], x[:, 1:4], x[:, 4:]
    each = [[kernel(f, i, p) for f, i, p in zip(factors, term, parts, strict=True)] for term in manifold.terms(7)]
    np.testing.assert_allclose(kernel(manifold, 7, x), np.sum(np.prod(each, axis=1), axis=0), atol=1e-10)


# intervals

UNEVEN = Interval([0, -1, 2], [1, 1, 5], lengths=[1, 2, 1.5])


def test_functions_are_products_of_the_polynomials_of_legendre() -> None:
    x = UNEVEN.sample(7, np.random.default_rng(0))
    t = 2 * (x - UNEVEN.ends[0]) / UNEVEN.widths - 1
    for level in range(20):
        space: Any = UNEVEN.eigenfunctions(level)
        for column, degrees in zip(space.values(x).T, space.degrees, strict=True):
            expected = np.prod([np.sqrt(2 * k + 1) * eval_legendre(k, t[:, i]) for i, k in enumerate(degrees)], axis=0)
            np.testing.assert_allclose(column, expected, atol=1e-12)


def test_levels_of_intervals_by_enumeration() -> None:
    lengths = (1.0, 1.3, 0.4)
    degrees = np.array([*itertools.product(range(16), repeat=3)])
    sums = ((2 * np.sqrt(degrees * (degrees + 1)) / lengths).sum(axis=1)) ** 2
    found = Interval([0] * 3, [7] * 3, lengths=lengths).eigenvalues(60)
    np.testing.assert_allclose(found, np.sort(sums)[:60], rtol=1e-12)


def test_beyond_the_ends_functions_stay_and_at_the_ends_they_have_a_slope() -> None:
    interval, space = Interval(0, 3), Interval(0, 3).eigenfunctions(3)
    x, e = np.array([[-1.0], [0.0], [3.0], [3.5]]), np.ones((4, 1))
    np.testing.assert_array_equal(space.values(x), space.values(np.clip(x, 0, 3)))
    expected = np.sqrt(7) * 6 * 2 / 3  # P_3' = 6 at 1 and at -1
    np.testing.assert_allclose(space.derivatives(x, e)[:, 0], [0, expected, expected, 0], rtol=1e-12)
    np.testing.assert_allclose(interval.distance(x), [1, 0, 0, 0.5])


def test_levels_of_many_dimensions() -> None:
    box = PeriodicBox([0] * 30, [1] * 30)
    assert [box.multiplicity(k) for k in (1, 2, 3)] == [2 * 30, 4 * comb(30, 2), 8 * comb(30, 3)]
    assert box.eigenfunctions(2).size == 4 * comb(30, 2)
