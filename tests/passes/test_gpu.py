"""On a real GPU: the CPU's sums to 1e-10, the same bits on repeats, functions and modes."""

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral import devices
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.kernels import Matern
from daskspectral.modes import nufft
from tests.common import assert_close
from tests.moments.test_devices import CASES, check_sums

pytestmark = pytest.mark.skipif(bool(devices._without_gpu()), reason=f"no GPU to test on: {devices._without_gpu()}")


@pytest.mark.parametrize("tolerance", [1e-10, 1e-3])
@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_of_the_host(name: str, tolerance: float) -> None:
    check_sums(name, tolerance)


@pytest.mark.parametrize("method", ["landmarks", "matmul", "nufft"])
def test_a_fit(method: str) -> None:
    if method == "nufft" and not (nufft.available_there() and nufft.available()):
        pytest.skip("finufft or cufinufft is not installed")
    x = np.random.default_rng(0).uniform(0, 1, (200_000, 2))
    kernel = Matern(2.5, 0.5)
    basis = Landmarks(kernel, 100) if method == "landmarks" else FourierBasis(10, method=method, kernel=kernel)
    here = dsp.SpectralDecomposition(basis=basis, solver=dsp.solvers.Regularized(1.0), random_state=0).fit(x)
    there = clone(here).set_params(device="cuda").fit(x)
    again = clone(there).fit(x)
    for name, values in here.moments_.arrays.items():
        assert_close(there.moments_.arrays[name], values, 1e-8 if method == "nufft" else 1e-10, dtype=None, what=name)
        assert method == "nufft" or np.array_equal(again.moments_.arrays[name], there.moments_.arrays[name])
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-6)
    same = clone(here).set_params(device="cuda").fit_moments(here.moments_)
    assert_close(same.transform(x), here.transform(x), 1e-8)
