"""Invariant functions of eigenspaces that are never built: their basis, its files, and regression on it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.groups import FullOrthogonal, Generated, Group, Isometry, Orthogonal, Permutations, Product, SignFlips
from daskspectral.manifolds import Manifold, PeriodicBox, Sphere
from daskspectral.manifolds import Product as ProductManifold
from daskspectral.manifolds.averages import AveragedSpace, SymmetricHarmonics
from daskspectral.manifolds.zonal import ZonalSpace
from daskspectral.testing import check_basis

Array = NDArray[Any]

CONTRASTS = np.array([[1, -1, 0, 0], [1, 1, -2, 0], [1, 1, 1, -3.0]]) / np.sqrt([[2.0], [6.0], [12.0]])
FOUR_ATOMS = Generated(
    [
        FullOrthogonal(3, copies=3),
        Orthogonal([np.kron(CONTRASTS @ g.matrix @ CONTRASTS.T, np.eye(3)) for g in Permutations(4).generators]),
    ]
)
PAIRS: dict[str, tuple[Manifold, Group, int]] = {
    "permutations": (Sphere(8), Permutations(8), 40),
    "many permutations": (Sphere(30), Permutations(30), 30),
    "four atoms": (Sphere(9), FOUR_ATOMS, 33),
    "beside a circle": (
        ProductManifold(PeriodicBox([0], [1]), Sphere(9)),
        Product(SignFlips(1), FOUR_ATOMS),
        80,
    ),
}
_BASES: dict[str, InvariantBasis] = {}


def basis_of(name: str) -> InvariantBasis:
    if name not in _BASES:
        manifold, group, most = PAIRS[name]
        _BASES[name] = InvariantBasis.within(manifold, group, most_invariant=most)
    return _BASES[name]


@pytest.fixture
def unbuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eigenspace of more than 250 functions is an error."""
    build = ZonalSpace.build.__func__

    def small(cls: type[ZonalSpace], kernel: Any, sample: Any) -> ZonalSpace:
        assert kernel.size <= 250
        return build(cls, kernel, sample)

    monkeypatch.setattr(ZonalSpace, "build", classmethod(small))


@pytest.mark.parametrize("name", PAIRS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 40))
def test_invariance_is_exact(name: str, seed: int, length: int) -> None:
    basis, rng = basis_of(name), np.random.default_rng(seed)
    f = rng.standard_normal(basis.size)
    x = basis.manifold.sample(20, rng)
    g = basis.group.word(rng, length)
    here, there = f @ basis.values(x), f @ basis.values(g(x))
    assert np.abs(there - here).max() <= 1e-10 * np.abs(here).max()


@pytest.mark.parametrize("name", ["permutations", "four atoms", "beside a circle"])
def test_functions_pass_the_checks_of_a_basis(name: str) -> None:
    manifold, group, _ = PAIRS[name]
    basis = InvariantBasis.within(manifold, group, most_invariant=7, tolerance=np.inf)
    check_basis(basis, manifold.sample(20, np.random.default_rng(0)))


def test_levels_are_whole_and_as_many_as_fit(unbuilt: None) -> None:
    for most, levels in ((1, 1), (5, 4), (20, 7), (26, 8), (72, 11)):
        basis = InvariantBasis.within(Sphere(8), Permutations(8), most_invariant=most)
        assert basis.dimensions.tolist() == [1, 1, 1, 2, 3, 4, 6, 8, 11, 14, 18][:levels]
        assert basis.size <= max(most, 1)
        assert basis.multiplicities.tolist() == [Sphere(8).multiplicity(level) for level in range(levels)]
        assert basis.cumulative[-1] == basis.count == basis.harmonic.size
    bounded = InvariantBasis.within(Sphere(8), Permutations(8), most_invariant=100, most=1000)
    assert bounded.multiplicities.sum() == 450
    terms = [InvariantBasis.within(Sphere(8), Permutations(8), most_invariant=n).terms for n in (1, 5, 20, 26)]
    assert terms == sorted(terms)
    assert terms[-1] < 1000 < Sphere(8).multiplicity(7)  # a row costs less than one eigenspace would
    cheap = InvariantBasis.within(Sphere(8), Permutations(8), most_invariant=100, most_terms=terms[2])
    assert cheap.dimensions.tolist() == [1, 1, 1, 2, 3, 4, 6]
    alone = InvariantBasis.within(Sphere(3), Generated(_turns()), most_invariant=10, most=400)
    assert alone.size == len(alone.functions) == 1


