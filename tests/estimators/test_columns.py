"""Columns with names: matched by name between any two containers, selected by name, kept with the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
import zarr

import daskspectral as dsp
from daskspectral import Rows
from daskspectral.data.containers import reader_of
from daskspectral.data.labeled import stack_rows
from daskspectral.data.readers import Reader
from daskspectral.operators import Cross, Transfer
from daskspectral.plot.views import View
from tests.common import reloaded, unreliable
from tests.estimators.common import hermite, model

pytestmark = unreliable

rng = np.random.default_rng(0)
NAMES = ["malt", "ash", "iron"]
X = rng.standard_normal((120, 3)) @ [[1, 0.5, 0], [0, 2, 0], [0, 0, 4]]
FRAME = pd.DataFrame(X, columns=NAMES)


def dataset(frame: pd.DataFrame) -> xr.Dataset:
    return xr.Dataset({name: ("time", frame[name].to_numpy()) for name in frame})


def data_array(frame: pd.DataFrame) -> xr.DataArray:
    return xr.DataArray(frame.to_numpy(), {"part": frame.columns.to_numpy(dtype=str)}, ("time", "part"), name="x")


def put(write: Callable[..., Any], path: Path, **options: Any) -> Path:
    write(path, **options)
    return path


def group(frame: pd.DataFrame, folder: Path) -> Path:
    return put(dataset(frame).chunk(time=50).to_zarr, folder / "group.zarr", zarr_format=3, consolidated=False)


def in_zarr(frame: pd.DataFrame, store: Any) -> zarr.Array[Any]:
    return zarr.create_array(store, data=frame.to_numpy(), chunks=(50, 3), attributes={"columns": [*frame.columns]})


KINDS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "pandas.DataFrame": lambda frame, folder: frame,
    "polars.DataFrame": lambda frame, folder: pl.from_pandas(frame),
    "pyarrow.Table": lambda frame, folder: pa.Table.from_pandas(frame),
    "pyarrow.RecordBatch": lambda frame, folder: pa.RecordBatch.from_pandas(frame),
    "Dataset": lambda frame, folder: dataset(frame),
    "Dataset, chunked": lambda frame, folder: dataset(frame).chunk(time=50),
    "DataArray": lambda frame, folder: data_array(frame),
    "DataArray, chunked": lambda frame, folder: data_array(frame).chunk(time=50),
    ".parquet": lambda frame, folder: put(frame.to_parquet, folder / "x.parquet", row_group_size=50),
    ".nc": lambda frame, folder: str(put(dataset(frame).to_netcdf, folder / "x.nc", engine="h5netcdf")),
    "zarr group": group,
    ".zarr": lambda frame, folder: put(lambda path: in_zarr(frame, path), folder / "x.zarr"),
    "zarr in memory": lambda frame, folder: in_zarr(frame, {}),
    ".csv": lambda frame, folder: put(frame.to_csv, folder / "x.csv", index=False),
}
OF_OTHERS = {"JoinedReader", "_DerivedReader", "_Outcomes", "_WindowColumns"}
"""Readers of other readers."""


def test_all_containers_are_in_the_table(tmp_path: Path) -> None:
    readers, found = [*Reader.__subclasses__()], set()
    for kind, make in KINDS.items():
        (tmp_path / kind).mkdir()
        found.add(type(opened(make(FRAME, tmp_path / kind))).__name__)
    assert {cls.__name__ for cls in readers} - OF_OTHERS == found


def opened(data: Any) -> Reader:
    stacked = stack_rows(data)
    return reader_of(data, "X") if stacked is None else stacked.reader


def values(found: Any) -> np.ndarray:
    return np.asarray(found.compute() if hasattr(found, "compute") else found)


CASES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "same": lambda frame: frame,
    "reversed": lambda frame: frame[frame.columns[::-1]],
    "extra": lambda frame: frame.assign(zinc=1.0)[["iron", "zinc", "malt", "ash"]],
    "renamed": lambda frame: frame.rename(columns={"ash": "asche"}),
    "missing": lambda frame: frame.drop(columns="ash"),
}


@pytest.mark.one_in(7)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_matched_by_name(kind: str, case: str, tmp_path: Path) -> None:
    (tmp_path / "fit").mkdir()
    fitted, wanted = model().fit(KINDS[kind](FRAME, tmp_path / "fit")), model().fit(X).transform(X)
    assert sorted(fitted.feature_names_in_) == sorted(NAMES)  # the order in a zarr group is that of its folders
    kinds, first = [*KINDS], [*KINDS].index(kind)
    for other in [kinds[(first + k) % len(kinds)] for k in (0, 1, 4, 9, 11)]:
        (tmp_path / other).mkdir()
        new = KINDS[other](CASES[case](FRAME), tmp_path / other)
        if case in ("renamed", "missing"):
            with pytest.raises(ValueError, match="ash") as caught:
                values(fitted.transform(new))
            assert case == "missing" or "asche" in str(caught.value)
        else:
            np.testing.assert_allclose(values(fitted.transform(new)), wanted, rtol=1e-12, atol=1e-12, err_msg=other)


# -- other methods, several containers, fields -------------------------------------------------------------------------

TURNED = FRAME[NAMES[::-1]]


Y, DRIFT = np.sin(X[:, 0]) + X[:, 1], dsp.operators.Generator(diffusion=1.0)
SLOPES = pd.DataFrame(np.column_stack([np.cos(X[:, 0]), np.ones(120), np.zeros(120)]), columns=NAMES)
SQUARES = (FRAME**2).add_prefix("square of ")


def turned_squares(x: Any) -> pd.DataFrame:
    return SQUARES if x is FRAME else SQUARES[SQUARES.columns[::-1]]


METHODS: dict[str, Callable[[Any], Any]] = {
    "score": lambda x: model().fit(FRAME[:100]).score(x),
    "update": lambda x: model().fit(FRAME[:100]).update(x).eigenvalues_,
    "predict": lambda x: values(hermite().fit(FRAME, Y).predict(x)),
    "slopes": lambda x: values(hermite().fit(FRAME, Y).predict_gradient(x)).reshape(120, -1),
    "gradients": lambda x: values(hermite().fit(FRAME, Y, SLOPES if x is FRAME else SLOPES[NAMES[::-1]]).predict(x)),
    "later gradients": lambda x: values(
        hermite().fit(FRAME[:100], Y[:100], SLOPES[:100]).update(x, Y, SLOPES[NAMES[::-1]]).predict(FRAME)
    ),
    "trajectories": lambda x: model(Transfer(1)).fit([FRAME, x]).singular_values_,
    "score of trajectories": lambda x: model(Transfer(1)).fit([FRAME, FRAME]).score([x, FRAME]),
    "second view": lambda x: model(Cross()).fit((FRAME, SQUARES)).transform(turned_squares(x), side="right"),
    "score of views": lambda x: model(Cross()).fit((FRAME, SQUARES)).score((x, turned_squares(x))),
    "fields": lambda x: model(DRIFT).fit(Rows(FRAME, fields={"drift": -FRAME if x is FRAME else -TURNED})).eigenvalues_,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_matches_columns_by_name(name: str, tmp_path: Path) -> None:
    call = METHODS[name]
    wanted = call(FRAME)
    for kind in ("pandas.DataFrame", "polars.DataFrame", "Dataset", ".zarr"):
        np.testing.assert_allclose(call(KINDS[kind](TURNED, tmp_path)), wanted, rtol=1e-9, atol=1e-12, err_msg=kind)
    if name not in ("second view", "fields"):
        with pytest.raises(ValueError, match="asche"):
            call(CASES["renamed"](FRAME))


def test_entries_of_fields_are_matched_by_their_coordinates() -> None:
    where = {"lat": [-60.0, 0.0, 60.0], "lon": [0.0, 90.0]}
    field = xr.DataArray(rng.standard_normal((60, 3, 2)), where, ("time", "lat", "lon"), name="t")
    fitted = model().fit(field)
    wider = xr.concat([field, field.assign_coords(lat=field.lat + 10)], "lat")
    for new in (field[:, ::-1], field.sortby("lon", ascending=False).chunk(time=20), wider):
        np.testing.assert_allclose(fitted.transform(new), fitted.transform(field), rtol=1e-12, atol=1e-12)
    flat = field.stack(place=("lat", "lon"))
    stacked = model().fit(flat)
    for new in (flat[:, ::-1], flat.chunk(time=20).isel(place=[1, 0, 3, 2, 4, 5])):
        np.testing.assert_allclose(stacked.transform(new), stacked.transform(flat), rtol=1e-12, atol=1e-12)


def test_columns_of_the_same_name_are_refused() -> None:
    names = ["a", "b", "a"]
    for same in (pd.DataFrame(X, columns=names), pa.table(list(X.T), names=names)):
        for estimator in (model(), dsp.DiffusionMap(2.0)):
            with pytest.raises(ValueError, match="'a'"):
                estimator.fit(same)


def test_columns_of_rows_that_cannot_be_used_are_named() -> None:
    good = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 2)), columns=["wind", "sun"])
    bad = good.copy()
    bad.loc[5, "wind"] = np.nan
    model = dsp.Koopman(basis=dsp.basis.Landmarks("gaussian:1", 10), n_components=2, random_state=0).fit(good)
    calls: list[Any] = [model.transform, model.fit, model.score, lambda x: model.fit([good, x])]
    calls += [lambda x: model.metastable_sets(2, x), lambda x: model.first_passage(x, good.wind > 0)]
    for call in calls:
        with pytest.raises(dsp.InvalidRowError, match="Column 0 is 'wind'"):
            call(bad)


def test_missing_names_are_written_in_one_line() -> None:
    fitted = model(dsp.operators.Covariance(), basis=None).fit(pd.DataFrame(X, columns=["a\n\x1b[31mb", "b", "c"]))
    with pytest.raises(ValueError, match="missing") as caught:
        fitted.transform(pd.DataFrame(X, columns=["q\nr", "b", "c"]))
    assert "- a\\n\\x1b[31mb\n" in str(caught.value)
    assert "- q\\nr\n" in str(caught.value)


def test_an_index_of_several_levels_survives() -> None:
    columns = pd.MultiIndex.from_tuples([("wind", 10), ("wind", 100), ("rain", 10)], names=["what", "height"])
    frame = pd.DataFrame(X, columns=columns)
    stacked = xr.DataArray(X, xr.Coordinates.from_pandas_multiindex(columns, "part"), ("time", "part"))
    for data, dim in ((frame, "feature"), (stacked, "part")):
        fitted = model(dsp.operators.Covariance(), basis=None).fit(data)
        for new in (frame.iloc[:, ::-1], stacked[:, ::-1]):
            np.testing.assert_allclose(values(fitted.transform(new)), values(fitted.transform(data)), rtol=1e-12)
        assert fitted.to_xarray()["x_pattern"].indexes[dim].equals(columns)
        with pytest.raises(ValueError, match="rain"):
            fitted.transform(frame.rename(columns={"rain": "snow"}))


def test_names_are_saved_and_a_refit_forgets_them() -> None:
    fitted, broken = model().fit(FRAME), TURNED.copy()
    again = reloaded(fitted)
    np.testing.assert_array_equal(again.transform(TURNED), fitted.transform(FRAME))
    broken.loc[3, "malt"] = np.nan
    for frame in (broken, broken.convert_dtypes(dtype_backend="pyarrow"), pl.from_pandas(broken)):
        for call, column in ((again.score, 0), (model().fit, 2)):
            with pytest.raises(dsp.InvalidRowError, match="'malt'") as caught:
                call(frame)
            assert (caught.value.row, caught.value.column) == (3, column)
    for unnamed in (X, data_array(FRAME).drop_vars("part")):
        with pytest.warns(UserWarning, match="feature names"):
            np.testing.assert_allclose(values(again.transform(unnamed)), fitted.transform(FRAME), rtol=1e-9)
    assert View(fitted).names == NAMES
    assert not hasattr(fitted.fit(X), "feature_names_in_")


# -- columns by name, and columns that are no numbers ------------------------------------------------------------------


@pytest.mark.one_in(5)
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_chosen_by_name(kind: str, tmp_path: Path) -> None:
    whole = KINDS[kind](FRAME, tmp_path)
    fitted, plain = model().fit(Rows(whole, columns=["iron", "malt"])), X[:, [2, 0]]
    wanted = model().fit(plain).transform(plain)
    assert fitted.feature_names_in_.tolist() == ["iron", "malt"]
    for new in (whole, Rows(whole, columns=["iron", "malt"]), TURNED, FRAME[["malt", "iron"]]):
        np.testing.assert_allclose(values(fitted.transform(new)), wanted, rtol=1e-12, atol=1e-12)
    for columns, told in ((["iron", "zinc"], "zinc"), (["ash", "malt"], "ash")):
        with pytest.raises(ValueError, match=told):
            fitted.transform(Rows(whole, columns=columns))
    with pytest.raises(ValueError, match="zinc"):
        model().fit(Rows(whole, columns=["malt", "zinc"]))


def with_text(frame: pd.DataFrame) -> pd.DataFrame:
    days = pd.date_range("2000", periods=len(frame))
    return frame.assign(city="Ulm", day=days)[["malt", "city", "ash", "day", "iron"]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", [*[*KINDS][:6], ".parquet", ".csv"])
def test_columns_that_are_not_chosen_may_hold_text(kind: str, tmp_path: Path) -> None:
    whole = KINDS[kind](with_text(FRAME), tmp_path)
    with pytest.raises(TypeError, match=r"city.*day"):
        model().fit(whole)
    fitted, wanted = model().fit(Rows(whole, columns=["malt", "iron"])), model().fit(X[:, [0, 2]])
    np.testing.assert_allclose(values(fitted.transform(whole)), wanted.transform(X[:, [0, 2]]), rtol=1e-12, atol=1e-12)
    if "Dataset" not in kind:
        numbered = model().fit(Rows(whole, columns=[0, 4]))
        np.testing.assert_allclose(values(numbered.transform(whole)), values(fitted.transform(whole)), rtol=1e-12)
    with pytest.raises(TypeError, match="city"):
        model().fit(Rows(whole, columns=["malt", "city"]))
    named = model().fit(FRAME)
    np.testing.assert_allclose(values(named.transform(whole)), named.transform(FRAME), rtol=1e-12, atol=1e-12)


def test_an_index_is_no_column(tmp_path: Path) -> None:
    frame = FRAME.set_index(pd.Index(np.arange(120) * 7, name="number"))
    frame.to_parquet(tmp_path / "x.parquet")
    wanted = model().fit(frame).eigenvalues_
    for data in (tmp_path / "x.parquet", pa.Table.from_pandas(frame), pa.Table.from_pandas(frame.rename_axis(None))):
        found = model().fit(data)
        assert found.feature_names_in_.tolist() == NAMES
        np.testing.assert_allclose(found.eigenvalues_, wanted, rtol=1e-12)


def test_columns_of_the_second_view_are_chosen_by_name() -> None:
    chosen = ["square of iron", "square of malt"]
    wanted = model(Cross()).fit((X, (X**2)[:, [2, 0]])).singular_values_
    for first, second in ((FRAME, SQUARES), (FRAME, dataset(SQUARES)), (dataset(FRAME), SQUARES)):
        fitted = model(Cross()).fit(first, Rows(second, columns=chosen))
        np.testing.assert_allclose(fitted.singular_values_, wanted, rtol=1e-12)
        assert fitted.score(FRAME, Rows(SQUARES, columns=chosen[::-1])) == pytest.approx(fitted.score((FRAME, SQUARES)))
        with pytest.raises(ValueError, match="square of ash"):
            fitted.score(FRAME, Rows(SQUARES, columns=["square of ash"]))


@pytest.mark.parametrize("labels", [[0, 1, 2], [0.5, 10.0, 20.0]])
def test_columns_with_numbers_for_names_are_matched(labels: list[float]) -> None:
    frame, array = pd.DataFrame(X, columns=labels), xr.DataArray(X, {"depth": labels}, ("time", "depth"))
    for first in (frame, frame.iloc[:, ::-1], array):
        fitted = model().fit(first)
        for later in (frame.iloc[:, ::-1], array[:, ::-1], frame):
            np.testing.assert_allclose(values(fitted.transform(later)), values(fitted.transform(first)), atol=1e-12)
    np.testing.assert_array_equal(model().fit(pd.DataFrame(X)).transform(FRAME), model().fit(X).transform(X))


def test_variables_of_several_dimensions_trajectories_and_views_are_chosen_by_name() -> None:
    own = {name: (("time", "lat"), X[:, 1:] / (5 + k)) for k, name in enumerate(["u", "v", "w"])}
    data, second = xr.Dataset(own, {"lat": [0.0, 60.0]}), dataset(FRAME)
    w = data.w.values
    for new in (data, data.chunk(time=50)):
        fitted, wanted = model().fit(Rows(new, columns=["w", "u"])), model().fit(data[["w", "u"]])
        for rows in (new, Rows(new, columns=["w", "u"])):
            np.testing.assert_array_equal(fitted.transform(rows), wanted.transform(data))
        with pytest.raises(ValueError, match="v"):
            fitted.transform(Rows(new, columns=["v"]))
    parts = [data.isel(time=slice(60)), data.isel(time=slice(60, None))]
    for found, wanted in (
        (model(Transfer(1)).fit(Rows(parts, columns=["w"])), model(Transfer(1)).fit([w[:60], w[60:]])),
        (model(Cross()).fit(Rows((data, second), columns=["w"])), model(Cross()).fit((w, X))),
        (model(Cross()).fit(Rows(data, columns=["w"]), second), model(Cross()).fit((w, X))),
        (model(Cross()).fit(second, Rows(data, columns=["w"])), model(Cross()).fit((X, w))),
    ):
        np.testing.assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-12)
