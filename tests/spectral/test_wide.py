"""More columns than rows: directions of the rows give what all columns give."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr
from sklearn.base import clone

import daskspectral as dsp
from daskspectral.basis import Concatenated, ConstantBasis, LandmarkBasis, Landmarks
from daskspectral.choosing import landmarks, spaces
from daskspectral.data.source import open_source
from daskspectral.errors import InvalidRowError, RankWarning
from daskspectral.kernels import Linear
from daskspectral.moments.attributes import Attributes
from daskspectral.operators import Covariance, Cross, Laplacian
from daskspectral.passes.wide import leading_components
from tests.common import assert_close, reloaded

N, D = 130, 170
RNG = np.random.default_rng(0)
SCALES = np.append([6, 5, 4, 3, 2], np.full(30, 0.3))
X = RNG.standard_normal((N, 35)) * SCALES @ RNG.standard_normal((35, D)) + 10  # of no more rank than components kept
NOISY = X + RNG.standard_normal((N, D))
WEIGHTS = RNG.integers(1, 4, N).astype(float)
GRID = {"lat": np.linspace(-80, 80, 10), "lon": np.arange(17.0)}
FIELD = xr.DataArray(X.reshape(N, 10, 17), {"time": np.arange(N), **GRID}, ("time", "lat", "lon"), name="t")
HOLES = X.copy()
HOLES[3, 5] = HOLES[70] = np.nan
ERRORS = (
    "eigenvalue_errors_",
    "standard_errors_",
    "validation_values_",
    "multiplets_",
    "function_errors_",
    "reliable_",
)

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.ReliabilityWarning")


def components(basis: Any = None, **params: Any) -> Any:
    if basis is None:
        return dsp.EOF(**{"n_components": 4, **params})
    return dsp.SpectralDecomposition(Covariance(), basis, **{"n_components": 4, **params})


def all_columns(constant: bool) -> Any:
    """The functions of every column: p x p sums."""
    if not constant:
        return Landmarks(Linear(), points=np.eye(D), constant=False)
    return Concatenated((ConstantBasis(D), LandmarkBasis(Linear(), np.eye(D))))


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    ("rows", "params", "options"),
    [
        (X, {}, {}),
        (X, {}, {"sample_weight": WEIGHTS}),
        (X, {"folds": np.arange(N) % 7}, {"sample_weight": WEIGHTS}),
        (X, {"centered": False}, {}),
        (dsp.Rows(X, standardize=True), {}, {}),
        (dsp.Rows(HOLES, on_invalid="skip"), {}, {}),
        (dsp.Rows(FIELD, sample_dims=("time",), latitude="lat"), {}, {}),
    ],
    ids=["plain", "weights", "labels", "second moments", "standardized", "skipped", "field"],
)
def test_the_rows_determine_all_columns(rows: Any, params: dict[str, Any], options: dict[str, Any]) -> None:
    params = dict(params)
    constant = params.pop("centered", True)
    found = components(None if constant else Landmarks(Linear(), constant=False), **params).fit(rows, **options)
    wanted = components(all_columns(constant), **params).fit(rows, **options)
    assert found.moments_.spanned
    assert found.basis_.size <= N + constant
    assert_close(found.eigenvalues_, wanted.eigenvalues_, 1e-9)
    for name in ERRORS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-7, atol=1e-8)
    assert_close(found.validation_values_, wanted.validation_values_, 1e-9)
    seen = FIELD if getattr(rows, "latitude", None) else X
    for x in (seen[:9], seen[20:] * 2):
        scores, others = np.asarray(found.transform(x)), np.asarray(wanted.transform(x))  # of other dimensions
        assert_close(scores * np.sign(np.sum(scores * others, axis=0)), others, 1e-8)
    one, two = found.patterns_, wanted.patterns_
    signs = np.sign(np.sum(one.single * two.single, axis=1))[:, None]
    assert_close(one.single * signs, two.single, 1e-9)
    assert_close(one.maps * signs, two.maps, 1e-9)
    assert_close(one.explained, two.explained, 1e-9)
    assert np.isnan(found.discretization_errors_).all()  # no function of the rows is left out
    assert found.score(seen * 1.5) == pytest.approx(wanted.score(seen * 1.5), rel=1e-9)


LINEAR = Landmarks(Linear())
PAIRED = {"basis": LINEAR, "right_basis": LINEAR, "solver": dsp.solvers.Truncated()}
WIDE: dict[str, tuple[Any, Any]] = {
    "components": (components(), lambda n: X[:n]),
    "standardized": (components(folds="blocks"), lambda n: dsp.Rows(X[:n], standardize=True)),
    "field": (components(), lambda n: dsp.Rows(FIELD[:n], sample_dims="time", latitude="lat")),
    "skipped": (components(), lambda n: dsp.Rows(HOLES[:n], on_invalid="skip")),
    "right": (
        dsp.SpectralDecomposition(Cross(center=True), n_components=2, **PAIRED),
        lambda n: (X[:n, :9] ** 2, X[:n]),
    ),
    "laplacian": (dsp.SpectralDecomposition(Laplacian(), LINEAR, n_components=2, folds=None), lambda n: X[:n]),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "before"), [*((name, 20) for name in WIDE), ("standardized", 110), ("right", 110)])
def test_an_update_of_fewer_rows_than_columns_is_a_fit(name: str, before: int) -> None:
    """New rows have what no direction of the earlier ones has; the scaling stays."""
    model, data = WIDE[name]
    found = clone(model).fit(data(before))
    assert found.moments_.of_rows
    again = reloaded(found)
    wanted = clone(model).fit(data(N))
    if name == "standardized":
        mean, scale = X[:before].mean(axis=0), X[:before].std(axis=0)
        wanted = clone(model).fit((X - mean) / scale)
        mixed = clone(model).fit(data(N))
        assert np.abs(mixed.eigenvalues_ / wanted.eigenvalues_ - 1).max() > 1e-3
    values = Attributes(wanted.solver_).values
    for updated in (found.update(data(N)), again.update(data(N))):
        assert_close(getattr(updated, values), getattr(wanted, values), 1e-8)
        assert_close(updated.validation_values_, wanted.validation_values_, 1e-7)
        assert updated.moments_.of_rows


def test_changed_rows_are_refused_when_all_are_read_again() -> None:
    found, changed = components().fit(X[:50]), X.copy()
    changed[3] += 1
    with pytest.raises(ValueError, match="first rows of X"):
        found.update(changed)
    with pytest.raises(ValueError, match="more rows"):
        found.update(X[:50])


def test_moments_in_the_span_of_their_rows_do_not_add() -> None:
    found = components().fit(X[:110])
    apart = components(found.basis_).fit(X[110:])
    for one, other in ((found, apart), (apart, found), (found, found)):
        with pytest.raises(ValueError, match="cannot add"):
            one.moments_ + other.moments_
    tall = components().fit(X[:, :9])
    assert (tall.moments_ + tall.moments_).count == 2 * N


@pytest.mark.parametrize(("rows", "rank"), [(X[:4], 3), (np.ones((200, D)), 0), (np.ones((200, 3)), 0)])
def test_rows_that_vary_in_fewer_directions_than_are_wanted(rows: Any, rank: int) -> None:
    with pytest.warns(RankWarning):
        assert len(components().fit(rows).eigenvalues_) == rank


@pytest.mark.parametrize("columns", [9, D])
def test_an_update_turns_no_component(columns: int) -> None:
    x = X[:, :columns]
    found = components().fit(x[:100])
    for name in Attributes(found.solver_).functions:
        setattr(found, name, -getattr(found, name))
    scores = found.transform(x)
    found.update(x)
    overlap = scores.T @ found.transform(x)
    assert (overlap[np.abs(overlap).argmax(axis=0), np.arange(4)] > 0).all()
    maps, ends = found.patterns_.single, found.pattern_errors_
    assert ((maps >= ends[..., 0]) & (maps <= ends[..., 1])).mean() == 1


@pytest.mark.one_in(4)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("columns", [D, 100], ids=["wide", "tall"])
def test_leading_directions_of_many_rows_and_columns(
    columns: int, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where neither all rows nor all columns are taken, the functions hold the components, in each fold too."""
    x = X[:, :columns]
    wanted = components().fit(x, sample_weight=weights)
    monkeypatch.setattr(spaces, "MOST_SPANNING", 50)
    monkeypatch.setattr(landmarks, "OVERSAMPLED", 4)
    found = components().fit(dsp.Rows(x), sample_weight=weights)
    assert found.basis_.size == 1 + 11 * 8
    assert_close(found.eigenvalues_, wanted.eigenvalues_, 1e-9)
    for name in ("validation_values_", "standard_errors_", "function_errors_", "eigenvalue_errors_"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-3)
    assert_close(np.abs(found.transform(x)), np.abs(wanted.transform(x)), 1e-6)
    assert_close(np.abs(found.patterns_.maps), np.abs(wanted.patterns_.maps), 1e-6)
    again = components().set_params(**found.search_results_.best_params).fit(x, sample_weight=weights)
    assert_close(again.eigenvalues_, found.eigenvalues_, 1e-9)
    first = components().fit(x[:100], sample_weight=None if weights is None else weights[:100])
    assert first.moments_.of_rows
    assert_close(first.update(x, sample_weight=weights).eigenvalues_, wanted.eigenvalues_, 1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
def test_values_are_those_of_an_svd_and_folds_nearly_those_of_all_columns(weights: Any) -> None:
    """Folds are solved in the leading 40 components of all rows, which moves their values by second order."""
    found = components().fit(NOISY, sample_weight=weights)
    assert found.basis_.size == 1 + 40
    w = np.ones(N) if weights is None else weights
    rows = np.sqrt(w / w.sum())[:, None] * (NOISY - np.average(NOISY, axis=0, weights=w))
    assert_close(found.eigenvalues_, np.linalg.svd(rows, compute_uv=False)[:4] ** 2, 1e-12)
    wanted = components(all_columns(True)).fit(NOISY, sample_weight=weights)
    for name in ERRORS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=2e-3)


