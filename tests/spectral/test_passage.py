"""Committors and mean first passage times: against counted jumps, quadrature, and what a file or a shell has."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral.spectral.passage import PARTS
from tests.common import autoregression, koopman, reloaded

STATES = np.arange(7.0)[:, None]
INDICATORS = dsp.basis.LandmarkBasis(dsp.kernels.Gaussian(0.05), STATES)
BOX = dsp.basis.BoxBoundary
LEFT, RIGHT = BOX(-np.inf, -1.0), BOX(1.0, np.inf)


def in_a(x: Any) -> Any:
    return x[:, 0] == 0


def in_b(x: Any) -> Any:
    return x[:, 0] >= 5


@pytest.fixture(scope="module")
def walks() -> list[Any]:
    """Two walks over seven states, one of which is uneven."""
    rng = np.random.default_rng(3)
    walks = []
    for n in (700, 400):
        steps = rng.choice([-1, 0, 1], size=n, p=[0.35, 0.2, 0.45])
        walk = [3]
        for step in steps:
            walk.append(min(max(walk[-1] + step, 0), 6) if walk[-1] != 6 else rng.integers(0, 6))
        walks.append(np.array(walk, float)[:, None])
    return walks


@pytest.fixture(scope="module")
def fitted(walks: list[Any]) -> dsp.Koopman:
    est = koopman(dsp.operators.Transfer(1), basis=INDICATORS, n_components=3, folds=5)
    return est.fit(walks)


def counted(walks: list[Any], lag: int, a: Any = in_a, b: Any = in_b) -> tuple[Any, Any]:
    """The committor and the time of the seven states, from each row followed by a loop."""
    jumps, into, time = np.zeros((7, 7)), np.zeros(7), np.zeros(7)
    for walk in walks:
        inside = a(walk) | b(walk)
        for t in range(len(walk) - lag):
            if inside[t]:
                continue
            end = next((s for s in range(t, t + lag + 1) if inside[s]), t + lag)
            i, j = int(walk[t, 0]), int(walk[end, 0])
            jumps[i, j] += 1
            into[i] += bool(b(walk)[end])
            time[i] += end - t
    free = jumps.sum(axis=1) > 0
    left = np.diag(jumps.sum(axis=1)) - jumps * free
    q, t = np.zeros(7), np.zeros(7)
    q[free], t[free] = np.linalg.solve(left[np.ix_(free, free)], np.column_stack([into, time])[free]).T
    return q[free], t[free]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("lag", [1, 3, 10])
@pytest.mark.parametrize("kind", ["functions", "labels", "stored"])
def test_each_row_is_followed_until_it_enters_a_set(
    walks: list[Any], fitted: Any, lag: int, kind: str, tmp_path: Path
) -> None:
    data, a, b = walks, in_a, in_b
    if kind != "functions":
        a, b = ([test(walk) for walk in walks] for test in (in_a, in_b))
    if kind == "stored":
        for name, parts in (("x", walks), ("a", a), ("b", b)):
            for i, part in enumerate(parts):
                chunks = (31 if name == "x" else 17, *part.shape[1:])
                zarr.create_array(str(tmp_path / f"{name}{i}.zarr"), data=part, chunks=chunks)
        data, a, b = ([str(tmp_path / f"{name}{i}.zarr") for i in (0, 1)] for name in "xab")
    found = fitted.first_passage(data, a, b, lag=lag)
    q, t = counted(walks, lag)
    np.testing.assert_allclose(found.committor(STATES[1:5])[:, 0], q, rtol=1e-8)
    np.testing.assert_allclose(found.passage_time(STATES[1:5])[:, 0], t, rtol=1e-8)


def test_intervals_are_a_jackknife_over_blocks(walks: list[Any], fitted: Any) -> None:
    walk, number = walks[0], 5
    est = koopman(dsp.operators.Transfer(1), basis=INDICATORS, n_components=3, folds=number).fit(walk)
    passage = est.first_passage(walk, in_a, in_b)
    borders = np.linspace(0, len(walk) - 1, number + 1).round().astype(int)
    parts = [[walk[: i + 1], walk[j:]] for i, j in pairwise(borders)]
    left_out = np.stack([counted([part for part in two if len(part) > 1], 1)[0] for two in parts])
    errors = np.sqrt((number - 1) / number * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    half, found = 1.15 * 2.776 * errors, counted([walk], 1)[0]  # Student's t of 4 degrees
    ends = np.clip([found - half, found + half], 0, 1)
    assert (ends == 0).any() or (ends == 1).any()
    np.testing.assert_allclose(passage.committor(STATES[1:5])[:, 1:].T, ends, atol=1e-3)


def test_the_time_until_one_set(walks: list[Any], fitted: Any) -> None:
    found = fitted.first_passage(walks, in_b)
    _, t = counted(walks, 1, a=in_b, b=lambda x: np.zeros(len(x), bool))
    np.testing.assert_allclose(found.passage_time(STATES[:5])[:, 0], t, rtol=1e-8)
    with pytest.raises(ValueError, match="committor"):
        found.committor(STATES)


def test_without_folds_the_ends_are_not_known(walks: list[Any], fitted: Any) -> None:
    est = koopman(dsp.operators.Transfer(1), basis=INDICATORS, n_components=3, folds=None).fit(walks)
    for name in ("committor", "passage_time"):
        found, wanted = (getattr(model.first_passage(walks, in_a, in_b), name)(STATES) for model in (est, fitted))
        np.testing.assert_allclose(found[:, 0], wanted[:, 0])
        assert np.isnan(found[:, 1:]).all()
    est = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(1, 3), n_components=2, folds=None).fit(walks[0])
    assert est.first_passage(walks[0], BOX(-1, 0.5), BOX(5.5, 7)).committor(STATES[-1:])[0, 0] == 1


def test_weights_count(walks: list[Any]) -> None:
    walk = walks[0]
    est = koopman(dsp.operators.Transfer(1), basis=INDICATORS, n_components=3, folds=None).fit(walk)
    first = est.first_passage(walk[:301], in_a, in_b).coefficients
    weights = (np.arange(len(walk)) < 300).astype(float)
    np.testing.assert_allclose(
        est.first_passage(walk, in_a, in_b, sample_weight=weights).coefficients, first, atol=1e-8
    )


@pytest.fixture(scope="module")
def double_well() -> Any:
    """Rows of the density exp(-V), V = 4 (x² - 1)², and drifts -V'."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.8, 1.8, 400_000)
    x = x[rng.random(len(x)) < np.exp(-4 * (x**2 - 1) ** 2)][:40_000, None]
    return dsp.Rows(x, fields={"drift": -16 * x * (x**2 - 1)})


