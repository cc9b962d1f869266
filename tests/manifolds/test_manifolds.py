"""Distances, submanifolds by their normals, and what is refused."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.errors import PointError
from daskspectral.manifolds import (
    Circle,
    FlatTorus,
    Implicit,
    Interval,
    Isometry,
    KillingField,
    Manifold,
    PeriodicBox,
    Product,
    Sphere,
)
from tests.manifolds.common import TURN

Array = NDArray[Any]
S, C = Sphere(3), Circle()


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
    both = Product(S, Interval(0, 1e6))
    with pytest.raises(PointError, match=r"row 1 at distance 5e\+05"):
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
    with pytest.raises(ValueError, match=r"Implicit\(clifford"):
        implicit.eigenfunctions(0)


# refusals


@pytest.mark.parametrize(
    ("manifold", "move"),
    [
        (S, Isometry(np.diag([1, 2, 1]))),
        (FlatTorus(2), Isometry(np.eye(4)[[1, 2, 3, 0]])),
        (PeriodicBox([0, 0], [1, 2]), Isometry([[0, 1], [1, 0]])),
        (PeriodicBox([0, 0], [1, 1]), Isometry(np.array([[0.6, -0.8], [0.8, 0.6]]))),
        (Interval(0, 1), Isometry([[-1]])),
        (Interval([0, 0], [1, 1], lengths=[1, 2]), Isometry([[0, 1], [1, 0]])),
        (Product(C, C), Isometry(np.eye(4)[[0, 2, 1, 3]])),
        (Product(C, S), Isometry(np.roll(np.eye(5), 2, axis=0))),
        (S, KillingField(np.eye(3))),
        (C, KillingField(0.5 * TURN)),
        (Sphere(4), KillingField(np.kron(np.diag([1, np.sqrt(2)]), TURN))),
        (PeriodicBox([0], [1]), KillingField([[0.0]], [0.4])),
        (Interval(0, 1), KillingField([[0.0]], [1.0])),
    ],
    ids=repr,
)
def test_maps_that_are_no_isometries(manifold: Manifold, move: Isometry | KillingField) -> None:
    check: Any = manifold.check_isometry if isinstance(move, Isometry) else manifold.check_killing
    with pytest.raises(ValueError, match=re.escape(repr(manifold))):
        check(move)


@pytest.mark.parametrize(
    ("make", "offending"),
    [
        (lambda: Implicit(scaled, 4).normals(np.ones((5, 4))), "row 4"),
        (lambda: Implicit(lambda x: radial(x).T, 4).normals(np.ones((5, 4))), r"\(4, 5\)"),
        (lambda: Implicit(lambda x: np.stack([radial(x)] * 2), 4, 2).normals(np.eye(4)), "normals 0 and 1"),
        (lambda: Implicit(lambda x: np.where(x > 1, np.nan, radial(x)), 2).normals([[1, 0], [2, 0]]), "row 1"),
        (lambda: S.check(np.ones((4, 3), dtype=complex)), "complex128"),
        (lambda: S.check([[1, 0, 0], [np.nan, 0, 1]], tolerance=2), "row 1"),
        (lambda: S.tangents(np.ones((4, 11))), r"\(4, 11\)"),
        (lambda: C.normals([[1, 0], [0, 0]]), "row 1"),
        (lambda: Isometry(np.eye(2)) @ Isometry(np.eye(3)), "of 2 and of 3"),
    ],
)
def test_bad_arguments(make: Callable[[], object], offending: str) -> None:
    with pytest.raises(ValueError, match=offending):
        make()
