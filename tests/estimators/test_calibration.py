"""Costs measured on this machine, and plans that tell the time with them. Nothing here is timed: tiny sizes."""

import math

import dask
import numpy as np
import pytest
import zarr

from daskspectral.basis import FourierLattice
from daskspectral.engine.costs import Costs, default_path, shown
from daskspectral.estimators import SpectralDecomposition
from daskspectral.estimators.calibration import calibrate
from daskspectral.kernels import Exponential, Gaussian, Linear, Matern, Polynomial
from daskspectral.operators import Covariance, Cross, Transfer

X = np.random.default_rng(0).standard_normal((400, 2))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A calibration of tiny sizes."""
    path, said = tmp_path_factory.mktemp("costs") / "costs.json", []
    with dask.config.set(num_workers=2):
        calibrate(quick=True, say=said.append).save(path)
    assert len(said) == 5
    return path


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        ({}, X),
        ({"kernel": Gaussian(1.0) + Matern(3.5, 2.0), "n_landmarks": 50}, X),
        ({"kernel": Matern(2.5, 1.0), "landmarks": X[:10], "dtype": "float32"}, X),
        ({"operator": Cross(), "kernel": Exponential(1.0)}, (X, X[::-1].copy())),
        ({"operator": Transfer(1, solver="eigen"), "kernel": Gaussian(1.0)}, X),
        ({"operator": Covariance(), "kernel": Linear()}, X),
        ({"kernel": Polynomial(2), "n_landmarks": 50}, X),
        ({"basis": FourierLattice(4)}, X),
    ],
)
def test_every_kind_of_fit_that_was_measured_is_predicted(file, arguments, data):
    plan = SpectralDecomposition(random_state=0, **arguments).plan(data, calibration=file, workers=3, threads=2)
    assert plan.time is not None, plan.untimed
    assert (plan.time.workers, plan.time.threads) == (3, 2)
    assert plan.seconds == plan.time.choosing + plan.time.summing + plan.time.solving
    assert 0 < plan.seconds < math.inf
    assert "about" in str(plan)


def test_a_plan_by_the_costs_of_the_file(file):
    estimator, costs = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30), Costs.load(file)
    plan = estimator.plan(X, calibration=file, threads=1)
    assert plan.time == costs.predict(plan.work, threads=1)
    with dask.config.set(num_workers=7):
        assert estimator.plan(X, calibration=file).time.threads == 7
    assert estimator.plan(X, calibration=file, threads=2).time.workers == 1


def test_of_a_device_the_time_of_reading_is_known_alone(file, stand_in, tmp_path):
    costs, est = Costs.load(file), SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30, device="cuda")
    array = zarr.create_array(tmp_path / "x.zarr", shape=(1_000_000, 4), chunks=(100_000, 4), dtype="float32")
    plan = est.plan(array, calibration=file, threads=2)
    assert plan.time is None
    assert plan.untimed == "nothing was measured on the device cuda"
    assert plan.reading == pytest.approx(costs.reading * 16 * 1_000_000 / 2)
    assert f"reading takes {shown(plan.reading)}, the least of a pass on any device" in str(plan)
    assert est.plan(X, calibration=file).reading is None  # in memory
    assert SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30).plan(array, calibration=file).reading is None


def test_the_users_own_file_is_found(file, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    estimator = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=30)
    plan = estimator.plan(X)
    assert plan.seconds is None
    assert "not measured yet (daskspectral plan --calibrate)" in plan.untimed
    assert "about" not in str(plan)
    default_path().parent.mkdir()
    default_path().write_text('{"format": "daskspectral costs 0"}')
    stale = estimator.plan(X)
    assert stale.seconds is None
    assert "no calibration of this version" in stale.untimed
    Costs.load(file).save(default_path())
    assert estimator.plan(X).seconds > 0


@pytest.mark.parametrize("options", [{"workers": 0}, {"threads": 1.5}, {"workers": True}])
def test_numbers_of_workers_that_are_none(file, options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} must be a whole number of 1 or more"):
        SpectralDecomposition().plan(X, calibration=file, **options)


def test_workers_of_the_active_cluster(file, monkeypatch):
    from daskspectral.passes import work

    monkeypatch.setattr(work, "cluster_workers", lambda: [{"nthreads": 4}, {"nthreads": 2}])
    found = SpectralDecomposition(kernel=Gaussian(1.0)).plan(X, calibration=file).time
    assert (found.workers, found.threads) == (2, 3)
