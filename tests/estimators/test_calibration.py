"""Costs measured on this machine, and plans that tell the time with them. Nothing here is timed: tiny sizes."""

import dask
import numpy as np
import pytest

from daskspectral.engine.costs import Costs, default_path
from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.calibration import calibrate
from daskspectral.kernels import Gaussian

X = np.random.default_rng(0).standard_normal((400, 2))


@pytest.mark.slow
def test_a_plan_by_the_costs_of_the_file(monkeypatch, tmp_path):
    path, estimator = tmp_path / "costs.json", SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30)
    assert "not measured yet (daskspectral plan --calibrate)" in estimator.plan(X).untimed
    with dask.config.set(num_workers=2):
        calibrate(quick=True, say=lambda line: None).save(path)
    plan = estimator.plan(X, calibration=path, workers=3, threads=2)
    assert plan.time == Costs.load(path).predict(plan.work, workers=3, threads=2)
    assert plan.seconds == plan.time.choosing + plan.time.summing + plan.time.solving > 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Costs.load(path).save(default_path())
    assert estimator.plan(X).seconds > 0
    with pytest.raises(ValueError, match="workers must be a whole number of 1 or more"):
        estimator.plan(X, calibration=path, workers=0)
