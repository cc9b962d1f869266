"""Spectra and eigenfunctions against enumeration, tables and scipy's functions."""

import itertools
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import eval_gegenbauer, eval_legendre

from daskspectral.manifolds import Interval, Manifold, PeriodicBox, PeriodicCell, Product, Sphere

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


# cells of lattices


def well_shaped(m: int, rng: np.random.Generator) -> Array:
    """Lattice vectors (m, m) of different lengths at angles that are not small."""
    return np.asarray(rng.uniform(0.5, 2, (m, 1)) * (np.eye(m) + rng.uniform(-0.3, 0.3, (m, m))))


def unimodular(m: int, rng: np.random.Generator) -> Array:
    """An integer matrix of determinant 1 or -1, mostly with large entries."""
    found = np.eye(m)[rng.permutation(m)]
    for _ in range(8 if m > 1 else 0):
        i, j = rng.choice(m, 2, replace=False)
        found[i] += rng.integers(-2, 3) * found[j]
    return found


def brute_force(vectors: Array, count: int) -> tuple[Array, Array]:
    """The first levels and multiplicities: all k in a box that holds every |k B| <= r, as k_i = a_i . (k B)."""
    m, dual = len(vectors), np.linalg.inv(vectors).T
    r = 1.5 * (count * abs(np.linalg.det(dual))) ** (1 / m) + np.linalg.norm(dual, axis=1).max()
    sides = [range(-int(s), int(s) + 1) for s in r * np.linalg.norm(vectors, axis=1)]
    squares = np.sort(((np.array(list(itertools.product(*sides))) @ dual) ** 2).sum(axis=1))
    groups = np.split(squares, np.flatnonzero(np.diff(squares) > 1e-9 * squares[1:]) + 1)
    whole = [group for group in groups if group[-1] <= r * r][:-1]
    return 4 * np.pi**2 * np.array([group.mean() for group in whole]), np.array([len(group) for group in whole])


@given(m=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_levels_of_any_basis_of_a_lattice(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = well_shaped(m, rng)
    oblique = unimodular(m, rng) @ vectors
    values, counts = (found[:30] for found in brute_force(vectors, 20))
    cell = PeriodicCell(oblique)
    assert [cell.multiplicity(level) for level in range(len(counts))] == counts.tolist()
    found = [cell.eigenvalue(level) for level in range(len(counts))]
    np.testing.assert_allclose(found, values, rtol=1e-8)  # of digits lost in long vectors
    x = cell.sample(3, rng)
    space = cell.eigenfunctions(1)
    np.testing.assert_allclose(space.values(x + rng.integers(-3, 4, (3, m)) @ vectors), space.values(x), atol=1e-8)


def test_parameters_of_cells() -> None:
    lengths, angles = np.array([1.2, 2.3, 0.8]), np.array([75.0, 104.0, 91.5])
    vectors = PeriodicCell.from_parameters(*lengths, *angles).lattice
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), lengths)
    unit = vectors / lengths[:, None]
    found = [unit[1] @ unit[2], unit[0] @ unit[2], unit[0] @ unit[1]]
    np.testing.assert_allclose(found, np.cos(np.radians(angles)), atol=1e-14)
    assert vectors[[0, 0, 1], [1, 2, 2]].tolist() == [0, 0, 0]


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


def test_levels_of_a_cube_in_many_dimensions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are enumerated are as many, and beyond a bound none is."""
    box = PeriodicBox([0] * 60, [1] * 60)
    assert box.multiplicity(2) == box.eigenfunctions(2).size == 4 * comb(60, 2)
    assert box.multiplicity(3) == 8 * comb(60, 3)
    monkeypatch.setattr("daskspectral.manifolds.eigenspace.LARGEST", 1000)
    for manifold in (box, PeriodicCell([[1, 0], [0.3, 1.1]]), Interval([0] * 5, [1, 1.1, 1.2, 1.3, 1.7])):
        with pytest.raises(ValueError, match=r"level 2000 of .* lies beyond 1000 functions; ask for a lower one"):
            manifold.eigenfunctions(2000)
