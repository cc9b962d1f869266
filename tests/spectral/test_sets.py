"""Metastable sets: probabilities are probabilities, visits to cores add up, and the sets that data bear out."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import scipy.stats
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import daskspectral as dsp
from daskspectral.basis import Landmarks, MonomialBasis, NormalizedRBF
from daskspectral.kernels import Gaussian
from daskspectral.operators import Covariance, Generator, Laplacian, Transfer
from daskspectral.spectral import metastable
from daskspectral.spectral.cores import CORE, Visits
from daskspectral.spectral.metastable import (
    as_probabilities,
    as_rates,
    metastable_sets,
    passage_time_ends,
    passage_times,
    rate_ends,
)
from tests.common import koopman

Array = NDArray[Any]


def walk(n: int, seed: int) -> Array:
    """n rows of dX = -V' dt + 2^(1/2) dW between three wells, at -1.2, 0 and 1.2."""
    rng, step = np.random.default_rng(seed), 0.01
    kicks = np.sqrt(2 * step) * rng.standard_normal(5 * n)
    x, found = 0.0, np.empty(n)
    for i, kick in enumerate(kicks):
        x += -step * (10.5 * np.sin(2 * np.pi * x / 1.2) + 5 * (x / 1.6) ** 7) + kick
        found[i // 5] = x
    return found[:, None]


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_memberships_are_of_all_rows_and_not_only_of_vertices(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(m)
    f = np.column_stack([np.ones(300), rng.dirichlet([0.3] * m, 300)[:, 1:] + 0.01 * rng.standard_normal((300, m - 1))])
    found = metastable.crisp(np.repeat(f, 2, axis=0))
    assert (f @ found).min() >= -1e-12
    monkeypatch.setattr(metastable, "MOST_SETS_BY_HULL", 0)
    np.testing.assert_allclose(found, metastable.crisp(f), rtol=1e-10, atol=1e-12)


# -- visits ------------------------------------------------------------------------------------------------------------


def by_a_loop(memberships: Array, trajectories: Array) -> tuple[Array, Array]:
    m = memberships.shape[1]
    jumps, rows, state, before = np.zeros((m, m)), np.zeros(m), -1, None
    for chi, trajectory in zip(memberships, trajectories, strict=True):
        state = state if trajectory == before else -1
        now = int(chi.argmax()) if chi.max() >= CORE else state
        if state >= 0 and now != state:
            jumps[state, now] += 1
        if now >= 0:
            rows[now] += 1
        state, before = now, trajectory
    return jumps, rows


@given(st.data())
def test_visits_of_parts_add_up_to_those_of_all_rows(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 30))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    memberships = rng.dirichlet([0.2] * 3, n)
    trajectories = np.sort(rng.integers(0, 4, n))
    cuts = [0, *sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=4))), n]
    parts = [Visits.of(memberships[a:b], trajectories[a:b]) for a, b in pairwise(cuts)]
    whole, together = Visits.of(memberships, trajectories), parts[0]
    for part in parts[1:]:
        together = together + part
    for found in (whole, together):
        for values, wanted in zip((found.jumps, found.rows), by_a_loop(memberships, trajectories), strict=True):
            np.testing.assert_array_equal(values, wanted)
    assert {**vars(whole), "jumps": 0, "rows": 0} == {**vars(together), "jumps": 0, "rows": 0}


# -- probabilities, rates and times ------------------------------------------------------------------------------------


@given(arrays(float, (4, 3), elements=st.floats(-3, 3)))
def test_probabilities_are_the_nearest(rows: Array) -> None:
    found = as_probabilities(rows)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(as_probabilities(found), found, atol=1e-12)
    others = np.random.default_rng(0).dirichlet([1.0] * 3, (50, 4))
    assert (np.linalg.norm(rows - found, axis=1) <= np.linalg.norm(rows - others, axis=2) + 1e-9).all()


@given(arrays(float, (4, 4), elements=st.floats(-1, 1)))
def test_rates_and_times_are_not_negative(values: Array) -> None:
    rates = as_rates(values - np.diag(values.sum(axis=1)))
    assert (rates[~np.eye(4, dtype=bool)] >= 0).all()
    np.testing.assert_allclose(rates.sum(axis=1), 0, atol=1e-12)
    times = passage_times(as_rates(np.where(np.abs(rates) < 1e-3, 0, rates)))
    assert (times >= 0).all()


