"""Groups by their algebra: dimensions against Molien-Weyl integrals and finite subgroups; refusals, states."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.groups import (
    ContinuousTranslations,
    DirectProduct,
    Exchange,
    FullOrthogonal,
    Generated,
    Group,
    LieGroup,
    PhaseRotations,
    SpecialOrthogonal,
)
from daskspectral.manifolds import Manifold, PeriodicBox, Product, Sphere, invariant_coefficients

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def dimensions(manifold: Manifold, group: Group, levels: int) -> list[int]:
    group.check(manifold)
    spaces = [manifold.eigenfunctions(level) for level in range(levels)]
    return [invariant_coefficients(space, group.generators, group.algebra).shape[1] for space in spaces]


def molien_weyl(angles: Array, weights: Array, copies: int, levels: int, fixed: int = 0) -> list[int]:
    """Harmonics of each degree that are invariant: the coefficients of (1 - t^2) times the mean over the group of
    1 / det(1 - t g), for g with eigenvalues exp(+-i angle), (k, m), and 1 besides `fixed` times."""
    turns = [np.exp(sign * 1j * angles[:, j]) for j in range(angles.shape[1]) for sign in (1, -1)]
    turns = [*turns, *[np.ones(len(angles))] * fixed] * copies
    series = np.zeros((len(angles), levels), dtype=complex)
    series[:, 0] = 1
    for z in turns:
        for degree in range(1, levels):
            series[:, degree] += z * series[:, degree - 1]
    mean = (weights[:, None] * series).sum(axis=0).real / weights.sum()
    found = mean - np.concatenate([[0, 0], mean[:-2]])
    np.testing.assert_allclose(found, np.rint(found), atol=1e-9)
    return [int(n) for n in np.rint(found)]


def grid(m: int, n: int = 64) -> Array:
    """Angles (n^m, m) of an even grid: exact means of trigonometric polynomials of degree below n."""
    return np.array(list(itertools.product(2 * np.pi * np.arange(n) / n, repeat=m)))


def rotations_by_weyl(d: int, copies: int, levels: int) -> list[int]:
    """SO(2) to SO(5) by Weyl's integral over the maximal torus."""
    t = grid(d // 2)
    c = np.cos(t)
    weights = {
        2: lambda: np.ones(len(t)),
        3: lambda: 1 - c[:, 0],
        4: lambda: (c[:, 0] - c[:, 1]) ** 2,
        5: lambda: (c[:, 0] - c[:, 1]) ** 2 * (1 - c[:, 0]) * (1 - c[:, 1]),
    }[d]()
    return molien_weyl(t, weights, copies, levels, fixed=d % 2)


@pytest.mark.parametrize(("d", "copies", "levels"), [(2, 3, 5), (3, 1, 7), (3, 2, 7), (4, 2, 4), (5, 1, 5)])
def test_joint_rotations_by_molien_weyl(d: int, copies: int, levels: int) -> None:
    found = dimensions(Sphere(d * copies), SpecialOrthogonal(d, copies), levels)
    assert found == rotations_by_weyl(d, copies, levels)
    if copies == 1:
        assert found == [1] + [0] * (levels - 1)


def test_reflections_forbid_determinants() -> None:
    """Functions of three vectors: det(x_1, x_2, x_3), of degree 3, is invariant under SO(3) and not under O(3)."""
    proper, full = (dimensions(Sphere(9), group(3, 3), 4) for group in (SpecialOrthogonal, FullOrthogonal))
    assert (proper, full) == ([1, 0, 5, 1], [1, 0, 5, 0])
    assert dimensions(Sphere(2), FullOrthogonal(1, 2), 5) == [1, 0, 2, 0, 2]  # x to -x
    assert [FullOrthogonal(d).order for d in (1, 2)] == [2, None]


@pytest.mark.parametrize("charges", [(1, -1), (3, 0), (1, -2, 3)])
def test_phases_by_the_integral_over_the_circle(charges: Sequence[int]) -> None:
    levels = 7 if len(charges) < 3 else 5
    angles = grid(1) * np.array(charges)
    expected = molien_weyl(angles, np.ones(len(angles)), 1, levels)
    assert dimensions(Sphere(2 * len(charges)), PhaseRotations(charges), levels) == expected


def test_continuous_and_discrete_parts_together() -> None:
    """Turns about the axis and the mirror across it leave even zonal functions; U(1)^2 by a product, with exchanges."""
    axis = LieGroup([np.pad(TURN, (0, 1))], [np.diag([1, 1, -1])])
    assert dimensions(Sphere(3), axis, 6) == [1, 0, 1, 0, 1, 0]
    torus = DirectProduct(PhaseRotations([1]), PhaseRotations([1]))
    assert len(torus.algebra) == 2
    angles = grid(2)
    expected = molien_weyl(angles, np.ones(len(angles)), 1, 7)
    assert dimensions(Sphere(4), torus, 7) == expected == [1, 0, 1, 0, 1, 0, 1]  # |z_1|^2 and |z_2|^2
    assert dimensions(Sphere(4), Generated([torus, Exchange(2)]), 7) == [1, 0, 0, 0, 1, 0, 0]
    sphere_and_box = Product(Sphere(3), PeriodicBox([0], [1]))
    both = DirectProduct(SpecialOrthogonal(3), ContinuousTranslations([[1]]))
    assert dimensions(sphere_and_box, both, 4) == [1, 0, 0, 0]


def test_rounded_matrices_are_made_whole() -> None:
    q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    exact = np.kron(np.diag([2, 1]), TURN)
    for turn, digits in ((np.eye(4), 20), (q, 7), (q, 20)):
        x = turn @ exact @ turn.T
        rounded = x.round(digits)
        (field,) = LieGroup([(rounded - rounded.T) / 2]).algebra
        np.testing.assert_allclose(field.matrix, x, atol=1e-6)
        np.testing.assert_array_equal(field.matrix, -field.matrix.T)
        np.testing.assert_allclose(np.linalg.eigvalsh(1j * field.matrix), [-2, -1, 1, 2], atol=1e-13)
    np.testing.assert_array_equal(LieGroup([exact]).algebra[0].matrix, exact)
    plane = np.pad(TURN, (0, 1)) * (1 + 1e-8)
    np.testing.assert_array_equal(LieGroup([plane]).algebra[0].matrix != 0, np.pad(TURN, (0, 1)) != 0)
