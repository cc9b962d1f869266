"""The Laplacian on periodic boxes, and on their products with other manifolds, by kernels at landmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis
from daskspectral.kernels import Exponential, Gaussian, Kernel, Matern, Periodic, Polynomial
from daskspectral.landmarks import METHODS
from daskspectral.manifolds import Circle, Manifold, PeriodicBox, Product, Sphere
from daskspectral.operators import Laplacian

CASES: dict[str, tuple[Manifold, Kernel, int]] = {
    "circle": (PeriodicBox([0], [2 * np.pi]), Gaussian(0.7), 9),
    "far from the origin": (PeriodicBox([-105], [-103]), Gaussian("median"), 9),
    "uneven": (PeriodicBox([0, -1], [2 * np.pi, 3]), Gaussian(1.0), 9),
    "rough": (PeriodicBox([0], [3]), Matern(2.5, 1.0), 7),
    "product": (Product(PeriodicBox([0], [2 * np.pi]), Sphere(3)), Gaussian(1.2), 12),
    "product, the box last": (Product(Circle(), PeriodicBox([1], [4])), Gaussian(0.8), 9),
    "dot product": (PeriodicBox([0], [2 * np.pi]), Polynomial(4), 9),
}


def make(manifold: Manifold, kernel: Kernel, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {"n_landmarks": 150, "n_components": 9, "random_state": 0}
    return dsp.SpectralDecomposition(Laplacian(manifold), kernel, **(defaults | changes))


def uniform(manifold: Manifold, n: int = 20_000) -> Any:
    return manifold.sample(n, np.random.default_rng(1))


@pytest.mark.filterwarnings("ignore::daskspectral.RankWarning")
@pytest.mark.parametrize("case", CASES)
def test_landmark_kernels_on_a_box_are_periodic(case: str) -> None:
    manifold, kernel, count = CASES[case]
    model = make(manifold, kernel, n_components=count).fit(uniform(manifold))
    np.testing.assert_allclose(
        model.eigenvalues_, manifold.eigenvalues(count), rtol=0.06, atol=0.02 * manifold.eigenvalue(1)
    )


def moved(manifold: PeriodicBox, x: Any) -> Any:
    """The same points, some of them many boxes away."""
    turns = np.random.default_rng(2).integers(-3, 4, x.shape)
    assert np.abs(turns).max() == 3
    return x + turns * manifold.lengths


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Exponential(2.0), Polynomial(3)])
def test_rows_outside_the_box_wrap(kernel: Kernel) -> None:
    box = PeriodicBox([0, -1], [2 * np.pi, 3])
    x = uniform(box, 2000)
    model, other = (make(box, kernel, n_landmarks=30).fit(rows) for rows in (x, moved(box, x)))
    np.testing.assert_allclose(model.transform(moved(box, x[:500])), model.transform(x[:500]), atol=1e-7)
    np.testing.assert_allclose(other.eigenvalues_, model.eigenvalues_, rtol=1e-8, atol=1e-8)


def test_the_ends_of_a_box_meet_for_the_median_and_for_landmarks() -> None:
    box = PeriodicBox([0], [1])
    x = np.concatenate([uniform(box, 300) % 0.01, 1 - uniform(box, 300) % 0.01])  # one cluster, about 0
    model = make(box, Gaussian("median"), n_landmarks=5, n_components=2, landmarks="farthest").fit(x)
    assert isinstance(model.kernel_, Periodic)
    scale = model.kernel_.get_params()["kernel__scale"]
    assert scale == pytest.approx(np.median(np.abs((x - x.T + 0.5) % 1 - 0.5)[np.triu_indices(600, 1)]), rel=0.01)
    far = uniform(box, 20) % 0.01 + 0.3
    model.set_params(n_landmarks=2).fit(np.concatenate([x, far]))
    assert isinstance(model.basis_.parts[1], LandmarkBasis)
    points = np.sort(model.basis_.parts[1].landmarks[:, 0])
    assert 0.3 < points[0] < 0.33 or 0.3 < points[1] < 0.33  # and not both ends


def test_medians_of_periodic_kernels_elsewhere() -> None:
    x = np.concatenate([uniform(PeriodicBox([0], [1]), 30) % 0.01, 1 - uniform(PeriodicBox([0], [1]), 30) % 0.01])
    periodic = Periodic(Matern(1.5, "median"), (1.0,))
    graph = dsp.GraphLaplacian(periodic, periodic, n_landmarks=10, n_components=2, random_state=0).fit(x)
    learned = dsp.KernelEmbedding(periodic, random_state=0).fit(x)
    for kernel in (graph.weights_, graph.kernel_, learned.kernel_):
        assert 0.001 < kernel.get_params()["kernel__scale"] < 0.01  # and not 1


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_landmarks(method: str) -> None:
    box = PeriodicBox([0], [2 * np.pi])
    model = make(box, Gaussian(0.7), landmarks=method, n_landmarks=20, n_components=3).fit(uniform(box, 5000))
    np.testing.assert_allclose(model.eigenvalues_, [0, 1, 1], atol=0.1)


def test_saved_and_loaded(tmp_path: Path) -> None:
    manifold = Product(Sphere(3), PeriodicBox([0], [1]))
    x = uniform(manifold, 1000)
    model = make(manifold, Gaussian("median"), n_landmarks=30).fit(x)
    dsp.save(model, tmp_path / "model")
    np.testing.assert_array_equal(dsp.load(tmp_path / "model").transform(x[:50]), model.transform(x[:50]))


def test_a_kernel_that_is_periodic_already() -> None:
    box = PeriodicBox([0], [1])
    x = uniform(box, 1000)
    options: dict[str, Any] = {"n_landmarks": 10, "n_components": 3}
    given, wrapped = (make(box, k, **options).fit(x) for k in (Periodic(Gaussian(0.2), (1.0,)), Gaussian(0.2)))
    np.testing.assert_array_equal(given.eigenvalues_, wrapped.eigenvalues_)
    with pytest.raises(ValueError, match=r"kernel has the periods \(2.0,\), and .*PeriodicBox.* has \(1.0,\)"):
        make(box, Periodic(Gaussian(0.2), (2.0,)), **options).fit(x)
    with pytest.raises(ValueError, match=r"one period or None for each column.*2.*1 column"):
        dsp.SpectralDecomposition(None, Periodic(Gaussian(0.2), (2.0, None))).fit(x)


def test_standardized_columns_have_other_periods() -> None:
    box = PeriodicBox([0], [1])
    with pytest.raises(ValueError, match=r"standardize=True would change the units of X, .* has periods in them"):
        make(box, Gaussian(0.2), standardize=True, n_landmarks=10).fit(uniform(box, 100))


@pytest.mark.parametrize("kernel", [Gaussian(0.8), Matern(2.5, 0.9), Polynomial(3)])
def test_gradients_of_the_sums(kernel: Kernel) -> None:
    """The Dirichlet form of a product, against finite differences of values along the manifold."""
    manifold = Product(PeriodicBox([0, 0], [2, 3]), Circle())
    x = uniform(manifold, 400)
    model = make(manifold, kernel, landmarks=x[:12], exclude_landmarks=False, n_components=5).fit(x[12:])
    h, total = 1e-5, 0.0
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    steps = [np.eye(4)[0] + 0 * x, np.eye(4)[1] + 0 * x, np.column_stack([0 * x[:, :2], x[:, 2:] @ turn.T])]
    for step in steps:
        ends = (model.basis_.values(x[12:] + sign * h * step[12:]) for sign in (1, -1))
        slope = np.subtract(*ends) / (2 * h)
        total = total + slope @ slope.T / slope.shape[1]
    form = model.moments_.mean("form")
    np.testing.assert_allclose(form, total, atol=1e-6 * np.abs(form).max())
