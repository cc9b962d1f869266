"""Harmonics as a basis, and the invariant ones: sums, derivatives, states, and exact invariance for any group."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.errors import SmoothnessError
from daskspectral.forms import functional, gram, inner, partial, tangential_dirichlet
from daskspectral.groups import (
    Automorphisms,
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
from daskspectral.manifolds import SO3, Circle, FlatTorus, Implicit, Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.testing import check_basis
from tests.common import copied

Array = NDArray[Any]
CUBE = Generated([Permutations(3), SignFlips(3)])
CUBIC = [np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), np.eye(3)[[1, 2, 0]]]

PAIRS: dict[str, tuple[Manifold, Group, int]] = {
    "circle, rotations": (Circle(), Rotations(12), 101),
    "sphere, permutations": (Sphere(3), Permutations(3), 1681),
    "sphere, cube": (Sphere(3), CUBE, 400),
    "sphere, pentagon": (Sphere(3), Rotations(5, 3, plane=(0, 2)), 256),
    "sphere, irrational turn": (
        Sphere(3),
        Orthogonal([[[np.cos(1), -np.sin(1), 0], [np.sin(1), np.cos(1), 0], [0, 0, 1]]]),
        100,
    ),
    "sphere in 5, permutations": (Sphere(5), Permutations(5), 500),
    "sphere in 10, cyclic": (Sphere(10), Cyclic(10), 300),
    "sphere in 10, permutations": (Sphere(10), Permutations(10), 300),
    "torus, rotations": (FlatTorus(2), Rotations(3, 4, plane=(2, 3)), 200),
    "box, sign flips": (PeriodicBox([-1] * 10, [1] * 10), SignFlips(10), 1161),
    "box, everything": (
        PeriodicBox([-1] * 4, [1] * 4),
        Generated([SignFlips(4), Permutations(4), Translations([[2 / 3] * 4])]),
        2000,
    ),
    "box, a screw": (
        PeriodicBox([0] * 3, [1] * 3),
        Generated([Isometry([[0, -1, 0], [1, 0, 0], [0, 0, 1]], [0, 0.5, 0.25])]),
        500,
    ),
    "box, automorphism": (PeriodicBox([0, 0], [2, 2]), Automorphisms([[[0, 1], [-1, 0]]]), 60),
    "uneven box": (PeriodicBox([0, 0, 0], [1, 1, 2]), Product(Permutations(2), SignFlips(1)), 200),
    "rotations, conjugation": (SO3(), Orthogonal([np.kron(a, a) for a in CUBIC]), 165),
    "rotations, left": (SO3(), Orthogonal([np.kron(a, np.eye(3)) for a in CUBIC]), 455),
    "product": (ProductManifold(Sphere(3), Circle()), Product(Cyclic(3), Rotations(4)), 300),
    "product, tied": (
        ProductManifold(Sphere(3), PeriodicBox([0], [1])),
        Generated([Isometry(np.diag([-1.0, 1, 1, 1]), [0, 0, 0, 0.5])]),
        120,
    ),
}
_BASES: dict[str, InvariantBasis] = {}


def basis_of(name: str) -> InvariantBasis:
    if name not in _BASES:
        manifold, group, count = PAIRS[name]
        _BASES[name] = InvariantBasis(HarmonicBasis(manifold, count), group)
    return _BASES[name]


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 60))
def test_invariance_is_exact(name: str, seed: int, length: int) -> None:
    basis, rng = basis_of(name), np.random.default_rng(seed)
    manifold, group, _ = PAIRS[name]
    assert basis.size >= 2
    f = rng.standard_normal(basis.size)
    x = manifold.sample(30, rng)
    here, there = f @ basis.values(x), f @ basis.values(group.word(rng, length)(x))
    assert np.abs(there - here).max() <= 1e-10 * np.abs(here).max()


@pytest.mark.parametrize("name", PAIRS)
def test_invariant_functions_are_those_of_the_projection(name: str) -> None:
    basis, rng = basis_of(name), np.random.default_rng(0)
    harmonic = basis.harmonic
    x = harmonic.manifold.sample(12, rng)
    u = basis.coefficients
    np.testing.assert_allclose((u.T @ u).toarray(), np.eye(basis.size), atol=1e-12)
    values = harmonic.values(x)
    np.testing.assert_allclose(basis.values(x), u.T @ values, atol=1e-11 * np.sqrt(harmonic.size))
    f = rng.standard_normal((harmonic.size, 2))
    projected = basis.project(f)
    np.testing.assert_allclose(basis.project(projected), projected, atol=1e-12)
    np.testing.assert_array_equal(basis.project(f[:, 0]), projected[:, 0])
    np.testing.assert_array_equal(np.unique(basis.eigenvalues), np.unique(harmonic.eigenvalues[u.sum(axis=1) != 0]))
    for level, (rows, columns) in enumerate(zip(harmonic.slices, basis.slices, strict=True)):
        assert (harmonic.cumulative[rows] == rows.stop).all()
        assert (basis.cumulative[columns] == rows.stop).all()
        assert (basis.eigenvalues[columns] == harmonic.levels[level].eigenvalue).all()


@pytest.mark.parametrize(
    "manifold",
    [
        Sphere(3),
        Sphere(6),
        Circle(),
        FlatTorus(2),
        PeriodicBox([0, 0], [1, 2]),
        SO3(),
        ProductManifold(Sphere(3), Circle()),
    ],
    ids=repr,
)
def test_harmonics_pass_the_checks_of_a_basis(manifold: Manifold) -> None:
    x = manifold.sample(30, np.random.default_rng(0))
    check_basis(HarmonicBasis(manifold, 30, tolerance=np.inf), x)


@pytest.mark.parametrize("name", ["sphere, cube", "box, everything", "rotations, conjugation", "product"])
def test_invariant_functions_pass_the_checks_of_a_basis(name: str) -> None:
    manifold, group, _ = PAIRS[name]
    x = manifold.sample(30, np.random.default_rng(0))
    check_basis(InvariantBasis(HarmonicBasis(manifold, 100, tolerance=np.inf), group), x)


def test_sums_on_the_sphere_are_closed_forms() -> None:
    """With the weights of a quadrature that is exact: Gram I, tangential Dirichlet form diag(l (l + 1)), moments."""
    z, w = np.polynomial.legendre.leggauss(12)
    phi = np.arange(24) * np.pi / 12
    radius = np.sqrt(1 - z * z)
    grid = [np.outer(radius, np.cos(phi)), np.outer(radius, np.sin(phi)), np.outer(z, np.ones(24))]
    x = np.stack(grid, axis=-1).reshape(-1, 3)
    batch = {"x": x, "weight": np.repeat(w, 24) / 48, "y": 3.0 + x[:, 0] * x[:, 1] * x[:, 2]}
    harmonic = HarmonicBasis(Sphere(3), 121)
    operator = Laplacian(Sphere(3))
    forms = {"gram": gram, "normals": tangential_dirichlet(normals=1), "ambient": dsp.form(_dirichlet)}
    coefficients = functional(lambda f, x: inner(f, x.y))
    for basis in (harmonic, InvariantBasis(harmonic, CUBE)):
        sums = Measure(basis, basis, forms, {"y": coefficients}, operator, rows=100)([batch])
        np.testing.assert_allclose(sums["gram"], np.eye(basis.size), atol=1e-12)
        np.testing.assert_allclose(sums["normals"], np.diag(basis.eigenvalues), atol=1e-10)
        np.testing.assert_allclose(sums["ambient"], np.diag(basis.eigenvalues), atol=1e-10)
        assert sums["y"][0] == pytest.approx(3, abs=1e-12)
        for rows, value in zip(basis.slices, [3.0, 0, 0, 1 / np.sqrt(105), *[0] * 7], strict=True):
            found = np.linalg.norm(sums["y"][rows])  # E[(x y z)^2] = 1 / 105, a harmonic of degree 3
            odd = basis is not harmonic and value < 1
            assert found == pytest.approx(0 if odd else value, abs=1e-12)


def _dirichlet(f: Any, g: Any, x: Any) -> Any:
    return inner(dsp.grad(f), dsp.grad(g))


def test_eigenfunctions_of_a_decomposition_are_invariant(tmp_path: Path) -> None:
    manifold = dsp.manifolds.Sphere(3)
    group = dsp.groups.Generated([dsp.groups.Permutations(3), dsp.groups.SignFlips(3)])
    basis = dsp.basis.InvariantBasis(dsp.basis.HarmonicBasis(manifold, 169), group)
    rng = np.random.default_rng(0)
    x = manifold.sample(25_000, rng)
    x = x[x[:, 2] > 0]  # not invariant itself; up to the group it is uniform
    estimator = dsp.SpectralDecomposition(dsp.operators.Laplacian(manifold), basis=basis, n_components=5).fit(x)
    assert estimator.rank_ == basis.size == 7
    assert estimator.eigenvalues_[0] == 0
    np.testing.assert_allclose(estimator.eigenvalues_, [0, 20, 42, 72, 110], rtol=0.03)
    f = estimator.transform(x[:500])
    for length in (1, 5, 50):
        moved = estimator.transform(group.word(rng, length)(x[:500]))
        assert np.abs(moved - f).max() <= 1e-10 * np.abs(f).max()
    dsp.save(estimator, tmp_path / "model.zarr")
    again = dsp.load(tmp_path / "model.zarr")
    np.testing.assert_array_equal(again.transform(x[:500]), f)
    assert repr(again.basis_) == repr(basis)
    with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\) to within 1e-05, received row 1"):
        estimator.transform(x[:3] * [[1], [1.2], [1]])


@pytest.mark.parametrize("name", PAIRS)
def test_states_and_pickles(name: str) -> None:
    manifold, group, _ = PAIRS[name]
    harmonic = HarmonicBasis(manifold, 40, tolerance=1e-3)
    basis = InvariantBasis(harmonic, group)
    x = manifold.sample(5, np.random.default_rng(0))
    for each in (harmonic, basis):
        for copy in (copied(each), pickle.loads(pickle.dumps(each))):
            np.testing.assert_array_equal(copy.values(x), each.values(x))
            assert repr(copy) == repr(each)
    again = copied(basis)
    assert isinstance(again, InvariantBasis)
    assert again.harmonic.tolerance == 1e-3
    for u, v in zip(again.vectors, basis.vectors, strict=True):
        assert u.shape == v.shape
        assert not u.shape[1] or isinstance(u, csr_array) == isinstance(v, csr_array)


def test_levels_are_whole() -> None:
    assert [HarmonicBasis(Sphere(3), n).size for n in (1, 3, 4, 8, 9)] == [1, 1, 4, 4, 9]
    basis = HarmonicBasis(Sphere(4), 20)
    assert basis.eigenvalues.tolist() == [0] + [3] * 4 + [8] * 9
    assert basis.cumulative.tolist() == [1] + [5] * 4 + [14] * 9


def test_bad_arguments() -> None:
    with pytest.raises(TypeError, match=r"HarmonicBasis takes a manifold"):
        HarmonicBasis(3, 4)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"whole number of 1 or more; it is 0"):
        HarmonicBasis(Sphere(3), 0)
    with pytest.raises(ValueError, match=r"tolerance, .* is a positive number; it is 0"):
        HarmonicBasis(Sphere(3), 4, tolerance=0)
    with pytest.raises(ValueError, match=r"not known in closed form"):
        HarmonicBasis(Implicit(lambda x: x, 3), 4)
    with pytest.raises(ValueError, match=r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4"):
        InvariantBasis(HarmonicBasis(Sphere(3), 4), Permutations(4))
    with pytest.raises(TypeError, match=r"a HarmonicBasis and a group"):
        InvariantBasis(Sphere(3), Permutations(3))  # type: ignore[arg-type]
    basis = InvariantBasis(HarmonicBasis(Sphere(3), 9), Permutations(3))
    with pytest.raises(ValueError, match=r"coefficients of the 9 harmonics, received shape \(8,\)"):
        basis.project(np.ones(8))
    x = Sphere(3).sample(4, np.random.default_rng(0))
    second = dsp.form(lambda f, g, x: inner(partial(f, 1, 1, 0), g))
    with pytest.raises(SmoothnessError, match=r"derivatives of order 2 of the 9 eigenfunctions of Sphere"):
        Measure(basis.harmonic, basis.harmonic, {"form": second})([{"x": x}])
    with pytest.raises(SmoothnessError, match=r"harmonics have first derivatives at most"):
        basis.check_order(2, "it")
