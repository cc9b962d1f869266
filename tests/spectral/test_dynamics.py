"""Transfer operators at several lags: sums, residuals, timescales, the Chapman-Kolmogorov test, metastable sets."""

import copy
import math
from typing import Any

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.signal import lfilter
from scipy.special import stdtrit

import daskspectral as dsp
from daskspectral.basis import (
    CallableBasis,
    Concatenated,
    ConstantBasis,
    LandmarkBasis,
    Landmarks,
    MonomialBasis,
    NormalizedRBF,
)
from daskspectral.kernels import Gaussian
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.lags import LagMatrices
from daskspectral.operators import Transfer
from tests.common import autoregression as ar
from tests.common import koopman, reloaded, unreliable

Array = NDArray[Any]
CUT = dsp.solvers.Truncated()
STATES = 4
GENERATOR = np.array(
    [[-0.02, 0.0, 0.02, 0.0], [0.0, -0.04, 0.0, 0.04], [0.5, 0.01, -0.51, 0.0], [0.0, 0.5, 0.01, -0.51]]
)


def jumps(n: int, seed: int = 0) -> Array:
    """n rows of a chain of four states, two in each of two sets, at time steps of 1."""
    cumulative, draws = np.cumsum(expm(GENERATOR), axis=1), np.random.default_rng(seed).random(n)
    states = np.zeros(n, dtype=int)
    for i in range(1, n):
        states[i] = min(int(np.searchsorted(cumulative[states[i - 1]], draws[i])), STATES - 1)
    return states[:, None].astype(float)


def indicators(x: Array) -> Array:
    return np.asarray(np.arange(STATES)[:, None] == x[:, 0]).astype(float)


def five_cells(x: Array) -> Array:
    return np.asarray(np.arange(5)[:, None] == np.searchsorted([-1.5, -0.5, 0.5, 1.5], x[:, 0])).astype(float)


CHAIN = jumps(20_000)
ONE_HOT = CallableBasis(indicators, d=1)


def chain(operator: Transfer, **options: Any) -> dsp.Koopman:
    return koopman(operator, ONE_HOT, n_components=STATES, solver=CUT, **options).fit(CHAIN)


def jumps_of(lag: int, starts: Any) -> Array:
    """How often each state follows each, a lag later, of some rows."""
    states, counts = CHAIN[:, 0].astype(int), np.zeros((STATES, STATES))
    np.add.at(counts, (states[starts], states[starts + lag]), 1)
    return counts


# -- the pass ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lengths", [(5000,), (3000, 40, 2500)])
def test_forms_of_all_lags_are_sums_over_the_same_starts(lengths: tuple[int, ...], weighted: bool) -> None:
    rng = np.random.default_rng(0)
    paths = [ar(n, seed=n) for n in lengths]
    weights = [rng.uniform(0.5, 2, n) for n in lengths]
    basis = Concatenated((ConstantBasis(1), LandmarkBasis(Gaussian(1.0), np.array([[-1.0], [0.0], [1.5]]))))
    model = koopman(Transfer((3, 6, 30)), basis, n_components=2)
    moments = model.fit(paths, sample_weight=weights if weighted else None).moments_
    assert moments.count == sum(n - 30 for n in lengths)
    for name, shift in {"form": 3, "form_2": 6, "form_10": 30}.items():
        wanted = np.zeros((4, 4))
        for x, w in zip(paths, weights, strict=True):
            starts = slice(0, len(x) - 30)
            values = basis.values(x)
            w = w[starts] if weighted else np.ones(len(x) - 30)
            wanted += values[:, starts] * w @ values[:, shift : len(x) - 30 + shift].T
        np.testing.assert_allclose(moments.arrays[name], wanted, rtol=1e-10)


@unreliable
def test_a_reversible_operator_is_solved_from_symmetrized_sums() -> None:
    model, counts = chain(Transfer(1, reversible=True)), jumps_of(1, np.arange(len(CHAIN) - 2))
    counts = counts + counts.T
    exact = np.sort(np.linalg.eigvals(counts / counts.sum(axis=1, keepdims=True)).real)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, exact, atol=1e-12)
    assert model.eigenvalues_[0] == 1
    assert model.n_constants_ == 1
    assert (model.eigenvalue_errors_[:, 0] <= model.eigenvalues_).all()
    assert (model.eigenvalues_ <= model.eigenvalue_errors_[:, 1]).all()


