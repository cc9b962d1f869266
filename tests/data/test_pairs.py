"""Every pair of the options of `Rows`, with weights, float32 and containers, against a model by numpy."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import xarray as xr

import daskspectral as dsp
from daskspectral.forms import form, inner
from daskspectral.operators import Covariance, Cross, SymmetricForm

pytestmark = pytest.mark.filterwarnings("ignore::daskspectral.errors.FitWarning")

N, OLD = 240, 168
TIMES = pd.date_range("2001-03-01", periods=N, freq="MS")
LAT = [-70.0, 5.0, 40.0]


def field(seed: int = 0) -> xr.DataArray:
    """Noise of unlike spreads about 20, with seasons and a trend."""
    rng = np.random.default_rng(seed)
    years, phase = np.arange(N) / 12, 2 * np.pi * np.arange(N) / 12
    x = rng.standard_normal((N, 3, 2)) * rng.uniform(0.5, 20, (3, 2)) + 20
    x += np.multiply.outer(np.cos(phase), 3 * rng.standard_normal((3, 2)))
    x += np.multiply.outer(years / 4, rng.standard_normal((3, 2)))
    return xr.DataArray(x, {"time": TIMES, "lat": LAT}, ("time", "lat", "lon"), name="t")


FIELD = field()
HOLES = FIELD.where(np.random.default_rng(3).uniform(size=FIELD.shape) > 0.1)
HOLES[:, 0, 1] = np.nan
GAPS = FIELD.where(np.random.default_rng(4).uniform(size=FIELD.shape) > 0.2)
POTENTIAL = xr.DataArray(np.random.default_rng(5).uniform(1, 3, N), {"time": TIMES}, ("time",))
WEIGHTS = xr.DataArray(np.random.default_rng(6).integers(1, 4, N).astype(float), {"time": TIMES}, ("time",))

OPTIONS: dict[str, Any] = {
    "columns": [-1, 0],
    "standardize": True,
    "sample_dims": ("time", "lat"),
    "latitude": "lat",
    "anomaly": "month",
    "detrend": 1,
    "column_weights": xr.DataArray([0.5, 3.0], dims="lon"),
    "delays": 3,
    "fields": "potential",
    "on_invalid=skip": "skip",
    "on_invalid=pairwise": "pairwise",
    "allow_missing": True,
    "storage_options": {"block_size": 1 << 20},
    "sample_weight": True,
    "float32": True,
    "chunks": True,
    "zarr": True,
}
EXCLUSIVE = [{"on_invalid=skip", "on_invalid=pairwise"}, {"chunks", "zarr"}, {"allow_missing", "chunks"}]
EXCLUSIVE += [{"fields", "on_invalid=pairwise"}]
MANY = [
    ("columns", "standardize", "latitude", "anomaly", "detrend", "on_invalid=skip", "sample_weight", "zarr"),
    ("standardize", "latitude", "anomaly", "detrend", "on_invalid=pairwise", "sample_weight", "chunks"),
    ("columns", "standardize", "sample_dims", "latitude", "anomaly", "detrend", "fields", "sample_weight"),
    ("columns", "latitude", "anomaly", "on_invalid=skip", "allow_missing", "storage_options", "float32"),
    ("standardize", "sample_dims", "latitude", "anomaly", "on_invalid=skip", "chunks"),
    ("columns", "standardize", "latitude", "anomaly", "delays", "on_invalid=skip", "sample_weight", "chunks"),
    ("columns", "standardize", "sample_dims", "detrend", "delays", "fields", "sample_weight", "zarr"),
    ("columns", "standardize", "latitude", "column_weights", "delays", "on_invalid=skip", "sample_weight"),
]
PAIRS: list[tuple[str, ...]] = [pair for pair in combinations(OPTIONS, 2) if {*pair} not in EXCLUSIVE]


@form
def weighted(f: Any, g: Any, x: Any) -> Any:
    """E[v f g], against E[f g]."""
    return inner(f, g, weight=x.potential)


class ByHand:
    """Rows prepared by numpy: weighted, less the baseline, of some columns, in windows, standardized."""

    def __init__(self, data: xr.DataArray, options: dict[str, Any]):
        self.options, self.samples = options, options.get("sample_dims", ("time",))
        self.delays = options.get("delays", 1)
        x, rows = self.stacked(data)
        keep = ~np.isnan(x).all(axis=0)
        self.kept = keep if options.get("on_invalid") == "skip" else np.ones_like(keep)
        weights = np.resize(np.asarray(options.get("column_weights", 1.0)), len(self.kept))
        self.column = (self.by_latitude(data) * np.sqrt(weights))[self.kept]
        w = self.row_weights(data, 1)
        z, valid = x[:, self.kept] * self.column, np.ones(len(x), bool)
        columns = np.array(options.get("columns", range(z.shape[1])))
        if options.get("on_invalid") == "skip":
            valid = ~np.isnan(z[:, columns]).any(axis=1)
        self.groups, self.middle = np.unique(rows["time"].dt.month), TIMES[OLD // 2]
        self.baseline = np.zeros((self.design(rows["time"]).shape[1], z.shape[1]))
        if {"anomaly", "detrend"} & options.keys():
            design = self.design(rows["time"])
            for i, column in enumerate(z.T):
                here = valid & ~np.isnan(column)
                root = np.sqrt(w[here])
                self.baseline[:, i] = np.linalg.lstsq(design[here] * root[:, None], column[here] * root)[0]
        z = self.windows((z - self.design(rows["time"]) @ self.baseline)[:, columns], data)
        valid, w = self.windows(valid[:, None], data).all(axis=1), self.row_weights(data)
        self.columns, self.mean, self.scale = columns, np.zeros(z.shape[1]), np.ones(z.shape[1])
        if options.get("standardize"):
            for i, column in enumerate(z.T):
                here = valid & ~np.isnan(column)
                self.mean[i] = np.average(column[here], weights=w[here])
                self.scale[i] = np.sqrt(np.average((column[here] - self.mean[i]) ** 2, weights=w[here]))
            self.scale = self.scale / np.tile(self.column[columns], self.delays)

    def stacked(self, data: xr.DataArray) -> tuple[Any, Any]:
        own = data.transpose(*self.samples, ...)
        n = int(np.prod([own.sizes[dim] for dim in self.samples]))
        time = own.time.broadcast_like(own.isel({d: 0 for d in own.dims if d not in self.samples}, drop=True))
        return np.asarray(own.values, float).reshape(n, -1), {
            "time": time.transpose(*self.samples).stack(row=self.samples)
        }

    def by_latitude(self, data: xr.DataArray) -> Any:
        sizes = [data.sizes[dim] for dim in data.dims if dim not in self.samples]
        if "latitude" not in self.options or "lat" in self.samples:
            return np.ones(int(np.prod(sizes)))
        return np.repeat(np.sqrt(np.cos(np.radians(data.lat.values))), data.sizes["lon"])

    def windows(self, z: Any, data: xr.DataArray, delays: int = 0) -> Any:
        """Rows (times, places) of columns z, those of one place and some successive times side by side, last first."""
        times, count = data.sizes["time"], delays or self.delays
        z = z.reshape(times, -1, z.shape[1])
        z = np.concatenate([z[count - 1 - k : times - k] for k in range(count)], axis=2)
        return z.reshape(-1, z.shape[2])

    def row_weights(self, data: xr.DataArray, delays: int = 0) -> Any:
        weights = WEIGHTS.sel(time=data.time) if "sample_weight" in self.options else xr.ones_like(data.time, float)
        weights = weights.expand_dims(lat=data.lat) if "lat" in self.samples else weights
        if "latitude" in self.options and "lat" in self.samples:
            weights = weights * np.cos(np.radians(data.lat))
        return weights.transpose(*self.samples).values[(delays or self.delays) - 1 :].ravel()

    def design(self, time: Any) -> Any:
        parts = [np.ones(len(time))]
        if self.options.get("anomaly"):
            parts = [np.asarray(time.dt.month.values == g, float) for g in self.groups]
        if self.options.get("detrend"):
            parts.append((time.values - np.datetime64(self.middle)) / np.timedelta64(3000, "D"))
        return np.column_stack(parts)

    def __call__(self, data: xr.DataArray) -> Any:
        x, rows = self.stacked(data)
        z = x[:, self.kept] * self.column - self.design(rows["time"]) @ self.baseline
        return (self.windows(z[:, self.columns], data) - self.mean) / self.scale

    def restored(self, z: Any) -> Any:
        """Anomalies of last rows in the units of the data, NaN in columns that are left out."""
        found = np.full((len(z), len(self.kept)), np.nan)
        used = np.flatnonzero(self.kept)[self.columns]
        found[:, used] = (z * self.scale + self.mean)[:, : len(used)] / self.column[self.columns]
        return found

    def maps(self, z: Any) -> Any:
        """Values in the units of the data, 0 in columns that are not used and NaN in those without a number."""
        z = z.reshape(len(z), self.delays, -1)
        found = np.full((len(z), self.delays, len(self.kept)), np.nan)
        used = np.zeros((len(z), self.delays, int(self.kept.sum())))
        used[..., self.columns] = z / self.column[self.columns]
        found[..., self.kept] = used
        return found


def second_moments(z: Any, w: Any, pairwise: bool) -> tuple[Any, Any]:
    """Means and covariances, of whole rows or by pairs of columns without negative eigenvalues."""
    if not pairwise:
        whole = ~np.isnan(z).any(axis=1)
        return np.average(z[whole], axis=0, weights=w[whole]), np.cov(z[whole].T, ddof=0, aweights=w[whole])
    d = z.shape[1]
    mean, found = np.empty(d), np.empty((d, d))
    for i in range(d):
        here = ~np.isnan(z[:, i])
        mean[i] = np.average(z[here, i], weights=w[here])
        for j in range(d):
            both = ~np.isnan(z[:, i] + z[:, j])
            found[i, j] = np.cov(z[both][:, [i, j]].T, ddof=0, aweights=w[both])[0, 1] if i != j else 0
        found[i, i] = np.average((z[here, i] - mean[i]) ** 2, weights=w[here])
    values, vectors = np.linalg.eigh(found)
    return mean, (vectors * np.maximum(values, 0)) @ vectors.T


def given(pair: tuple[str, ...]) -> tuple[xr.DataArray, dict[str, Any]]:
    """The data of a pair, and its options as `ByHand` has them."""
    options: dict[str, Any] = {name.partition("=")[0]: OPTIONS[name] for name in pair}
    data = {"skip": HOLES, "pairwise": GAPS}.get(options.get("on_invalid", ""), FIELD)
    if "float32" in pair:
        data = data.astype("float32")
    if "allow_missing" in pair:
        data = data.copy()
        data[60:90] = np.nan if "on_invalid" in options else 0
    return data, options


def contained(data: xr.DataArray, pair: tuple[str, ...], path: Path) -> Any:
    """The data in a container; with `allow_missing` in a store without the chunk that holds its fill values."""
    if "chunks" in pair:
        return data.chunk({"time": 50, "lon": 1})
    if not {"zarr", "allow_missing"} & {*pair}:
        return data
    lost = "on_invalid=skip" in pair or "on_invalid=pairwise" in pair
    encoding = {"t": {"chunks": (30, 3, 2), "fill_value": np.nan if lost else 0.0}}
    data.to_dataset().to_zarr(path, encoding=encoding, consolidated=False, zarr_format=3)
    if "allow_missing" in pair:
        shutil.rmtree(path / "t" / "c" / "2", ignore_errors=True)
    return path


def rows_of(data: Any, options: dict[str, Any], pair: tuple[str, ...], times: slice) -> tuple[dsp.Rows, dict[str, Any]]:
    known = {"columns", "standardize", "latitude", "column_weights", "anomaly", "detrend", "delays", "on_invalid"}
    known |= {"allow_missing", "storage_options"}
    own = {name: value for name, value in options.items() if name in known}
    own["sample_dims"] = options.get("sample_dims", "time")
    broad = "lat" in own["sample_dims"]
    if "fields" in options:
        potential = POTENTIAL[times]
        own["fields"] = {"potential": potential.expand_dims(lat=LAT, axis=1) if broad else potential}
    fit = {}
    if "sample_weight" in options:
        weight = WEIGHTS[times]
        fit["sample_weight"] = weight.expand_dims(lat=LAT, axis=1) if broad else weight
    return dsp.Rows(data, **own), fit


def model(options: dict[str, Any]) -> dsp.SpectralDecomposition:
    dtype = "float32" if "float32" in options else "float64"
    used = 2 if {"columns", "sample_dims"} & options.keys() else 5 if options.get("on_invalid") == "skip" else 6
    used *= options.get("delays", 1)
    common: dict[str, Any] = {"n_components": used, "folds": None, "dtype": dtype}
    if "fields" in options:
        basis = dsp.basis.Landmarks(dsp.kernels.Linear(), constant=True)
        common["n_components"] = 3
        return dsp.SpectralDecomposition(SymmetricForm(weighted), basis, solver=dsp.solvers.Truncated(), **common)
    return dsp.SpectralDecomposition(Covariance(), **common)


@pytest.mark.one_in(13)
@pytest.mark.parametrize("pair", [*PAIRS, *MANY], ids=" ".join)
def test_a_pair_of_options(pair: tuple[str, ...], tmp_path: Path) -> None:
    """In a fit, in `transform` of new rows, in what comes back, in a Dataset, and in an update."""
    data, options = given(pair)
    old, new = data[:OLD], data[OLD:]
    rows, fit = rows_of(contained(old, pair, tmp_path / "old.zarr"), options, pair, slice(OLD))
    found = model(options).fit(rows, **fit)
    tolerance = 2e-4 if "float32" in pair else 1e-8
    for later in (False, True):
        hand, whole = ByHand(old, options), data if later else old
        if later:
            rows, fit = rows_of(contained(data, pair, tmp_path / "all.zarr"), options, pair, slice(None))
            found.update(rows, **fit)
        z, w = hand(whole), hand.row_weights(whole)
        if "fields" in options:
            check_potential(found, hand, z, w, whole, new, tolerance)
            continue
        mean, covariance = second_moments(z, w, options.get("on_invalid") == "pairwise")
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1], vectors[:, ::-1]
        np.testing.assert_allclose(found.eigenvalues_, values, rtol=tolerance)
        total = np.trace(covariance)
        if options.get("on_invalid") == "pairwise":
            total = sum(np.cov(c[~np.isnan(c)], ddof=0, aweights=w[~np.isnan(c)]) for c in z.T)
        np.testing.assert_allclose(found.explained_variance_ratio_, values / total, rtol=tolerance)
        fresh = FIELD[OLD:]
        wanted = (hand(fresh) - mean) @ vectors / np.sqrt(values)
        scores = found.transform(fresh)
        signs = np.sign(np.sum(wanted * scores.values.reshape(wanted.shape), axis=0))
        atol = 50 * tolerance
        np.testing.assert_allclose(scores.values.reshape(wanted.shape), wanted * signs, atol=atol)
        back = found.inverse_transform(scores).transpose(*hand.samples, ...).values.reshape(len(wanted), -1)
        np.testing.assert_allclose(back, hand.restored(hand(fresh)), atol=atol * 50)
        np.testing.assert_allclose(found.inverse_transform(scores.values.reshape(wanted.shape)), back[:, hand.kept])
        dataset = found.to_xarray(fresh)
        np.testing.assert_allclose(dataset.eigenfunction, scores, atol=atol)
        maps = hand.maps((vectors * np.sqrt(values) * signs).T * hand.scale)
        np.testing.assert_allclose(dataset.t_pattern.values.reshape(maps.shape), maps, atol=atol * 50)
        mean = hand.maps((mean * hand.scale + hand.mean)[None])[0]
        np.testing.assert_allclose(dataset.t_mean.values.ravel(), mean.ravel(), atol=atol * 50)


def check_potential(found: Any, hand: ByHand, z: Any, w: Any, whole: Any, new: Any, tolerance: float) -> None:
    v = POTENTIAL.sel(time=whole.time)
    v = v.expand_dims(lat=whole.lat).transpose(*hand.samples) if "lat" in hand.samples else v
    v = v[hand.delays - 1 :]
    valid = ~np.isnan(z).any(axis=1)
    phi = np.column_stack([np.ones(len(z)), z])[valid]
    form_, gram = (phi.T @ (phi * (weight[valid] / w[valid].sum())[:, None]) for weight in (w * v.values.ravel(), w))
    values, vectors = scipy.linalg.eigh(form_, gram)
    np.testing.assert_allclose(found.eigenvalues_, values[: len(found.eigenvalues_)], rtol=10 * tolerance)
    fresh = FIELD[OLD:]
    wanted = (np.column_stack([np.ones(len(hand(fresh))), hand(fresh)]) @ vectors)[:, : len(found.eigenvalues_)]
    scores = found.transform(fresh).values.reshape(wanted.shape)
    np.testing.assert_allclose(np.abs(scores), np.abs(wanted), atol=500 * tolerance)


VIEWS = ["columns", "standardize", "latitude", "anomaly", "detrend", "delays", "sample_weight", "chunks"]


@pytest.mark.one_in(7)
@pytest.mark.parametrize("pair", [*combinations(VIEWS, 2), tuple(VIEWS)], ids=" ".join)
def test_two_views_are_prepared_each_for_itself(pair: tuple[str, ...], tmp_path: Path) -> None:
    """Columns are chosen of the first alone."""
    data, options = given(pair)
    other = field(1).rename("u")
    rows, fit = rows_of((contained(data, pair, tmp_path), contained(other, pair, tmp_path)), options, pair, slice(None))
    gaussian = dsp.basis.Landmarks(dsp.kernels.Gaussian(3.0 if "standardize" in pair else 30.0), 8, method="uniform")

    def model(x: Any, **options: Any) -> dsp.SpectralDecomposition:
        cross = dsp.SpectralDecomposition(Cross(center=True), gaussian, n_components=2, folds=None, random_state=0)
        return cross.fit(x, **options)

    found, hand = model(rows, **fit), ByHand(data, options)
    right = ByHand(other, {name: value for name, value in options.items() if name != "columns"})
    weight = {"sample_weight": hand.row_weights(data)} if fit else {}
    wanted = model((hand(data), right(other)), **weight)
    np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-6)
    np.testing.assert_allclose(found.transform(data), wanted.transform(hand(data)), atol=2e-4)
    np.testing.assert_allclose(
        found.transform(other, side="right"), wanted.transform(right(other), side="right"), atol=2e-4
    )
