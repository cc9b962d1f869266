"""Manifolds: orthonormal and complete frames, exact spectra by enumeration, uniform samples, clear errors."""

from __future__ import annotations

import pickle
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from daskspectral.manifolds import Circle, FlatTorus, Implicit, Manifold, Sphere

Array = NDArray[Any]

KNOWN = [Circle(), Sphere(3), Sphere(4), Sphere(9), FlatTorus(1), FlatTorus(2), FlatTorus(5)]
known = pytest.mark.parametrize("manifold", KNOWN, ids=repr)


def radial(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def project(manifold: Manifold, x: Array) -> Array:
    if isinstance(manifold, FlatTorus):
        return radial(x.reshape(-1, 2)).reshape(x.shape)
    return radial(x)


def ellipsoid(x: Array) -> Array:
    return radial(x * np.arange(1, 4))


def clifford(x: Array) -> Array:
    """The normals of the torus |x_1 + i x_2| = |x_3 + i x_4| = 1."""
    first, second = x.copy(), x.copy()
    first[:, 2:], second[:, :2] = 0, 0
    return np.stack([radial(first), radial(second)])


def test_dimensions() -> None:
    assert [(m.ambient, m.dimension, m.codimension) for m in (Sphere(4), FlatTorus(3))] == [
        (4, 3, 1),
        (6, 3, 3),
    ]
    implicit = Implicit(clifford, 4, codimension=2)
    assert (implicit.ambient, implicit.dimension, implicit.codimension) == (4, 2, 2)


@known
@settings(max_examples=20, deadline=None)
@given(c=st.integers(0, 7), seed=st.integers(0, 1000))
def test_frames_are_orthonormal_and_complete(manifold: Manifold, c: int, seed: int) -> None:
    x = manifold.sample(c, np.random.default_rng(seed))
    normals, tangents = manifold.normals(x), manifold.tangents(x)
    assert normals.shape == (manifold.codimension, c, manifold.ambient)
    frame = normals
    if tangents is None:
        assert isinstance(manifold, Sphere)
        assert manifold.d > 2
    else:
        assert tangents.shape == (manifold.dimension, c, manifold.ambient)
        frame = np.concatenate([normals, tangents])
        projectors = np.einsum("acd,ace->cde", frame, frame)
        assert np.abs(projectors - np.eye(manifold.ambient)).max(initial=0) < 1e-14
    products = np.einsum("acd,bcd->cab", frame, frame)
    assert np.abs(products - np.eye(len(frame))).max(initial=0) < 1e-14


@known
def test_normals_are_orthogonal_to_curves_in_the_manifold(manifold: Manifold) -> None:
    rng = np.random.default_rng(0)
    x = manifold.sample(40, rng)
    step = 1e-5 * rng.standard_normal(x.shape)
    velocity = (project(manifold, x + step) - project(manifold, x - step)) / 2e-5
    assert np.abs(np.einsum("acd,cd->ac", manifold.normals(x), velocity)).max() < 1e-7
    assert np.abs(np.linalg.norm(velocity, axis=1)).min() > 1e-3


@known
def test_frames_do_not_depend_on_the_radius_and_keep_the_type(manifold: Manifold) -> None:
    x = manifold.sample(5, np.random.default_rng(0))
    assert manifold.normals(3 * x) == pytest.approx(manifold.normals(x), abs=1e-15)
    single = manifold.normals(x.astype(np.float32))
    assert single.dtype == np.float32
    assert single == pytest.approx(manifold.normals(x), abs=1e-6)


@known
def test_samples_are_uniform(manifold: Manifold) -> None:
    n = 20_000
    x = manifold.sample(n, np.random.default_rng(0))
    manifold.check(x, tolerance=1e-14)
    blocks = manifold.dimension if isinstance(manifold, FlatTorus) else 1
    variance = blocks / manifold.ambient
    assert np.abs(x.mean(axis=0)).max() < 5 * np.sqrt(variance / n)
    assert np.abs(x.T @ x / n - variance * np.eye(manifold.ambient)).max() < 5 / np.sqrt(n)
    assert np.array_equal(x, manifold.sample(n, np.random.default_rng(0)))


@pytest.mark.parametrize("d", range(2, 12))
def test_sphere_multiplicities_count_harmonic_polynomials(d: int) -> None:
    sphere = Sphere(d)
    for level in range(12):
        below = comb(d + level - 3, level - 2) if level > 1 else 0
        assert sphere.multiplicity(level) == comb(d + level - 1, level) - below
        assert sphere.eigenvalue(level) == level * (level + d - 2)


def test_sphere_multiplicities_are_exact_integers() -> None:
    assert Sphere(400).multiplicity(300) == comb(699, 300) - comb(697, 298)
    assert Sphere(3).multiplicity(10**6) == 2 * 10**6 + 1


@pytest.mark.parametrize(("m", "radius"), [(1, 12), (2, 9), (3, 7), (4, 5), (5, 3)])
def test_torus_spectrum_by_enumeration(m: int, radius: int) -> None:
    squares = np.array([sum(i * i for i in k) for k in product(range(-radius, radius + 1), repeat=m)])
    values, counts = np.unique(squares[squares <= radius**2], return_counts=True)
    torus = FlatTorus(m)
    assert [torus.eigenvalue(level) for level in range(len(values))] == values.tolist()
    assert [torus.multiplicity(level) for level in range(len(values))] == counts.tolist()
    assert np.array_equal(torus.eigenvalues(counts.sum()), np.sort(squares[squares <= radius**2]))


def test_torus_multiplicities_are_exact_integers() -> None:
    assert FlatTorus(4).multiplicity(1000) == 8 * sum(d for d in range(1, 1001) if 1000 % d == 0 and d % 4)  # Jacobi
    assert FlatTorus(100).multiplicity(20) == sum(  # 20 as j fours and 20 - 4 j ones, or with nines or a sixteen
        comb(100, n) * comb(100 - n, f) * comb(100 - n - f, t) * comb(100 - n - f - t, s) * 2 ** (n + f + t + s)
        for n, f, t, s in product(range(21), range(6), range(3), range(2))
        if n + 4 * f + 9 * t + 16 * s == 20
    )


@known
def test_eigenvalues_ascend_with_multiplicity(manifold: Manifold) -> None:
    counts = [manifold.multiplicity(level) for level in range(4)]
    expected = np.repeat([manifold.eigenvalue(level) for level in range(4)], counts)
    for count in (0, 1, 2, len(expected) - 1, len(expected)):
        assert np.array_equal(manifold.eigenvalues(count), expected[:count])
    assert expected[0] == 0
    assert counts[0] == 1


def test_weyl_law() -> None:
    count = 20_000
    assert Sphere(3).eigenvalues(count)[-1] == pytest.approx(count, rel=0.02)
    assert FlatTorus(2).eigenvalues(count)[-1] == pytest.approx(count / np.pi, rel=0.02)


def test_distance() -> None:
    assert Sphere(2).distance(np.array([[3, 4], [0, 0.25], [1, 0]])) == pytest.approx([4, 0.75, 0])
    assert FlatTorus(2).distance([[3, 4, 0, 0], [0, 1, 1, 0]]) == pytest.approx([np.sqrt(17), 0])


@known
def test_check_names_the_worst_row(manifold: Manifold) -> None:
    x = manifold.sample(9, np.random.default_rng(0))
    manifold.check(x)
    manifold.check(x.astype(np.float32))
    manifold.check(x[:0])
    x[2] *= 1.1
    x[7] *= 1.5
    with pytest.raises(ValueError, match="to within 1e-06, received row 7 at distance") as error:
        manifold.check(x)
    assert repr(manifold) in str(error.value)
    assert f"{manifold.distance(x)[7]:.3g};" in str(error.value)
    manifold.check(x, tolerance=2)
    x[4, 0] = np.nan
    with pytest.raises(ValueError, match="row 4 at distance nan"):
        manifold.check(x, tolerance=2)


@pytest.mark.parametrize("method", ["normals", "tangents", "distance", "check"])
def test_points_of_the_wrong_shape_or_type(method: str) -> None:
    for manifold in (*KNOWN, Implicit(radial, 3)):
        with pytest.raises(ValueError, match=rf"expected points \(c, {manifold.ambient}\).*shape \(4, 11\)"):
            getattr(manifold, method)(np.ones((4, 11)))
        with pytest.raises(ValueError, match=r"received shape \(3,\)"):
            getattr(manifold, method)(np.ones(3))
    with pytest.raises(ValueError, match=r"real coordinates.*complex128"):
        getattr(Sphere(3), method)(np.ones((4, 3), dtype=complex))


def test_the_origin_has_no_normal() -> None:
    with pytest.raises(ValueError, match="the origin in row 1"):
        Sphere(2).normals([[1, 0], [0, 0]])
    with pytest.raises(ValueError, match="the origin of circle 1 in row 0"):
        FlatTorus(2).tangents([[1, 0, 0, 0]])


def test_values() -> None:
    assert Circle() == Sphere(2) != Sphere(3)
    assert FlatTorus(1) not in (Circle(), FlatTorus(2))
    assert [repr(m) for m in (Circle(), Sphere(3), FlatTorus(2))] == [
        "Circle()",
        "Sphere(d=3)",
        "FlatTorus(m=2)",
    ]
    assert repr(Implicit(radial, 3)) == "Implicit(radial, ambient=3, codimension=1)"
    assert Implicit(radial, 3) == Implicit(radial, ambient=3, codimension=1) != Implicit(ellipsoid, 3)
    for manifold in (*KNOWN, Implicit(clifford, 4, codimension=2)):
        assert type(manifold)(**manifold.get_params(deep=False)) == manifold
        assert pickle.loads(pickle.dumps(manifold)) == manifold
        assert len({manifold, pickle.loads(pickle.dumps(manifold))}) == 1
        with pytest.raises(AttributeError):
            manifold.d = 5  # type: ignore[attr-defined]
    assert Sphere(np.int64(3)) == Sphere(3)  # type: ignore[arg-type]
    assert type(Sphere(np.int64(3)).d) is int  # type: ignore[arg-type]


def test_implicit_normals() -> None:
    x = Sphere(3).sample(6, np.random.default_rng(0))
    assert np.array_equal(Implicit(radial, 3).normals(x), radial(x)[None])
    assert np.array_equal(Implicit(lambda x: radial(x)[None], 3).normals(x), radial(x)[None])
    torus = FlatTorus(2).sample(6, np.random.default_rng(0))
    assert Implicit(clifford, 4, codimension=2).normals(torus) == pytest.approx(FlatTorus(2).normals(torus))
    assert Implicit(radial, 3).normals(x[:0]).shape == (1, 0, 3)
    assert Implicit(lambda x: radial(x).astype(np.float16), 3).normals(x).dtype == np.float16
    Implicit(radial, 3).check(5 * x)
    assert Implicit(radial, 3).tangents(x) is None


def test_implicit_knows_no_closed_forms() -> None:
    implicit = Implicit(ellipsoid, 3)
    for call, what in (
        (lambda: implicit.eigenvalue(0), "eigenvalues of"),
        (lambda: implicit.multiplicity(1), "eigenvalues of"),
        (lambda: implicit.eigenvalues(4), "eigenvalues of"),
        (lambda: implicit.distance(np.ones((2, 3))), "distances to"),
        (lambda: implicit.sample(4, np.random.default_rng(0)), "samples of"),
    ):
        with pytest.raises(ValueError, match=rf"{what} Implicit\(ellipsoid, .* not known in closed form"):
            call()


def test_implicit_checks_what_the_function_returns() -> None:
    x = FlatTorus(2).sample(5, np.random.default_rng(0))

    def stretched(x: Array) -> Array:
        n = radial(x)
        n[3] *= 2.5
        return n

    def poisoned(x: Array) -> Array:
        n = radial(x)
        n[1, 2] = np.nan
        return n

    for function, codimension, message in (
        (stretched, 1, "norms from 1 to 2.5, 2.5 in row 3; divide each normal by its norm"),
        (poisoned, 1, r"finite normals.*nan.*row 1"),
        (lambda x: radial(x).T, 1, r"shape \(5, 4\) or \(1, 5, 4\), received \(4, 5\)"),
        (radial, 2, r"shape \(2, 5, 4\), received \(5, 4\)"),
        (lambda x: np.stack([radial(x)] * 2), 2, "normals 0 and 1 with inner product 1 in row"),
    ):
        with pytest.raises(ValueError, match=message):
            Implicit(function, 4, codimension).normals(x)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"d >= 2.*received d=1"):
        Sphere(1)
    with pytest.raises(ValueError, match=r"m >= 1.*received m=0"):
        FlatTorus(0)
    with pytest.raises(ValueError, match="codimension=3, ambient=3"):
        Implicit(radial, 3, codimension=3)
    with pytest.raises(ValueError, match=r"a function normals\(x\), received int"):
        Implicit(3, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level to be an integer of 0 or more, received -1"):
        Sphere(3).eigenvalue(-1)
    with pytest.raises(ValueError, match=r"received 1\.5"):
        Sphere(3).multiplicity(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count"):
        Sphere(3).eigenvalues(-1)
