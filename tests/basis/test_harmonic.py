"""Harmonics, the invariant and the equivariant ones: sums, derivatives, states, and exact invariance for any group."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse import csr_array

from daskspectral import groups as gr
from daskspectral.basis import EquivariantBasis, HarmonicBasis, InvariantBasis
from daskspectral.forms import dirichlet, functional, gram, inner, tangential_dirichlet
from daskspectral.manifolds import Circle, FlatTorus, Manifold, PeriodicBox, Product, Sphere
from daskspectral.moments import Measure
from daskspectral.operators import Laplacian
from daskspectral.operators.regression import Regression
from daskspectral.testing import check_basis
from tests.common import copied

S2 = Sphere(3)
CUBE = gr.Generated([gr.Permutations(3), gr.SignFlips(3)])


def invariant(manifold: Manifold, group: Any, count: int) -> InvariantBasis:
    return InvariantBasis(HarmonicBasis(manifold, count), group)


BUILT = {
    "circle, rotations": invariant(Circle(), gr.Rotations(12), 101),
    "sphere, cube": invariant(S2, CUBE, 400),
    "torus, rotations": invariant(FlatTorus(2), gr.Rotations(3, 4, plane=(2, 3)), 200),
    "box, everything": invariant(
        PeriodicBox([-1] * 4, [1] * 4),
        gr.Generated([gr.SignFlips(4), gr.Permutations(4), gr.Translations([[2 / 3] * 4])]),
        800,
    ),
    "product, tied": invariant(
        Product(S2, PeriodicBox([0], [1])), gr.Generated([gr.Isometry(np.diag([-1.0, 1, 1, 1]), [0, 0, 0, 0.5])]), 120
    ),
}
LARGE = {
    "many permutations": InvariantBasis.within(Sphere(30), gr.Permutations(30), most_invariant=20),
    "with a circle": InvariantBasis.within(
        Product(PeriodicBox([0], [1]), Sphere(8)),
        gr.DirectProduct(gr.SignFlips(1), gr.Permutations(8)),
        most_invariant=60,
    ),
}
"""Functions of eigenspaces that are never built."""
BASES = BUILT | LARGE


@pytest.mark.parametrize("name", BASES)
@settings(max_examples=4)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 60))
def test_invariance_is_exact(name: str, seed: int, length: int) -> None:
    basis, rng = BASES[name], np.random.default_rng(seed)
    assert basis.size >= 2
    f = rng.standard_normal(basis.size)
    x = basis.manifold.sample(20, rng)
    here, there = f @ basis.values(x), f @ basis.values(basis.group.word(rng, length)(x))
    assert np.abs(there - here).max() <= 1e-10 * np.abs(here).max()


@pytest.mark.parametrize("name", BUILT)
def test_invariant_functions_are_those_of_the_projection(name: str) -> None:
    basis, rng = BUILT[name], np.random.default_rng(0)
    harmonic = basis.harmonic
    x = harmonic.manifold.sample(12, rng)
    u = csr_array(sparse.block_diag(basis.vectors))
    np.testing.assert_allclose((u.T @ u).toarray(), np.eye(basis.size), atol=1e-12)
    np.testing.assert_allclose(basis.values(x), u.T @ harmonic.values(x), atol=1e-11 * np.sqrt(harmonic.size))
    for level, (rows, columns) in enumerate(zip(harmonic.slices, basis.slices, strict=True)):
        assert (harmonic.cumulative[rows] == rows.stop).all()
        assert (basis.cumulative[columns] == rows.stop).all()
        assert (basis.eigenvalues[columns] == harmonic.levels[level].eigenvalue).all()


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "basis",
    [
        *(HarmonicBasis(m, 30, tolerance=np.inf) for m in (Sphere(6), FlatTorus(2), Product(S2, S2))),
        InvariantBasis(HarmonicBasis(S2, 100, tolerance=np.inf), CUBE),
        InvariantBasis.within(Sphere(8), gr.Permutations(8), most_invariant=15, tolerance=np.inf),
        InvariantBasis(
            HarmonicBasis(BUILT["product, tied"].manifold, 60, tolerance=np.inf), BUILT["product, tied"].group
        ),
        InvariantBasis.within(
            LARGE["with a circle"].manifold, LARGE["with a circle"].group, most_invariant=20, tolerance=np.inf
        ),
    ],
    ids=repr,
)
def test_functions_pass_the_checks_of_a_basis(basis: Any) -> None:
    check_basis(basis, basis.manifold.sample(20, np.random.default_rng(0)))


def test_sums_on_the_sphere_are_closed_forms() -> None:
    """With the weights of a quadrature that is exact: Gram I, tangential Dirichlet form diag(l (l + 1)), moments."""
    z, w = np.polynomial.legendre.leggauss(12)
    phi = np.arange(24) * np.pi / 12
    radius = np.sqrt(1 - z * z)
    grid = [np.outer(radius, np.cos(phi)), np.outer(radius, np.sin(phi)), np.outer(z, np.ones(24))]
    x = np.stack(grid, axis=-1).reshape(-1, 3)
    batch = {"x": x, "weight": np.repeat(w, 24) / 48, "y": 3.0 + x[:, 0] * x[:, 1] * x[:, 2]}
    harmonic = HarmonicBasis(S2, 121)
    forms = {"gram": gram, "normals": tangential_dirichlet(normals=1), "ambient": dirichlet}
    coefficients = functional(lambda f, x: inner(f, x.y))
    for basis in (harmonic, InvariantBasis(harmonic, CUBE)):
        sums = Measure(basis, basis, forms, {"y": coefficients}, Laplacian(S2), rows=100)([batch])
        np.testing.assert_allclose(sums["gram"], np.eye(basis.size), atol=1e-12)
        np.testing.assert_allclose(sums["normals"], np.diag(basis.eigenvalues), atol=1e-10)
        np.testing.assert_allclose(sums["ambient"], np.diag(basis.eigenvalues), atol=1e-10)
        assert sums["y"][0] == pytest.approx(3, abs=1e-12)
        for rows, value in zip(basis.slices, [3.0, 0, 0, 1 / np.sqrt(105), *[0] * 7], strict=True):
            found = np.linalg.norm(sums["y"][rows])  # E[(x y z)^2] = 1 / 105, a harmonic of degree 3
            odd = basis is not harmonic and value < 1
            assert found == pytest.approx(0 if odd else value, abs=1e-12)


def test_levels_are_whole_and_as_many_as_fit() -> None:
    assert [HarmonicBasis(S2, n).size for n in (1, 3, 4, 8, 9)] == [1, 1, 4, 4, 9]
    for most, levels in ((1, 1), (5, 4), (20, 7), (26, 8)):
        basis = InvariantBasis.within(Sphere(8), gr.Permutations(8), most_invariant=most)
        assert basis.dimensions.tolist() == [1, 1, 1, 2, 3, 4, 6, 8][:levels]
        assert basis.multiplicities.tolist() == [Sphere(8).multiplicity(level) for level in range(levels)]
        assert basis.cumulative[-1] == basis.count == basis.harmonic.size
    for bound, levels in (({"most": 1000}, 5), ({"most_terms": sum(map(basis._invariants.terms, range(8))) - 1}, 7)):
        fewer = InvariantBasis.within(Sphere(8), gr.Permutations(8), most_invariant=100, **bound)
        assert len(fewer.multiplicities) == levels


def test_products_are_those_of_the_factors() -> None:
    """Functions of a circle and a sphere, next to products by hand."""
    basis = LARGE["with a circle"]
    circle = InvariantBasis.within(PeriodicBox([0], [1]), gr.SignFlips(1), most_invariant=8, tolerance=np.inf)
    sphere = InvariantBasis.within(Sphere(8), gr.Permutations(8), most_invariant=40, tolerance=np.inf)
    x = basis.manifold.sample(15, np.random.default_rng(0))
    found = basis.values(x)
    every = np.einsum("ic,jc->ijc", circle.values(x[:, :1]), sphere.values(x[:, 1:])).reshape(-1, 15)
    totals = np.add.outer(circle.eigenvalues, sphere.eigenvalues).ravel()
    for value in np.unique(basis.eigenvalues)[:12]:
        mine, theirs = found[np.isclose(basis.eigenvalues, value)], every[np.isclose(totals, value)]
        assert len(mine) == len(theirs)
        np.testing.assert_allclose(mine.T @ mine, theirs.T @ theirs, atol=1e-9 * len(mine))


# equivariant functions of several components

PSEUDOVECTOR = gr.MatrixRepresentation([np.linalg.det(g.matrix) * g.matrix for g in CUBE.generators])
EQUIVARIANT = {
    "sphere": EquivariantBasis(HarmonicBasis(S2, 36), gr.Permutations(3), gr.VectorRepresentation()),
    "no functions at some levels": EquivariantBasis(HarmonicBasis(S2, 49), CUBE, PSEUDOVECTOR),
}


@pytest.mark.parametrize("name", EQUIVARIANT)
def test_equivariant_functions_are_combinations_of_harmonics(name: str) -> None:
    """By loops over levels, functions, harmonics and components; so are the sums over rows and components."""
    basis, rng = EQUIVARIANT[name], np.random.default_rng(1)
    x, k = basis.harmonic.manifold.sample(9, rng), basis.components
    f, function = np.zeros((basis.size, k, len(x))), 0
    for space, vectors in zip(basis.harmonic.levels, basis.vectors, strict=True):
        u, phi = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors), space.values(x)
        for j in range(u.shape[1]):
            for a in range(k):
                f[function, a] = sum(u[i * k + a, j] * phi[:, i] for i in range(space.size))
            function += 1
    np.testing.assert_allclose(basis.values(x).reshape(basis.size, k, -1), f, atol=1e-12)
    np.testing.assert_array_equal(copied(basis).values(x), basis.values(x))
    c = rng.standard_normal(basis.size)
    parts = zip(basis.harmonic.levels, basis.by_level(c), strict=True)
    np.testing.assert_allclose(sum(s.values(x) @ a for s, a in parts), np.einsum("r,rkc->ck", c, f), atol=1e-12)
    y, w, operator = rng.standard_normal((len(x), k)), rng.uniform(0, 2, len(x)), Regression(targets=k)
    for weight in (w, np.ones(len(x))):
        fields = operator.prepared({"x": x, "y": y} | ({"weight": w} if weight is w else {}), None, None)
        sums = Measure(basis, basis, operator.forms, operator.functionals, operator, rows=4)([fields])
        np.testing.assert_allclose(sums["gram"], np.einsum("c,ikc,jkc->ij", weight, f, f), atol=1e-11)
        np.testing.assert_allclose(sums["values"][:, 0], np.einsum("c,ikc,ck->i", weight, f, y), atol=1e-11)
