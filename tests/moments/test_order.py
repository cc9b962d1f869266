"""The sums over runs of rows, and what they tell of the order in which rows are stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import f_oneway

import daskspectral as dsp
from daskspectral.moments.order import OrderStatistic, Runs, RunSums, order_of

RNG = np.random.default_rng(5)


def statistic(x: Any, **changes: Any) -> OrderStatistic:
    kernel = dsp.kernels.Gaussian(float(np.std(x)))
    model = dsp.SpectralDecomposition(kernel=kernel, n_landmarks=10, n_components=2, random_state=0, **changes)
    return order_of(model.fit(x).moments_)


def test_the_sums_are_an_analysis_of_variance() -> None:
    x = RNG.standard_normal((1000, 2)) * [1.0, 30.0] + [5.0, 1e5]
    runs = Runs(64, np.array([0, 1]), np.array([4.0, 1e5]))
    sums = RunSums(runs)
    for part in np.split(x, [3, 100, 101, 700]):
        sums.add(part)
    rows, count, tasks, total, *_, of_tasks = sums.result()
    z = np.column_stack([x - runs.centre, (x - runs.centre) ** 2])
    groups = [z[i : i + 64] for i in range(0, 1000, 64)]
    np.testing.assert_allclose(total, z.sum(axis=0), rtol=1e-9, atol=1e-8)
    assert set(rows) | set(count) | set(tasks) == {1000.0, 16.0, 1.0}
    wanted = f_oneway(*groups, axis=0).statistic
    basis = dsp.basis.MonomialBasis(2, 1)
    found = order_of(dsp.Moments({}, 1000.0, 1000, basis, dsp.operators.Laplacian(), order=sums.result()))
    assert found.within == pytest.approx(wanted.mean(), rel=1e-8)
    assert found.largest == pytest.approx(wanted.max(), rel=1e-8)
    tasks_apart = [RunSums(runs) for _ in range(4)]
    for part, of_part in zip(np.split(x, [300, 400, 800]), tasks_apart, strict=True):
        of_part.add(part)
    together = np.sum([part.result() for part in tasks_apart], axis=0)
    found = order_of(dsp.Moments({}, 1000.0, 1000, basis, dsp.operators.Laplacian(), order=together))
    wanted = f_oneway(*np.split(z, [300, 400, 800]), axis=0).statistic
    assert found.between_tasks == pytest.approx(wanted.mean(), rel=1e-8)
    np.testing.assert_allclose(of_tasks, 1000 * z.mean(axis=0) ** 2, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("folds", [10, None, "blocks"])
def test_rows_in_random_order_are_told_from_others(folds: Any) -> None:
    x = RNG.standard_normal((40_000, 2)) + 1e4
    plain = statistic(x, folds=folds)
    assert plain.within == pytest.approx(1, abs=0.15)
    assert plain.between_tasks < 2
    by_coordinate = statistic(x[np.argsort(x[:, 0])], folds=folds)
    assert by_coordinate.within > 100
    assert by_coordinate.between_tasks > 100
    kind = RNG.random(len(x)) < 0.3
    by_class = statistic(np.vstack([x[kind] + 3, x[~kind]]), folds=folds)
    assert by_class.largest > 20


@pytest.mark.usefixtures("small_tasks")
def test_correlated_rows_give_their_autocorrelation_time() -> None:
    a, n = 0.8, 60_000
    x = lfilter([np.sqrt(1 - a**2)], [1, -a], RNG.standard_normal((n, 1)), axis=0)
    kernel = dsp.kernels.Gaussian(1.0)
    moments = dsp.SpectralDecomposition(kernel=kernel, n_landmarks=10, n_components=2, random_state=0).fit(x).moments_
    assert moments.order is not None
    b = round(n / moments.order[1, 0])
    assert n / b > 600  # runs, so that the ratio is known to 6 %

    def expected(rho: float) -> float:
        lags = np.arange(1, b)
        time = 1 + 2 * np.sum((1 - lags / b) * rho**lags)  # b times the variance of a run's mean, over that of a row
        return float(time / (1 - time / b) * (b - 1) / b)

    found = order_of(moments)
    assert found.largest == pytest.approx(expected(a), rel=0.15)
    assert expected(a**2) / 1.15 < found.within < expected(a)  # the squares are of distances from the landmarks' mean
    assert found.largest == pytest.approx((1 + a) / (1 - a), rel=0.4)  # the integrated autocorrelation time


def test_moments_without_these_sums_tell_nothing() -> None:
    x = RNG.standard_normal((500, 2))
    moments = (
        dsp.SpectralDecomposition(kernel=dsp.kernels.Gaussian(1.0), landmarks=x[:9], n_components=2).fit(x).moments_
    )
    bare = replace(moments, order=None)
    assert np.isnan(order_of(bare).within)
    assert (bare + moments).order is None
    assert np.array_equal((moments + moments).order, 2 * np.asarray(moments.order))
    constant = order_of(
        dsp.SpectralDecomposition(landmarks=x[:9], n_components=1, kernel=dsp.kernels.Gaussian(1.0))
        .fit(x[[3] * 50])
        .moments_
    )
    assert np.isnan([constant.within, constant.between_tasks, constant.largest]).all()