def solved_on_a_grid(at: Any) -> tuple[Any, Any]:
    """The committor between, and the time until, x < -1 and x > 1 by finite differences of u'' - V' u' = 0 or -1."""
    x, h = np.linspace(-1, 1, 4001, retstep=True)
    slope, n = 16 * x * (x**2 - 1), len(x)
    bands = [1 / h**2 + slope[1:] / (2 * h), np.full(n, -2 / h**2), 1 / h**2 - slope[:-1] / (2 * h)]
    generator = scipy.sparse.diags(bands, [-1, 0, 1]).tolil()
    generator[0], generator[-1] = 0, 0
    generator[0, 0] = generator[-1, -1] = 1
    source = np.column_stack([np.zeros(n), -np.ones(n)])
    source[-1], source[0] = (1, 0), (0, 0)
    found = scipy.sparse.linalg.spsolve(generator.tocsc(), source)
    return np.interp(at, x, found[:, 0]), np.interp(at, x, found[:, 1])


@pytest.mark.parametrize(("operator", "far"), [("laplacian", 0.03), ("reversible", 0.03), ("generator", 0.003)])
def test_generators(double_well: Any, operator: str, far: float) -> None:
    made = {
        "laplacian": dsp.operators.Laplacian(),
        "reversible": dsp.operators.Generator("drift", 2**0.5, reversible=True),
        "generator": dsp.operators.Generator("drift", 2**0.5),
    }[operator]
    rows = dsp.Rows(double_well.data) if operator != "generator" else double_well
    basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(0.4), 30)
    est = dsp.SpectralDecomposition(made, basis=basis, n_components=3, random_state=0).fit(rows)
    passage = est.first_passage(rows, LEFT, RIGHT)
    x = np.array([-1.2, -0.7, -0.2, 0.1, 0.6, 1.2])
    q, t = solved_on_a_grid(x)
    found, times = passage.committor(x[:, None]), passage.passage_time(x[:, None])
    np.testing.assert_allclose(found[:, 0], q, atol=far)
    np.testing.assert_allclose(times[:, 0], t, atol=far)
    assert found[[0, -1], 0].tolist() == [0.0, 1.0]  # within the sets
    assert ((found[:, 1] - far / 5 <= q) & (q <= found[:, 2] + far / 5)).all()
    passage = est.first_passage(rows, BOX(-1.0, 1.0))
    assert (passage.passage_time(np.array([[-1.2], [1.3]]))[:, 0] > 0).all()


def test_each_set_of_a_generator_has_rows() -> None:
    x = np.random.default_rng(0).uniform(-2, 2, (20_000, 1))
    est = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(1, 3), n_components=2).fit(x)
    for sets, name in {(BOX(3, 4), LEFT): "a", (BOX(-1, 0), BOX(3, 4)): "b", (BOX(3, 4),): "a"}.items():
        with pytest.raises(ValueError, match=f"no row is in {name}"):
            est.first_passage(x, *sets)
    x[1] = 4  # which the sample lacks
    assert est.first_passage(x, BOX(3, 5)).passage_time(x[:2])[1, 0] == 0


