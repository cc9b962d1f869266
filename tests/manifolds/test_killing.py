"""Killing fields: derived actions against finite differences and brackets, flows, gaps, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.groups import Generated, Isometry, Orthogonal, PhaseRotations, SpecialOrthogonal
from daskspectral.manifolds import (
    SO3,
    Circle,
    Eigenspace,
    FlatTorus,
    Implicit,
    KillingField,
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
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def turn(d: int, i: int, j: int) -> Array:
    x = np.zeros((d, d))
    x[j, i], x[i, j] = 1, -1
    return x


def whole(d: int, rng: np.random.Generator) -> Array:
    """A random antisymmetric matrix with eigenvalues i times integers."""
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    charges = [*rng.integers(-2, 3, d // 2), *([0.0] * (d % 2))]
    return np.asarray(q @ scipy.linalg.block_diag(*(n * TURN for n in charges[: d // 2]), *([0.0] * (d % 2))) @ q.T)


def circles(m: int, rng: np.random.Generator) -> Array:
    return np.kron(np.diag(rng.integers(-2, 3, m)), TURN)


def on_rotations(rng: np.random.Generator) -> Array:
    return np.kron(whole(3, rng), np.eye(3)) + np.kron(np.eye(3), whole(3, rng))


CASES: dict[str, tuple[Manifold, Callable[[np.random.Generator], KillingField], int]] = {
    "circle": (Circle(), lambda rng: KillingField(circles(1, rng)), 7),
    "sphere 5": (Sphere(5), lambda rng: KillingField(whole(5, rng)), 5),
    "torus": (FlatTorus(3), lambda rng: KillingField(circles(3, rng)), 6),
    "box": (
        PeriodicBox([0, 1], [2, 4]),
        lambda rng: KillingField(np.zeros((2, 2)), rng.integers(-2, 3, 2) * [2, 3] / (2 * np.pi)),
        6,
    ),
    "rotations": (SO3(), lambda rng: KillingField(on_rotations(rng)), 3),
    "sphere and box": (
        Product(Sphere(3), PeriodicBox([0], [2])),
        lambda rng: KillingField(scipy.linalg.block_diag(whole(3, rng), 0.0), [0, 0, 0, 2 / np.pi]),
        6,
    ),
    "three": (
        Product(Product(Sphere(3), Circle()), Sphere(4)),
        lambda rng: KillingField(scipy.linalg.block_diag(whole(3, rng), circles(1, rng), whole(4, rng))),
        6,
    ),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_derived_actions_by_finite_differences(name: str, seed: int) -> None:
    manifold, draw, levels = CASES[name]
    rng = np.random.default_rng(seed)
    field, step = draw(rng), 1e-4
    manifold.check_killing(field)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    found = dense(space.derived_action(field))
    at = {k: dense(space.action(field.flow(k * step))) for k in (-2, -1, 1, 2)}
    expected = (8 * (at[1] - at[-1]) - at[2] + at[-2]) / (12 * step)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    np.testing.assert_allclose(found, -found.T, atol=1e-11)
    x = manifold.sample(5, rng)
    along = x @ field.matrix.T + field.shift
    np.testing.assert_allclose(space.derivatives(x, along), space.values(x) @ found.T, atol=1e-9)
    turns = np.linalg.eigvalsh(1j * found)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-10)


@pytest.mark.parametrize("name", ["sphere 5", "rotations", "three"])
def test_derived_actions_keep_brackets(name: str) -> None:
    """dD([X, Y]) = [dD(X), dD(Y)], the bracket of a Lie algebra."""
    manifold, draw, levels = CASES[name]
    rng = np.random.default_rng(1)
    x, y = draw(rng).matrix, draw(rng).matrix
    space = manifold.eigenfunctions(levels - 1)
    dx, dy, both = (dense(space.derived_action(KillingField(a))) for a in (x, y, x @ y - y @ x))
    np.testing.assert_allclose(dx @ dy - dy @ dx, both, atol=1e-9)


def test_flows_are_one_parameter_groups() -> None:
    rng = np.random.default_rng(0)
    for manifold, draw, _ in CASES.values():
        field, x = draw(rng), manifold.sample(4, rng)
        np.testing.assert_allclose(field.flow(0.7)(field.flow(0.4)(x)), field.flow(1.1)(x), atol=1e-12)
        again = manifold.eigenfunctions(2).values(field.flow(2 * np.pi)(x))
        np.testing.assert_allclose(again, manifold.eigenfunctions(2).values(x), atol=1e-11)
    assert KillingField(np.zeros((3, 3))).trivial
    assert not KillingField(np.zeros((1, 1)), [1.0]).trivial


@pytest.mark.parametrize(("d", "copies"), [(2, 2), (3, 1), (3, 2), (4, 1), (4, 2), (6, 1)])
def test_the_stack_of_a_rotation_group_has_a_gap_of_one(d: int, copies: int) -> None:
    """sum_i -X_1i^2 is the Casimir operator of SO(d) less that of SO(d - 1), 1 or more where it is not 0."""
    algebra = SpecialOrthogonal(d, copies).algebra
    for level in range(1, 5 if d * copies < 6 else 4):
        space = Sphere(d * copies).eigenfunctions(level)
        stack = np.concatenate([dense(space.derived_action(field)) for field in algebra])
        values = np.linalg.svd(stack, compute_uv=False)
        assert values[values > 1e-9].min() > 1 - 1e-9
        if copies == 1 and d > 2:  # smallest on the harmonics of SO(d - 1): l (l + d - 2) - l (l + d - 3) = l
            assert values.min() == pytest.approx(np.sqrt(level), abs=1e-9)


def projector(space: Eigenspace, *generators: Any) -> Array:
    fields = [x for x in generators if isinstance(x, KillingField)]
    u = dense(invariant_coefficients(space, [g for g in generators if isinstance(g, Isometry)], fields))
    np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
    return np.asarray(u @ u.T)


@pytest.mark.parametrize(
    ("manifold", "generators"),
    [
        (FlatTorus(2), [*PhaseRotations([2, -1]).algebra]),
        (FlatTorus(3), [*PhaseRotations([1, 1, 0]).algebra, Isometry(np.kron(np.eye(3)[[1, 0, 2]], np.eye(2)))]),
        (PeriodicBox([0, 0], [1, 2]), [KillingField(np.zeros((2, 2)), np.array([1, -2]) / (2 * np.pi))]),
        (
            PeriodicBox([0] * 3, [1] * 3),
            [KillingField(np.zeros((3, 3)), [1 / (2 * np.pi), 0, 0]), Isometry(np.diag([1, 1, -1]), [0, 0.5, 0])],
        ),
        (Circle(), [KillingField(TURN)]),
    ],
    ids=repr,
)
def test_orbits_give_the_null_space(manifold: Manifold, generators: list[Any]) -> None:
    for level in range(7):
        space = manifold.eigenfunctions(level)
        null = invariants.null_space(
            [dense(space.action(g)) for g in generators if isinstance(g, Isometry)],
            [dense(space.derived_action(x)) for x in generators if isinstance(x, KillingField)],
        )
        np.testing.assert_allclose(projector(space, *generators), null @ null.T, atol=1e-11)


def test_functions_that_do_not_depend_on_a_coordinate() -> None:
    """Along the first axis of a box only waves of the others stay; along the diagonal those of x_1 - x_2."""
    box = PeriodicBox([0, 0], [1, 1])
    along = [KillingField(np.zeros((2, 2)), np.array(b) / (2 * np.pi)) for b in ([1, 0], [1, 1])]
    x = box.sample(6, np.random.default_rng(0))
    for level in range(8):
        space = box.eigenfunctions(level)
        for field, moved in zip(along, (x + np.array([0.3, 0]), x + 0.3), strict=True):
            u = dense(invariant_coefficients(space, [], [field]))
            np.testing.assert_allclose(space.values(moved) @ u, space.values(x) @ u, atol=1e-12)
    counts = [
        [dense(invariant_coefficients(box.eigenfunctions(n), [], [x])).shape[1] for n in range(10)] for x in along
    ]
    squares = [round(box.eigenvalue(n) / (2 * np.pi) ** 2) for n in range(10)]  # 0 1 2 4 5 8 9 10 13 16
    assert counts[0] == [1 if n == 0 else 2 * (round(np.sqrt(n)) ** 2 == n) for n in squares]
    assert counts[1] == [1 if n == 0 else 2 * (round(np.sqrt(n / 2)) ** 2 * 2 == n) for n in squares]


LARGE: list[tuple[Manifold, list[Any], int]] = [
    (Sphere(6), [*SpecialOrthogonal(3, 2).algebra], 4),
    (Sphere(4), [*PhaseRotations([1, 2]).algebra, Isometry(np.diag([1, -1, 1, -1]))], 5),
    (Product(Sphere(3), Sphere(3)), [*SpecialOrthogonal(3, 2).algebra], 5),
]


@pytest.mark.parametrize(("manifold", "generators", "level"), LARGE, ids=repr)
def test_products_alone_give_the_null_space(
    manifold: Manifold, generators: list[Any], level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = manifold.eigenfunctions(level)
    expected = projector(space, *generators)
    assert 0 < np.trace(expected) < space.size
    for module in ("zonal", "product_space", "invariants"):
        monkeypatch.setattr(f"daskspectral.manifolds.{module}.DENSE_LIMIT", 2)
    np.testing.assert_allclose(projector(space, *generators), expected, atol=1e-11)


def test_null_spaces_within_a_span() -> None:
    space = Sphere(6).eigenfunctions(4)
    fields = SpecialOrthogonal(3, 2).algebra
    derived = [dense(space.derived_action(field)) for field in fields]
    whole, first = invariants.null_space([], derived), invariants.null_space([], derived[:1])
    within = invariants.null_space([], derived[1:], first)
    np.testing.assert_allclose(within @ within.T, whole @ whole.T, atol=1e-11)
    assert invariants.null_space([], derived, first[:, :0]).shape == (space.size, 0)
    axes = [dense(Sphere(4).eigenfunctions(3).derived_action(field)) for field in SpecialOrthogonal(4).algebra]
    assert invariants.null_space([], axes).shape == (16, 0)
    with pytest.raises(ValueError, match=r"closes at 2 pi, with eigenvalues i times integers; received i times 0.2;"):
        invariants.null_space([], [0.2 * TURN])


def test_a_factorisation_that_does_not_converge_is_tried_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    factorise, tries = scipy.linalg.svd, []

    def svd(a: Array, lapack_driver: str) -> Any:
        tries.append(a.shape)
        if len(tries) % 2:
            raise scipy.linalg.LinAlgError("SVD did not converge")
        return factorise(a, lapack_driver=lapack_driver)

    space = Sphere(6).eigenfunctions(4)
    expected = projector(space, *SpecialOrthogonal(3, 2).algebra)
    monkeypatch.setattr(scipy.linalg, "svd", svd)
    np.testing.assert_allclose(projector(space, *SpecialOrthogonal(3, 2).algebra), expected, atol=1e-12)
    assert len(tries) == 2


@pytest.mark.parametrize(
    ("manifold", "field", "reason"),
    [
        (Sphere(3), KillingField(np.eye(3)), r"X is not antisymmetric: X \+ X\^T has an entry 2, .* \(X - X.T\) / 2"),
        (Sphere(2), KillingField(0.5 * TURN), r"i times integers as eigenvalues.* it has i times \[0.5\].* X by 2$"),
        (
            Sphere(4),
            KillingField(np.kron(np.diag([2 / 3, 1]), TURN)),
            r"it has i times \[0.666667, 1.      \] and their negatives; multiply X by 3$",
        ),
        (Sphere(4), KillingField(np.kron(np.diag([1, np.sqrt(2)]), TURN)), r"winds densely round a larger torus: give"),
        (Sphere(3), KillingField(TURN), r"Sphere\(d=3\) has 3 coordinates, and the field acts on 2; give one that"),
        (Sphere(2), KillingField(TURN, [0, 1]), r"flow at s = 1 is no isometry: it shifts the coordinates"),
        (FlatTorus(2), KillingField(turn(4, 0, 2)), r"flow at s = 1 is no isometry: it moves points off the manifold"),
        (SO3(), KillingField(turn(9, 0, 8)), r"moves points off the manifold"),
        (PeriodicBox([0, 0], [1, 1]), KillingField(TURN), r"its matrix is not a signed permutation"),
        (
            PeriodicBox([0], [1]),
            KillingField([[0.0]], [0.4]),
            r"2 pi b must be a sum of whole periods, .* it is \[2.51327412\]",
        ),
        (Product(Sphere(3), Sphere(3)), KillingField(turn(6, 0, 4)), r"it mixes coordinates of factors, 3, 3"),
        (Implicit(lambda x: x, 3), KillingField(turn(3, 0, 1)), r"known by its normals"),
    ],
    ids=repr,
)
def test_other_fields_are_refused(manifold: Manifold, field: KillingField, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        manifold.check_killing(field)


def test_bad_fields() -> None:
    with pytest.raises(ValueError, match=r"a square matrix \(d, d\), received shape \(2,\)"):
        KillingField([1.0, 2.0])
    with pytest.raises(ValueError, match=r"finite entries"):
        KillingField([[np.nan]])


def test_a_field_survives_saving() -> None:
    field = KillingField(TURN, [0.5, 0.0])
    again = decode(encode(field), KillingField)
    np.testing.assert_array_equal(again.matrix, field.matrix)
    np.testing.assert_array_equal(again.shift, field.shift)


def test_no_generators_and_still_fields_leave_everything() -> None:
    space = Sphere(3).eigenfunctions(2)
    np.testing.assert_array_equal(invariant_coefficients(space, [], [KillingField(np.zeros((3, 3)))]), np.eye(5))
    group = Generated([Orthogonal([np.diag([1, 1, -1])]), SpecialOrthogonal(3)])
    assert (len(group.generators), len(group.algebra)) == (1, 2)
    assert invariant_coefficients(space, group.generators, group.algebra).shape == (5, 0)
