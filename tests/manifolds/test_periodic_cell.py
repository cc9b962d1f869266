"""Cells of lattices: levels against enumeration in a large box, known shells, isometries, bad input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierLattice, HarmonicBasis
from daskspectral.manifolds import Isometry, Manifold, PeriodicBox, PeriodicCell, Product, Sphere, frequencies
from daskspectral.manifolds.frequencies import reduced
from daskspectral.registry import decode, encode

Array = NDArray[Any]


def well_shaped(m: int, rng: np.random.Generator) -> Array:
    """Lattice vectors (m, m) of different lengths at angles that are not small."""
    return np.asarray(rng.uniform(0.5, 2, (m, 1)) * (np.eye(m) + rng.uniform(-0.3, 0.3, (m, m))))


def unimodular(m: int, rng: np.random.Generator, steps: int = 8) -> Array:
    """An integer matrix of determinant 1 or -1, mostly with large entries."""
    found = np.eye(m)[rng.permutation(m)]
    for _ in range(steps if m > 1 else 0):
        i, j = rng.choice(m, 2, replace=False)
        found[i] += rng.integers(-2, 3) * found[j]
    return found


def brute_force(vectors: Array, count: int) -> list[tuple[float, int]]:
    """The first levels and multiplicities: all k in a box that holds every |k B| <= r, as k_i = a_i . (k B)."""
    m, dual = len(vectors), np.linalg.inv(vectors).T
    volume = abs(np.linalg.det(dual))
    r = 1.5 * (count * volume) ** (1 / m) + np.linalg.norm(dual, axis=1).max()
    sides = [range(-int(s), int(s) + 1) for s in r * np.linalg.norm(vectors, axis=1)]
    squares = np.sort(((np.array(list(itertools.product(*sides))) @ dual) ** 2).sum(axis=1))
    squares = squares[squares <= r * r]
    starts = np.flatnonzero(np.diff(squares, prepend=-1) > 1e-9 * squares)
    groups = np.split(4 * np.pi**2 * squares, starts[1:])
    return [(float(group.mean()), len(group)) for group in groups[:-1]]


@settings(max_examples=60, deadline=None)
@given(m=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_levels_of_any_basis_of_a_lattice(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = well_shaped(m, rng)
    expected = brute_force(vectors, 30)[:40]
    cell = PeriodicCell(unimodular(m, rng) @ vectors)
    assert len(expected) >= 5
    found = [(cell.eigenvalue(level), cell.multiplicity(level)) for level in range(len(expected))]
    assert [n for _, n in found] == [n for _, n in expected]
    np.testing.assert_allclose(
        [v for v, _ in found], [v for v, _ in expected], rtol=1e-8
    )  # of digits lost in long vectors


@settings(max_examples=60, deadline=None)
@given(m=st.integers(2, 5), seed=st.integers(0, 10**6))
def test_reduced_vectors_span_the_same_lattice(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = unimodular(m, rng) @ well_shaped(m, rng)
    found = reduced(vectors)
    change = found @ np.linalg.inv(vectors)
    np.testing.assert_allclose(change, np.rint(change), atol=1e-8)
    assert round(abs(np.linalg.det(change))) == 1
    # Lenstra, Lenstra and Lovasz 1982, (1.8), with 1 / (0.99 - 1 / 4) in place of 2
    assert np.linalg.norm(found, axis=1).prod() <= (1 / 0.74) ** (m * (m - 1) / 4) * abs(np.linalg.det(vectors))
    np.testing.assert_array_equal(reduced(found), found)


def test_very_oblique_vectors_keep_their_digits() -> None:
    """Vectors of integers, a hundred thousand times longer than the shortest of their lattice, Z^2."""
    cell = PeriodicCell([[100001, 1], [100000, 1]])
    assert [cell.multiplicity(n) for n in range(6)] == [1, 4, 4, 4, 8, 4]
    np.testing.assert_allclose(cell.eigenvalues(10) / (4 * np.pi**2), [0, 1, 1, 1, 1, 2, 2, 2, 2, 4], rtol=1e-14)
    x = np.array([[0.3, 0.8]])
    for level in range(5):
        space = cell.eigenfunctions(level)
        np.testing.assert_allclose(space.values(x + np.array([7, -3])), space.values(x), atol=1e-12)


@pytest.mark.parametrize("sides", [[1.0], [1.0, 1.0], [1.0, 1.5], [2.0, 0.5, 0.7], [1, 1, 1], [1, 1, 1, 2]], ids=str)
def test_boxes_are_cells(sides: list[float]) -> None:
    m = len(sides)
    box = PeriodicBox([-0.5] * m, [s - 0.5 for s in sides])
    turned = np.diag(sides)[::-1]
    cell = PeriodicCell(turned)
    assert cell.periods == pytest.approx(box.periods)
    assert not cell.oblique
    assert not box.oblique
    for level in range(15):
        assert cell.eigenvalue(level) == pytest.approx(box.eigenvalue(level), rel=1e-12)
        assert cell.multiplicity(level) == box.multiplicity(level)
    x = np.random.default_rng(0).normal(size=(40, m))
    for level in range(5):
        a, b = cell.eigenfunctions(level).values(x), box.eigenfunctions(level).values(x)
        np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-11)  # the same span, whatever its basis


def test_shells_of_cubic_and_hexagonal_lattices() -> None:
    """Reciprocal lattice vectors in units of 2 pi / a, and how many are equivalent, as diffraction lists them."""
    known: dict[str, tuple[Manifold, dict[int, int]]] = {
        "fcc": (PeriodicCell.fcc(3.6), {0: 1, 3: 8, 4: 6, 8: 12, 11: 24, 12: 8, 16: 6, 19: 24, 20: 24}),
        "bcc": (PeriodicCell.bcc(3.6), {0: 1, 2: 12, 4: 6, 6: 24, 8: 12, 10: 24, 12: 8, 14: 48, 16: 6}),
        "cube": (PeriodicCell(3.6 * np.eye(3)), {0: 1, 1: 6, 2: 12, 3: 8, 4: 6, 5: 24, 6: 24, 8: 12, 9: 30}),
    }
    for cell, shells in known.values():
        for level, (square, count) in enumerate(shells.items()):
            assert cell.eigenvalue(level) == pytest.approx(square * (2 * np.pi / 3.6) ** 2, rel=1e-12)
            assert cell.multiplicity(level) == count
    plane = PeriodicCell.hexagonal(2.0)
    loeschian = {0: 1, 1: 6, 3: 6, 4: 6, 7: 12, 9: 6, 12: 6, 13: 12}  # numbers h^2 + h k + k^2
    for level, (number, count) in enumerate(loeschian.items()):
        assert plane.eigenvalue(level) == pytest.approx(number * 4 / 3 * np.pi**2, rel=1e-12)
        assert plane.multiplicity(level) == count


def test_parameters_of_cells() -> None:
    lengths, angles = np.array([1.2, 2.3, 0.8]), np.array([75.0, 104.0, 91.5])
    vectors = PeriodicCell.from_parameters(*lengths, *angles).lattice
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), lengths)
    unit = vectors / lengths[:, None]
    found = [unit[1] @ unit[2], unit[0] @ unit[2], unit[0] @ unit[1]]
    np.testing.assert_allclose(found, np.cos(np.radians(angles)), atol=1e-14)
    assert vectors[0, 1:].tolist() == [0, 0]
    assert vectors[1, 2] == 0
    np.testing.assert_allclose(
        PeriodicCell.from_parameters(2, 2, 3, gamma=120).lattice, PeriodicCell.hexagonal(2, 3).lattice, atol=1e-15
    )
    for cell, volume in ((PeriodicCell.fcc(2.0), 2.0), (PeriodicCell.bcc(2.0), 4.0)):
        assert abs(np.linalg.det(cell.lattice)) == pytest.approx(volume)


@settings(max_examples=25, deadline=None)
@given(m=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_functions_are_periodic_orthonormal_and_of_the_laplacian(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cell = PeriodicCell(unimodular(m, rng, 3) @ well_shaped(m, rng))
    count = 5
    spaces = [cell.eigenfunctions(level) for level in range(count)]
    x, directions = rng.normal(size=(6, m)), np.eye(m)
    steps = rng.integers(-3, 4, (6, m)) @ cell.lattice
    nodes = 40 if m < 3 else 16
    grid = np.array(list(itertools.product(range(nodes), repeat=m))) / nodes @ reduced(cell.lattice)
    values = np.hstack([space.values(grid) for space in spaces])
    np.testing.assert_allclose(values.T @ values / len(grid), np.eye(values.shape[1]), atol=1e-10)
    for space in spaces:
        np.testing.assert_allclose(space.values(x + steps), space.values(x), atol=1e-9)
        h = 1e-6
        second = 0
        for e in directions:
            along = np.broadcast_to(e, x.shape)
            slope = space.derivatives(x, along)
            np.testing.assert_allclose(slope, (space.values(x + h * e) - space.values(x - h * e)) / (2 * h), atol=1e-4)
            second = second + (space.derivatives(x + h * e, along) - space.derivatives(x - h * e, along)) / (2 * h)
        np.testing.assert_allclose(-second, space.eigenvalue * space.values(x), atol=1e-3)


def test_points_samples_and_frames() -> None:
    cell = PeriodicCell.hexagonal(2.0, 3.0)
    x = cell.sample(4000, np.random.default_rng(0))
    fractions = x @ np.linalg.inv(cell.lattice)
    assert fractions.min() >= 0
    assert fractions.max() < 1
    assert np.abs(fractions.mean(axis=0) - 0.5).max() < 5 / np.sqrt(12 * 4000)
    assert (cell.ambient, cell.dimension, cell.codimension) == (3, 3, 0)
    assert cell.tangents(x[:2].astype(np.float32)).dtype == np.float32  # type: ignore[union-attr]
    np.testing.assert_array_equal(cell.tangents(x[:2])[1], [[0, 1, 0]] * 2)  # type: ignore[index]
    assert cell.normals(x).shape == (0, 4000, 3)
    cell.check(100 * x)
    with pytest.raises(ValueError, match="row 1 at distance nan"):
        cell.check([[0, 0, 0], [0, np.nan, 0]])


def test_equality_clones_and_states() -> None:
    cell = PeriodicCell.hexagonal(2.0)
    assert cell == PeriodicCell(cell.lattice) != PeriodicCell.hexagonal(2.1)
    assert clone(cell) is cell
    assert PeriodicCell(**cell.get_params()) == cell
    assert decode(encode(cell), Manifold) == cell
    assert hash(cell) == hash(PeriodicCell(cell.lattice))


def test_products() -> None:
    cell = PeriodicCell.hexagonal(1.0)
    product = Product(cell, Sphere(3))
    expected = sorted(a + b for a in cell.eigenvalues(50) for b in Sphere(3).eigenvalues(200))
    np.testing.assert_allclose(product.eigenvalues(40), expected[:40], rtol=1e-9)
    assert product.oblique
    assert product.periods == (None,) * 5
    np.testing.assert_array_equal(product.lattice, np.hstack([cell.lattice, np.zeros((2, 3))]))
    group = dsp.groups.Product(dsp.groups.Rotations(6), dsp.groups.SignFlips(3))
    group.check(product)


def test_laplacians_on_oblique_cells() -> None:
    """Harmonics are periodic on them; kernels and the Fourier lattice, periodic along columns, are refused."""
    cell = PeriodicCell.hexagonal(1.0)
    x = cell.sample(8000, np.random.default_rng(0))
    laplacian = dsp.operators.Laplacian(cell)
    found = dsp.SpectralDecomposition(laplacian, basis=HarmonicBasis(cell, 13), n_components=7).fit(x).eigenvalues_
    np.testing.assert_allclose(found, cell.eigenvalues(7), rtol=0.1, atol=1e-6)
    for options in ({}, {"kernel": dsp.kernels.Gaussian(0.2)}, {"basis": FourierLattice(5)}, {"basis": "auto"}):
        with pytest.raises(ValueError, match=r"oblique cell, and kernels.*HarmonicBasis\(manifold, 100\)"):
            dsp.SpectralDecomposition(laplacian, **options).fit(x)
    with pytest.raises(ValueError, match="laplacian has periods in them"):
        dsp.SpectralDecomposition(laplacian, basis=HarmonicBasis(cell, 13), standardize=True).fit(x)
    skew = PeriodicCell([[1, 0], [3, 2.0]])  # spans the lattice of a box
    assert skew.periods == (1.0, 2.0)
    kernel = dsp.kernels.Gaussian(0.4)
    upright = dsp.SpectralDecomposition(dsp.operators.Laplacian(skew), kernel, n_landmarks=100, n_components=3)
    np.testing.assert_allclose(upright.fit(skew.sample(2000, np.random.default_rng(0))).eigenvalues_[1:], np.pi**2, 0.1)


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ([[1, 0], [2, 0]], r"independent lattice vectors, received \[\[1.0, 0.0\], \[2.0, 0.0\]\].*fewer than 2"),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "independent lattice vectors"),
        ([[0, 0], [0, 1]], "independent lattice vectors"),
        ([[1, 0, 0], [0, 1, 0]], r"m lattice vectors of m coordinates.*received \(2, 3\)"),
        ([1, 2], r"received \(2,\)"),
        ([[1, np.nan], [0, 1]], "finite lattice vectors"),
    ],
)
def test_vectors_that_span_no_cell(vectors: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        PeriodicCell(vectors)


@pytest.mark.parametrize(
    "parameters", [(1, 1, 1, 120, 120, 120), (1, 1, 1, 90, 90, 180), (1, -1, 1), (1, 1, 0), (1, 1, 1, 10, 90, 30)]
)
def test_parameters_of_no_cell(parameters: Any) -> None:
    with pytest.raises(ValueError, match="lengths above 0 and angles that three vectors can have"):
        PeriodicCell.from_parameters(*parameters)


def test_maps_that_are_no_isometries() -> None:
    cell = PeriodicCell.hexagonal(1.0)
    quarter = Isometry([[0, -1], [1, 0]])
    with pytest.raises(ValueError, match=r"isometry of PeriodicCell.*takes .*, a vector of the lattice, to .*none"):
        cell.check_isometry(quarter)
    with pytest.raises(ValueError, match="not orthogonal"):
        cell.check_isometry(Isometry([[1, -1], [1, 0]]))
    turn = dsp.groups.Rotations(6).generators[0]
    cell.check_isometry(turn)
    with pytest.raises(ValueError, match=r"by .*e-0[67] of a vector; give the vectors with all their digits"):
        PeriodicCell([[1, 0], [-0.5, 0.866025]]).check_isometry(turn)


def test_levels_beyond_what_is_enumerated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequencies, "_LARGEST", 1000)
    cell = PeriodicCell.hexagonal(1.234)
    assert cell.eigenvalue(20) > 0
    with pytest.raises(ValueError, match=r"level 10000 of PeriodicCell.* lies beyond 1000 frequencies"):
        cell.eigenvalue(10_000)