@unreliable
@pytest.mark.parametrize("operator", [Transfer(4), Transfer((4, 8), "eigen"), Transfer(4, reversible=True)])
def test_trajectories_shorter_than_the_lag_are_skipped_and_counted(operator: Transfer) -> None:
    long, short = [ar(900, seed=i) for i in range(3)], [ar(n, seed=n) for n in (1, 3, 4)]
    both = [short[0], *long[:2], short[1], long[2], short[2]]
    model = koopman(operator, MonomialBasis(1, 3), n_components=3)
    alone = koopman(operator, MonomialBasis(1, 3), n_components=3).fit(long)
    name = Attributes(model.fit(both).solver_).values
    np.testing.assert_array_equal(getattr(model, name), getattr(alone, name))
    assert model.moments_.short_trajectories == 3
    assert model.score(both) == alone.score(long)
    assert model.forecast_score(both) == alone.forecast_score(long)
    model.update([*both, ar(500, seed=9), ar(2, seed=8)])
    assert model.moments_.short_trajectories == 4


@unreliable
def test_a_reversible_fit_needs_two_lags_for_residuals_alone() -> None:
    short, long = [ar(6, seed=i) for i in range(300)], [ar(300, seed=i) for i in range(10)]
    operator, basis = Transfer(3, reversible=True), MonomialBasis(1, 3)
    model = koopman(operator, basis, n_components=3).fit(short)
    assert model.lags_.tolist() == [3]
    assert model.moments_.count == 900
    assert not hasattr(model, "dynamic_residuals_")
    mixed = koopman(operator, basis, n_components=3).fit([*long, short[0]])
    assert mixed.lags_.tolist() == [3, 6]
    assert mixed.moments_.short_trajectories == 1
    with pytest.raises(ValueError, match="longest lag"):  # which was asked for
        koopman(Transfer((3, 6), reversible=True), basis, n_components=3).fit(short)


# -- residuals ---------------------------------------------------------------------------------------------------------


@unreliable  # cells do not resolve the process
@pytest.mark.parametrize(("basis", "least", "most"), [("cells", 0.2, 0.35), ("monomials", 0.0, 0.08)])
def test_residuals_of_an_autoregressive_process(basis: str, least: float, most: float) -> None:
    """E |K f - l f|² from the rows: of a cell function by quadrature, K f(x) = E f(a x + noise)."""
    a, functions = 0.9, CallableBasis(five_cells, d=1) if basis == "cells" else MonomialBasis(1, 4)
    model = koopman(Transfer(1, reversible=True), functions, n_components=3, solver=CUT)
    model.fit(ar(60_000, a))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    x = np.linspace(-6, 6, 2001)
    density = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    ahead = a * x[:, None] + math.sqrt(1 - a**2) * nodes
    followed = np.asarray(model.transform(ahead.reshape(-1, 1))).reshape(*ahead.shape, -1)
    here = np.asarray(model.transform(x[:, None]))
    residual = np.einsum("nqk,q->nk", followed, weights) - model.eigenvalues_ * here
    exact = np.sqrt(density @ residual**2)
    low, high = model.dynamic_residuals_.T
    assert (low[1:] <= exact[1:] + 0.02).all()
    assert (exact[1:] - 0.02 <= high[1:]).all()
    assert (exact[1:] >= least).all()
    assert (exact[1:] <= most).all()
    assert model.reliable_[1] == (basis == "monomials")


# -- timescales and the Chapman-Kolmogorov test ------------------------------------------------------------------------


def propagators(multiples: tuple[int, ...]) -> list[Array]:
    counts = [jumps_of(m, np.arange(len(CHAIN) - max(multiples))) for m in multiples]
    return [each / each.sum(axis=1, keepdims=True) for each in counts]


