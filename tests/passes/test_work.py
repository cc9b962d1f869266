"""The work of a fit as the cost model counts it, against the products of matrices that a fit really makes."""


import numpy as np

from daskspectral.data.writer import create_array
from daskspectral.estimators import SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian
from daskspectral.operators import (
    Covariance,
)

X = np.random.default_rng(0).standard_normal((600, 3))
def work(estimator, data, **options):
    plan = estimator.plan(data, **options)
    assert plan.work is not None, plan.untimed
    return plan.work


def test_numbers_of_a_plan(tmp_path):
    with create_array(tmp_path / "x.zarr", (600, 3), "float32") as array:
        array[:] = X
    estimator = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=40, dtype="float32")
    found = work(estimator, str(tmp_path / "x.zarr"), sample_weight=np.ones(600))
    plan = estimator.plan(X)
    assert (found.n, found.d, found.p, found.forms, found.solver) == (600, 3, 41, 2, "symmetric")
    assert found.tasks == len(plan.ranges.ranges)
    assert found.groups == 11  # ten folds, and the rows that are landmarks
    assert found.row_bytes == 12  # the weights are in memory
    assert found.sampled == 600
    assert found.single
    assert not found.automatic
    assert found.kernels == {"Gaussian slope": 1}
    assert work(SpectralDecomposition(), X).kernels == {"Matern 1.5 slope": 0.5, "Gaussian slope": 0.5}
    assert work(SpectralDecomposition(), X).automatic
    both = SpectralDecomposition(kernel=Gaussian(1.0) + Exponential(1.0) * Gaussian(2.0), operator=Covariance())
    assert work(both, X).kernels == {"Gaussian": 2, "Exponential": 1}
    assert work(SpectralDecomposition(kernel=Gaussian(1.0), periods={0: 5.0}), X).kernels == {"Gaussian slope": 1}
