"""Invariant functions of an eigenspace: Molien and characters, Proposition 6, orbits against null spaces."""

from __future__ import annotations

import itertools
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import (
    Cyclic,
    Generated,
    Group,
    Isometry,
    Orthogonal,
    Permutations,
    Product,
    Rotations,
    SignFlips,
    Translations,
)
from daskspectral.manifolds import (
    SO3,
    Circle,
    FlatTorus,
    Manifold,
    PeriodicBox,
    Sphere,
    invariant_coefficients,
    invariants,
)
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.manifolds.eigenspace import dense

Array = NDArray[Any]
CUBE = Generated([Permutations(3), SignFlips(3)])


@lru_cache(None)
def partitions(total: int, parts: int) -> int:
    """Partitions of a number into at most so many parts."""
    if total < 0 or (parts == 0 and total > 0):
        return 0
    return 1 if total == 0 else partitions(total, parts - 1) + partitions(total - parts, parts)


def coefficients(space: Any, group: Group) -> Array:
    return dense(invariant_coefficients(space, group.generators))


@pytest.mark.parametrize(("d", "levels"), [(3, 41), (5, 9), (10, 4)])
def test_permutations_by_molien(d: int, levels: int) -> None:
    for level in range(levels):
        u = coefficients(Sphere(d).eigenfunctions(level), Permutations(d))
        assert u.shape[1] == partitions(level, d) - partitions(level - 2, d)
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)


def test_twenty_factorial_permutations_by_molien() -> None:
    """S_20 on S^19, 2.4e18 elements, up to degree 2 (degree 3, 1520 functions, takes 4 s)."""
    dimensions = [coefficients(Sphere(20).eigenfunctions(n), Permutations(20)).shape[1] for n in range(3)]
    assert dimensions == [partitions(n, 20) - partitions(n - 2, 20) for n in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("group", [Cyclic(3), SignFlips(3), CUBE, Rotations(5, 3), Orthogonal([-np.eye(3)])], ids=repr)
def test_small_groups_by_molien_series(group: Group) -> None:
    """The generating function (1 - t^2) / |G| sum_g 1 / det(1 - t g), its coefficients by powers of the eigenvalues."""
    matrices = {np.eye(3).tobytes(): np.eye(3)}
    for a in (todo := list(matrices.values())):
        for g in group.generators:
            new = (g.matrix @ a).round(12) + 0.0
            if new.tobytes() not in matrices and not any(np.allclose(new, m) for m in matrices.values()):
                matrices[new.tobytes()] = new
                todo.append(new)
    series = np.zeros(13, dtype=complex)
    for a in todo:
        term = np.array([1.0, *np.zeros(12)], dtype=complex)
        for z in np.linalg.eigvals(a):
            term = np.convolve(term, z ** np.arange(13))[:13]
        series += term / len(todo)
    expected = np.rint((series - np.concatenate([[0, 0], series[:-2]])).real)
    found = [coefficients(Sphere(3).eigenfunctions(n), group).shape[1] for n in range(13)]
    assert found == expected.tolist()


@pytest.mark.parametrize("k", [1, 2, 7, 1000, 10**6])
def test_rotations_of_the_circle(k: int) -> None:
    levels = [0, 1, 2, 6, 7, 14, 999, 1000, 2000]
    found = [coefficients(Circle().eigenfunctions(n), Rotations(k)).shape[1] for n in levels]
    assert found == [1 if n == 0 else 2 if n % k == 0 else 0 for n in levels]


def test_conjugations_of_rotations_by_characters() -> None:
    """Functions of R invariant under R -> A R A^T, A in the rotations of the cube: <chi_l^2, 1> over the 24 of them."""
    turns = [np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.eye(3)[[1, 2, 0]]]
    group = Orthogonal([np.kron(a, a) for a in turns])
    classes = [(1, 0.0), (6, np.pi / 2), (3, np.pi), (8, 2 * np.pi / 3), (6, np.pi)]
    for level in range(5):
        characters = [1 + 2 * sum(np.cos(j * t) for j in range(1, level + 1)) for _, t in classes]
        expected = sum(n * c * c for (n, _), c in zip(classes, characters, strict=True)) / 24
        assert coefficients(SO3().eigenfunctions(level), group).shape[1] == round(expected)


def test_proposition_6() -> None:
    """The projection a - B^+ B a, B by pseudo-inversion of itself, and the mean over all elements."""
    rng = np.random.default_rng(0)
    space = Sphere(5).eigenfunctions(4)
    group = Permutations(5)
    u = coefficients(space, group)
    b = np.concatenate([dense(space.action(g)) - np.eye(space.size) for g in group.generators])
    a = rng.standard_normal(space.size)
    projected = u @ (u.T @ a)
    np.testing.assert_allclose(projected, a - np.linalg.pinv(b, rcond=1e-8) @ (b @ a), atol=1e-12)
    x = Sphere(5).sample(6, rng)
    mean = np.mean([space.values(x[:, list(p)]) @ a for p in itertools.permutations(range(5))], axis=0)
    np.testing.assert_allclose(space.values(x) @ projected, mean, atol=1e-12)


TORI: list[tuple[Manifold, Group]] = [
    (PeriodicBox([-1] * 4, [1] * 4), SignFlips(4)),
    (PeriodicBox([-1] * 4, [1] * 4), Permutations(4)),
    (PeriodicBox([-1] * 3, [1] * 3), Generated([Cyclic(3), Translations([[2 / 3, 0, 0]])])),
    (PeriodicBox([-1] * 3, [1] * 3), Generated([Cyclic(3), Translations([[0.5, 1.0, -0.5]]), SignFlips(3)])),
    (PeriodicBox([0] * 2, [1] * 2), Translations([[0.25, 0.5]])),
    (
        PeriodicBox([0] * 2, [1] * 2),
        Generated([Isometry([[0, -1], [1, 0]], [0.5, 0]), Isometry([[1, 0], [0, -1]], [0, 0.3])]),
    ),
    (PeriodicBox([0, 0], [1, 2]), Generated([Isometry([[1, 0], [0, -1]], [0.5, 0.1])])),
    (FlatTorus(2), Rotations(3, 4)),
    (FlatTorus(2), Orthogonal([np.kron([[0, 1], [1, 0]], np.eye(2)), np.kron(np.eye(2), np.diag([1, -1]))])),
    (Circle(), Orthogonal([np.diag([1, -1])])),
]


@pytest.mark.parametrize(("manifold", "group"), TORI, ids=repr)
def test_orbits_give_the_null_space(manifold: Manifold, group: Group) -> None:
    group.check(manifold)
    for level in range(7):
        space = manifold.eigenfunctions(level)
        actions = [dense(space.action(g)) for g in group.generators]
        expected, found = invariants.null_space(actions), coefficients(space, group)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-11)
        np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-12)