def test_timescales_at_all_lags_are_those_of_the_chain() -> None:
    model, multiples = chain(Transfer((1, 2, 5), "eigen")), (1, 2, 5)
    assert model.lags_.tolist() == [1, 2, 5]
    assert model.timescales_.shape == (3, 3)  # the constant is no process
    for m, p, times in zip(multiples, propagators(multiples), model.timescales_, strict=True):
        sizes = np.sort(np.abs(np.linalg.eigvals(p)))[-2::-1]
        np.testing.assert_allclose(np.sort(times)[::-1], -m / np.log(sizes), rtol=1e-8)
    exact = -1 / np.sort(np.linalg.eigvals(GENERATOR).real)[-2]
    low, high = model.timescale_errors_[:, 0].T
    assert (low < exact).all()
    assert (exact < high).all()


@pytest.mark.parametrize("kind", ["symmetric", "singular", "eigen"])
def test_modes_are_followed_by_their_functions(kind: str) -> None:
    """Two values, .9 and .8 at one lag, that have crossed at the next one, .3 and .7."""
    forms = np.array([[np.diag([0.9, 0.8]), np.diag([0.3, 0.7])]])
    if kind == "singular":  # whose right functions are others than the left ones
        forms = forms @ [[math.cos(1.2), -math.sin(1.2)], [math.sin(1.2), math.cos(1.2)]]
    one = np.eye(2)[None]
    matrices = LagMatrices(np.array([1, 2]), forms, one, one, None, None, kind, 0.0)
    np.testing.assert_allclose(matrices.values[0], [[0.9, 0.8], [0.3, 0.7]])
    np.testing.assert_allclose(matrices.timescales()[0], -np.array([[1], [2]]) / np.log([[0.9, 0.8], [0.3, 0.7]]))


def test_a_timescale_that_the_functions_resolve_in_part_is_within_its_interval() -> None:
    """Of f with shares .8 and .2 of processes that take 20 rows and 1: at one lag 6.7 rows, from one to two 15."""
    slow, fast = math.exp(-1 / 20), math.exp(-1.0)
    noise = 1 + 1e-4 * np.append(0, np.resize([-1.0, 1.0], 10))

    def of(lag: int) -> Array:
        return np.asarray((noise * (0.8 * slow**lag + 0.2 * fast**lag))[:, None, None])

    one, forms = np.ones((11, 1, 1)), np.stack([of(1), of(2)], axis=1)
    matrices = LagMatrices(np.array([1, 2]), forms, one, one, None, None, "symmetric", 0.9, forms[:, 1])
    times, ends = matrices.timescales()
    np.testing.assert_allclose(times[0], -1 / np.log(of(1)[0, 0]))
    np.testing.assert_allclose(ends[0, 0, 1], -1 / np.log(of(2)[0, 0, 0] / of(1)[0, 0, 0]), rtol=1e-2)
    assert ends[0, 0, 0] < times[0, 0]
    pure = LagMatrices(np.array([1, 2]), forms, one, one, None, None, "eigen", 0.9, forms[:, 1])
    assert pure.timescales()[1][0, 0, 1] < 1.01 * times[0, 0]  # values of other kinds are no lower bounds


def test_bands_are_those_of_a_jackknife_over_folds() -> None:
    labels = np.arange(len(CHAIN)) // 5000
    test = chain(Transfer((1, 2), "eigen"), folds=labels).chapman_kolmogorov()
    functions = np.asarray(chain(Transfer((1, 2), "eigen")).transform(np.arange(4.0)[:, None]))
    samples = []
    for fold in range(4):
        counts = jumps_of(2, np.flatnonzero(labels[:-2] != fold))
        gram = functions.conj().T * counts.sum(axis=1)
        samples.append(np.linalg.solve(gram @ functions, functions.conj().T @ counts @ functions)[1:, 1:])
    deviation = np.sqrt(3 / 4 * np.sum(np.abs(samples - np.mean(samples, axis=0)) ** 2, axis=0))
    widths = test.measured_errors[0, ..., 1] - test.measured_errors[0, ..., 0]
    np.testing.assert_allclose(widths, 2 * 1.15 * stdtrit(3, 0.975) * deviation, rtol=1e-6)


