"""Functions that vanish at the ends of the data: Dirichlet spectra, and what is refused."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import BoxBoundary, Concatenated, ConstantBasis, DirichletBasis, Landmarks, MonomialBasis
from daskspectral.basis.boundary import Boundary
from daskspectral.kernels import Gaussian


class Valued(Boundary):
    """One without a Hessian, 0 on a third of the data."""

    order = 1

    def values(self, x: Any) -> Any:
        return np.maximum(x[:, 0] - 1, 0)

    def gradient(self, x: Any) -> Any:
        return np.eye(x.shape[1])[np.zeros(len(x), int)] * (x[:, :1] > 1)


# -- spectra -----------------------------------------------------------------------------------------------------------

N = 8000
INTERVAL = np.random.default_rng(0).uniform(0, np.pi, (N, 1))
SQUARE = np.random.default_rng(1).uniform(0, np.pi, (N, 2))
ENDS = BoxBoundary(0, np.pi)


def test_dirichlet_spectra() -> None:
    landmarks = Landmarks(Gaussian(0.7), 60)
    square = DirichletBasis(MonomialBasis(2, 8), BoxBoundary([0, 0], [np.pi, np.pi]))
    for x, basis, size, values in (
        (INTERVAL, DirichletBasis(landmarks, ENDS), 60, [1, 4, 9, 16]),
        (SQUARE, square, square.basis.size, [2, 5, 5, 8]),
    ):
        model = dsp.SpectralDecomposition(basis=basis, n_components=4, random_state=0).fit(x)
        np.testing.assert_allclose(model.eigenvalues_, values, rtol=0.04)
        np.testing.assert_allclose(np.mean(model.transform(x) ** 2, axis=0), 1, rtol=4e-2)
        assert model.basis_.size == size  # no constant added


def test_no_constant_joins_it() -> None:
    basis = dsp.basis.DirichletFunctions(MonomialBasis(1, 6), ENDS)
    both, bigger = Concatenated((basis, basis)), Concatenated((ConstantBasis(1), basis))
    assert (both.vanishes, both.holds_constant, both.boundaries, bigger.vanishes) == (
        True,
        False,
        (ENDS, ENDS),
        False,
    )
    with pytest.raises(ValueError, match="constant"):
        dsp.SpectralDecomposition(basis=DirichletBasis(Landmarks(constant=True), ENDS), n_components=2).fit(INTERVAL)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_functions_that_do_not_vanish_at_the_end_of_the_data() -> None:
    landmarks = Landmarks(Gaussian(1.0), 20)
    model = dsp.SpectralDecomposition(n_components=2, random_state=0)
    for boundary, message in (
        (BoxBoundary(0.5, np.pi), "domain"),
        (BoxBoundary(-9, 12), "boundary function"),
        (Valued(), r"\d+ of 5000 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(basis=DirichletBasis(landmarks, boundary)).fit(INTERVAL[:5000])
    model.set_params(basis=DirichletBasis(landmarks, BoxBoundary([-0.05, -0.05], [np.pi + 0.05, np.pi + 0.05])))
    with pytest.warns(dsp.ReliabilityWarning, match="zeros"):
        model.fit(SQUARE[:1500])
    with pytest.raises(ValueError, match="networks"):
        DirichletBasis(dsp.basis.NeuralBasis(), ENDS)
