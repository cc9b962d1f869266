"""The command: what it passes on to estimators, and what is invalid in what it reads."""

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import Landmarks
from daskspectral.kernels import Gaussian, Matern
from daskspectral.solvers import Regularized, Truncated
from tests.cli.common import done, store
from tests.common import unreliable, written

pytestmark = pytest.mark.usefixtures("folder")
FIT = "fit points.zarr --kernel gaussian:1 --landmarks 30 --components 4"


@unreliable
def test_options_reach_the_estimator() -> None:
    x, numbers = np.random.default_rng(0).standard_normal((400, 3)), np.arange(400)
    store(points=x, weights=numbers.astype(float), labels=numbers % 4)
    kernel, cut = Matern(2.5, "median") + Gaussian(2), Truncated(1e-8, ridge=1e-6)
    landmarks = Landmarks(kernel, 30, n_candidates=200, jitter=0.25, constant=False, drop_landmark_rows=True)
    line = (
        "fit points.zarr --kernel matern:2.5:median+gaussian:2 --landmarks 3e1 --components 4 --columns 0,2:3 "
        "--landmark-method kmeans++ --landmark-sample 200 --standardize --no-constant --weights weights.zarr "
        "--jitter 0.25 --exclude-landmarks --folds labels.zarr --seed 7 "
    )
    for given, solver in (("--penalty 0.5", Regularized(0.5)), ("--solver truncated --ridge 1e-6 --rtol 1e-8", cut)):
        done(f"{line} {given} --out model.zarr --overwrite")
        model = dsp.load("model.zarr")
        settings: dict[str, Any] = {"n_components": 4, "solver": solver, "random_state": 7}
        assert repr(model.basis) == repr(landmarks)
        assert settings.items() <= model.get_params(deep=False).items()
        assert model.moments_.folds.number == 4  # the path of their labels is not saved
        again = dsp.SpectralDecomposition(basis=landmarks, folds="labels.zarr", **settings)
        again.fit(dsp.Rows("points.zarr", columns=[0, 2], standardize=True), sample_weight="weights.zarr")
        np.testing.assert_array_equal(model.eigenvalues_, again.eigenvalues_)


@unreliable
def test_invalid_rows() -> None:
    x = np.random.default_rng(0).standard_normal((400, 2))
    x[[250, 17, 301], 1] = np.nan
    store(points=x)
    with pytest.raises(dsp.InvalidRowError, match="row 17"):
        done(f"{FIT} --out model.zarr")
    done(f"{FIT} --on-invalid skip --out model.zarr")
    assert "3 invalid" in done("info model.zarr")
    done("transform model.zarr points.zarr --on-invalid skip --out e.zarr")
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(written("e.zarr")).all(axis=1)), [17, 250, 301])
