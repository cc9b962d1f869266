"""The Laplacian on periodic boxes, and on their products with other manifolds, by kernels at landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.kernels import Exponential, Gaussian, Kernel, Polynomial
from daskspectral.manifolds import Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Laplacian

BOX = PeriodicBox([0], [2 * np.pi])
UNIT = PeriodicBox([0], [1])


def make(manifold: Manifold, kernel: Kernel, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"n_landmarks": 30, "n_components": 5, "random_state": 0}
    return dsp.SpectralDecomposition(Laplacian(manifold), kernel, **(defaults | changes))


def uniform(manifold: Manifold, n: int) -> Any:
    return manifold.sample(n, np.random.default_rng(1))


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize(
    ("manifold", "kernel", "count"),
    [
        (PeriodicBox([-105], [-103]), Gaussian("median"), 9),
        (PeriodicBox([0, -1], [2 * np.pi, 3]), Gaussian(1.0), 9),
        (Product(BOX, Sphere(3)), Gaussian(1.2), 12),
        (BOX, Polynomial(4), 9),
    ],
)
def test_landmark_kernels_on_a_box_are_periodic(manifold: Manifold, kernel: Kernel, count: int) -> None:
    model = make(manifold, kernel, n_components=count, n_landmarks=120).fit(uniform(manifold, 8000))
    tolerance = {"rtol": 0.08, "atol": 0.03 * manifold.eigenvalue(1)}
    np.testing.assert_allclose(model.eigenvalues_, manifold.eigenvalues(count), **tolerance)


def test_rows_outside_the_box_wrap() -> None:
    box = PeriodicBox([0, -1], [2 * np.pi, 3])
    x = uniform(box, 1000)
    moved = x + np.random.default_rng(2).integers(-3, 4, x.shape) * box.lengths
    model, other = (make(box, Exponential(2.0)).fit(rows) for rows in (x, moved))
    np.testing.assert_allclose(model.transform(moved), model.transform(x), atol=1e-7)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-8, atol=1e-8)


def test_the_ends_of_a_box_meet_for_the_median_and_for_landmarks() -> None:
    x = np.concatenate([uniform(UNIT, 300) % 0.01, 1 - uniform(UNIT, 300) % 0.01])  # one cluster, about 0
    model = make(UNIT, Gaussian("median"), n_landmarks=5, n_components=2, landmarks="farthest").fit(x)
    scale = model.kernel_.get_params()["kernel__scale"]
    assert scale == pytest.approx(np.median(np.abs((x - x.T + 0.5) % 1 - 0.5)[np.triu_indices(600, 1)]), rel=0.01)
    far = uniform(UNIT, 20) % 0.01 + 0.3
    points = model.set_params(n_landmarks=2).fit(np.concatenate([x, far])).basis_.parts[1].landmarks
    assert np.sum((points > 0.29) & (points < 0.33)) == 1  # and not both ends
