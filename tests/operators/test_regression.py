"""Sums of regression besides its forms, by row: leveled values, tangential slopes, their weighted squares."""

import numpy as np

from daskspectral.manifolds import Interval, Product, Sphere
from daskspectral.operators.regression import Regression

N, RNG = 6, np.random.default_rng(0)
MANIFOLD = Product(Sphere(3), Interval(0, 1))
SCALE = np.array([2.0, 3.0, 0.5, 4.0])
X, W = MANIFOLD.sample(N, RNG), RNG.uniform(0.5, 2, N)
X[1, 3], X[2, 3], W[4] = -0.1, 1.2, 0.0  # beyond both ends, and a row that counts nothing
FIELDS = {"x": X, "weight": W, "y": RNG.standard_normal((N, 2)), "gradients": RNG.standard_normal((N, 2, 6))}
COLUMNS = [5, 0, 2, 1]


def test_sums_of_values_and_slopes_are_those_of_a_loop() -> None:
    operator = Regression(gradients=True, targets=2, manifold=MANIFOLD, origin=(1.0, -2.0), unit=4.0)
    found = operator.prepared(FIELDS, SCALE, COLUMNS)
    sums = operator.statistics(found)
    values, slopes = np.zeros((2, 2)), np.zeros(2)
    rows = zip(X, W, FIELDS["y"], FIELDS["gradients"], found["y"], found["gradients"], strict=True)
    for x, w, y, t, own_y, own_t in rows:
        normal = np.array([*x[:3], 0])
        for j in range(2):
            level, slope = (y[j] - (1.0, -2.0)[j]) / 4, t[j, COLUMNS] / 4 * SCALE
            slope[3] *= 0 <= x[3] <= 1
            slope -= normal * (normal @ slope)
            np.testing.assert_allclose(own_y[j], level)
            np.testing.assert_allclose(own_t[j], slope, atol=1e-14)
            values[:, j] += w * level, w * level**2
            slopes[j] += w * slope @ slope
    np.testing.assert_allclose([sums["value_sums"], sums["value_squares"]], values)
    np.testing.assert_allclose(sums["slope_squares"], slopes)
    np.testing.assert_allclose(sums["weight_squares"], [0, np.sum(W**2), 0])
    assert sums["observed"] == [N - 1]
    bare = operator.statistics({k: v for k, v in found.items() if k != "weight"})
    assert (bare["observed"], bare["weight_squares"].sum()) == ([N], N)