@pytest.mark.parametrize("lag", [range(2, 9, 2), np.arange(2, 9, 2), [2, 4, 6, 8]])
def test_lags_are_any_sequence(lag: Any) -> None:
    assert dsp.Koopman(lag).operator.lag == Transfer(lag).lag == (2, 4, 6, 8)


def test_chapman_kolmogorov_compares_powers_with_longer_lags() -> None:
    multiples = (1, 2, 5)
    p, *longer = propagators(multiples)
    model = chain(Transfer(multiples, "eigen"))
    test = model.chapman_kolmogorov()
    assert len(str(test).splitlines()) == 2 + test.predicted[..., 0].size
    functions = np.asarray(model.transform(np.arange(STATES, dtype=float)[:, None]))
    for m, measured, predicted, wanted in zip(multiples[1:], test.measured, test.predicted, longer, strict=True):
        inner = np.linalg.inv(functions)
        np.testing.assert_allclose(measured, (inner @ wanted @ functions)[1:, 1:].real, atol=1e-8)
        np.testing.assert_allclose(
            predicted, (inner @ np.linalg.matrix_power(p, m) @ functions)[1:, 1:].real, atol=1e-8
        )
    slow = [(errors[:, 0, 0, 0], errors[:, 0, 0, 1]) for errors in (test.predicted_errors, test.measured_errors)]
    exact = np.exp(np.sort(np.linalg.eigvals(GENERATOR).real)[-2] * test.lags)
    assert all((low < exact).all() and (exact < high).all() for low, high in slow)


# -- metastable sets ---------------------------------------------------------------------------------------------------


