"""On a real GPU: the CPU's sums to 1e-10, the same bits on repeats, functions, embeddings, modes and checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import devices
from daskspectral.basis import FourierLattice, LandmarkBasis
from daskspectral.kernels import Kernel, Matern
from daskspectral.modes import nufft
from tests.common import assert_close
from tests.moments.test_devices import BASES, KERNELS, LANDMARKS, OPERATORS, check_sums

pytestmark = pytest.mark.skipif(bool(devices._without_gpu()), reason=f"no GPU to test on: {devices._without_gpu()}")
ROWS = 200_000


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator(name: str) -> None:
    check_sums(BASES["landmarks"], OPERATORS[name], tolerance=1e-10)


@pytest.mark.parametrize("tolerance", [1e-10, 1e-3])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
def test_every_kernel(kernel: Kernel, tolerance: float) -> None:
    check_sums(LandmarkBasis(kernel, LANDMARKS), OPERATORS["laplacian"], tolerance=tolerance)


@pytest.mark.parametrize("folds", [None, 10])
def test_a_fit(folds: int | None) -> None:
    x = np.random.default_rng(0).standard_normal((ROWS, 3))
    fixed: dict[str, Any] = {"n_landmarks": 100, "penalty": 1.0, "spread": 0.0, "folds": folds, "random_state": 0}
    here = dsp.SpectralDecomposition(kernel=Matern(2.5, 1.5), **fixed).fit(x)
    there = clone(here).set_params(device="cuda").fit(x)
    again = clone(there).fit(x)
    for name, values in here.moments_.arrays.items():
        assert_close(there.moments_.arrays[name], values, 1e-10, dtype=None, what=name)
        np.testing.assert_array_equal(again.moments_.arrays[name], there.moments_.arrays[name])
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-6)
    same = clone(here).set_params(device="cuda").fit_moments(here.moments_)
    assert_close(same.transform(x), here.transform(x), 1e-9)
    assert same.score(x) == pytest.approx(here.score(x), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("method", ["matmul", "nufft"])
def test_modes(d: int, method: str) -> None:
    if method == "nufft" and not (nufft.available_there() and nufft.available()):
        pytest.skip("finufft or cufinufft is not installed")
    x = np.random.default_rng(0).uniform(0, 1, (ROWS, d))
    basis = FourierLattice({1: 40, 2: 10, 3: 4}[d], method=method)
    here = dsp.SpectralDecomposition(basis=basis, folds=None).fit(x)
    there = clone(here).set_params(device="cuda").fit(x)
    for name, values in here.moments_.arrays.items():
        tolerance = 1e-10 if method == "matmul" else 1e-8
        assert_close(there.moments_.arrays[name], values, tolerance, dtype=None, what=name)
