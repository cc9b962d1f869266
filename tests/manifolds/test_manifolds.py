"""Manifolds: spectra, actions, invariant functions of eigenspaces, normals, and what is refused."""

import itertools
import re
from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import eval_gegenbauer, eval_legendre

from daskspectral import groups as gr
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
    invariant_coefficients,
    invariants,
)
from daskspectral.manifolds.eigenspace import dense
from daskspectral.manifolds.invariants import equivariant_coefficients
from tests.groups.test_groups import closed

Array = NDArray[Any]
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


CUBE, O2 = gr.Generated([gr.Permutations(3), gr.SignFlips(3)]), gr.FullOrthogonal(2)
MIRRORED = gr.Generated([gr.ContinuousTranslations([[2]]), gr.SignFlips(1)])
ABOUT_THE_MIDDLE = [Isometry(g.matrix, 2.5 * (1 - g.matrix.sum(axis=1))) for g in CUBE.generators]
TURNS = [gr.DirectProduct(O2, gr.DirectProduct(O2, O2)), gr.Exchange(2, 3), gr.PhaseRotations([2, -1, 1])]
OF_BOX = [gr.ContinuousTranslations(np.diag([1, 2, 2])), Isometry(np.diag([1, -1, -1])[[0, 2, 1]])]
SPACES: dict[str, tuple[Manifold, gr.Group, int]] = {  # with a group that moves it, and how many levels are small
    "circle": (Circle(), O2, 30),
    "sphere": (Sphere(3), gr.FullOrthogonal(3), 9),
    "torus": (FlatTorus(3), gr.Generated(TURNS), 6),
    "box": (PeriodicBox([0, 0, 1], [1, 2, 3]), gr.Generated(OF_BOX), 7),
    "interval": (Interval([2] * 3, [3] * 3), gr.Generated(ABOUT_THE_MIDDLE), 7),
    "sphere and box": (Product(Sphere(3), PeriodicBox([0], [2])), gr.DirectProduct(gr.FullOrthogonal(3), MIRRORED), 6),
}


def field_of(group: gr.Group, rng: np.random.Generator) -> KillingField:
    """A multiple of an element of the algebra, turned."""
    turn, field = group.word(rng).matrix, group.algebra[rng.integers(len(group.algebra))]
    times = rng.integers(1, 3)
    return KillingField(times * turn @ field.matrix @ turn.T, times * turn @ field.shift)


cases = pytest.mark.parametrize("name", SPACES)


@cases
def test_squares_of_values_and_slopes_sum_to_the_multiplicity_and_the_eigenvalue(name: str) -> None:
    """The addition theorem of homogeneous spaces, and its Laplacian: exact at every point."""
    manifold, _, levels = SPACES[name]
    x = manifold.sample(4, np.random.default_rng(0))
    normals = manifold.normals(x)
    onto = np.eye(manifold.ambient) - np.einsum("acd,ace->cde", normals, normals)  # the tangent spaces
    for level in range(min(levels, 6) if not isinstance(manifold, Interval) else 0):
        space = manifold.eigenfunctions(level)
        slopes = sum(space.derivatives(x, onto[:, axis]) ** 2 for axis in range(manifold.ambient))
        np.testing.assert_allclose(np.sum(space.values(x) ** 2, axis=1), space.size, rtol=1e-9)
        np.testing.assert_allclose(slopes.sum(axis=1), space.size * space.eigenvalue, rtol=1e-9)


@cases
@settings(max_examples=5)
@given(seed=st.integers(0, 10_000))
def test_isometries_act_by_orthogonal_matrices(name: str, seed: int) -> None:
    manifold, group, levels = SPACES[name]
    rng = np.random.default_rng(seed)
    g, h, x = group.word(rng), group.word(rng), manifold.sample(9, rng)
    manifold.check_isometry(g)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    dg, dh = dense(space.action(g)), dense(space.action(h))
    np.testing.assert_allclose(dg @ dg.T, np.eye(space.size), atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g @ h)), dg @ dh, atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g.inverse)), dg.T, atol=1e-11)
    np.testing.assert_allclose(space.values(g(x)), space.values(x) @ dg.T, atol=1e-11 * np.sqrt(space.size))


@pytest.mark.parametrize("name", [name for name in SPACES if name != "interval"])
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_fields_act_by_antisymmetric_matrices_that_keep_brackets(name: str, seed: int) -> None:
    manifold, group, levels = SPACES[name]
    rng = np.random.default_rng(seed)
    field, other, x = field_of(group, rng), field_of(group, rng), manifold.sample(5, rng)
    manifold.check_killing(field)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    dx, dy = (dense(space.derived_action(each)) for each in (field, other))
    np.testing.assert_allclose(dx, -dx.T, atol=1e-11)
    along = x @ field.matrix.T + field.shift
    np.testing.assert_allclose(space.derivatives(x, along), space.values(x) @ dx.T, atol=1e-9)
    turns = np.linalg.eigvalsh(1j * dx)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-10)
    turned = (field.matrix @ other.matrix - other.matrix @ field.matrix).round(12)
    if turned.any():
        bracket = dense(space.derived_action(KillingField(turned)))
        np.testing.assert_allclose(dx @ dy - dy @ dx, bracket, atol=1e-9)


