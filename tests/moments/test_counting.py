"""How many rows weights count as; and what sums over runs of rows tell of the order in which rows are stored."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import f_oneway
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Landmarks, MonomialBasis
from daskspectral.errors import WeightWarning
from daskspectral.kernels import Gaussian
from daskspectral.moments import Moments, counting
from daskspectral.operators import Laplacian, Transfer
from tests.common import autoregression, unreliable
from tests.moments.common import moments_of

N = 400
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 2))
UNEVEN = RNG.lognormal(0, 2, N)


def kish(w: Any) -> float:
    return float(w.sum() ** 2 / np.sum(w**2))


CASES: dict[str, tuple[Any, float, bool]] = {
    "none": (None, N, False),
    "between 0 and 1": (U := RNG.uniform(0, 1, N), kish(U), False),
    "probabilities": (np.full(N, 1 / N), N, True),
    "just relative": (np.full(N, 0.49), N, True),
    "uneven, of mean 1": (UNEVEN / UNEVEN.mean(), N, True),
    "uneven, said to be relative": (UNEVEN / UNEVEN.sum() * kish(UNEVEN), kish(UNEVEN), False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_weights_count_as(case: str) -> None:
    weights, rows, warned = CASES[case]
    given = {} if weights is None else {"weight": weights}
    moments = moments_of(MonomialBasis(2, 1), {"x": X, **given}, np.zeros(N, dtype=int))
    w = np.ones(N) if weights is None else weights
    ratio = max(1.0, w.sum() / kish(w / w.max()))
    for counted in (moments, w):
        assert counting.counted_rows(counted) == pytest.approx(rows, rel=1e-9)
        assert counting.repeats(counted) == pytest.approx(ratio)
    with pytest.warns(WeightWarning) if warned else np.errstate():
        counting.advise_weights(moments)


@unreliable
def test_the_unit_of_weights_does_not_decide_what_is_chosen() -> None:
    model = dsp.SpectralDecomposition(basis=Landmarks(Gaussian("auto"), 20), n_components=3, random_state=0)
    one, other = (clone(model).fit(X, sample_weight=unit * UNEVEN.clip(0.5, 2)) for unit in (10.0, 1e3))
    assert one.kernel_ == other.kernel_
    assert other.search_results_.candidates[0].penalty == pytest.approx(100 * one.search_results_.candidates[0].penalty)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-6, atol=1e-9)


# the order of rows


FAR = RNG.standard_normal((1000, 2)) * [1.0, 30.0] + [5.0, 1e5]
RUNS = counting.RowRuns(64, np.array([0, 1]), np.array([4.0, 1e5]))
Z = np.column_stack([FAR - RUNS.center, (FAR - RUNS.center) ** 2])


def sums_of(*parts: Any, runs: counting.RowRuns = RUNS) -> Any:
    """What one task sums over rows that come in parts."""
    found = counting.RunSums(runs)
    for part in parts:
        found.add(part)
    return found.result()


def stored(order: Any, operator: Any = None) -> Moments:
    return Moments({}, 1000.0, 1000, MonomialBasis(2, 1), operator or Laplacian(), order=order)


def test_the_sums_are_an_analysis_of_variance() -> None:
    rows, count, total, *_ = sums = sums_of(*np.split(FAR, [3, 100, 101, 700]))
    np.testing.assert_allclose(total, Z.sum(axis=0), rtol=1e-9, atol=1e-8)
    assert (set(rows), set(count)) == ({1000.0}, {16.0})
    wanted = f_oneway(*(Z[i : i + 64] for i in range(0, 1000, 64)), axis=0).statistic
    assert counting.order_of(stored(sums)) == pytest.approx(wanted.mean(), rel=1e-8)
    assert sums_of().tolist() == np.zeros((5, 4)).tolist()


def test_rows_of_trajectories_count_as_fewer() -> None:
    """By their autocorrelation time, about (1 + a) / (1 - a) of x, and that of a^2 for its squares."""
    x = autoregression(20_000, 0.8)
    sums = sums_of(x, runs=counting.RowRuns(512, np.array([0]), np.array([0.0])))
    found = counting.order_of(stored(sums, Transfer()))
    assert found == pytest.approx((9 + 1.64 / 0.36) / 2, rel=0.3)
    assert counting.correlation_time(stored(sums, Transfer())) == found
    assert counting.correlation_time(stored(sums)) == 1
    constants = [np.full((1000, 2), value) for value in (1.0, 0.1)]  # the distances of .1 are rounding
    for still in (stored(None, Transfer()), *(stored(sums_of(x), Transfer()) for x in constants)):
        assert np.isnan(counting.order_of(still))
        assert counting.correlation_time(still) == 1
