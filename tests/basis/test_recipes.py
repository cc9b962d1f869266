"""Recipes: a user's recipe builds a basis, and a resolved recipe builds the same basis again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import daskspectral as dsp
from daskspectral.basis import (
    BasisRecipe,
    BoxBoundary,
    DirichletBasis,
    DirichletFunctions,
    FourierBasis,
    Landmarks,
    MonomialBasis,
)
from daskspectral.choosing.landmarks import FitSample
from daskspectral.data.source import open_source
from daskspectral.kernels import Gaussian
from tests.common import unreliable

X = np.random.default_rng(0).uniform(0, 1, (400, 2))
BOX = BoxBoundary([0, 0], [1, 1])


@dataclass(frozen=True)
class Polynomials(BasisRecipe):
    """Monomials of as many variables as the data have columns."""

    degree: int

    def probe(self, sample: Any) -> MonomialBasis:
        return MonomialBasis(sample.dimension, self.degree)

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        return MonomialBasis(dimension, self.degree).size

    def build(self, sample: Any, rng: np.random.Generator) -> MonomialBasis:
        return self.probe(sample)


@unreliable
def test_a_recipe_of_a_user() -> None:
    pairs = (
        (Polynomials(4), MonomialBasis(2, 4)),
        (DirichletBasis(Polynomials(4), BOX), DirichletBasis(MonomialBasis(2, 4), BOX)),
    )
    for pair in pairs:
        model, known = (dsp.SpectralDecomposition(basis=b, n_components=3, random_state=0).fit(X) for b in pair)
        np.testing.assert_array_equal(model.eigenvalues_, known.eigenvalues_)
        assert model.plan(X).ranges == known.plan(X).ranges


def test_a_resolved_recipe_builds_the_same_basis_again() -> None:
    sample, first, second = FitSample(open_source(X)), np.random.default_rng(0), np.random.default_rng(1)
    for landmarks in (
        Landmarks(Gaussian("median"), 20),
        Landmarks(Gaussian(0.5), 20, jitter=0.3),
        Landmarks("linear", 2),
    ):
        resolved = DirichletBasis(DirichletBasis(landmarks, BOX), BOX).resolved(sample, first)
        basis = resolved.build(sample, first)
        assert isinstance(basis, DirichletFunctions)
        assert basis.boundaries == resolved.boundaries == resolved.probe(sample).boundaries == (BOX, BOX)
        np.testing.assert_array_equal(basis.values(X), resolved.build(sample, second).values(X))
        assert resolved.cost(None, 2, len(X)) == basis.size


@unreliable
def test_models_are_saved_with_the_recipe_of_their_basis(tmp_path: Path) -> None:
    for basis in (
        FourierBasis(2, kernel=Gaussian(0.5)),
        DirichletBasis(Landmarks(Gaussian(0.5), 9), BOX),
        MonomialBasis(2, 2),
    ):
        model = dsp.SpectralDecomposition(basis=basis, n_components=2, random_state=0).fit(X)
        model.save(tmp_path / "model.zarr", overwrite=True)
        loaded = dsp.load(tmp_path / "model.zarr")
        assert (repr(loaded.basis), type(loaded.basis_)) == (repr(basis), type(model.basis_))
