"""The sums over runs of rows, and what they tell of the order in which rows are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import f_oneway

from daskspectral.basis import Concatenated, ConstantBasis, FourierLattice, LandmarkBasis, MonomialBasis
from daskspectral.kernels import Gaussian
from daskspectral.moments import Moments
from daskspectral.moments.order import Runs, RunSums, correlation_time, order_of, share_between_tasks
from daskspectral.operators import Laplacian, Transfer

RNG = np.random.default_rng(5)
X = RNG.standard_normal((1000, 2)) * [1.0, 30.0] + [5.0, 1e5]
RUNS = Runs(64, np.array([0, 1]), np.array([4.0, 1e5]))
Z = np.column_stack([X - RUNS.centre, (X - RUNS.centre) ** 2])


def moments(order: Any, operator: Any = None) -> Moments:
    return Moments({}, 1000.0, 1000, MonomialBasis(2, 1), operator or Laplacian(), order=order)


def test_the_sums_are_an_analysis_of_variance() -> None:
    sums = RunSums(RUNS)
    assert sums.length == 64
    for part in np.split(X, [3, 100, 101, 700]):
        sums.add(part)
    rows, count, tasks, total, *_, of_tasks = sums.result()
    np.testing.assert_allclose(total, Z.sum(axis=0), rtol=1e-9, atol=1e-8)
    assert (set(rows), set(count), set(tasks)) == ({1000.0}, {16.0}, {1.0})
    wanted = f_oneway(*(Z[i : i + 64] for i in range(0, 1000, 64)), axis=0).statistic
    found = order_of(moments(sums.result()))
    assert found.within == pytest.approx(wanted.mean(), rel=1e-8)
    assert found.largest == pytest.approx(wanted.max(), rel=1e-8)
    assert np.isnan(found.between_tasks)
    assert np.isnan(share_between_tasks(moments(sums.result())))
    np.testing.assert_allclose(of_tasks, 1000 * Z.mean(axis=0) ** 2, rtol=1e-8, atol=1e-8)


def test_tasks_are_compared_in_the_same_way() -> None:
    apart = [RunSums(RUNS) for _ in range(4)]
    parts = np.split(Z, [300, 400, 800])
    for part, of_part in zip(np.split(X, [300, 400, 800]), apart, strict=True):
        of_part.add(part)
    together = moments(np.sum([part.result() for part in apart], axis=0))
    wanted = f_oneway(*parts, axis=0).statistic
    assert order_of(together).between_tasks == pytest.approx(wanted.mean(), rel=1e-8)
    between = sum(len(z) * (z.mean(axis=0) - Z.mean(axis=0)) ** 2 for z in parts)
    share = between / np.sum((Z - Z.mean(axis=0)) ** 2, axis=0)
    assert share_between_tasks(together) == pytest.approx(share.mean(), rel=1e-6)
    assert RunSums(RUNS).result().tolist() == np.zeros((7, 4)).tolist()


def test_rows_of_trajectories_count_as_fewer() -> None:
    """By their autocorrelation time, about (1 + a) / (1 - a) of x, and that of a^2 for its squares."""
    x = RNG.standard_normal((20_000, 1))
    for i in range(1, len(x)):
        x[i] = 0.8 * x[i - 1] + 0.6 * x[i]
    sums = RunSums(Runs(512, np.array([0]), np.array([0.0])))
    sums.add(x)
    there = Moments({}, 1.0, 1, MonomialBasis(1, 1), Transfer(), order=sums.result())
    found = order_of(there)
    assert found.largest == pytest.approx(9, rel=0.5)
    assert correlation_time(there) == found.within
    assert correlation_time(moments(sums.result())) == 1
    still = RunSums(RUNS)
    still.add(np.ones((1000, 2)))
    for order in (None, still.result()):
        assert np.isnan([*vars(order_of(moments(order, Transfer()))).values()]).all()
        assert correlation_time(moments(order, Transfer())) == 1


def test_runs_are_as_many_as_they_are_long() -> None:
    """Between 16 and 1024 rows, of up to 16 columns, about what all moments that are added have in common."""
    basis = MonomialBasis(2, 1)
    assert [Runs.of(basis, rows).length for rows in (10, 400, 10**4, 10**7)] == [16, 20, 100, 1024]
    wide = LandmarkBasis(Gaussian(1.0), RNG.standard_normal((3, 31)))
    found = Runs.of(Concatenated((ConstantBasis(31), wide)), 400)
    assert found.columns.tolist() == [*range(0, 31, 2)]
    np.testing.assert_allclose(found.centre, wide.landmarks.mean(axis=0)[found.columns])
    lattice = FourierLattice(1, box=[(0, 4), (2, 3)])
    assert Runs.of(lattice, 400).centre.tolist() == [2.0, 2.5]
    assert Runs.of(basis, 400).centre.tolist() == [0, 0]
