"""Eigenspaces: against scipy's harmonics, closed forms, exact quadrature and brute enumeration; the action D(g)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import eval_gegenbauer, sph_harm_y

from daskspectral.manifolds import (
    SO3,
    Circle,
    FlatTorus,
    Implicit,
    Isometry,
    Manifold,
    PeriodicBox,
    PeriodicCell,
    Product,
    Sphere,
)
from daskspectral.manifolds.eigenspace import dense
from daskspectral.registry import decode, encode

Array = NDArray[Any]
Draw = Callable[[np.random.Generator], Isometry]


def rotation(n: int, rng: np.random.Generator) -> Array:
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    q[:, 0] *= np.linalg.det(q)
    return q


def signed(m: int, rng: np.random.Generator) -> Array:
    return np.eye(m)[rng.permutation(m)] * rng.choice([-1.0, 1.0], m)


def torus_isometry(m: int, rng: np.random.Generator) -> Isometry:
    pattern, matrix = signed(m, rng), np.zeros((2 * m, 2 * m))
    for i, j in zip(*np.nonzero(pattern), strict=True):
        c, s = np.cos(b := rng.uniform(0, 7)), np.sin(b)
        turn = np.array([[c, -s], [s, c]]) @ np.diag([1, pattern[i, j]])
        matrix[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = turn
    return Isometry(matrix)


def sixth(rng: np.random.Generator) -> Array:
    """A rotation by a multiple of 60 degrees, or a reflection at an axis of the hexagon."""
    c, s = np.cos(a := np.pi / 3 * rng.integers(6)), np.sin(a)
    return np.array([[c, -s], [s, c]]) @ np.diag([1, rng.choice([-1, 1])])


CASES: dict[str, tuple[Manifold, Draw, int]] = {
    "circle": (Circle(), lambda rng: Isometry(rotation(2, rng) @ np.diag([1, rng.choice([-1, 1])])), 30),
    "sphere 3": (Sphere(3), lambda rng: Isometry(rotation(3, rng) * rng.choice([-1, 1])), 12),
    "sphere 6": (Sphere(6), lambda rng: Isometry(rotation(6, rng)), 4),
    "torus": (FlatTorus(3), lambda rng: torus_isometry(3, rng), 8),
    "box": (PeriodicBox([-1] * 4, [1] * 4), lambda rng: Isometry(signed(4, rng), rng.uniform(-1, 1, 4)), 6),
    "uneven box": (
        PeriodicBox([0, 0, 1], [1, 2, 2]),
        lambda rng: Isometry(np.diag([1, -1, -1]), rng.normal(size=3)),
        9,
    ),
    "fcc cell": (PeriodicCell.fcc(1.5), lambda rng: Isometry(signed(3, rng), rng.normal(size=3)), 7),
    "hexagonal cell": (
        PeriodicCell.hexagonal(0.7, 2.0),
        lambda rng: Isometry(scipy.linalg.block_diag(sixth(rng), [[rng.choice([-1, 1])]]), rng.normal(size=3)),
        9,
    ),
    "rotations": (SO3(), lambda rng: Isometry(np.kron(rotation(3, rng), rotation(3, rng))), 4),
    "sphere and circle": (
        Product(Sphere(3), Circle()),
        lambda rng: Isometry(scipy.linalg.block_diag(rotation(3, rng), rotation(2, rng))),
        9,
    ),
    "box and rotations": (
        Product(PeriodicBox([0], [1]), SO3()),
        lambda rng: Isometry(
            scipy.linalg.block_diag([[-1]], np.kron(rotation(3, rng), rotation(3, rng))),
            [rng.uniform(), *np.zeros(9)],
        ),
        6,
    ),
}
cases = pytest.mark.parametrize("name", CASES)


def sphere_quadrature(n: int) -> tuple[Array, Array]:
    """Nodes (2 n^2, 3) and weights of total 1 on S^2, exact for polynomials of degree 2 n - 1."""
    z, weight = np.polynomial.legendre.leggauss(n)
    phi = np.arange(2 * n) * np.pi / n
    radius = np.sqrt(1 - z * z)
    x = np.stack([np.outer(radius, np.cos(phi)), np.outer(radius, np.sin(phi)), np.outer(z, np.ones(2 * n))], axis=-1)
    return x.reshape(-1, 3), np.repeat(weight, 2 * n) / (4 * n)


def rotation_quadrature(n: int) -> tuple[Array, Array]:
    """Rotations R_z(a) R_y(b) R_z(c) as (N, 9), and weights, exact for harmonics of degree l < n."""
    z, weight = np.polynomial.legendre.leggauss(n)
    angles = np.arange(2 * n) * np.pi / n
    nodes, weights = [], []
    for a, (cos_b, w), c in itertools.product(angles, zip(z, weight, strict=True), angles):
        turns = [np.array([[np.cos(t), -np.sin(t), 0], [np.sin(t), np.cos(t), 0], [0, 0, 1]]) for t in (a, c)]
        sin_b = np.sqrt(1 - cos_b**2)
        tilt = np.array([[cos_b, 0, sin_b], [0, 1, 0], [-sin_b, 0, cos_b]])
        nodes.append((turns[0] @ tilt @ turns[1]).reshape(9))
        weights.append(w / (8 * n * n))
    return np.array(nodes), np.array(weights)


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 20, 40])
def test_sphere_spans_scipy_harmonics(degree: int) -> None:
    x = Sphere(3).sample(300, np.random.default_rng(degree))
    theta, phi = np.arccos(x[:, 2]), np.arctan2(x[:, 1], x[:, 0])
    complex_ = np.array([sph_harm_y(degree, m, theta, phi) for m in range(-degree, degree + 1)]).T
    complex_ *= np.sqrt(4 * np.pi)
    found = Sphere(3).eigenfunctions(degree).values(x)
    np.testing.assert_allclose(found @ found.T, (complex_ @ complex_.conj().T).real, atol=1e-10 * (2 * degree + 1))
    change = np.linalg.lstsq(complex_, found.astype(complex), rcond=None)[0]
    np.testing.assert_allclose(complex_ @ change, found, atol=1e-10)
    np.testing.assert_allclose(change.conj().T @ change, np.eye(2 * degree + 1), atol=1e-10)


@pytest.mark.parametrize(("d", "degree"), [(4, 12), (5, 9), (10, 3), (30, 2)])
def test_addition_theorem_by_gegenbauer_polynomials(d: int, degree: int) -> None:
    x = Sphere(d).sample(60, np.random.default_rng(0))
    for level in range(degree + 1):
        a, n = (d - 2) / 2, Sphere(d).multiplicity(level)
        expected = n * eval_gegenbauer(level, a, x @ x.T) / eval_gegenbauer(level, a, 1.0)
        found = Sphere(d).eigenfunctions(level).values(x)
        assert found.shape == (60, n)
        np.testing.assert_allclose(found @ found.T / n, expected / n, atol=1e-10)


def test_circle_at_a_high_degree() -> None:
    t = np.linspace(0, 6, 50)
    found = Circle().eigenfunctions(1000).values(np.stack([np.cos(t), np.sin(t)], axis=1))
    expected = np.sqrt(2) * np.stack([np.cos(1000 * t), np.sin(1000 * t)], axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-11)


def test_rotations_are_orthonormal_by_quadrature() -> None:
    x, weight = rotation_quadrature(5)
    values = np.hstack([SO3().eigenfunctions(level).values(x) for level in range(5)])
    assert values.shape[1] == 1 + 9 + 25 + 49 + 81
    np.testing.assert_allclose(values.T @ (weight[:, None] * values), np.eye(165), atol=1e-11)


def test_dirichlet_forms_are_the_eigenvalues_by_quadrature() -> None:
    x, weight = sphere_quadrature(14)
    frame = np.linalg.svd(x[:, None])[2][:, 1:]  # two tangents at each point
    for level in range(13):
        space = Sphere(3).eigenfunctions(level)
        slopes = [space.derivatives(x, frame[:, k]) for k in range(2)]
        form = sum(s.T @ (weight[:, None] * s) for s in slopes)
        np.testing.assert_allclose(form, level * (level + 1) * np.eye(2 * level + 1), atol=1e-10)
    x, weight = rotation_quadrature(4)
    for level in range(4):
        slopes = [SO3().eigenfunctions(level).derivatives(x, t) for t in SO3().tangents(x)]
        form = sum(s.T @ (weight[:, None] * s) for s in slopes)
        np.testing.assert_allclose(form, level * (level + 1) / 2 * np.eye((2 * level + 1) ** 2), atol=1e-11)


@pytest.mark.parametrize(
    ("lower", "upper"), [([0.0, 0.0], [1.0, 1.0]), ([-1, 0, 2], [1, 1, 5]), ([0, 1], [1, 1 + np.sqrt(2)])]
)
def test_box_by_enumeration(lower: list[float], upper: list[float]) -> None:
    box = PeriodicBox(lower, upper)
    x = np.random.default_rng(0).uniform(lower, upper, (7, len(lower)))
    wave = 2 * np.pi / (np.array(upper) - lower)
    grid = np.array(list(itertools.product(range(-9, 10), repeat=len(lower))))
    eigenvalues = np.sum((wave * grid) ** 2, axis=1)
    np.testing.assert_allclose(box.eigenvalues(60), np.sort(eigenvalues)[:60], rtol=1e-12, atol=1e-9)
    for level in range(10):
        space = box.eigenfunctions(level)
        chosen = grid[np.abs(eigenvalues - space.eigenvalue) < 1e-6] * wave
        waves = np.exp(1j * (x @ chosen.T))
        found = space.values(x)
        assert found.shape[1] == len(chosen) == box.multiplicity(level)
        np.testing.assert_allclose(found @ found.T, (waves @ waves.conj().T).real, atol=1e-11)
        np.testing.assert_allclose(space.values(x + np.array(upper) - lower), found, atol=1e-11)


def test_a_box_of_angles_is_the_embedded_torus() -> None:
    t = np.random.default_rng(0).uniform(0, 7, (5, 3))
    x = np.stack([np.cos(t), np.sin(t)], axis=-1).reshape(5, 6)
    box, torus = PeriodicBox([0] * 3, [2 * np.pi] * 3), FlatTorus(3)
    for level in range(8):
        assert box.eigenvalue(level) == pytest.approx(torus.eigenvalue(level), abs=1e-12)
        found = box.eigenfunctions(level).values(t)
        np.testing.assert_allclose(found, torus.eigenfunctions(level).values(x), atol=1e-12)


def test_product_by_enumeration() -> None:
    manifold = Product(Sphere(3), Product(Circle(), FlatTorus(1)))
    sums = sorted(
        (i * (i + 1) + j * j + k * k, (2 * i + 1) * (2 if j else 1) * (2 if k else 1))
        for i, j, k in itertools.product(range(9), repeat=3)
    )
    levels = [(value, sum(m for _, m in group)) for value, group in itertools.groupby(sums, key=lambda s: s[0])]
    assert [(manifold.eigenvalue(n), manifold.multiplicity(n)) for n in range(15)] == levels[:15]
    rng = np.random.default_rng(0)
    x = manifold.sample(6, rng)
    parts = x[:, :3], x[:, 3:5], x[:, 5:]
    space = manifold.eigenfunctions(6)
    kernel = np.zeros((6, 6))
    for i, j, k in itertools.product(range(4), repeat=3):
        if i * (i + 1) + j * j + k * k == space.eigenvalue:
            factors = zip([Sphere(3), Circle(), Circle()], (i, j, k), parts, strict=True)
            values = [factor.eigenfunctions(n).values(part) for factor, n, part in factors]
            kernel += np.prod([v @ v.T for v in values], axis=0)
    found = space.values(x)
    np.testing.assert_allclose(found @ found.T, kernel, atol=1e-11)


@cases
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_isometries_act_by_orthogonal_matrices(name: str, seed: int) -> None:
    manifold, draw, levels = CASES[name]
    rng = np.random.default_rng(seed)
    g, h, x = draw(rng), draw(rng), manifold.sample(9, rng)
    manifold.check_isometry(g)
    space = manifold.eigenfunctions(int(rng.integers(levels)))
    dg, dh = dense(space.action(g)), dense(space.action(h))
    scale = np.sqrt(space.size)
    np.testing.assert_allclose(dg @ dg.T, np.eye(space.size), atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g @ h)), dg @ dh, atol=1e-11)
    np.testing.assert_allclose(dense(space.action(g.inverse)), dg.T, atol=1e-11)
    np.testing.assert_allclose(space.values(g(x)), space.values(x) @ dg.T, atol=1e-11 * scale)


@pytest.mark.parametrize("degree", [1, 10, 25, 40])
def test_action_at_high_degrees(degree: int) -> None:
    rng = np.random.default_rng(degree)
    g, h = Isometry(rotation(3, rng)), Isometry(-rotation(3, rng))
    space = Sphere(3).eigenfunctions(degree)
    dg, dh = dense(space.action(g)), dense(space.action(h))
    assert np.abs(dg @ dg.T - np.eye(space.size)).max() < 1e-9
    assert np.abs(dense(space.action(g @ h)) - dg @ dh).max() < 1e-9
    angle = np.arccos((np.trace(g.matrix) - 1) / 2)
    assert np.trace(dg) == pytest.approx(np.sin((degree + 0.5) * angle) / np.sin(angle / 2), abs=1e-9)


@cases
def test_derivatives_by_finite_differences(name: str) -> None:
    manifold, _, levels = CASES[name]
    rng = np.random.default_rng(0)
    x = manifold.sample(6, rng)
    v, step = rng.standard_normal(x.shape), 1e-5
    for level in range(min(levels, 5)):
        space = manifold.eigenfunctions(level)
        expected = (space.values(x + step * v) - space.values(x - step * v)) / (2 * step)
        np.testing.assert_allclose(space.derivatives(x, v), expected, atol=1e-5 * (1 + space.eigenvalue))


@cases
def test_saved_points_make_the_same_functions(name: str) -> None:
    manifold, _, levels = CASES[name]
    again = decode(encode(manifold), Manifold)
    assert again == manifold
    x = manifold.sample(4, np.random.default_rng(0))
    for level in range(min(levels, 5)):
        space = manifold.eigenfunctions(level)
        found = again.eigenfunctions(level, space.points())
        np.testing.assert_array_equal(found.values(x), space.values(x))
        if space.points():  # other points: other functions of the same space
            moved = tuple(p[::-1].copy() for p in space.points())
            other = manifold.eigenfunctions(level, moved).values(x)
            np.testing.assert_allclose(other @ other.T, found.values(x) @ found.values(x).T, atol=1e-10)


def test_whole_levels_round_down() -> None:
    assert [Sphere(3).levels_within(n) for n in (0, 1, 3, 4, 8, 9, 15)] == [0, 1, 1, 2, 2, 3, 3]
    assert PeriodicBox([-1] * 10, [1] * 10).levels_within(1 + 20 + 180 + 960) == 4
    assert Sphere(20).levels_within(1750) == 4


def test_rotations_are_a_manifold_in_nine_dimensions() -> None:
    rng = np.random.default_rng(0)
    x = SO3().sample(50, rng)
    normals, tangents = SO3().normals(x), SO3().tangents(x)
    frame = np.concatenate([normals, tangents])
    assert (len(normals), len(tangents)) == (6, 3)
    np.testing.assert_allclose(
        np.einsum("acd,bcd->cab", frame, frame), np.broadcast_to(np.eye(9), (50, 9, 9)), atol=1e-12
    )
    w = rng.standard_normal(3)
    skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    curve = [(x.reshape(-1, 3, 3) @ scipy.linalg.expm(t * skew)).reshape(-1, 9) for t in (-1e-4, 1e-4)]
    velocity = (curve[1] - curve[0]) / 2e-4
    np.testing.assert_allclose(np.einsum("acd,cd->ac", normals, velocity), 0, atol=1e-7)
    SO3().check(x)
    reflected = x.copy()
    reflected[3, :3] *= -1
    with pytest.raises(ValueError, match=r"row 3 at distance 2;"):
        SO3().check(reflected)
    np.testing.assert_allclose(SO3().distance(1.1 * x), 0.1 * np.sqrt(3), rtol=1e-9)


def test_points_off_a_manifold_are_told_by_how_much() -> None:
    manifold = Product(Sphere(3), PeriodicBox([0], [1]))
    x = manifold.sample(5, np.random.default_rng(0))
    manifold.check(x)
    x[2, :3] *= 1.25
    with pytest.raises(ValueError, match=r"row 2 at distance 0\.25; project"):
        manifold.check(x)
    x[4, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 4 at distance nan"):
        manifold.check(x)
    with pytest.raises(ValueError, match=r"expected points \(c, 3\), received shape \(2, 4\)"):
        Sphere(3).eigenfunctions(1).values(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"received the origin in row 1"):
        Sphere(3).eigenfunctions(1).values(np.array([[0, 0, 1.0], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("manifold", "g", "reason"),
    [
        (Sphere(3), Isometry(np.diag([1, 2, 1])), r"not orthogonal: A A\^T differs from the identity by 3"),
        (Sphere(3), Isometry(np.eye(3), [0, 0, 1]), r"it shifts the coordinates"),
        (Sphere(3), Isometry(np.eye(4)), r"has 3 coordinates, and the group acts on 4"),
        (FlatTorus(2), Isometry(np.eye(4)[[1, 2, 3, 0]]), r"it moves points off the manifold, by"),
        (SO3(), Isometry(np.eye(9)[[1, 0, *range(2, 9)]]), r"it moves points off the manifold, by"),
        (SO3(), Isometry(-np.eye(9)), r"it moves points off the manifold, by"),
        (PeriodicBox([0, 0], [1, 1]), Isometry([[0.6, 0.8], [-0.8, 0.6]]), r"not a signed permutation"),
        (PeriodicBox([0, 0], [1, 2]), Isometry([[0, 1], [1, 0]]), r"takes side 1, of length 2, to side 0, of length 1"),
        (PeriodicBox([0, 0], [1, 1]), Isometry([[1, 1], [0, 1]]), r"not orthogonal"),
        (
            Product(Circle(), Circle()),
            Isometry(np.eye(4)[[0, 2, 1, 3]]),
            r"it mixes coordinates of factors, 2, 2 c",
        ),
        (
            Product(Circle(), FlatTorus(1)),
            Isometry(np.eye(4)[[2, 3, 0, 1]]),
            r"takes factor 1, FlatTorus\(m=1\), to",
        ),
        (Product(Circle(), Sphere(3)), Isometry(np.eye(5)[[3, 4, 0, 1, 2]]), r"it mixes coordinates of factors, 2, 3"),
        (Product(Circle(), Circle()), Isometry(np.diag([1, 1, 1, 3])), r"expected an isometry of Circle\(\)"),
        (Implicit(lambda x: x, 3), Isometry(np.eye(3)), r"known by its normals"),
    ],
    ids=repr,
)
def test_other_maps_are_refused(manifold: Manifold, g: Isometry, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        manifold.check_isometry(g)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"bounds lower < upper"):
        PeriodicBox([0, 1], [1, 1])
    with pytest.raises(ValueError, match=r"as many lower as upper"):
        PeriodicBox([0, 1], [1])
    with pytest.raises(TypeError, match=r"expected two manifolds"):
        Product(Sphere(3), 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"not known in closed form"):
        Implicit(lambda x: x, 3).eigenfunctions(0)
    with pytest.raises(ValueError, match=r"square matrix"):
        Isometry(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"shift of shape \(2,\)"):
        Isometry(np.eye(2), [1, 2, 3])
    with pytest.raises(ValueError, match=r"finite entries"):
        Isometry([[np.nan]])
    with pytest.raises(ValueError, match=r"of 2 and of 3 coordinates do not compose"):
        Isometry(np.eye(2)) @ Isometry(np.eye(3))