SOURCES: dict[str, Any] = {
    "rows": lambda path: stored(path, (40, D)),
    "columns": lambda path: stored(path, (N, 30)),
    "tiles": lambda path: stored(path, (50, 64)),
    "dask rows": lambda path: da.from_array(HOLES, chunks=(40, -1)),
    "dask columns": lambda path: da.from_array(HOLES, chunks=(-1, 30)),
    "dask tiles": lambda path: da.from_array(HOLES, chunks=(50, 64)),
    "float32": lambda path: HOLES.astype("float32"),
}


def stored(path: Any, chunks: tuple[int, int]) -> str:
    """Return the path of a zarr array of the rows with gaps."""
    array = zarr.create_array(str(path / "x.zarr"), shape=(N, D), chunks=chunks, dtype="float64")
    array[...] = HOLES
    return str(path / "x.zarr")


@pytest.mark.parametrize("name", SOURCES)
def test_results_do_not_depend_on_container_and_chunks(name: str, tmp_path: Any) -> None:
    columns = [7, *range(20, D - 4), 3]
    data = SOURCES[name](tmp_path)
    wanted = components().fit(dsp.Rows(HOLES, columns=columns, on_invalid="skip"), sample_weight=WEIGHTS)
    found = components().fit(dsp.Rows(data, columns=columns, on_invalid="skip"), sample_weight=WEIGHTS)
    close = 1e-5 if name == "float32" else 1e-11
    assert_close(found.eigenvalues_, wanted.eigenvalues_, close)
    assert_close(found.validation_values_, wanted.validation_values_, close)
    assert_close(found.patterns_.single, wanted.patterns_.single, close)
    assert_close(found.transform(X[:5]), wanted.transform(X[:5]), close)
    assert found.moments_.skipped == 1  # the other has its gap in a column that is left out
    with pytest.raises(InvalidRowError, match="column 5") as raised:
        components().fit(data)
    assert (raised.value.row, raised.value.column) == (3, 5)