# -- spectra and eigenfunctions against enumeration, tables and scipy's functions --------------------------------------


def kernel(manifold: Manifold, level: int, x: Array) -> Array:
    """sum_k phi_k(x_i) phi_k(x_j), the same for every basis."""
    values = manifold.eigenfunctions(level).values(x)
    return np.asarray(values @ values.T)


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


# -- distances, normals, refusals --------------------------------------------------------------------------------------


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


# -- invariant and equivariant functions of an eigenspace: averaged characters, null spaces, gaps ----------------------


THIRD, TILT = np.eye(3)[[2, 0, 1]], gr.SpecialOrthogonal(3).word(np.random.default_rng(1)).matrix
FACES, HALF = gr.Generated([CUBE, gr.Translations([[0.5, 0.5, 0], [0, 0.5, 0.5]])]), gr.Translations([[0.5]])


def coefficients(space: Any, group: gr.Group) -> Array:
    return dense(invariant_coefficients(space, group.generators, group.algebra))


CASES: dict[str, tuple[Manifold, gr.Group, Any, int]] = {
    "vectors, cube": (S, CUBE, "vector", 8),
    "turned": (S, gr.Orthogonal([TILT @ a @ TILT.T for a in (THIRD, -np.eye(3))]), None, 7),
    "square of vectors": (S, gr.Cyclic(3), [np.kron(THIRD, THIRD)], 4),
    "crystal": (PeriodicBox([0] * 3, [1] * 3), FACES, "vector", 9),
    "interval": (Interval([-1] * 3, [1] * 3), CUBE, None, 9),
    "torus": (FlatTorus(2), gr.DirectProduct(gr.Rotations(3), gr.SignFlips(2)), "vector", 7),
    "product": (Product(S, PeriodicBox([0], [1])), gr.DirectProduct(gr.SignFlips(3), HALF), "vector", 7),
    "exchange": (Product(S, S), gr.Exchange(3), None, 5),
    "exchanged and turned": (Product(C, C), gr.Orthogonal([np.kron([[0, 1], [1, 0]], TURN)]), None, 6),
}


@pytest.mark.parametrize("name", CASES)
def test_dimensions_are_averaged_characters_and_generators_act_as_documented(name: str) -> None:
    """r = mean over g of tr D(g) tr rho(g), and f(g x) = rho(g) f(x) at points."""
    manifold, group, output, levels = CASES[name]
    representation = gr.Representation.of([np.eye(1)] * len(group.generators) if output is None else output)
    pairs, rng = representation.pairs(group), np.random.default_rng(0)
    isometries = list(zip(group.generators, representation.matrices(group), strict=True))
    x, k, seen = manifold.sample(5, rng), representation.components(group), 0
    for level in range(levels):
        space = manifold.eigenfunctions(level)
        u = dense(equivariant_coefficients(space, pairs, k))
        every = closed([scipy.linalg.block_diag(dense(space.action(g)), rho) for g, rho in isometries])
        count = np.mean([np.trace(e[:-k, :-k]) * np.trace(e[-k:, -k:]) for e in every])
        assert u.shape == (space.size * k, round(count))
        np.testing.assert_allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-12)
        a = u.reshape(space.size, k, -1)
        for g, rho in isometries:
            moved = np.einsum("cm,mkr->ckr", space.values(g(x)), a)
            np.testing.assert_allclose(moved, np.einsum("kl,cm,mlr->ckr", rho, space.values(x), a), atol=1e-11)
        seen += u.shape[1]
        if output is None:
            own = coefficients(space, group)
            np.testing.assert_allclose(own @ own.T, u @ u.T, atol=1e-10)
    assert seen


# fields


@pytest.mark.parametrize(
    ("manifold", "group", "level"),
    [
        (Sphere(6), gr.SpecialOrthogonal(3, 2), 4),
        (Product(S, S), gr.SpecialOrthogonal(3, 2), 5),
        (FlatTorus(3), gr.LieGroup(gr.PhaseRotations([1, 1, 0]).algebra, [np.eye(6)[[2, 3, 0, 1, 4, 5]]]), 3),
    ],
    ids=repr,
)
def test_fields_and_isometries_together(manifold: Manifold, group: gr.Group, level: int) -> None:
    """The null space of all actions stacked, as scipy has it."""
    space = manifold.eigenfunctions(level)
    stack = [dense(space.action(g)) - np.eye(space.size) for g in group.generators]
    null = scipy.linalg.null_space(np.vstack([*stack, *(dense(space.derived_action(x)) for x in group.algebra)]))
    assert 0 < null.shape[1] < space.size
    found = coefficients(space, group)
    np.testing.assert_allclose(found @ found.T, null @ null.T, atol=1e-10)


# gaps


def test_a_gap_is_demanded() -> None:
    def turns(*angles: float) -> Array:
        return scipy.linalg.expm(np.kron(np.diag(angles), TURN))

    assert invariants.null_space([turns(1e-4)]).shape == (2, 0)
    assert invariants.null_space([np.eye(2)]).shape == (2, 2)
    with pytest.raises(ValueError, match="gap"):
        invariants.null_space([turns(1e-8, 1e-7, 1e-6, 1e-5)])
    with pytest.raises(ValueError, match=r"0\.2"):
        invariants.null_space([], [0.2 * TURN])
