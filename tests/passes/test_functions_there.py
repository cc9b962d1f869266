"""Functions of a model at rows, on the device of its fit: values, gradients, scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierLattice
from daskspectral.devices import Device
from daskspectral.kernels import Gaussian, Matern, Periodic
from daskspectral.solve import dense
from tests.common import assert_close


@pytest.mark.parametrize(
    ("kernel", "lattice"),
    [(Gaussian(1.0), 0), (Periodic(Gaussian(1.0), (4.0, None)), 0), (Matern(2.5, 1.0), 6)],
)
def test_a_regression_is_the_same_on_a_device(
    kernel: Any, lattice: int, stand_in: Device, gotten: list[tuple[int, ...]]
) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (2000, 2))
    y, slopes = np.sin(x).sum(axis=1), np.cos(x)
    basis = FourierLattice(lattice, method="matmul") if lattice else None
    here = dsp.HermiteRegressor(kernel, n_landmarks=30, basis=basis, alpha=1e-6, random_state=0).fit(x, y, slopes)
    assert_close(clone(here).set_params(device="cuda").fit(x, y, slopes).coef_, here.coef_, 1e-6)
    there = clone(here).set_params(device="cuda").fit_moments(here.moments_)  # the same function
    for method in ("predict", "predict_gradient"):
        gotten.clear()
        found = getattr(there, method)(x)
        assert isinstance(found, np.ndarray)
        assert sum(shape[0] for shape in gotten) == len(x), method  # what came from the device are its values
        assert_close(found, getattr(here, method)(x), 1e-8 if lattice else 1e-10)  # eps of the transform is 1e-9
    gotten.clear()
    assert there.score(x, y) == pytest.approx(here.score(x, y), abs=1e-8)
    assert sum(shape[0] for shape in gotten) == len(x)


@pytest.mark.parametrize("solver", ["penalised", "cut"])
def test_large_solutions_are_found_on_the_device(
    solver: str, stand_in: Device, gotten: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal((2000, 2))
    fixed: dict[str, Any] = {"n_landmarks": 40, "n_components": 5, "random_state": 0, "solver": solver}
    here = dsp.SpectralDecomposition(kernel=Matern(2.5, 1.0), **fixed).fit(x)
    there = clone(here).set_params(device="cuda")
    there.fit_moments(here.moments_)
    assert not gotten, "a small matrix was sent"
    monkeypatch.setattr(dense, "LARGE", 30)
    there.fit_moments(here.moments_)
    assert (40, 40) in gotten  # eigenvectors of the whitened Gram matrix
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-9)
    assert_close(there.transform(x), here.transform(x), 1e-7)
    gotten.clear()
    here.fit_moments(here.moments_)
    clone(here).set_params(device="cpu").fit_moments(here.moments_)
    assert not gotten
