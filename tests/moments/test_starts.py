"""Starts out of equilibrium: the sums at both ends of pairs, false alarms, and starts that bias the values."""

from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import CallableBasis
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.folds import mixed
from daskspectral.moments.lags import both_ends, starts_of
from daskspectral.operators import Transfer
from daskspectral.passes import sums
from tests.common import koopman, unreliable

pytestmark = unreliable

Array = NDArray[Any]
JUMPS = np.array([[0.95, 0.04, 0.01], [0.02, 0.95, 0.03], [0.005, 0.015, 0.98]])
"""A chain of three states, not reversible."""
TWO = np.array([[0.97, 0.02, 0.01], [0.01, 0.49, 0.5], [0.005, 0.5, 0.495]])
"""Two sets of states, of which the second has two."""
OPERATORS = [Transfer(1), Transfer(1, center=True), Transfer(1, reversible=True)]


def stationary(jumps: Array) -> Array:
    values, vectors = np.linalg.eig(jumps.T)
    found = vectors[:, np.abs(values - 1).argmin()].real
    return np.asarray(found / found.sum())


def one_hot(x: Array) -> Array:
    return np.asarray(np.arange(3)[:, None] == x[:, 0]).astype(float)


def walks(jumps: Array, runs: int, length: int, seed: int, start: Any = None) -> list[Array]:
    """Runs of a chain from equilibrium, or with the weights `start` of its states."""
    rng, cumulated = np.random.default_rng(seed), np.cumsum(jumps, axis=1)
    states = np.empty((runs, length), int)
    states[:, 0] = rng.choice(len(jumps), runs, p=stationary(jumps) if start is None else start)
    for t in range(1, length):
        states[:, t] = np.minimum((rng.random(runs)[:, None] > cumulated[states[:, t - 1]]).sum(1), len(jumps) - 1)
    return list(states[:, :, None].astype(float))


def fit(operator: Transfer, x: Any, **options: Any) -> dsp.Koopman:
    count, solver = 3 - operator.center, dsp.solvers.Truncated()
    model = koopman(operator, CallableBasis(one_hot, d=1), n_components=count, solver=solver)
    return model.fit(x, **options)


@pytest.mark.parametrize("operator", [*OPERATORS, Transfer((2, 6), reversible=True)])
def test_inner_products_of_both_ends_are_sums_over_pairs(operator: Transfer) -> None:
    x = walks(JUMPS, 30, 50, 0, [1, 0, 0])
    model = fit(operator, x)
    moments, functions = model.moments_, model.coefficients_
    last = max(operator.lags)
    f, g = (
        functions.T @ np.hstack([model.basis_.values(walk[shift : len(walk) - last + shift]) for walk in x])
        for shift in (0, operator.first_lag)
    )
    if operator.center:
        f, g = (np.vstack([np.ones(f.shape[1]), values]) for values in (f, g))
    starts, pairs, ends, constant, _ = both_ends(moments, functions)
    assert constant == 0
    for found, wanted in ((starts, f @ f.T), (pairs, f @ g.T), (ends, g @ g.T)):
        np.testing.assert_allclose(found[0], wanted / f.shape[1], atol=1e-12)


@pytest.mark.parametrize("operator", OPERATORS)
def test_starts_in_one_state_bias_the_values(operator: Transfer) -> None:
    model = fit(operator, walks(TWO, 400, 40, 1, [1, 0, 0]))
    assert not model.reliable_[model.n_constants_ :].any()
    value = getattr(model, Attributes(model.solver_).values)[model.n_constants_]
    assert -1 / np.log(value) < 0.9 * -1 / np.log(np.sort(np.linalg.eigvals(TWO).real)[1])