def test_a_set_that_is_not_reached_is_infinitely_far() -> None:
    rates = np.array([[-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 2.0, -2.0]])
    np.testing.assert_allclose(passage_times(rates), [[0, 1, np.inf], [1, 0, np.inf], [1.5, 0.5, 0]])


def test_intervals_of_rates_are_those_of_numbers_of_jumps() -> None:
    """Of 0, 4 and 10 jumps: Poisson's intervals (Garwood 1936), and of two sets the gamma distribution of a rate."""
    jumps, rows = np.array([[0, 0, 4], [0, 0, 10], [0, 10, 0]]), np.array([1.0, 10.0, 100.0])
    ends = rate_ends(jumps, rows)
    np.testing.assert_allclose(ends[0, 1:], [[0, 3.689], [1.0899, 10.2416]], rtol=1e-4)
    np.testing.assert_allclose(ends[1, 2], np.array([4.7954, 18.3904]) / 10, rtol=1e-4)
    np.testing.assert_allclose(ends[2, 2], -np.array([18.3904, 4.7954]) / 100, rtol=1e-4)
    times = passage_time_ends(np.array([[0, 10], [4, 0]]), np.array([50.0, 30.0]))
    np.testing.assert_allclose(times[0, 1], 50 / scipy.stats.gamma.ppf([0.975, 0.025], 10.5), rtol=0.1)
    np.testing.assert_allclose(times[1, 0], 30 / scipy.stats.gamma.ppf([0.975, 0.025], 4.5), rtol=0.1)
    np.testing.assert_array_equal(times[[0, 1], [0, 1]], 0)


@pytest.mark.parametrize(("noise", "supported"), [(0.01, 2), (1.0, 1), (4.0, 1)])
def test_unknown_transitions_make_sets_unreliable(noise: float, supported: int) -> None:
    values, folds = np.repeat([[-1.0], [1.0]], 20, axis=0), np.resize([-1.0, 1.0], 10)
    propagators = (0.9 + noise * np.append(0, folds) / 3)[:, None, None]
    sets = metastable_sets(values, values, np.array([1]), propagators, np.array([10.0]), 1, 0.9)
    np.testing.assert_allclose(sets.transitions, [[0.95, 0.05], [0.05, 0.95]])
    assert sets.supported == supported


def test_transitions_far_from_probabilities_make_sets_unreliable() -> None:
    values, folds = np.array([[-1.0, 0.3], [1.0, 0.3], [0.0, -0.6]]), np.resize([-1.0, 1.0], 10)
    matrix = np.array([[0.9, 0.0], [2.0, 0.5]])
    propagators = matrix + 0.5 * np.append(0, folds)[:, None, None] * [[0, 0], [1, 0]]
    sets = metastable_sets(values, values, np.array([1, 2]), propagators, np.array([10.0, 2.0]), 1, 0.9)
    assert sets.moved > 0.1
    assert sets.supported == 2
    assert sets.transitions.min() >= 0


# -- three wells -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wells() -> tuple[dsp.Koopman, list[Array]]:
    paths = [walk(10_000, seed) for seed in range(2)]
    basis = NormalizedRBF.draw(paths[0][::5], 15, random_state=0)
    model = koopman(Transfer(1, reversible=True), basis, n_components=5)
    return model.fit(paths), paths