@unreliable
def test_two_sets_of_a_chain_of_two_pairs_of_states() -> None:
    model = chain(Transfer((1, 5), reversible=True))
    sets = model.metastable_sets(2, CHAIN)
    memberships = np.asarray(sets.memberships(np.arange(STATES, dtype=float)[:, None]))
    np.testing.assert_allclose(memberships.sum(axis=1), 1, atol=1e-12)
    assert memberships.min() > -1e-12
    assert (memberships.argmax(axis=1) == memberships[0].argmax()).tolist() == [True, False, True, False]
    assert sets.suggested == 2
    assert sets.negative == 0
    np.testing.assert_allclose(sets.probabilities, np.asarray(sets.memberships(CHAIN)).mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(sets.transitions.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(expm(sets.rates), sets.transitions, rtol=0.03)
    test = model.chapman_kolmogorov(sets)
    np.testing.assert_allclose(test.predicted[0], np.linalg.matrix_power(sets.transitions, 2), atol=1e-12)
    np.testing.assert_allclose(test.measured[0], test.predicted[0], atol=0.02)
    with pytest.raises(ValueError, match="sets"):
        model.fit(CHAIN[:10_000]).chapman_kolmogorov(sets)


@unreliable
def test_results_are_described_saved_and_labeled(tmp_path: Any) -> None:
    model = chain(Transfer((1, 2, 5), reversible=True))
    sets = model.metastable_sets(2, CHAIN)
    again = reloaded(model, trusted=[indicators])
    for name in ("timescales_", "timescale_errors_", "dynamic_residuals_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    loaded = reloaded(sets, trusted=[indicators])
    for name in ("weights", "transitions", "passage_times"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(sets, name))
    again.chapman_kolmogorov(loaded)
    loaded.memberships(CHAIN[:50], out=tmp_path / "chi.zarr")
    written = zarr.open_group(tmp_path / "chi.zarr", mode="r")["membership"]
    np.testing.assert_allclose(written[:], sets.memberships(CHAIN[:50]))
    data = model.to_xarray()
    assert data.timescale.dims == ("lag", "process")
    np.testing.assert_array_equal(data.dynamic_residual_upper, model.dynamic_residuals_[:, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"reversible": True, "center": True}, "center must be False if reversible=True, got True"),
        ({"reversible": True, "method": "eigen"}, "method must be None if reversible=True, got 'eigen'"),
        ({"center": 2}, "center must be True or False, got 2"),
    ],
)
def test_parameters_that_exclude_each_other_are_named(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dsp.Koopman(1, basis=MonomialBasis(1, 1), **parameters).fit(ar(200))


@unreliable
@pytest.mark.parametrize("changed", [{"reversible": False}, {"method": "eigen"}, {"center": True}], ids=str)
def test_a_dataset_is_of_the_fit_after_its_parameters_change(changed: dict[str, Any]) -> None:
    x = ar(600)
    first, other = (
        koopman(Transfer(1, reversible=True), MonomialBasis(1, 3), n_components=3).fit(x[:500]) for _ in "12"
    )
    other.set_params(**changed)
    assert hasattr(other, "operator") == (changed == {"reversible": False})
    for model in (first, other):
        model.update(x)
    wanted, found = first.to_xarray(), other.to_xarray()
    xr.testing.assert_identical(found.drop_attrs(deep=False), wanted.drop_attrs(deep=False))
    with pytest.raises(ValueError, match=r"operator is|must be"):
        other.fit_moments(first.moments_)


@unreliable
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    "method",
    [
        lambda model, x: model.forecast_score(x),
        lambda model, x: model.metastable_sets(2, x),
        lambda model, x: model.first_passage(x, x[:, 0] < -1, x[:, 0] > 1),
    ],
)
def test_trajectories_of_other_columns_are_refused(method: Any, columns: int) -> None:
    x = ar(500)
    model = koopman(Transfer(1, reversible=True), MonomialBasis(2, 1), n_components=3).fit(np.hstack([x, x**2]))
    with pytest.raises(ValueError, match=f"columns .*got {columns}"):
        method(model, np.hstack([x] * columns))


# -- rows that do not determine how they go on -------------------------------------------------------------------------


def springs(n: int, noise: float) -> Array:
    """Positions and velocities (n, 6) of three masses on springs in a row, the first on a wall, at steps of .1."""
    stiffness = np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1.0]])
    damping = noise * np.eye(3)
    step = expm(0.1 * np.block([[np.zeros((3, 3)), np.eye(3)], [-stiffness, -damping]]))
    rng = np.random.default_rng(0)
    x = np.empty((n, 6))
    x[0] = rng.standard_normal(6)
    for t in range(1, n):
        x[t] = step @ x[t - 1] + noise * np.append(np.zeros(3), rng.standard_normal(3))
    return x


def linear(operator: Transfer, x: Any) -> dsp.Koopman:
    d = (x[0] if isinstance(x, list) else x).shape[1]
    return koopman(operator, MonomialBasis(d, 1), n_components=d + 1).fit(x)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("operator", [Transfer(1, "eigen"), Transfer((2, 6), "eigen")])
@pytest.mark.parametrize("columns", [[0], [0, 1, 2]])
def test_a_part_of_the_state_is_not_trusted_alone(columns: list[int], operator: Transfer, noise: float) -> None:
    x = springs(5000, noise)
    with pytest.warns(dsp.ReliabilityWarning, match="longer lag"):
        part = linear(operator, x[:, columns])
    assert not part.reliable_[1:].any()
    whole = linear(operator, [x[:3000], x[3000:]])
    assert whole.reliable_.all()
    frequencies = np.unique(np.abs(np.angle(whole.eigenvalues_)).round(2))[1:] / (0.1 * operator.first_lag)
    np.testing.assert_allclose(frequencies, [0.445, 1.247, 1.802], atol=0.06)


@unreliable
@pytest.mark.parametrize("chunk", [50, 200, 10_000])
def test_the_pass_sums_five_lags_for_consecutive_pairs(chunk: int) -> None:
    x = [ar(150, seed=1), ar(400, seed=2)]
    basis, operator = MonomialBasis(1, 2), Transfer(3, "eigen")
    stored = [zarr.create_array({}, data=part, chunks=(chunk, 1)) for part in x]
    weights = [np.linspace(1, 2, len(part)) for part in x]
    model = koopman(operator, basis, n_components=2).fit(stored, sample_weight=weights)
    pairs = zip(x, weights, strict=True)
    wanted = sum(basis.values(part[:-15]) * w[:-15] @ basis.values(part[15:]).T for part, w in pairs)
    np.testing.assert_allclose(model.moments_.arrays["follows"], sum(w[:-15].sum() for w in weights))
    np.testing.assert_allclose(model.moments_.arrays["later"], wanted)