@pytest.mark.parametrize("operator", [*OPERATORS, Transfer(1, "eigen")])
@pytest.mark.parametrize(("runs", "length"), [(1, 8000), (20, 400), (400, 20)])
def test_starts_in_equilibrium_do_not(operator: Transfer, runs: int, length: int) -> None:
    model = fit(operator, walks(TWO, runs, length, 2))
    assert "equilibrium" not in str(model.warnings_)
    assert model.reliable_[model.n_constants_]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operator", [Transfer(1), Transfer((1,), "eigen"), Transfer((1,), reversible=True)])
def test_weights_of_equilibrium_are_stationary_over_counted_shares(operator: Transfer) -> None:
    turning = np.array([[0.6, 0.35, 0.05], [0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
    x, counts = walks(turning, 300, 6, 0, [1, 0, 0]), np.zeros((3, 3))
    for walk in x:
        np.add.at(counts, (walk[:-1, 0].astype(int), walk[1:, 0].astype(int)), 1)
    weights = stationary(counts / counts.sum(axis=1, keepdims=True)) / (counts.sum(axis=1) / counts.sum())
    model = fit(operator, x)
    assert operator.solver.name != "eigen" or np.abs(model.eigenvalues_.imag).max() > 0.1
    np.testing.assert_allclose(model.equilibrium_weights(np.arange(3.0)[:, None]), weights, rtol=1e-9)
    ends = model.equilibrium_weights(np.arange(3.0)[:, None], interval=True)
    np.testing.assert_allclose(ends[:, 0], weights, rtol=1e-9)
    true = stationary(turning) / (sum(np.linalg.matrix_power(turning, k)[0] for k in range(5)) / 5)
    assert ((ends[:, 1] < true) & (true < ends[:, 2])).all()
    assert ((ends[:, 2] - ends[:, 1]) < 0.4 * true).all()
    several = np.concatenate(model.equilibrium_weights(x))
    np.testing.assert_allclose(several, weights[np.concatenate(x)[:, 0].astype(int)], rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_weights_near_one_hardly_change_the_default_fit(seed: int) -> None:
    """Weighted means of the constant are 1 up to rounding only."""
    x = dsp.datasets.langevin(2000, seed=1)
    weights = np.random.default_rng(seed).uniform(0.999, 1.001, len(x))
    plain, weighted = (
        dsp.Koopman(reversible=True, n_components=3, folds=None, random_state=seed).fit(x, sample_weight=w).timescales_
        for w in (None, weights)
    )
    np.testing.assert_allclose(weighted, plain, rtol=0.02)


@pytest.mark.slow
def test_weights_of_equilibrium_mend_the_starts() -> None:
    x = walks(JUMPS, 400, 40, 3, [1, 0, 0])
    first = fit(Transfer(1), x)
    assert starts_of(first.moments_, first.coefficients_).out_of_equilibrium
    again = fit(Transfer(1), x, sample_weight=first.equilibrium_weights(x))
    found = starts_of(again.moments_, again.coefficients_)
    assert not found.out_of_equilibrium
    assert found.imbalance < 0.05


def waves(x: Array) -> Array:
    return np.stack([np.ones(len(x)), *(f(m * x[:, 0]) for m in (1, 2) for f in (np.cos, np.sin))])


@pytest.mark.nightly
@pytest.mark.parametrize(("runs", "step"), [(1, 0.2), (20, 0.2), (300, 0.1)])
def test_equal_values_of_a_circle_raise_few_alarms(runs: int, step: float) -> None:
    """Its two slowest functions have one value, and eigenvalues of short runs have far larger errors than others."""
    operator, alarms = Transfer(2, reversible=True), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        steps = step * rng.standard_normal((runs, 6000 // runs))
        x = list((rng.uniform(0, 2 * np.pi, (runs, 1)) + np.cumsum(steps, axis=1))[:, :, None])
        model = koopman(operator, CallableBasis(waves, d=1), n_components=5).fit(x)
        alarms.append(starts_of(model.moments_, model.coefficients_).out_of_equilibrium)
    assert np.mean(alarms) <= 0.05


def double_well(height: float) -> Array:
    """Jumps between nine cells, of which 2 and 6 are the bottoms of two wells."""
    levels = height * (np.linspace(-1.6, 1.6, 9) ** 2 - 1) ** 2
    near = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) == 1
    rates = 0.078 * np.exp(np.subtract.outer(levels, levels) / 2) * near
    return np.asarray(scipy.linalg.expm(rates - np.diag(rates.sum(axis=1))))


CELLS = CallableBasis(lambda x: np.asarray(np.arange(9)[:, None] == x[:, 0]).astype(float), d=1)
BOTH = np.isin(np.arange(9), [2, 6]) / 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("operator", "starts", "length", "reliable"),
    [
        (Transfer(1, reversible=True), BOTH, 20, False),
        *((Transfer(1, "eigen"), 2 * BOTH[:3], n, n > 20) for n in (20, 400)),
    ],
    ids=["in both wells times are too long", "of eigenvalues few return from one well", "from one well many return"],
)
def test_runs_in_two_wells(operator: Transfer, starts: Array, length: int, reliable: bool) -> None:
    for seed in range(2):
        model = koopman(operator, CELLS, n_components=3)
        model.fit(walks(double_well(3.6), 1000, length, seed, np.pad(starts, (0, 9 - len(starts)))))
        assert model.reliable_[1] == reliable


@pytest.mark.parametrize("operator", [*OPERATORS, Transfer(1, "eigen")])
def test_a_state_that_pairs_of_one_fold_alone_begin_in(operator: Transfer) -> None:
    x = [np.minimum(walk, 1) for walk in walks(TWO, 40, 20, 5)]
    x[0] = np.append(x[0], [[0.0], [2.0], [0.0], [0.0]], axis=0)
    model = fit(operator, x)
    assert np.isfinite(getattr(model, Attributes(model.solver_).values)).all()


@pytest.mark.parametrize("chunk", [7, 100, 4000])
def test_a_share_of_the_pairs_is_tested_for_any_chunks(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "TESTED_ROWS", 500)
    x = walks(TWO, 1, 2003, 5)[0]
    stored = da.from_array(x, chunks=(chunk, 1))
    reversible, eigen = (fit(op, stored) for op in (Transfer(3, reversible=True), Transfer(3, "eigen")))
    kept, f = [mixed(np.arange(n)) < 500 / n * 2.0**64 for n in (1997, 2000)], reversible.basis_.values(x)
    later = kept[1][:1988]
    assert 400 < kept[0].sum() < 600
    found = reversible.moments_.arrays
    np.testing.assert_allclose(found["tested"], kept[0].sum())
    np.testing.assert_allclose(found["followed"], f[:, :1997][:, kept[0]] @ f[:, 3:2000][:, kept[0]].T, atol=1e-9)
    found, f = eigen.moments_.arrays, eigen.basis_.values(x)
    np.testing.assert_allclose(found["follows"], later.sum())
    np.testing.assert_allclose(found["later"], f[:, :1988][:, later] @ f[:, 15:][:, later].T, atol=1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize("operator", [*OPERATORS, Transfer(1, "eigen")])
@pytest.mark.parametrize(("jumps", "rows"), [(TWO, 10**6), (JUMPS, 300)], ids=["two", "three"])
def test_false_alarms_are_few(operator: Transfer, jumps: Array, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 % are expected; a chain that is not reversible is none of `reversible=True`."""
    monkeypatch.setattr(sums, "TESTED_ROWS", rows)
    if operator.reversible:
        jumps = (jumps + (jumps.T * stationary(jumps)) / stationary(jumps)[:, None]) / 2
    alarms = []
    for runs, length in ((1, 4000), (20, 200), (100, 40), (400, 10)):
        for seed in range(25):
            model = fit(operator, walks(jumps, runs, length, seed))
            alarms.append(starts_of(model.moments_, model.coefficients_).out_of_equilibrium)
    assert np.mean(alarms) <= (0.02 if operator == Transfer(1, "eigen") else 0.05)
