"""SpectralDecomposition on harmonics and on those that a group leaves as they are: exact under exact quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.groups import Cyclic, Generated, Group, Permutations, Product, SignFlips, Translations
from daskspectral.manifolds import Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.operators import Laplacian

Array = NDArray[Any]


pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.WeightWarning")  # of a quadrature: they sum to 1


def quadrature(d: int, degree: int) -> tuple[Array, Array]:
    """Points of S^(d-1) and weights, exact for polynomials up to a degree: x = (t, sqrt(1 - t^2) y), y in S^(d-2)."""
    if d == 2:
        angles = 2 * np.pi * np.arange(degree + 1) / (degree + 1)
        return np.column_stack([np.cos(angles), np.sin(angles)]), np.full(degree + 1, 1 / (degree + 1))
    t, weight = scipy.special.roots_gegenbauer(degree // 2 + 1, (d - 2) / 2)
    y, inner = quadrature(d - 1, degree)
    first = np.repeat(t, len(y))
    x = np.column_stack([first, np.sqrt(1 - first**2)[:, None] * np.tile(y, (len(t), 1))])
    return x, np.kron(weight / weight.sum(), inner)


def grid(manifold: Manifold, degree: int) -> tuple[Array, Array]:
    """Points and weights that make sums of products of two harmonics up to a degree exact."""
    if isinstance(manifold, ProductManifold):
        (x, v), (y, w) = (grid(factor, degree) for factor in (manifold.first, manifold.second))
        return np.column_stack([np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1))]), np.kron(v, w)
    if isinstance(manifold, Sphere):
        return quadrature(manifold.d, 2 * degree)
    assert isinstance(manifold, PeriodicBox)
    angles = np.arange(2 * degree + 1) / (2 * degree + 1)
    mesh = np.stack(np.meshgrid(*[angles] * manifold.dimension), axis=-1).reshape(-1, manifold.dimension)
    mesh = np.array(manifold.lower) + mesh * manifold.lengths
    return mesh, np.full(len(mesh), 1 / len(mesh))


def decompose(basis: HarmonicBasis | InvariantBasis, x: Array, **options: Any) -> dsp.SpectralDecomposition:
    manifold = basis.manifold if isinstance(basis, HarmonicBasis) else basis.harmonic.manifold
    model = dsp.SpectralDecomposition(
        operator=Laplacian(manifold), basis=basis, n_components=basis.size, min_support=0, constant=False
    )
    return model.fit(x, **options)


def assert_invariant(model: dsp.SpectralDecomposition, group: Group, x: Array, rng: np.random.Generator) -> None:
    functions = model.transform(x)
    for length in (1, 5, 40):
        moved = model.transform(group.word(rng, length)(x))
        assert (np.abs(moved - functions).max(axis=0) <= 1e-10 * np.abs(functions).max(axis=0)).all()


def partitions(total: int, parts: int) -> int:
    """Partitions of a number into at most so many parts."""
    if total == 0:
        return 1
    return 0 if total < 0 or parts == 0 else partitions(total, parts - 1) + partitions(total - parts, parts)


@pytest.mark.parametrize(("d", "levels"), [(3, 7), (5, 4)])
def test_eigenvalues_of_spheres_with_invariant_multiplicities(d: int, levels: int) -> None:
    """l (l + d - 2), p(l, at most d parts) - p(l - 2, at most d parts) times under permutations of d coordinates."""
    manifold, group = Sphere(d), Permutations(d)
    size = sum(manifold.multiplicity(level) for level in range(levels))
    x, w = quadrature(d, 2 * levels)
    model = decompose(InvariantBasis(HarmonicBasis(manifold, size), group), x, sample_weight=w)
    counts = [partitions(level, d) - partitions(level - 2, d) for level in range(levels)]
    expected = np.repeat([level * (level + d - 2) for level in range(levels)], counts)
    np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-9)
    assert_invariant(model, group, manifold.sample(30, np.random.default_rng(0)), np.random.default_rng(1))
    functions = model.transform(x)
    np.testing.assert_allclose(functions.T @ (w[:, None] * functions), np.eye(len(expected)), atol=1e-10)


MANIFOLDS: dict[str, tuple[Manifold, Group, int]] = {
    "sphere": (Sphere(3), Generated([Cyclic(3), SignFlips(3)]), 49),
    "box": (PeriodicBox([-1] * 2, [1] * 2), Generated([Permutations(2), Translations([[1.0, 0]])]), 45),
    "product": (ProductManifold(Sphere(3), PeriodicBox([0], [1])), Product(Permutations(3), SignFlips(1)), 40),
}


@pytest.mark.parametrize("name", MANIFOLDS)
def test_eigenvalues_are_those_of_the_manifold(name: str) -> None:
    """All of them without a group; with one, those with invariant functions, as often as the averages have rank."""
    manifold, group, count = MANIFOLDS[name]
    harmonic = HarmonicBasis(manifold, count)
    x, w = grid(manifold, 6)
    values = decompose(harmonic, x, sample_weight=w).eigenvalues_
    np.testing.assert_allclose(values, manifold.eigenvalues(harmonic.size), atol=1e-8)
    basis = InvariantBasis(harmonic, group)
    model = decompose(basis, x, sample_weight=w)
    rng, expected = np.random.default_rng(0), []
    for level in harmonic.levels:
        average = np.eye(level.size)
        for _ in range(60):  # by a lazy walk among random words
            action = level.action(group.word(rng, int(rng.integers(13))))
            average = 0.5 * (average + action @ average)
        rank = np.linalg.matrix_rank(average, tol=1e-4)
        expected += [level.eigenvalue] * rank
    np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-8)
    assert len(expected) < harmonic.size
    assert_invariant(model, group, manifold.sample(20, rng), rng)


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(list(MANIFOLDS)))
def test_eigenfunctions_are_invariant_whatever_the_data(seed: int, name: str) -> None:
    """Also of points that are few and not uniform, whose eigenvalues are far from the manifold's."""
    manifold, group, count = MANIFOLDS[name]
    rng = np.random.default_rng(seed)
    basis = InvariantBasis(HarmonicBasis(manifold, count), group)
    x = manifold.sample(1000, rng)
    x = x[np.argsort(x[:, 0])[300:]]
    model = decompose(basis, x)
    assert len(model.eigenvalues_) == basis.size
    assert model.eigenvalues_[0] == pytest.approx(0, abs=1e-9)
    assert_invariant(model, group, manifold.sample(20, rng), rng)


def test_points_off_the_manifold_and_columns_that_do_not_fit() -> None:
    manifold, group, count = MANIFOLDS["sphere"]
    basis, x = InvariantBasis(HarmonicBasis(manifold, count), group), manifold.sample(500, np.random.default_rng(0))
    x[123] *= 1.5
    with pytest.raises(ValueError, match=r"expected points on Sphere\(d=3\) to within 0.25, .*at distance 0.5;"):
        decompose(basis, x)
    with pytest.raises(ValueError, match=r"3"):
        decompose(basis, x[:, :2])