@pytest.mark.filterwarnings("ignore::daskspectral.ReliabilityWarning")
@pytest.mark.parametrize("generator", [False, True])
def test_far_rows_are_warned_of(generator: bool) -> None:
    x, basis = autoregression(1000), dsp.basis.Landmarks(dsp.kernels.Gaussian(0.5), 15)
    if generator:
        est = dsp.SpectralDecomposition(basis=basis, n_components=2, random_state=0).fit(x)
        passage = est.first_passage(x, LEFT, BOX(1, 3))
        assert passage.committor([[-50.0]], extrapolate="raise")[0, 0] == 0  # within a
    else:
        walk = dsp.Koopman(1, basis=basis, reversible=True, n_components=2, random_state=0).fit(x)
        passage = walk.first_passage(x, x[:, 0] < -1, x[:, 0] > 1)
    landmarks = passage.basis.landmark_parts[0].landmarks
    for evaluated in (passage.committor, passage.passage_time):
        with pytest.raises(ValueError, match="1 of 2 rows are so far"):
            evaluated([[0.0], [50.0]], extrapolate="raise")
        with pytest.warns(dsp.ExtrapolationWarning):
            assert np.isnan(evaluated([[0.0], [50.0]], extrapolate="nan")[:, 0]).tolist() == [False, True]
        with pytest.warns(dsp.ExtrapolationWarning):
            np.testing.assert_allclose(evaluated([[50.0]]), evaluated(landmarks[landmarks.argmax()][None]))


def test_arguments_that_do_not_fit_are_named(walks: list[Any], fitted: Any) -> None:
    est = dsp.SpectralDecomposition(basis=dsp.basis.MonomialBasis(1, 1), n_components=2, folds=None).fit(walks[0])
    calls: dict[str, Any] = {
        "X must be an array": lambda: fitted.first_passage(None, in_a),
        "a must be a set": lambda: fitted.first_passage(walks, None, in_b),
        "a must have 1 columns": lambda: est.first_passage(walks[0], dsp.basis.BallBoundary(1, (0, 0))),
        "sets must be": lambda: fitted.chapman_kolmogorov(3),
        "'side'": lambda: fitted.first_passage(walks, in_a).passage_time(STATES, side="right"),
        "'foo'": lambda: fitted.transform(STATES, foo=1),
    }
    for message, call in calls.items():
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_it_evaluates_itself_without_the_model_in_the_columns_of_the_fit(walks: list[Any], tmp_path: Path) -> None:
    walk = np.hstack([walks[0] ** 2, walks[0]])
    field = xr.DataArray(walk, {"time": np.arange(len(walk))}, ("time", "column"), name="walk")
    rows = dsp.Rows(field, sample_dims="time", columns=[1])
    est = koopman(dsp.operators.Transfer(1), basis=INDICATORS, n_components=3).fit(rows)
    passage = est.first_passage(field, in_a(walks[0]), in_b(walks[0]))
    wanted, fitted = passage.committor(field), vars(est).copy()
    assert vars(est) == fitted
    est.fit(walks[1])  # of other columns
    again = reloaded(passage)
    xr.testing.assert_identical(again.committor(field), wanted)
    assert wanted.dims == ("time", "part")
    assert (wanted.sel(part="value") == passage.committor(walk)[:, 0]).all()
    again.committor(field, out=tmp_path / "committor.zarr")
    written = xr.open_zarr(tmp_path / "committor.zarr")
    assert written["part"].to_numpy().tolist() == PARTS
    assert "reversible" in written.attrs["parameters"]
    assert repr(again) == repr(passage)
    assert {"labels of rows", f"{passage.shares[2]:.1%}"} <= {*re.split("  +|\n", repr(passage))}
    assert len(repr(passage).splitlines()) <= 12
    passage.save(tmp_path / "passage.zarr")
    assert set(xr.open_zarr(tmp_path / "passage.zarr").dims) == {"solution", "function", "quantity", "place"}
    with pytest.raises(ValueError, match="3 features"):
        again.passage_time(np.zeros((2, 3)))


def test_a_committor_is_a_chance_and_a_time_is_not_negative() -> None:
    """Of a line between two far sets few monomials leave [0, 1]: what is beyond is cut off, and told."""
    path = 2.5 * autoregression(4000, 0.98)[:, 0]
    est = koopman(dsp.operators.Transfer(1), dsp.basis.MonomialBasis(1, 1), n_components=2)
    est.fit(path[:, None])
    with pytest.warns(dsp.ReliabilityWarning):
        found = est.first_passage(
            path[:, None], lambda x: np.abs(x[:, 0] + 1) < 0.3, lambda x: np.abs(x[:, 0] - 1) < 0.3
        )
    raw = est.basis_.values(path[:, None]).T @ found.coefficients[0]
    free = np.abs(np.abs(path) - 1) >= 0.3
    beyond = np.quantile(np.maximum(raw[free, 0] - 1, -raw[free, 0]), 0.99)
    assert found.excess == pytest.approx(beyond, rel=0.01)
    chances, times = found.committor(path[:, None]), found.passage_time(path[:, None])
    np.testing.assert_allclose(chances[:, 0], np.clip(raw[:, 0], 0, 1))
    np.testing.assert_allclose(times[:, 0], np.maximum(raw[:, 1], 0))
    for (values, lower, upper), highest in ((chances.T, 1), (times.T, np.inf)):
        assert ((lower >= 0) & (lower <= values) & (values <= upper) & (upper <= highest)).all()