@pytest.mark.parametrize("name", ["rows", "columns", "dask columns"])
def test_the_same_bits_on_any_scheduler(name: str, tmp_path: Any, small_tasks: Any, scheduling: Any) -> None:
    data = dsp.Rows(SOURCES[name](tmp_path), on_invalid="skip")
    with dask.config.set(scheduler="synchronous"):
        wanted = components().fit(data)
    for other in ("threads 3", "cluster"):
        with scheduling(other):
            found = components().fit(data)
        np.testing.assert_array_equal(found.eigenvalues_, wanted.eigenvalues_)
        np.testing.assert_array_equal(found.basis_.parts[-1].landmarks, wanted.basis_.parts[-1].landmarks)
        np.testing.assert_array_equal(found.eigenvalue_errors_, wanted.eigenvalue_errors_)


@pytest.mark.parametrize("standardize", [False, True])
def test_sums_of_columns_are_those_of_their_rows(standardize: bool) -> None:
    """Of the columns as they are prepared: about a mean that is not theirs, if the scaling is an earlier one."""
    source = open_source(X, weight=WEIGHTS)
    mean, scale = X[:40].mean(axis=0), X[:40].std(axis=0)
    if standardize:
        source = source.with_preparation(mean=mean, scale=scale)
    source, directions, found = leading_components(source, 7, centered=True)
    x, w = source.preparation(X), WEIGHTS[:, None]
    pairs = np.sqrt(w[:-1] * w[1:])
    wanted = (w * x).sum(axis=0), (w * x**2).sum(axis=0)
    lagged = (pairs * x[:-1] * x[1:]).sum(axis=0), (pairs * (x[:-1] + x[1:]) / 2).sum(axis=0)
    for own, other in zip((found.first, found.squares, found.lagged, found.pairs), (*wanted, *lagged), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-9 * np.abs(x).max() ** 2)
    np.testing.assert_allclose(found.scores, x @ directions.T, atol=1e-10 * np.abs(found.scores).max())
