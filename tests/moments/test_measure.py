"""What a task measures, sums and samples: against the rows, in batches, panels and single precision."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import daskspectral as dsp
from daskspectral.basis import LandmarkBasis, Landmarks, MonomialBasis
from daskspectral.forms import first_moment
from daskspectral.kernels import Gaussian, Kernel, Mahalanobis, Polynomial
from daskspectral.moments import NUMBER, Measure
from daskspectral.moments.counting import ORDER, RowRuns
from daskspectral.moments.folds import COUNT, WEIGHT, Groups, RandomFolds, name_in
from daskspectral.moments.patterns import MEASURED
from daskspectral.moments.sample import Sample, reach_of
from daskspectral.moments.summing import SumTask
from daskspectral.operators import Laplacian
from tests.common import named, reloaded, unreliable

RNG = np.random.default_rng(0)
N = 5000
X, W = RNG.standard_normal((N, 2)), RNG.uniform(0.5, 2, N)
LAPLACIAN = Laplacian()
QUADRATIC = MonomialBasis(2, 2)
PHI = QUADRATIC.values(X)


def measure(**changes: Any) -> Measure:
    functionals = {"first": first_moment, **MEASURED}
    return Measure(QUADRATIC, QUADRATIC, LAPLACIAN.forms, functionals, LAPLACIAN, patterns=True, **changes)


@pytest.mark.parametrize(("weighted", "gathers"), [(True, False), (False, True)])
def test_the_sums_of_a_task(weighted: bool, gathers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By group, in batches of any length; on an accelerator rows of a group wait until they fill blocks."""
    monkeypatch.setattr(Measure, "gathers", gathers)
    rows = {"x": X, NUMBER: np.arange(N)} | ({"weight": W} if weighted else {})
    w = W if weighted else np.ones(N)
    task = SumTask(measure(rows=64), LAPLACIAN, groups=Groups(RandomFolds(3)), runs=RowRuns.of(QUADRATIC, N))
    batches = [{k: v[a:b] for k, v in rows.items()} for a, b in ((0, 10), (10, 10), (10, 700), (700, 704), (704, N))]
    found, fold = task(batches), RandomFolds(3).of(rows)
    np.testing.assert_allclose(found[WEIGHT], np.bincount(fold, w))
    np.testing.assert_array_equal(found[COUNT], np.bincount(fold))
    for g in range(3):
        phi, own = PHI[:, fold == g], w[fold == g]
        np.testing.assert_allclose(found[name_in(g, "gram")], phi * own @ phi.T, rtol=1e-10)
        np.testing.assert_allclose(found[name_in(g, "first")], phi @ own, rtol=1e-9)
    for name, wanted in (("points", PHI * w @ X), ("point sums", w @ X), ("point squares", w @ X**2)):
        np.testing.assert_allclose(found[name_in("all", name)], wanted, rtol=1e-9, atol=1e-9)
    assert found[ORDER][0, 0] == N
    whole = SumTask(measure(rows=64), LAPLACIAN)(batches)
    np.testing.assert_allclose(whole["gram"], PHI * w @ PHI.T, rtol=1e-10)


def test_single_precision_holds_weights_of_any_size() -> None:
    """In units of a power of two, where their roots are far from 1."""
    for unit in (1e-30, 1e-12, 1.0, 1e30, np.repeat([1.0, 1e30], 100)):
        found = measure(dtype="float32", rows=64)([{"x": X[:200], "weight": unit * W[:200]}])
        wanted = PHI[:, :200] * (unit * W[:200]) @ PHI[:, :200].T
        np.testing.assert_allclose(found["gram"], wanted, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kernel", [Polynomial(3), Mahalanobis(Gaussian(1.5), [[1.0, 0.0], [0.0, 2.0]])], ids=named)
def test_panels_make_no_difference(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    basis = LandmarkBasis(kernel, X[:7])
    made = Measure(basis, basis, LAPLACIAN.forms, operator=LAPLACIAN)
    wanted = made([{"x": X, "weight": W}])
    monkeypatch.setattr("daskspectral.basis.landmark.PANEL_BYTES", 3 * 8 * len(X))
    for name, values in made([{"x": X, "weight": W}]).items():
        np.testing.assert_allclose(values, wanted[name], rtol=1e-11, atol=1e-11 * np.abs(wanted[name]).max())


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_gradients_in_a_metric_of_some_directions(columns: int) -> None:
    """Dirichlet forms are mean products of partial derivatives, for a metric with fewer columns than rows too."""
    metric = np.random.default_rng(0).standard_normal((2, columns))
    basis = LandmarkBasis(Mahalanobis(Gaussian(1.5), metric), X[:7])
    found = Measure(basis, basis, LAPLACIAN.forms, operator=LAPLACIAN)([{"x": X, "weight": W}])["form"]
    slopes = [basis.kernel.partial(X, X[:7], alpha) for alpha in ((1, 0), (0, 1))]
    np.testing.assert_allclose(found, sum(s * W @ s.T for s in slopes), rtol=1e-9, atol=1e-9 * np.abs(found).max())


# samples of rows: uniform, additive, and independent of batches


SMOOTH = Landmarks(Gaussian(1.5), 40)


def whole(size: int, x: Any, start: int = 0) -> Sample:
    batch = {"x": x, NUMBER: np.arange(start, start + len(x))}
    return Sample.of_batch(batch, reach_of(len(x), size), size)


def fitted(x: Any) -> Any:
    return dsp.SpectralDecomposition(basis=SMOOTH, n_components=4, random_state=0).fit(x)


def assert_same(found: Any, wanted: Any) -> None:
    for name in ("points", "weights", "keys", "reach", "size"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def test_keys_are_the_lowest_of_uniform_ones() -> None:
    found = whole(500, np.ones((10_000, 1)), 100)
    assert len(found.keys) == 500
    assert found.keys.max() < found.reach == pytest.approx(0.05, rel=0.2)
    every = whole(500, np.ones((300, 1)))
    assert (len(every.keys), every.reach) == (300, 1.0)
    assert np.mean(every.keys) == pytest.approx(0.5, abs=0.08)


def test_samples_add_in_any_order_and_keep_the_lowest_keys() -> None:
    parts = [whole(400, X[a:b], a) for a, b in ((0, 1000), (1000, 1500), (1500, 5000))]
    total = parts[0] + parts[1] + parts[2]
    assert_same(parts[0] + (parts[1] + parts[2]), total)
    assert len(total.points) <= 400
    assert total.keys.max() < min(part.reach for part in parts)
    shares = [np.isin(total.points[:, 0], X[a:b, 0]).mean() for a, b in ((0, 1000), (1000, 1500), (1500, 5000))]
    np.testing.assert_allclose(shares, [0.2, 0.1, 0.7], atol=0.06)


def test_the_sample_of_a_fit_does_not_depend_on_chunks_or_scheduler() -> None:
    wanted = fitted(X).moments_.sample
    assert wanted.points.shape == (4000, 2)
    for chunks, scheduler in ((700, "threads"), (1250, "synchronous")):
        with dask.config.set(scheduler=scheduler):
            assert_same(fitted(da.from_array(X, chunks=(chunks, 2))).moments_.sample, wanted)


@unreliable
def test_samples_of_updates_and_of_saved_models() -> None:
    model = fitted(X[:4000])
    loaded = reloaded(model)
    assert_same(loaded.moments_.sample, model.moments_.sample)
    loaded.update(X)
    assert 0.1 < np.isin(loaded.moments_.sample.points[:, 0], X[4000:, 0]).mean() < 0.3