@unreliable
@pytest.mark.parametrize("given", [{}, {"method": "eigen"}, {"reversible": True}, {"lag": (1, 2, 5)}])
@pytest.mark.parametrize("observed", ["two states", "an AR(1) process", "windows"])
def test_a_slow_process_behind_noise_is_not_reliable(given: dict[str, Any], observed: str) -> None:
    """Processes that take 24.5 rows, and noise with a memory of twice their size: one lag implies 2 rows."""
    rng, settings = np.random.default_rng(0), {"n_components": 3, "random_state": 0, **given}
    states = np.where(np.cumsum(rng.random(5000) < 0.02) % 2, 1.0, -1.0)
    noise, other = (lfilter([1], [1, -a], np.sqrt(1 - a**2) * rng.standard_normal(5000)) for a in (0.5, 0.96))
    x = (other if observed == "an AR(1) process" else states) + 2 * noise
    basis = Landmarks(Gaussian(1.0), 20)
    if observed == "windows":
        x, basis = np.stack([x[2:], x[1:-1], x[:-2]], axis=1), Landmarks(Gaussian(3.0), 60)
    assert not dsp.Koopman(basis=basis, **settings).fit(x.reshape(len(x), -1)).reliable_[1]
    assert dsp.Koopman(basis=Landmarks(Gaussian(1.0), 20), **settings).fit(other[:, None]).reliable_[1]


# -- shares, chances, times and intervals keep to their definitions, whatever the system -------------------------------


OPERATORS = [
    Transfer(1),
    Transfer(2, center=True),
    Transfer(1, "eigen"),
    Transfer((1, 2, 3), "eigen"),
    Transfer(1, reversible=True),
]


def system(kind: str) -> Array:
    rng, n = np.random.default_rng(0), 500
    if kind == "random walk":
        return np.asarray(np.cumsum(rng.standard_normal((n, 1)), axis=0))
    if kind == "of period two":  # the value -1
        return np.asarray(np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] + 0.1 * rng.standard_normal((n, 1)))
    if kind == "white":
        return np.asarray(rng.integers(0, 3, (n, 1)) + 0.05 * rng.standard_normal((n, 1)))
    return np.column_stack([np.cos(0.3 * np.arange(n)), np.sin(0.3 * np.arange(n))])


@pytest.mark.one_in(10)
@pytest.mark.filterwarnings("ignore::daskspectral.errors.ReliabilityWarning", "ignore::daskspectral.errors.RankWarning")
@pytest.mark.parametrize("cells", [False, True], ids=["monomials", "cells"])
@pytest.mark.parametrize("operator", OPERATORS, ids=str)
@pytest.mark.parametrize("kind", ["random walk", "of period two", "white", "turning"])
def test_numbers_keep_to_their_definitions(kind: str, operator: Any, cells: bool) -> None:
    x = system(kind)
    basis = NormalizedRBF.draw(x, 6, random_state=0) if cells else MonomialBasis(x.shape[1], 2)
    model = koopman(operator, basis, n_components=4).fit(x)
    ends, times, around = getattr(model, Attributes(model.solver_).errors), model.timescales_, model.timescale_errors_
    assert (times >= 0).all()
    assert (around >= 0).all()
    assert (around[..., 0] <= around[..., 1]).all()
    assert (ends[:, 0] <= ends[:, 1]).all()
    if operator.reversible:
        assert (np.abs(model.eigenvalues_) <= 1 + 1e-9).all()
    if hasattr(model, "dynamic_residuals_"):
        assert (model.dynamic_residuals_ >= 0).all()
    assert model.forecast_score(x) <= 1
    if not operator.center and not operator.reversible:
        weights = model.equilibrium_weights(x)
        assert (weights >= 0).all()
        assert weights.sum() > 0
    try:
        sets = model.metastable_sets(2, x)
    except ValueError:  # of complex or negative values there are none
        return
    assert (sets.passage_times >= 0).all()
    for rows in (sets.probabilities[None], sets.transitions, np.asarray(sets.memberships(3 * x))):
        assert rows.min() >= 0
        np.testing.assert_allclose(rows.sum(axis=1), 1)


