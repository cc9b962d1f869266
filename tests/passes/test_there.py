"""On an accelerator: the same embedding, functions of a model at rows, and kernel values that never leave it."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import FourierBasis, Landmarks
from daskspectral.devices import Device
from daskspectral.kernels import Gaussian, Matern, Periodic
from daskspectral.solve import whitening
from daskspectral.solvers import Regularized, Solving, Truncated
from tests.common import assert_close, unreliable

ROWS, LANDMARKS = 1000, 40


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (ROWS, 2))


def embedding(**options: Any) -> dsp.SDPEmbedding:
    landmarks = Landmarks(n_landmarks=LANDMARKS, method="cholesky")
    return dsp.SDPEmbedding(1.0, method="lowrank", landmarks=landmarks, random_state=0, **options)


@pytest.mark.parametrize("bounded", [False, True])
def test_the_same_embedding(bounded: bool, points: np.ndarray, stand_in: Device, gotten: list[tuple[int, ...]]) -> None:
    given = {"diagonal": 1 + points[:, 0] ** 2} if bounded else {}
    here = embedding().fit(points, **given)
    assert not gotten
    there = clone(here).set_params(device="auto").fit(points, **given)
    assert gotten
    assert not [shape for shape in gotten if np.prod(shape) >= LANDMARKS * ROWS]  # kernel values stay there
    assert there.certificate_.optimal
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert_close(there.spectrum_, here.spectrum_, 1e-7)
    assert_close(there.certificate_.approximation, here.certificate_.approximation, 1e-3)  # of differences
    assert_close(there.embedding_, here.embedding_, 1e-5)
    gotten.clear()
    new = points[:100] + 0.01
    found = there.transform(new, diagonal=np.ones(100)) if bounded else there.transform(new)
    assert [shape for shape in gotten if shape[0] == 100]
    assert not [shape for shape in gotten if shape[0] == LANDMARKS]
    same = clone(here)
    same.__dict__.update({k: v for k, v in vars(there).items() if k.endswith("_")})
    assert_close(found, same.transform(new, diagonal=np.ones(100)) if bounded else same.transform(new), 1e-10)


@pytest.mark.parametrize(
    "basis",
    [
        Landmarks(Gaussian(1.0), 30),
        Landmarks(Periodic(Gaussian(1.0), (4.0, None)), 30),
        FourierBasis(6, method="matmul", kernel=Matern(2.5, 1.0)),
    ],
    ids=str,
)
def test_a_regression_is_the_same_on_a_device(basis: Any, stand_in: Device, gotten: list[tuple[int, ...]]) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (600, 2))
    y, slopes = np.sin(x).sum(axis=1), np.cos(x)
    here = dsp.HermiteRegressor(basis, alpha=1e-6, random_state=0).fit(x, y, slopes)
    assert_close(clone(here).set_params(device="cuda").fit(x, y, slopes).coef_, here.coef_, 1e-6)
    there = clone(here).set_params(device="cuda").fit_moments(here.moments_)  # the same function
    tolerance = 1e-8 if isinstance(basis, FourierBasis) else 1e-10  # eps of the transform is 1e-9
    for method in ("predict", "predict_gradient"):
        gotten.clear()
        found = getattr(there, method)(x)
        assert isinstance(found, np.ndarray)
        assert sum(shape[0] for shape in gotten) == len(x), method  # what came from the device are its values
        assert_close(found, getattr(here, method)(x), tolerance)
    gotten.clear()
    assert there.score(x, y) == pytest.approx(here.score(x, y), abs=1e-8)
    assert sum(shape[0] for shape in gotten) == len(x)


@unreliable
@pytest.mark.parametrize("solver", [Regularized(), Truncated()], ids=str)
def test_large_solutions_are_found_on_the_device(
    solver: Solving, stand_in: Device, gotten: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal((600, 2))
    landmarks = Landmarks(Matern(2.5, 1.0), 40)
    here = dsp.SpectralDecomposition(basis=landmarks, n_components=5, solver=solver, random_state=0).fit(x)
    there = clone(here).set_params(device="cuda")
    there.fit_moments(here.moments_)
    assert not gotten, "a small matrix was sent"
    monkeypatch.setattr(whitening, "LARGE", 30)
    there.fit_moments(here.moments_)
    assert (40, 40) in gotten  # eigenvectors of the whitened Gram matrix
    assert_close(there.eigenvalues_, here.eigenvalues_, 1e-9)
    assert_close(there.transform(x), here.transform(x), 1e-7)
    gotten.clear()
    here.fit_moments(here.moments_)
    clone(here).set_params(device="cpu").fit_moments(here.moments_)
    assert not gotten
