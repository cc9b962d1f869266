"""Exchanges of equal factors of a product: actions, averaged characters, blocks of factors, regression."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.groups import (
    Cyclic,
    Exchange,
    FullOrthogonal,
    Generated,
    Group,
    Isometry,
    LieGroup,
    Orthogonal,
    Rotations,
    SignFlips,
    SpecialOrthogonal,
    Translations,
)
from daskspectral.groups import Product as Both
from daskspectral.groups.elements import elements
from daskspectral.manifolds import (
    SO3,
    Circle,
    Manifold,
    PeriodicBox,
    Product,
    Sphere,
    invariant_coefficients,
    invariants,
)
from daskspectral.manifolds.eigenspace import dense
from daskspectral.registry import decode, encode

Array = NDArray[Any]
TURN = Rotations(3).generators[0].matrix
C, S, BOX = Circle(), Sphere(3), PeriodicBox([0], [1])
SWAP_ENDS = Orthogonal([np.eye(7)[[4, 5, 6, 3, 0, 1, 2]]])
CYCLES = Both(Cyclic(3), Both(Cyclic(3), Cyclic(3)))

CASES: list[tuple[Manifold, Group]] = [
    (Product(S, S), Exchange(3)),
    (Product(C, C), Exchange(2)),
    (Product(BOX, BOX), Generated([Exchange(1), Translations([[0.5, 0.5]])])),
    (Product(SO3(), SO3()), Exchange(9)),
    (Product(Product(S, S), S), Exchange(3, 3)),
    (Product(S, Product(S, S)), Generated([Exchange(3, 3), CYCLES])),
    (Product(Product(S, BOX), S), SWAP_ENDS),
    (Product(Product(S, BOX), S), Generated([SWAP_ENDS, SignFlips(7)])),
    (Product(Product(C, C), Product(C, S)), Both(Exchange(2, 3), Cyclic(3))),
    (
        Product(Product(C, C), Product(C, BOX)),
        Both(
            Generated([Exchange(2, 3), Orthogonal([np.kron(np.eye(3), TURN)])]),
            SignFlips(1),
        ),
    ),
    (Product(C, C), Orthogonal([np.kron([[0, 1], [1, 0]], [[0, -1], [1, 0]])])),  # exchanged and turned, of order 4
]
cases = pytest.mark.parametrize(("manifold", "group"), CASES, ids=repr)


@cases
def test_dimensions_by_characters(manifold: Manifold, group: Group) -> None:
    """The number of invariant functions is the mean trace of D over all elements."""
    group.check(manifold)
    found = elements(group, manifold, 1000)
    assert found is not None
    if group.order is not None:
        assert len(found) == group.order
    for level in range(2 if manifold.ambient == 18 else 4):
        space = manifold.eigenfunctions(level)
        u = dense(invariant_coefficients(space, group.generators))
        characters = [np.trace(dense(space.action(g))) for g in found]
        assert u.shape[1] == pytest.approx(np.mean(characters), abs=1e-8)
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
        mean = np.mean([dense(space.action(g)) for g in found], axis=0)
        np.testing.assert_allclose(u @ u.T, mean, atol=1e-10)


@cases
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_exchanges_act_by_orthogonal_matrices(manifold: Manifold, group: Group, seed: int) -> None:
    rng = np.random.default_rng(seed)
    g, h, x = group.word(rng), group.word(rng), manifold.sample(4, rng)
    manifold.check_isometry(g)
    space = manifold.eigenfunctions(int(rng.integers(2 if manifold.ambient == 18 else 6)))
    dg = dense(space.action(g))
    np.testing.assert_allclose(dg @ dg.T, np.eye(space.size), atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g @ h)), dg @ dense(space.action(h)), atol=1e-11)
    np.testing.assert_allclose(space.values(g(x)), space.values(x) @ dg.T, atol=1e-11 * space.size)


@cases
def test_products_alone_give_the_null_space(manifold: Manifold, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    level = 1 if manifold.ambient == 18 else 4
    space = manifold.eigenfunctions(level)
    null = invariants.null_space([dense(space.action(g)) for g in group.generators])
    found = dense(invariant_coefficients(space, group.generators))
    np.testing.assert_allclose(found @ found.T, null @ null.T, atol=1e-11)
    x = np.random.default_rng(0).standard_normal((space.size, 3))
    expected = [dense(space.action(g)) @ x for g in group.generators]
    for module in ("zonal", "product_space", "invariants"):
        monkeypatch.setattr(f"daskspectral.manifolds.{module}.DENSE_LIMIT", 2)
    for g, product in zip(group.generators, expected, strict=True):
        np.testing.assert_allclose(space.action(g) @ x, product, atol=1e-11)
    found = dense(invariant_coefficients(space, group.generators))
    np.testing.assert_allclose(found @ found.T, null @ null.T, atol=1e-11)


def test_factors_side_by_side_and_nested_are_the_same() -> None:
    nested, other = Product(Product(S, C), BOX), Product(S, Product(C, BOX))
    assert nested.factors == other.factors == (S, C, BOX)
    x = nested.sample(6, np.random.default_rng(0))
    for level in range(8):
        assert nested.eigenvalue(level) == other.eigenvalue(level)
        space = nested.eigenfunctions(level)
        np.testing.assert_array_equal(space.values(x), other.eigenfunctions(level).values(x))
        again = decode(encode(nested), Manifold).eigenfunctions(level, space.points())
        np.testing.assert_array_equal(again.values(x), space.values(x))


def test_blocks_of_factors_are_solved_apart() -> None:
    """Joint rotations of the first and last factor, a mirror of the second: products of the solutions."""
    angle = PeriodicBox([0], [2 * np.pi])
    manifold = Product(Product(S, C), Product(angle, S))
    rotations = [np.zeros((9, 9)), np.zeros((9, 9))]
    for matrix, axis in zip(rotations, (1, 2), strict=True):
        for start in (0, 6):
            matrix[start + axis, start], matrix[start, start + axis] = 1, -1
    mirror = Isometry(np.diag([1, -1]))
    group = Generated([LieGroup(rotations), Orthogonal([scipy.linalg.block_diag(np.eye(3), mirror.matrix, np.eye(4))])])
    group.check(manifold)
    pair, joint = Product(S, S), SpecialOrthogonal(3, 2)
    counts: dict[float, int] = {}
    for i, j, k in itertools.product(range(9), range(5), range(5)):
        value = round(pair.eigenvalue(i) + C.eigenvalue(j) + angle.eigenvalue(k), 6)
        count = invariant_coefficients(pair.eigenfunctions(i), [], joint.algebra).shape[1]
        count *= invariant_coefficients(C.eigenfunctions(j), [mirror]).shape[1] * angle.multiplicity(k)
        counts[value] = counts.get(value, 0) + count
    rng = np.random.default_rng(0)
    x = manifold.sample(4, rng)
    y = group.word(rng)(x)
    for level in range(9):
        space = manifold.eigenfunctions(level)
        u = dense(invariant_coefficients(space, group.generators, group.algebra))
        assert u.shape[1] == counts[round(space.eigenvalue, 6)]
        np.testing.assert_allclose(space.values(y) @ u, space.values(x) @ u, atol=1e-11)


def test_pairs_of_directions_by_legendre_polynomials() -> None:
    """Under joint rotations of two directions one function of x . y is left in degree (l, l), a Legendre polynomial."""
    manifold, rng = Product(S, S), np.random.default_rng(0)
    for group in (SpecialOrthogonal(3, 2), Generated([FullOrthogonal(3, 2), Exchange(3)])):
        space = manifold.eigenfunctions([manifold.eigenvalue(n) for n in range(9)].index(12.0))  # degree 2 of both
        u = dense(invariant_coefficients(space, group.generators, group.algebra))
        x = manifold.sample(20, rng)
        t = np.sum(x[:, :3] * x[:, 3:], axis=1)
        (values,) = (space.values(x) @ u).T
        legendre = np.sqrt(5) * (3 * t**2 - 1) / 2
        np.testing.assert_allclose(values * np.sign(values @ legendre), legendre, atol=1e-11)


def test_a_symmetric_function_of_two_points() -> None:
    """The energy of two identical particles on a sphere, in a field along its axis, learned and exactly symmetric."""
    manifold, rng = Product(S, S), np.random.default_rng(0)
    x = manifold.sample(800, rng)

    def energy(x: Array) -> Array:
        return np.asarray(np.sum(x[:, :3] * x[:, 3:], axis=1) ** 2 + (x[:, 2] + x[:, 5]) ** 2)

    fit = dsp.InvariantRegressor(manifold, Exchange(3), 3.0, 95, "least_squares").fit(x, energy(x))
    assert fit.invariant_dimensions_.tolist() == [1, 3, 6, 5, 15, 7 + 15]  # of 1, 6, 9, 10, 30, 14 + 25 functions
    new = manifold.sample(200, rng)
    np.testing.assert_allclose(fit.predict(new), energy(new), atol=1e-4)
    swapped = np.hstack([new[:, 3:], new[:, :3]])
    np.testing.assert_allclose(fit.predict(swapped), fit.predict(new), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("manifold", "group", "reason"),
    [
        (Product(S, C), Orthogonal([np.eye(5)[[3, 4, 0, 1, 2]]]), r"it mixes coordinates of factors, 3, 2 coordinates"),
        (Product(S, S), Exchange(2, 3), r"generator 0 .* it mixes coordinates of factors, 3, 3"),
        (
            Product(BOX, PeriodicBox([0], [2])),
            Exchange(1),
            r"it takes factor 1, PeriodicBox.*, to factor 0, .* only",
        ),
        (Product(C, Product(C, C)), Exchange(2, 3), None),
        (
            Product(S, S),
            Orthogonal([scipy.linalg.block_diag(np.eye(2), [[0, 1], [1, 0]], np.eye(2))]),
            r"it mixes coordinates of factors, 3, 3 .* exchanges of equal factors",
        ),
    ],
    ids=repr,
)
def test_which_exchanges_are_isometries(manifold: Manifold, group: Group, reason: str | None) -> None:
    if reason is None:
        group.check(manifold)
        return
    with pytest.raises(ValueError, match=reason):
        group.check(manifold)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"expected count to be a whole number of 2 or more, received 1"):
        Exchange(3, 1)
    with pytest.raises(ValueError, match=r"expected size to be a whole number of 1 or more, received 0"):
        Exchange(0)
    with pytest.raises(ValueError, match=r"it mixes coordinates of factors"):
        Product(S, S).eigenfunctions(1).action(Isometry(np.eye(6)[[0, 1, 3, 2, 4, 5]]))
