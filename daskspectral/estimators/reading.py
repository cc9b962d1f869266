"""Labelled data in the calls of estimators: `fit`, `update` and `score` take them as the rows of their layout."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

import dask.array as da
import numpy as np
import xarray as xr
import zarr

from daskspectral.data.containers import as_reader
from daskspectral.data.files import is_files
from daskspectral.data.labelled import StackedRows, stack_field, stack_gradients, stack_rows, with_target
from daskspectral.data.layout import Layout
from daskspectral.data.readers import ArrayReader, DaskReader, ZarrReader, lazy_rows
from daskspectral.data.remote import using
from daskspectral.data.rows import Rows
from daskspectral.errors import InvalidRowError
from daskspectral.estimators.doubts import remembered

Call = TypeVar("Call", bound=Callable[..., Any])
LABELLED = (xr.DataArray, xr.Dataset, zarr.Group, str, os.PathLike)
FIELDS = ("y", "sample_weight")
LAYOUTS = ("layout_", "right_layout_")


def reads(method: Call) -> Call:
    """Make a method of an estimator take `Rows` or data, open them with their options, and lay out their labels.

    The method gets `Rows` of arrays without labels. `fit` keeps the layout as `layout_`; methods other than `fit` and
    `plan` lay out their rows as those of the fit. `fit` and `update` keep what they warn of.
    """
    own, learns = signature(method), method.__name__ in ("fit", "plan")
    called = remembered(method) if method.__name__ in ("fit", "update") else method

    @wraps(method)
    def reading(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        rows = Rows.of(X)
        values = dict(own.bind(self, rows, *arguments, **options).arguments)
        del values[next(iter(values))]
        values |= values.pop("options", {})  # the method's own **options
        known = {} if learns else {name: vars(self)[name] for name in LAYOUTS if name in vars(self)}
        given = {"sample_dims": rows.sample_dims, "latitude": rows.latitude} if learns else {}
        with using(rows.storage_options, rows.allow_missing or None):
            values |= {"X": rows.data, "fields": rows.fields}
            layouts = _lay(self, values, own.parameters, known, given, learns and rows.on_invalid == "skip")
            if layouts is None and any(value is not None for value in given.values()):
                named = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
                raise ValueError(
                    f"{named} names dimensions and coordinates, and X is a {type(rows.data).__name__} without labels: "
                    "give an xarray.DataArray or Dataset, a zarr group or NetCDF files, or leave it out"
                )
            values["X"] = replace(rows, data=values["X"], fields=values.pop("fields"))
            try:
                result = called(self, **values)
            except InvalidRowError as error:
                if layouts is not None:
                    error.add_note(
                        "X has labels: Rows(X, on_invalid='skip') (--on-invalid skip in the shell) first leaves out "
                        "columns without a number in any row, such as land, and then rows with NaN in the others"
                    )
                raise
        if method.__name__ == "fit":
            for name in LAYOUTS:
                vars(self).pop(name, None)
        for name, layout in ((layouts or {}) if method.__name__ == "fit" else known).items():
            setattr(self, name, layout)
        return result

    return cast(Call, reading)


def _lay(
    estimator: Any,
    values: dict[str, Any],
    accepted: Mapping[str, Any],
    known: Mapping[str, Layout],
    given: Any,
    dropping: bool,
) -> dict[str, Layout] | None:
    """Put rows in the place of labelled data among the arguments; their layouts, None where X has no labels."""
    X = values["X"]
    if not isinstance(X, (tuple, list)) or is_files(X):
        laid = stack_rows(X, **given, layout=known.get("layout_"), drop_empty=dropping, weigh=True)
        if laid is None:
            return None
        values["X"] = laid.reader
        _check_folds(vars(estimator).get("folds") if given else values.get("folds"), laid, "folds")
        return {"layout_": _lay_fields(values, accepted, laid, estimator)}
    if not X or not isinstance(X[0], LABELLED):
        return None
    operator = getattr(estimator, "operator", None)
    views = () if operator is None else operator.views
    if operator is not None and operator.lag is None and len(views) > 1:
        return _lay_views(estimator, values, accepted, known, given, dropping)
    return _lay_trajectories(estimator, values, known, given, dropping)


def _lay_views(
    estimator: Any,
    values: dict[str, Any],
    accepted: Mapping[str, Any],
    known: Mapping[str, Layout],
    given: Any,
    dropping: bool,
) -> dict[str, Layout] | None:
    """The views of each row: those in the space of the first by its layout, those in one of their own by another."""
    views, apart = values["X"], estimator.operator.own_right_basis
    first = stack_rows(views[0], "X[0]", **given, layout=known.get("layout_"), drop_empty=dropping, weigh=True)
    if first is None:
        return None
    readers, layouts = [first.reader], {"layout_": first.layout}
    for i, view in enumerate(views[1:], 1):
        layout = known.get("right_layout_") if apart else first.layout
        own = given if apart else {}
        laid = stack_rows(view, f"X[{i}]", **own, layout=layout, drop_empty=dropping and apart)
        if laid is None:
            readers.append(view)
            continue
        stack_field(_index(laid), first.rows, f"X[{i}]")
        readers.append(laid.reader)
        if apart:
            layouts["right_layout_"] = laid.layout
    values["X"] = tuple(_alike(readers))
    _lay_fields(values, accepted, first, estimator)
    return layouts


def _index(laid: StackedRows) -> xr.DataArray:
    """The rows of laid out data as a field of them, to be compared with other rows."""
    empty = np.broadcast_to(np.zeros(()), laid.rows.sizes)
    coords = {k: c for k, c in laid.rows.coords.items() if k in laid.rows.dims}
    return xr.DataArray(empty, dims=laid.rows.dims, coords=coords)


def _lay_trajectories(
    estimator: Any, values: dict[str, Any], known: Mapping[str, Layout], given: Any, dropping: bool
) -> dict[str, Layout] | None:
    """Several trajectories, of one layout: columns are left out where no trajectory has a number."""
    X = values["X"]
    layout = known.get("layout_")
    if layout is None:
        first = stack_rows(X[0], "X[0]", **given)
        if first is None:
            return None
        layout = first.layout
        if dropping:
            parts = [stack_rows(x, f"X[{i}]", **given, drop_empty=True) for i, x in enumerate(X)]
            masks = [np.ones(layout.size, bool) if p is None or p.layout.kept is None else p.layout.kept for p in parts]
            kept = np.logical_or.reduce(masks)
            weights = None if layout.weights is None else layout.weights[kept]
            layout = layout if kept.all() else replace(layout, kept=kept, weights=weights)
    laid = [stack_rows(x, f"X[{i}]", layout=layout, weigh=True) for i, x in enumerate(X)]
    for name in ("sample_weight", "fields"):
        if any(part is not None and part.weights is not None for part in laid) and name == "sample_weight":
            raise ValueError("latitude= weighs rows, and rows of trajectories follow one another in time: leave it out")
    values["X"] = _alike([x if part is None else part.reader for x, part in zip(X, laid, strict=True)])
    labels = vars(estimator).get("folds") if given else values.get("folds")
    if isinstance(labels, (list, tuple)) and len(labels) == len(laid):
        for i, (one, part) in enumerate(zip(labels, laid, strict=True)):
            _check_folds(one, part, f"folds[{i}]")
    for name in FIELDS:
        field = values.get(name)
        if isinstance(field, (list, tuple)) and len(field) == len(laid):
            values[name] = [
                f if part is None else stack_field(f, part.rows, f"{name}[{i}]")[0]
                for i, (f, part) in enumerate(zip(field, laid, strict=True))
            ]
    return {"layout_": layout}


def _lay_fields(values: dict[str, Any], accepted: Mapping[str, Any], laid: StackedRows, estimator: Any) -> Layout:
    """Put rows in the place of labelled targets, weights and fields; the layout, with the labels of the targets."""
    layout = laid.layout
    for name in FIELDS:
        if values.get(name) is not None:
            values[name], data = stack_field(values[name], laid.rows, name)
            if name == "y":
                layout = with_target(layout, data, laid.rows)
    if values.get("gradients") is not None:
        values["gradients"] = stack_gradients(values["gradients"], laid)
    if isinstance(values.get("fields"), Mapping):
        values["fields"] = {
            name: stack_field(value, laid.rows, f"fields[{name!r}]")[0] for name, value in values["fields"].items()
        }
    if isinstance(values["X"], ZarrReader):
        values["X"] = _alike([values["X"], *_fields_of(values)])[0]
    if laid.weights is None:
        return layout
    if "sample_weight" not in accepted and "options" not in accepted:
        raise ValueError(
            f"latitude={layout.latitude!r} weighs rows, and {type(estimator).__name__} takes no sample weights: give "
            f"sample_dims without {layout.latitude!r}, so that it weighs columns, or leave latitude out"
        )
    values["sample_weight"] = _times(laid.weights, values.get("sample_weight"))
    return layout


def _check_folds(labels: Any, laid: StackedRows | None, what: str) -> None:
    """Raise ValueError for labels of folds that lie on other rows, or in another order."""
    if laid is None or not isinstance(labels, xr.DataArray):
        return
    stack_field(labels, laid.rows, what)
    if labels.ndim > 1:
        dims = [*map(str, laid.rows.dims)]
        raise ValueError(
            f"{what} has the dimensions {labels.dims}, and labels of folds are one for each row, of which the first of "
            f"{dims} is the slowest: give {what}.transpose(*{dims}).values.ravel()"
        )


def _alike(parts: list[Any]) -> list[Any]:
    """Parts that are read together: where dask reads one, it reads the zarr arrays too."""
    if not any(isinstance(part, (DaskReader, da.Array)) for part in parts):
        return parts
    return [DaskReader(lazy_rows(part), (part,)) if isinstance(part, ZarrReader) else part for part in parts]


def _fields_of(values: Mapping[str, Any]) -> list[Any]:
    """Targets, weights, gradients and fields among the arguments."""
    fields = values.get("fields")
    own = fields.values() if isinstance(fields, Mapping) else ()
    return [*(values.get(name) for name in (*FIELDS, "gradients")), *own]


def _times(cosines: Any, weight: Any) -> Any:
    """The product of weights, lazily where one is lazy."""
    if weight is None:
        return cosines
    reader = as_reader(weight, "sample_weight")
    if isinstance(reader, ArrayReader):
        return cosines * reader.array
    return da.asarray(cosines) * (reader.array if isinstance(reader, DaskReader) else lazy_rows(reader))
