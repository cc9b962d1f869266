"""The sampling density divided out of the Laplacian: Laplace-Beltrami, however the rows were sampled."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.errors import DensityWarning
from daskspectral.kernels import Gaussian, Matern
from daskspectral.manifolds import Circle, PeriodicBox, Sphere
from daskspectral.operators import Laplacian
from daskspectral.operators.density import Density, estimate_density
from daskspectral.registry import decode, encode
from tests.common import assert_close, assert_same_bits

RATE = np.log(20)  # densities that rise twentyfold over a unit
GRID = np.arange(8)
SQUARE = np.sort(np.pi**2 * (GRID[:, None] ** 2 + GRID**2).ravel())[1:11]


def rising(n: int, rng: Any) -> Any:
    """Points of [0, 1] with the density proportional to exp(RATE x)."""
    return np.log1p(rng.random(n) * np.expm1(RATE)) / RATE


def steep(n: int, seed: int) -> tuple[Any, Any]:
    """Points of the unit square, twenty times as dense on one side as on the other, with this density."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rising(n, rng), rng.random(n)])
    return x, np.exp(RATE * x[:, 0])


def angles(n: int, seed: int) -> Any:
    """Angles with the density proportional to 1 + .8 cos."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 2 * np.pi, 3 * n)
    return t[rng.random(3 * n) < (1 + 0.8 * np.cos(t)) / 1.8][:n]


def make(operator: Laplacian, **changes: Any) -> dsp.SpectralDecomposition:
    defaults: dict[str, Any] = {
        "kernel": Matern(1.5, 0.5),
        "n_landmarks": 150,
        "landmarks": "kmeans++",
        "n_components": 11,
        "solver": "cut",
        "exclude_landmarks": True,
        "random_state": 0,
    }
    return dsp.SpectralDecomposition(operator, **(defaults | changes))


# -- eigenvalues -------------------------------------------------------------------------------------------------------


def test_a_square_sampled_with_a_steep_density() -> None:
    x, rho = steep(20_000, 0)
    found = make(Laplacian(density=1.0)).fit(x).eigenvalues_
    assert found[0] < 1e-9
    np.testing.assert_allclose(found[1:], SQUARE, rtol=0.07)
    assert np.abs(make(Laplacian()).fit(x).eigenvalues_[1:] / SQUARE - 1).max() > 0.15
    known = make(Laplacian()).fit(x, sample_weight=rho.mean() / rho).eigenvalues_  # the recipe with the true density
    np.testing.assert_allclose(found[1:], known[1:], rtol=0.06)


@pytest.mark.parametrize("exponent", [0.25, 0.5])
def test_exponents_between(exponent: float) -> None:
    x, rho = steep(20_000, 1)
    found = make(Laplacian(density=exponent)).fit(x).eigenvalues_
    weight = rho**-exponent
    known = make(Laplacian()).fit(x, sample_weight=weight * weight.sum() / (weight**2).sum()).eigenvalues_
    np.testing.assert_allclose(found[1:], known[1:], rtol=0.04)


def test_an_interval_and_a_circle() -> None:
    x = np.pi * rising(20_000, np.random.default_rng(2))[:, None]
    found = make(Laplacian(density=1.0), kernel=Matern(1.5, 1.0), n_landmarks=80, n_components=7).fit(x).eigenvalues_
    np.testing.assert_allclose(found[1:], np.arange(1, 7) ** 2, rtol=0.05)
    t, settings = angles(20_000, 3), {"kernel": Gaussian(0.7), "n_landmarks": 60, "n_components": 9}
    wanted = np.repeat(np.arange(1, 5) ** 2, 2)
    tangential = make(Laplacian(Circle(), density=1.0), **settings)
    on_circle = tangential.fit(np.column_stack([np.cos(t), np.sin(t)])).eigenvalues_
    np.testing.assert_allclose(on_circle[1:], wanted, rtol=0.04)
    assert make(Laplacian(Circle()), **settings).fit(np.column_stack([np.cos(t), np.sin(t)])).eigenvalues_[2] > 1.4
    for model in (
        make(Laplacian(density=1.0), periods={0: 2 * np.pi}, **settings),
        make(Laplacian(PeriodicBox([0], [2 * np.pi]), density=1.0), **settings),
    ):
        np.testing.assert_allclose(model.fit(t[:, None]).eigenvalues_[1:], wanted, rtol=0.04)
        assert model.density_.periods == (2 * np.pi,)


def test_uniform_rows_change_little() -> None:
    x = np.random.default_rng(4).random((20_000, 2))
    with_density, without = (make(Laplacian(density=a)).fit(x).eigenvalues_ for a in (1.0, 0.0))
    np.testing.assert_allclose(with_density[1:], without[1:], rtol=0.08)  # 3 % at n = 1e5, as n^(-1/2)
    sphere, settings = Sphere(3).sample(20_000, np.random.default_rng(5)), {"kernel": Gaussian(1.0)}
    tangential = make(Laplacian(Sphere(3), density=1.0), **settings).fit(sphere).eigenvalues_
    np.testing.assert_allclose(tangential[1:9], [2, 2, 2, 6, 6, 6, 6, 6], rtol=0.07)


def test_the_constant_has_unit_norm_for_the_weighted_rows() -> None:
    x, _ = steep(5000, 6)
    model = make(Laplacian(density=1.0), n_components=3).fit(x)
    weights = model.density_.weights(x)
    np.testing.assert_allclose(weights.mean(), 1, rtol=1e-12)  # all rows are the sample
    functions = model.transform(x)
    rows = np.ones(len(x), dtype=bool)
    rows[[int(np.flatnonzero((x == y).all(axis=1))[0]) for y in model.basis_.parts[-1].landmarks]] = False
    products = functions[rows].T * weights[rows] @ functions[rows] / rows.sum()
    np.testing.assert_allclose(products, np.eye(3), atol=1e-9)


# -- the sums ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", [None, Circle()])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_sums_are_those_of_rows_with_these_weights(manifold: Any, dtype: str) -> None:
    t = angles(3000, 7)
    x, w = np.column_stack([np.cos(t), np.sin(t)]), np.random.default_rng(8).uniform(0, 2, 3000)
    settings = {"n_landmarks": 12, "n_components": 3, "dtype": dtype, "kernel": Gaussian(1.0)}
    model = make(Laplacian(manifold, density=0.7), exclude_landmarks=False, **settings).fit(x, sample_weight=w)
    points = model.basis_.parts[-1].landmarks
    plain = make(Laplacian(manifold), landmarks=points, exclude_landmarks=False, **settings)
    plain.fit(x, sample_weight=w * model.density_(x) ** -0.7)
    for name in ("form", "gram", "first"):
        tolerance = 1e-12 if dtype == "float64" else 1e-5
        assert_close(model.moments_.arrays[name], plain.moments_.arrays[name], tolerance, what=name)
    assert model.moments_.weight == pytest.approx(w.sum())
    assert model.density_.counts.sum() == pytest.approx(w.sum())  # rows count by their weights in the density too


def test_several_measures_and_error_bars_have_the_same_weights() -> None:
    from daskspectral.moments import Measure, MeasureMany

    x, _ = steep(2000, 9)
    model = make(Laplacian(density=1.0), n_landmarks=10, n_components=3, exclude_landmarks=False).fit(x)
    moments = model.moments_
    measure = Measure(moments.basis, moments.basis, moments.operator.forms, operator=moments.operator)
    fold = np.arange(2000) % 2
    sums = MeasureMany({"a": measure}, folds=2)([{"x": x, "fold": fold}])
    for name in ("form", "gram"):
        assert_close(sums[f"a/0/{name}"] + sums[f"a/1/{name}"], moments.arrays[name], 1e-12, what=name)
        assert_close(measure([{"x": x}])[name], moments.arrays[name], 1e-12, what=name)
    bound = model.variance_bound(x)
    points = moments.basis.parts[-1].landmarks
    weighted = make(Laplacian(), landmarks=points, n_components=3, exclude_landmarks=False)
    weights = model.density_.weights(x)
    wanted = weighted.fit(x, sample_weight=weights).variance_bound(x, sample_weight=weights)
    np.testing.assert_allclose(bound.standard_errors[1:], wanted.standard_errors[1:], rtol=1e-6)


def test_a_density_that_is_not_estimated_is_an_error() -> None:
    operator = Laplacian(density=1.0)
    assert (operator.estimate, operator.exponent) == (None, 1.0)
    with pytest.raises(ValueError, match="is to be estimated from the data"):
        operator.factors({"x": np.zeros((2, 1))})


# -- the estimate ------------------------------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 99), exponent=st.integers(-9, 9), shift=st.floats(-100, 100))
def test_the_estimate_does_not_depend_on_units_or_origin(seed: int, exponent: int, shift: float) -> None:
    x = np.random.default_rng(seed).standard_normal((400, 2)) ** 3
    plain, scaled, moved = (
        estimate_density(y, 1.0, np.random.default_rng(0)).weights(y) for y in (x, 2.0**exponent * x, x + shift)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-9)
    assert np.mean(np.abs(np.log(moved / plain))) < 0.05  # rounding may move a row from one cell to the next


def test_weights_are_repeated_rows() -> None:
    x, _ = steep(1500, 10)
    counts = np.random.default_rng(11).integers(0, 4, len(x))
    grid = np.random.default_rng(12).random((50, 2))
    weighted = estimate_density(x, 1.0, np.random.default_rng(0), weights=counts.astype(float))(grid)
    repeated = estimate_density(np.repeat(x, counts, axis=0), 1.0, np.random.default_rng(0))(grid)
    np.testing.assert_allclose(np.log(weighted / repeated).std(), 0, atol=0.35)
    ignored = estimate_density(x, 1.0, np.random.default_rng(0), clip=0.0)(grid)
    heavy = np.where(x[:, 0] > 0.5, 9.0, 1.0)
    leaned = estimate_density(x, 1.0, np.random.default_rng(0), weights=heavy, clip=0.0)(grid)
    ratio = leaned / ignored
    assert 6 < np.median(ratio[grid[:, 0] > 0.6]) / np.median(ratio[grid[:, 0] < 0.4]) < 12


def test_the_density_is_a_ratio_of_two_kernel_sums() -> None:
    density = Density(1.0, np.array([[0.0], [1.0], [3.0]]), np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 5.0]), 0.7)
    for point in (-1.0, 0.2, 1.9, 3.0):
        k = [np.exp(-((point - y) ** 2) / (2 * 0.7**2)) for y in (0.0, 1.0, 3.0)]
        wanted = (k[0] + 2 * k[1] + 4 * k[2]) / (k[0] / 2 + 2 * k[1] + 4 * k[2] / 5)
        np.testing.assert_allclose(density(np.array([[point]])), wanted, rtol=1e-13)
    far = density(np.array([[1e6], [-1e6]]))  # neither sum underflows
    np.testing.assert_allclose(far, [5.0, 2.0])
    assert Density(1.0, density.centres, density.counts, density.heights, 0.7, floor=3.0)(np.zeros((1, 1)))[0] == 3.0


def test_it_is_clipped_at_its_quantile_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    x, _ = steep(4000, 13)
    with caplog.at_level(logging.INFO, "daskspectral"):
        model = make(Laplacian(density=1.0), n_landmarks=20, n_components=3).fit(x)
    density = model.density_
    assert density.clipped == pytest.approx(0.01, abs=0.003)
    assert "clipped below at" in caplog.text
    values = density(x)
    assert np.mean(values == density.floor) == pytest.approx(0.01, abs=0.003)
    assert make(Laplacian(density=1.0, clip=0.0), n_landmarks=20, n_components=3).fit(x).density_.clipped == 0
    assert len(density.centres) == len(density.counts) == 200
    assert density.counts.sum() == pytest.approx(len(x))


def test_outliers_are_clipped_with_a_warning() -> None:
    x = np.concatenate([steep(4000, 14)[0], np.random.default_rng(15).uniform(-40, 40, (20, 2))])
    with pytest.warns(DensityWarning, match=r"clipped below at its quantile .* removes [\d.]+ % of the weight"):
        model = make(Laplacian(density=1.0), landmarks=x[:20], n_components=3).fit(x)
    assert model.density_.weights(x).max() < 60


def test_rows_at_one_point_have_no_density() -> None:
    with pytest.raises(ValueError, match="all rows of the sample are the same point"):
        estimate_density(np.ones((9, 2)), 1.0, np.random.default_rng(0))


@pytest.mark.parametrize("n", [6, 40])
def test_few_rows(n: int) -> None:
    x = np.random.default_rng(16).random((n, 1))
    density = estimate_density(x, 1.0, np.random.default_rng(0))
    assert np.isfinite(density.weights(x)).all()


@pytest.mark.parametrize("exponent", [-0.1, 1.5, np.nan, True, "1", None])
def test_exponents_that_make_no_sense(exponent: Any) -> None:
    with pytest.raises(ValueError, match=r"density is the power .* from 0 .* to 1"):
        Laplacian(density=exponent)
    with pytest.raises(ValueError, match="clip is the share"):
        Laplacian(density=1.0, clip=exponent if exponent != 0.2 else -1)


# -- moments and models ------------------------------------------------------------------------------------------------


def test_the_estimate_is_saved_and_belongs_to_the_moments(tmp_path: Path) -> None:
    x, _ = steep(4000, 17)
    model = make(Laplacian(density=1.0), n_landmarks=20, n_components=4).fit(x[:3000])
    assert clone(model).operator == Laplacian(density=1.0) == model.operator
    model.save(tmp_path / "m.zarr")
    loaded = dsp.load(tmp_path / "m.zarr")
    assert loaded.density_ == model.density_ == decode(encode(model.density_), Density)
    assert loaded.moments_.fingerprint == model.moments_.fingerprint
    np.testing.assert_array_equal(loaded.transform(x), model.transform(x))
    again = clone(model).fit_moments(loaded.moments_)  # of the estimator's own operator, not estimated
    np.testing.assert_array_equal(again.eigenvalues_, model.eigenvalues_)
    assert again.density_ == model.density_
    for other in (
        Laplacian(),
        Laplacian(density=0.5),
        Laplacian(density=1.0, clip=0.1),
        Laplacian(PeriodicBox([0, 0], [2, 2])),
    ):
        with pytest.raises(ValueError, match="these are moments of"):
            clone(model).set_params(operator=other).fit_moments(model.moments_)
    updated = loaded.update(x)
    assert updated.density_ == model.density_
    given = make(
        model.moments_.operator, landmarks=model.basis_.parts[-1].landmarks, n_components=4, exclude_landmarks=False
    )
    rest = given.fit(x[3000:])
    assert rest.density_ == model.density_
    assert_close(updated.moments_.arrays, (model.moments_ + rest.moments_).arrays, 1e-12)
    anew = make(Laplacian(density=1.0), landmarks=model.basis_.parts[-1].landmarks, n_components=4).fit(x[3000:])
    with pytest.raises(ValueError, match=r"different operators .*fit the second with the operator of the first"):
        model.moments_ + anew.moments_


def test_a_density_of_other_columns_is_refused() -> None:
    x, _ = steep(500, 21)
    density = estimate_density(x, 1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="is of 2 columns, and the data have 1"):
        make(Laplacian(density=density), n_landmarks=5, n_components=2).fit(x[:, :1])
    turns = estimate_density(x[:, :1], 1.0, np.random.default_rng(0), periods=(1.0,))
    assert (turns.dimension, turns.centres.shape[1]) == (1, 2)
    for changes, message in (
        ({"bandwidth": 0.0}, "are positive"),
        ({"counts": -turns.counts}, "are positive"),
        ({"heights": turns.heights[1:]}, "they have shapes"),
        ({"exponent": 2.0}, "density is the power"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(turns, **changes)


def test_a_checkpoint_keeps_the_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daskspectral.passes import sides

    x, _ = steep(3000, 18)
    model = make(Laplacian(density=1.0), n_landmarks=20, n_components=4, random_state=None)
    first = clone(model).fit(x, checkpoint=tmp_path / "run.zarr")
    monkeypatch.setattr(sides, "with_density", lambda *a, **k: pytest.fail("estimated again"))
    assert_same_bits(clone(model).fit(x, checkpoint=tmp_path / "run.zarr").moments_, first.moments_)


def test_schedulers_and_containers_give_the_same_bits(tmp_path: Path, scheduling: Any) -> None:
    import dask.array as da

    x, _ = steep(3000, 19)
    lazy = da.from_array(x, chunks=(700, 2))
    model = make(Laplacian(density=1.0), n_landmarks=20, n_components=4)
    found = []
    for name in ("synchronous", "threads 3"):
        with scheduling(name):
            found.append(clone(model).fit(lazy).moments_)
    assert_same_bits(*found)


def test_columns_and_standardised_ones() -> None:
    x, _ = steep(3000, 20)
    wide = np.column_stack([np.random.default_rng(0).random(3000), 100 * x])
    settings = {"n_landmarks": 20, "n_components": 4}
    plain = make(Laplacian(density=1.0), **settings).fit((x - x.mean(axis=0)) / x.std(axis=0))
    scaled = make(Laplacian(density=1.0), columns=[1, 2], standardize=True, **settings).fit(wide)
    np.testing.assert_allclose(scaled.eigenvalues_[1:], plain.eigenvalues_[1:], rtol=1e-4)