def _turns() -> list[Isometry]:
    """Two rotations that generate a dense subgroup of SO(3): only constants are invariant."""
    c, s = np.cos(1), np.sin(1)
    return [Isometry([[c, -s, 0], [s, c, 0], [0, 0, 1]]), Isometry([[1, 0, 0], [0, c, -s], [0, s, c]])]


def test_only_small_eigenspaces_are_built(unbuilt: None) -> None:
    basis = InvariantBasis(HarmonicBasis(Sphere(9), 7000), FOUR_ATOMS)
    assert [type(f) is AveragedSpace for f in basis.functions] == [False] * 4 + [True] * 3
    assert [u is None for u in basis.vectors] == [False] * 4 + [True] * 3
    coefficients = np.arange(float(basis.size))
    parts = basis.by_level(coefficients)
    assert [len(part) for part in parts] == [1, 9, 44, 156, 2, 0, 3]
    np.testing.assert_array_equal(np.concatenate(parts[4:]), coefficients[-5:])
    with pytest.raises(ValueError, match="the 450 harmonics of level 4 were not built"):
        basis.project(np.zeros(basis.harmonic.size))
    permutations = InvariantBasis.within(Sphere(30), Permutations(30), most_invariant=20)
    assert isinstance(permutations.functions[-1], SymmetricHarmonics)


@pytest.mark.parametrize("name", PAIRS)
def test_a_basis_travels_without_its_eigenspaces(name: str, unbuilt: None) -> None:
    basis = basis_of(name)
    x = basis.manifold.sample(10, np.random.default_rng(0))
    for other in (pickle.loads(pickle.dumps(basis)), InvariantBasis.from_state(basis.state())):
        np.testing.assert_array_equal(other.values(x), basis.values(x))
        assert other.dimensions.tolist() == basis.dimensions.tolist()
        assert repr(other) == repr(basis)


def test_products_are_those_of_the_factors(unbuilt: None) -> None:
    """Functions of a circle and a sphere, next to products by hand; values and derivatives."""
    basis = basis_of("beside a circle")
    circle = InvariantBasis.within(PeriodicBox([0], [1]), SignFlips(1), most_invariant=8, tolerance=np.inf)
    sphere = InvariantBasis.within(Sphere(9), FOUR_ATOMS, most_invariant=18, tolerance=np.inf)
    x = basis.manifold.sample(15, np.random.default_rng(0))
    found = basis.values(x)
    every = np.einsum("ic,jc->ijc", circle.values(x[:, :1]), sphere.values(x[:, 1:])).reshape(-1, 15)
    totals = np.add.outer(circle.eigenvalues, sphere.eigenvalues).ravel()
    for value in np.unique(basis.eigenvalues)[:12]:
        mine, theirs = found[np.isclose(basis.eigenvalues, value)], every[np.isclose(totals, value)]
        assert len(mine) == len(theirs)
        np.testing.assert_allclose(mine.T @ mine, theirs.T @ theirs, atol=1e-9 * len(mine))


def test_regression_beyond_what_is_built(tmp_path: Path, unbuilt: None) -> None:
    """A polynomial of degree 6 in inner products of the vectors, symmetric in four atoms: exact from level 6 on."""
    x = Sphere(9).sample(8000, np.random.default_rng(0))
    atoms = np.einsum("ji,njc->nic", CONTRASTS, x.reshape(-1, 3, 3))
    y = np.sum(np.sum(atoms**2, axis=2) ** 3, axis=1)
    model = dsp.InvariantRegressor(
        Sphere(9), FOUR_ATOMS, smoothness=5.0, n_eigenfunctions=7000, solver="least_squares", alpha=0.0
    )
    fitted = clone(model).fit(x, y)
    np.testing.assert_allclose(fitted.predict(x), y, atol=1e-6 * y.std())
    assert fitted.invariant_dimensions_.tolist() == [1, 0, 0, 0, 2, 0, 3]
    assert [len(c) for c in fitted.coef_] == [1, 9, 44, 156, 2, 0, 3]
    dsp.save(fitted, tmp_path / "model.zarr")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model.zarr").predict(x), fitted.predict(x))