def test_three_wells_are_three_sets(wells: Any, tmp_path: Path) -> None:
    model, paths = wells
    sets = model.metastable_sets(3, paths)
    sets.save(tmp_path / "sets.zarr")
    with xr.open_zarr(tmp_path / "sets.zarr") as saved:
        assert set(saved.dims) == {"set", "to_set", "bound", "term", "process", "function"}
    assert sets.supported == sets.suggested == 3
    shown = repr(sets).splitlines()
    assert len(shown) <= 12
    assert [float(line.split()[1]) for line in shown[-3:]] == pytest.approx(sets.probabilities, rel=5e-3)
    for values, ends in ((sets.rates, sets.rate_errors), (sets.passage_times, sets.passage_time_errors)):
        assert ((ends[..., 0] <= values) & (values <= ends[..., 1])).all()
    assert (sets.rate_errors[~np.eye(3, dtype=bool)] >= 0).all()
    crisp = sets.predict(paths)
    for states, path in zip(crisp, paths, strict=True):
        np.testing.assert_array_equal(states, np.asarray(sets.memberships(path)).argmax(axis=1))
    skipped = dsp.Rows(da.from_array(np.array([[np.nan], [0.0]])), on_invalid="skip")
    lazy = sets.predict(skipped)
    assert lazy.dtype == crisp[0].dtype == np.int64
    assert lazy.compute().tolist() == [-1, sets.predict([[0.0]])[0]]
    memberships = [np.asarray(sets.memberships(path)) for path in paths]
    cores = [np.where(chi.max(axis=1) > CORE, chi.argmax(axis=1), -1) for chi in memberships]
    order = np.argsort(np.asarray(sets.memberships(np.array([[-1.2], [0.0], [1.2]]))).argmax(axis=1))
    assert sorted(order.tolist()) == [0, 1, 2]
    for i in range(3):
        for j in range(3):  # the time until core j from rows after core i, by looking ahead
            waits = []
            for core in cores:
                ends = np.flatnonzero(core == j)
                visited = np.maximum.accumulate(np.where(core >= 0, np.arange(len(core)), -1))
                starts = np.flatnonzero((visited >= 0) & (core[visited] == i) & (np.arange(len(core)) < ends[-1]))
                waits.append(ends[np.searchsorted(ends, starts)] - starts)
            if i != j:
                assert sets.passage_times[i, j] == pytest.approx(np.concatenate(waits).mean(), rel=0.35)


@pytest.mark.slow
def test_more_sets_than_wells_are_warned_of(wells: Any) -> None:
    model, paths = wells
    with pytest.warns(dsp.ReliabilityWarning, match="3 sets"):
        sets = model.metastable_sets(4, paths)
    assert sets.supported == 3


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("operator", [Laplacian(), Generator(diffusion=2**0.5, reversible=True)], ids=str)
def test_sets_of_a_generator_have_rates_in_its_time(operator: Any, given: bool) -> None:
    """Of a density exp(-V) with wells at -1 and 1: the rates relax as slowly as the slowest function."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.8, 1.8, 100_000)
    x = x[rng.random(len(x)) < np.exp(-4 * (x**2 - 1) ** 2)][:, None]
    basis = Landmarks(Gaussian(0.4), 30)
    model = dsp.SpectralDecomposition(operator, basis, n_components=3, random_state=0).fit(x)
    sets = model.metastable_sets(2, x if given else None)
    assert sets.suggested == 2
    slowest = abs(model.eigenvalues_[1])
    np.testing.assert_allclose(np.linalg.eigvals(sets.rates).real.min(), -slowest, rtol=1e-6)
    for values, ends in ((sets.rates, sets.rate_errors), (sets.passage_times, sets.passage_time_errors)):
        assert ((ends[..., 0] <= values) & (values <= ends[..., 1])).all()
    np.testing.assert_allclose(sets.passage_times[0, 1] * sets.rates[0, 1], 1, rtol=1e-9)
    assert sets.lag == pytest.approx(1 / abs(model.eigenvalues_[2]))
    chances = np.asarray(sets.memberships(np.array([[-1.0], [1.0]])))
    assert np.abs(np.diff(chances, axis=1)).min() > 0.98
    assert chances[0].argmax() != chances[1].argmax()


@pytest.mark.filterwarnings("ignore::daskspectral.ReliabilityWarning")
def test_sets_are_of_processes() -> None:
    x = np.random.default_rng(0).standard_normal((300, 3))
    for operator in (Covariance(), Transfer(1)):
        model = dsp.SpectralDecomposition(operator, MonomialBasis(3, 1), n_components=2)
        with pytest.raises(ValueError, match="Koopman"):
            model.fit(x).metastable_sets(2)


def test_sets_of_soft_cells_are_sought_among_their_centers() -> None:
    x = dsp.datasets.langevin(5000)
    cells = NormalizedRBF(np.linspace(-1.6, 1.6, 12)[:, None], 0.3)
    model = koopman(Transfer(5, reversible=True), n_components=2, basis=cells).fit(x)
    alone, given = model.metastable_sets(2), model.metastable_sets(2, x)
    wells = [[-1.0], [1.0]]
    ours, theirs = (sets.probabilities[np.asarray(sets.predict(wells))] for sets in (alone, given))
    np.testing.assert_allclose(ours, theirs, atol=0.03)
    assert sorted(alone.predict(wells)) == [0, 1]
