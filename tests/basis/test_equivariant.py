"""EquivariantBasis: features, weights, Gram matrices and targets against loops, copies, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from daskspectral.basis import Arena, Block, EquivariantBasis, HarmonicBasis
from daskspectral.basis.base import VALUE
from daskspectral.errors import PointError, SmoothnessError
from daskspectral.forms import Atom
from daskspectral.groups import (
    Automorphisms,
    Generated,
    MatrixRepresentation,
    Permutations,
    Representation,
    SignFlips,
    TrivialRepresentation,
    VectorRepresentation,
)
from daskspectral.manifolds import PeriodicBox, Sphere
from daskspectral.moments import Measure
from daskspectral.operators.regression import Regression
from tests.common import copied

Array = NDArray[Any]
S2 = Sphere(3)
BASES = {
    "sphere": EquivariantBasis(HarmonicBasis(S2, 36), Permutations(3), VectorRepresentation()),
    "no functions at some levels": EquivariantBasis(
        HarmonicBasis(S2, 49), Generated([Permutations(3), SignFlips(3)]), Representation.of("pseudovector")
    ),
    "torus": EquivariantBasis(
        HarmonicBasis(PeriodicBox([0, 0], [1, 1]), 40), Automorphisms([[[0, -1], [1, 0]]]), VectorRepresentation()
    ),
    "numbers": EquivariantBasis(HarmonicBasis(S2, 36), Permutations(3), TrivialRepresentation()),
}


def points(basis: EquivariantBasis, n: int = 9) -> Array:
    return basis.harmonic.manifold.sample(n, np.random.default_rng(0))


@pytest.mark.parametrize("name", BASES)
def test_values_are_combinations_of_harmonics(name: str) -> None:
    """By loops over levels, functions, harmonics and components; orthonormal for the uniform probability."""
    basis = BASES[name]
    x, k = points(basis), basis.components
    expected, function = np.zeros((basis.size, k, len(x))), 0
    for space, u in zip(basis.harmonic.levels, basis.vectors, strict=True):
        u, phi = np.asarray(u.toarray() if hasattr(u, "toarray") else u), space.values(x)
        for j in range(u.shape[1]):
            for a in range(k):
                expected[function, a] = sum(u[i * k + a, j] * phi[:, i] for i in range(space.size))
            function += 1
    np.testing.assert_allclose(basis.values(x).reshape(basis.size, k, -1), expected, atol=1e-12)
    one_by_one = [basis.values(x[i : i + 1]).reshape(basis.size, k) for i in range(len(x))]
    np.testing.assert_allclose(np.stack(one_by_one, axis=2), expected, atol=1e-12)
    assert [s.stop - s.start for s in basis.slices] == [u.shape[1] for u in basis.vectors]
    assert len(basis.cumulative) == basis.size


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_inner_products_over_rows_and_components(name: str, weighted: bool) -> None:
    basis, rng = BASES[name], np.random.default_rng(1)
    x, k = points(basis), basis.components
    y, w = rng.standard_normal((len(x), k)), rng.uniform(0, 2, len(x)) if weighted else np.ones(len(x))
    operator = Regression(targets=k)
    measure = Measure(basis, basis, operator.forms, operator.functionals, operator, rows=4)
    fields = operator.prepared({"x": x, "y": y} | ({"weight": w} if weighted else {}), None, None)
    sums, f = measure([fields]), basis.values(x).reshape(basis.size, k, -1)
    gram, target = np.zeros((basis.size, basis.size)), np.zeros((basis.size, 1))
    for c in range(len(x)):
        for i in range(basis.size):
            target[i, 0] += w[c] * f[i, :, c] @ y[c]
            for j in range(basis.size):
                gram[i, j] += w[c] * f[i, :, c] @ f[j, :, c]
    np.testing.assert_allclose(sums["gram"], gram, atol=1e-11)
    np.testing.assert_allclose(sums["values"], target, atol=1e-11)


@pytest.mark.parametrize("name", BASES)
def test_copies_have_the_same_values(name: str) -> None:
    basis = BASES[name]
    x = points(basis)
    for other in (copied(basis), pickle.loads(pickle.dumps(basis))):
        np.testing.assert_array_equal(other.values(x), basis.values(x))
        assert repr(other) == repr(basis)


def test_coefficients_by_level() -> None:
    basis = BASES["sphere"]
    c, x = np.random.default_rng(2).standard_normal(basis.size), points(BASES["sphere"])
    parts = basis.by_level(c)
    assert [a.shape for a in parts] == [(space.size, 3) for space in basis.harmonic.levels]
    whole = sum(space.values(x) @ a for space, a in zip(basis.harmonic.levels, parts, strict=True))
    np.testing.assert_allclose(whole, np.einsum("r,rkc->ck", c, basis.values(x).reshape(-1, 3, 9)), atol=1e-12)


def test_float32_features() -> None:
    basis, x = BASES["sphere"], points(BASES["sphere"])
    feature = basis.at(Block({"x": x}, np.dtype("float32"), Arena()), [VALUE]).feature(VALUE)
    assert feature.dtype == np.float32
    np.testing.assert_allclose(feature, basis.values(x), rtol=1e-5, atol=1e-5)


def test_refused() -> None:
    harmonic, basis = HarmonicBasis(S2, 9), BASES["sphere"]
    with pytest.raises(TypeError, match=r"takes a HarmonicBasis and a group"):
        EquivariantBasis(S2, Permutations(3), VectorRepresentation())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a matrix for each of the 2 generators"):
        EquivariantBasis(harmonic, Permutations(3), MatrixRepresentation(np.eye(3)[None]))
    with pytest.raises(ValueError, match=r"Sphere\(d=3\) has 3 coordinates, and Permutations\(d=4\) acts on 4"):
        EquivariantBasis(harmonic, Permutations(4), VectorRepresentation())
    with pytest.raises(PointError, match=r"row 2"):
        basis.values(points(basis) * np.where(np.arange(9) == 2, 1.1, 1.0)[:, None])
    with pytest.raises(SmoothnessError, match=r"derivatives of the \d+ functions with 3 components equivariant under"):
        basis.at(Block({"x": points(basis)}, np.dtype(float), Arena()), []).feature(Atom("partial", alpha=(1, 0, 0)))
    with pytest.raises(SmoothnessError):
        basis.check_order(1, "the Laplacian")