# -- lists of trajectories ---------------------------------------------------------------------------------------------

PATHS = [ar(n, seed=n) for n in (900, 2, 700)]
A, B = (lambda y: y[:, 0] < -1), (lambda y: y[:, 0] > 1)
OF_ROWS = {
    "transform": lambda model, x: model.transform(x),
    "forecast": lambda model, x: model.forecast(x, 3),
    "equilibrium_weights": lambda model, x: model.equilibrium_weights(x),
    "inverse_transform": lambda model, x: model.inverse_transform(model.transform(x)),
    "memberships": lambda model, x: model.metastable_sets(2, PATHS).memberships(x),
    "committor": lambda model, x: model.first_passage(PATHS, A, B).committor(x),
}


@pytest.fixture(scope="module")
def of_paths() -> dsp.Koopman:
    return koopman(Transfer((3, 6), reversible=True), MonomialBasis(1, 3), n_components=3).fit(PATHS)


@pytest.mark.filterwarnings("ignore::daskspectral.ReliabilityWarning")
@pytest.mark.parametrize("kind", ["numpy", "Rows", "xarray", "dask"])
@pytest.mark.parametrize("method", OF_ROWS)
def test_a_list_of_trajectories_has_a_list_of_values(of_paths: dsp.Koopman, method: str, kind: str) -> None:
    one = {
        "xarray": lambda x: xr.DataArray(x, dims=("time", "column"), coords={"time": np.arange(len(x)) * 1.0}),
        "dask": lambda x: da.from_array(x, chunks=(300, 1)),
    }.get(kind, lambda x: x)
    some: Any = [one(x) for x in PATHS]
    found = OF_ROWS[method](of_paths, dsp.Rows(some) if kind == "Rows" else some)
    assert isinstance(found, list)
    for values, x in zip(found, some, strict=True):
        alone = OF_ROWS[method](of_paths, x)
        assert type(values) is type(alone)
        np.testing.assert_array_equal(np.asarray(values), np.asarray(alone))


def test_functions_of_a_notebook_have_sets_and_first_passages() -> None:
    basis = CallableBasis(lambda x: np.stack([np.ones(len(x)), x[:, 0], x[:, 0] ** 2]), d=1)
    model = koopman(Transfer(3, reversible=True), basis, n_components=2).fit(PATHS)
    assert model.metastable_sets(2, PATHS).model["parameters"].count("CallableBasis") == 1
    assert model.first_passage(PATHS, A, B).both
    assert "CallableBasis" in model.to_xarray().attrs["parameters"]
    with pytest.raises(ValueError, match="saved"):
        model.save("model.zarr")


def test_trajectories_follow_one_another_in_a_dataset(of_paths: dsp.Koopman, tmp_path: Any) -> None:
    found = of_paths.to_xarray(PATHS)
    assert found.trajectory.to_numpy().tolist() == np.repeat([0, 1, 2], [len(x) for x in PATHS]).tolist()
    np.testing.assert_array_equal(found.eigenfunction, of_paths.transform(np.concatenate(PATHS)))
    with pytest.raises(ValueError, match="3 trajectories"):
        of_paths.transform(PATHS, out=tmp_path / "values.zarr")
    with pytest.raises(dsp.InvalidRowError, match=r"X\[1\].*row 1 ") as error:
        of_paths.transform([PATHS[0], np.array([[0.0], [np.nan]])])
    assert error.value.row == 1
    frames = copy.copy(of_paths).set_output(transform="pandas")
    assert frames.transform(PATHS[0]).shape == (900, 3)
    with pytest.raises(ValueError, match="set_output"):
        frames.transform(PATHS)
