"""Distances, submanifolds by their normals, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.errors import PointError
from daskspectral.manifolds import (
    SO3,
    Circle,
    FlatTorus,
    Implicit,
    Interval,
    Isometry,
    KillingField,
    Manifold,
    PeriodicBox,
    PeriodicCell,
    Product,
    Sphere,
)
from tests.manifolds.common import TURN

Array = NDArray[Any]
CELL, S, C = PeriodicCell.hexagonal(1.0), Sphere(3), Circle()


def radial(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def clifford(x: Array) -> Array:
    """The normals of the torus |x_1 + i x_2| = |x_3 + i x_4| = 1."""
    return np.stack([radial(x * [1, 1, 0, 0]), radial(x * [0, 0, 1, 1])])


def scaled(x: Array) -> Array:
    return np.asarray(radial(x) * np.linspace(1, 2.5, len(x))[:, None])


def test_distances() -> None:
    assert Sphere(2).distance(np.array([[3, 4], [0, 0.25], [1, 0]])) == pytest.approx([4, 0.75, 0])
    assert FlatTorus(2).distance([[3, 4, 0, 0], [0, 1, 1, 0]]) == pytest.approx([np.sqrt(17), 0])
    x = SO3().sample(3, np.random.default_rng(0))
    np.testing.assert_allclose(SO3().distance(1.1 * x), 0.1 * np.sqrt(3), rtol=1e-9)
    x[1, :3] *= -1
    np.testing.assert_allclose(SO3().distance(x), [0, 2, 0], atol=1e-9)
    both = Product(S, Interval(0, 1e6))
    with pytest.raises(PointError, match=r"to within 1e-06, received row 1 at distance 5e\+05; project .* or widen"):
        both.check([[1, 0, 0, 3], [1, 0, 0, 1.5e6]])
    Interval(0, 1e6).check([[1e6 + 0.5]], tolerance=1e-5)  # parts of the width


# known by their normals alone


def test_implicit_normals() -> None:
    implicit = Implicit(clifford, 4, codimension=2)
    x, torus = S.sample(6, np.random.default_rng(0)), FlatTorus(2).sample(6, np.random.default_rng(0))
    np.testing.assert_array_equal(Implicit(radial, 3).normals(x), radial(x)[None])
    np.testing.assert_allclose(implicit.normals(torus), FlatTorus(2).normals(torus))
    Implicit(radial, 3).check(5 * x)
    assert Implicit(radial, 3).tangents(x) is None
    with pytest.raises(ValueError, match=r"eigenfunctions of Implicit\(clifford, .* not known in closed form"):
        implicit.eigenfunctions(0)


# refusals


@pytest.mark.parametrize(
    ("manifold", "move", "reason"),
    [
        (S, Isometry(np.diag([1, 2, 1])), r"not orthogonal: A A\^T differs from the identity by 3"),
        (FlatTorus(2), Isometry(np.eye(4)[[1, 2, 3, 0]]), r"it moves points off the manifold, by"),
        (
            PeriodicBox([0, 0], [1, 2]),
            Isometry([[0, 1], [1, 0]]),
            r"takes .1.0, 0.0., a vector .* to .0.0, 1.0., which is none$",
        ),
        (CELL, Isometry(TURN), r"isometry of PeriodicCell.*takes .*, a vector of the lattice, to .*none"),
        (Interval(0, 1), Isometry([[-1]]), r"side 0, \[0, 1\] of length 1, to \[-1, 0\]"),
        (Product(C, C), Isometry(np.eye(4)[[0, 2, 1, 3]]), r"it mixes coordinates of factors, 2, 2 c"),
        (S, KillingField(np.eye(3)), r"X is not antisymmetric: X \+ X\^T has an entry 2, .* \(X - X.T\) / 2"),
        (C, KillingField(0.5 * TURN), r"i times integers as eigenvalues.* it has i times \[0.5\].* X by 2$"),
        (Sphere(4), KillingField(np.kron(np.diag([1, np.sqrt(2)]), TURN)), r"winds densely round a larger torus: give"),
        (PeriodicBox([0], [1]), KillingField([[0.0]], [0.4]), r"a sum of whole periods, .* it is \[2.51327412\]"),
    ],
    ids=repr,
)
def test_maps_that_are_no_isometries(manifold: Manifold, move: Isometry | KillingField, reason: str) -> None:
    check: Any = manifold.check_isometry if isinstance(move, Isometry) else manifold.check_killing
    with pytest.raises(ValueError, match=reason):
        check(move)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: Implicit(scaled, 4).normals(np.ones((5, 4))), "norms from 1 to 2.5, 2.5 in row 4; divide each normal"),
        (lambda: Implicit(lambda x: radial(x).T, 4).normals(np.ones((5, 4))), r"\(1, 5, 4\), received \(4, 5\)"),
        (lambda: Implicit(lambda x: np.stack([radial(x)] * 2), 4, 2).normals(np.eye(4)), "normals 0 and 1 with inner"),
        (lambda: S.check(np.ones((4, 3), dtype=complex)), r"real coordinates.*complex128"),
        (lambda: C.normals([[1, 0], [0, 0]]), "the origin in row 1"),
        (lambda: Isometry(np.eye(2)) @ Isometry(np.eye(3)), r"of 2 and of 3 coordinates do not compose"),
        (lambda: PeriodicCell.from_parameters(1, 1, 1, 120, 120, 120), "angles that three vectors can have"),
    ],
)
def test_bad_arguments(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        make()