def test_orbits_of_a_large_torus() -> None:
    """Sign flips of [-1, 1)^10 leave products of cosines: at |k|^2 = 6, C(10, 6) + 10 C(9, 2) of 16 320 waves."""
    space = PeriodicBox([-1] * 10, [1] * 10).eigenfunctions(6)
    flips = invariant_coefficients(space, SignFlips(10).generators)
    assert space.size == 16320
    assert flips.shape[1] == comb(10, 6) + 10 * comb(9, 2)
    both = invariant_coefficients(space, Generated([SignFlips(10), Permutations(10)]).generators)
    assert both.shape[1] == 2  # (1, 1, 1, 1, 1, 1) and (2, 1, 1)
    off = max(abs(space.action(g) @ both - both).max() for g in Permutations(10).generators)
    assert off < 1e-14


LARGE: list[tuple[Manifold, Group, int]] = [
    (Sphere(3), Permutations(3), 10),
    (Sphere(5), Permutations(5), 5),
    (Sphere(4), Rotations(7, 4), 6),
    (Sphere(6), SignFlips(6), 3),
    (Sphere(6), Cyclic(6), 3),
    (ProductManifold(Sphere(3), Sphere(3)), Generated([Isometry(np.kron(np.eye(2), np.eye(3)[[1, 2, 0]]))]), 5),
    (
        ProductManifold(Circle(), Sphere(3)),
        Generated([Isometry(np.diag([1, -1, -1, 1, 1])), Product(Rotations(2), Cyclic(3))]),
        9,
    ),
]


@pytest.mark.parametrize(("manifold", "group", "level"), LARGE, ids=repr)
def test_products_alone_give_the_null_space(
    manifold: Manifold, group: Group, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.check(manifold)
    space = manifold.eigenfunctions(level)
    expected = invariants.null_space([dense(space.action(g)) for g in group.generators])
    for module in ("zonal", "product_space", "invariants"):
        monkeypatch.setattr(f"daskspectral.manifolds.{module}.DENSE_LIMIT", 2)
    g = group.generators[0]
    x = np.random.default_rng(0).standard_normal((space.size, 3))
    monkeypatch.setattr("daskspectral.manifolds.zonal._ROWS", 5)
    implied = space.action(g)
    assert not isinstance(implied, np.ndarray)
    np.testing.assert_allclose(implied @ x, dense(implied) @ x, atol=1e-11)
    found = invariants.fixed_by_products(space, group.generators, np.random.default_rng(0), width=2)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-11)
    whole = coefficients(space, group)
    np.testing.assert_allclose(whole @ whole.T, expected @ expected.T, atol=1e-11)


def test_random_elements_are_elements_and_many() -> None:
    rng = np.random.default_rng(0)
    found = invariants.random_elements(Rotations(7, 3).generators, 100, rng)
    powers = [np.linalg.matrix_power(Rotations(7, 3).generators[0].matrix, k) for k in range(7)]
    nearest = [[np.abs(g.matrix - p).max() for p in powers] for g in found]
    assert np.min(nearest, axis=1).max() < 1e-13
    assert np.bincount(np.argmin(nearest, axis=1), minlength=7).min() > 3
    moved = invariants.random_elements(Translations([[0.25, 0]]).generators, 50, rng)
    assert {float((g.shift[0] * 4) % 4) for g in moved} == {0, 1, 2, 3}


def test_no_generators_leave_everything() -> None:
    space = Sphere(4).eigenfunctions(2)
    np.testing.assert_array_equal(invariant_coefficients(space, []), np.eye(9))
    found = coefficients(space, Orthogonal([np.eye(4)]))
    np.testing.assert_allclose(found @ found.T, np.eye(9), atol=1e-12)


def test_a_gap_is_demanded() -> None:
    def turn(angle: float) -> Array:
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    assert invariants.null_space([turn(1e-4)]).shape == (2, 0)
    assert invariants.null_space([np.eye(2)]).shape == (2, 2)
    blocks = np.zeros((8, 8))
    for i, angle in enumerate([1e-8, 1e-7, 1e-6, 1e-5]):
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = turn(angle)
    with pytest.raises(ValueError, match=r"a gap that tells zeros, received"):
        invariants.null_space([blocks])


def test_irrational_rotations_have_no_gap_and_no_invariants() -> None:
    """A turn by 1 about an axis: at each degree only the function of the axis stays."""
    c, s = np.cos(1), np.sin(1)
    group = Orthogonal([[[c, -s, 0], [s, c, 0], [0, 0, 1]]])
    for level in (1, 5, 22, 40):  # 22 is near 7 pi
        assert coefficients(Sphere(3).eigenfunctions(level), group).shape[1] == 1
