"""The work of a fit as the cost model counts it."""

from __future__ import annotations

import numpy as np

from daskspectral.estimators import SpectralDecomposition
from daskspectral.kernels import Exponential, Gaussian
from daskspectral.operators import Covariance

X = np.random.default_rng(0).standard_normal((600, 3))


def test_numbers_of_a_plan() -> None:
    plan = SpectralDecomposition(kernel=Gaussian(1.0), n_landmarks=40, dtype="float32").plan(X)
    found = plan.work
    assert (found.n, found.d, found.p, found.forms, found.solver) == (600, 3, 41, 2, "symmetric")
    assert (found.tasks, found.groups) == (len(plan.ranges.ranges), 11)  # ten folds, and the rows that are landmarks
    assert (found.sampled, found.single, found.automatic) == (600, True, False)
    both = SpectralDecomposition(kernel=Gaussian(1.0) + Exponential(1.0) * Gaussian(2.0), operator=Covariance())
    for own, kernels in (
        (SpectralDecomposition(), {"Matern 1.5 slope": 0.5, "Gaussian slope": 0.5}),
        (both, {"Gaussian": 2, "Exponential": 1}),
        (SpectralDecomposition(kernel=Gaussian(1.0), periods={0: 5.0}), {"Gaussian slope": 1}),
    ):
        assert own.plan(X).work.kernels == kernels
