"""Labeled data and named columns in calls of estimators, as rows and layouts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from daskspectral.basis.role import Role
from daskspectral.data.columns import ColumnNames, ColumnSelection, are_names
from daskspectral.data.containers import as_reader, named_reader, points_reader
from daskspectral.data.files import is_files
from daskspectral.data.frames import is_frame
from daskspectral.data.labeled import StackedRows, stack_field, stack_gradients, stack_rows, with_target
from daskspectral.data.layout import Layout, column_weights
from daskspectral.data.readers import ArrayReader, DaskReader, Reader, ZarrReader, lazy_rows
from daskspectral.data.rows import OpenedRows, Rows
from daskspectral.data.source import is_several
from daskspectral.errors import InvalidRowError, warn_user
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.scale import with_baseline
from daskspectral.validation import is_data_array, is_sequence, loaded

FIELDS = ("y", "sample_weight")
RIGHT_WEIGHTS = "right_column_weights"  # key of a call's arguments, if the second view has weights of columns
RIGHT_LATITUDE = "right_latitude"  # argument of a call if the second view has a different one
UNNAMED = dict.fromkeys(("sample_dims", "latitude", "anomaly", "detrend"))
TRIAL, TEST = Role
LAYOUTS = ("layout_", "right_layout_")
LABELS = (*LAYOUTS, "columns_", "right_columns_")
NAMES = "feature_names_in_"


def _names_of(data: Any) -> ColumnNames | None:
    return data.column_names if isinstance(data, Reader) else None


def _by_columns(value: Any, what: str, names: ColumnNames) -> Any:
    """Return an array with its columns ordered as in X, if it has their names."""
    if isinstance(value, loaded("xarray.DataArray", "xarray.Dataset")):
        flat = value.ndim == 2 if is_data_array(value) else True
        stacked = stack_rows(value, what) if flat else None
        reader: Any = value if stacked is None else stacked.reader
    else:
        reader = named_reader(value, what, ColumnSelection()) if is_frame(value) else value
    own = _names_of(reader)
    if own is None or {*own.labels} != {*names.labels}:
        return value
    return named_reader(reader, what, ColumnSelection(names))


def _has_columns_last(value: Any, width: int) -> bool:
    """Return whether an unnamed array has the columns of X along its last dimension."""
    shape = tuple(getattr(value, "shape", ()))
    return _names_of(value) is None and len(shape) > 1 and shape[-1] == width


def _own_names(data: Any) -> ColumnNames | None:
    stacked = None if isinstance(data, Reader) else stack_rows(data)
    reader = named_reader(data, "X", ColumnSelection()) if stacked is None else stacked.reader
    return _names_of(reader)


@contextmanager
def labeled_as(estimator: Any, labels: Mapping[str, Any]) -> Iterator[None]:
    """Set layouts and names of columns during a fit, and afterwards if it succeeds."""
    own = vars(estimator)
    before = {name: own.pop(name) for name in (*LABELS, NAMES) if name in own}
    own |= labels
    if "columns_" in labels and (names := labels["columns_"].feature_names) is not None:
        own[NAMES] = names
    try:
        yield
    except BaseException:
        for name in (*LABELS, NAMES):
            own.pop(name, None)
        own |= before
        raise


def wanted_columns(rows: Rows, model: Any = None) -> tuple[Rows, dict[Role, ColumnSelection]]:
    """Return rows without names of columns, and the selected columns of X and of a test view.

    Those of a fitted model are the columns of its fit. Raises ValueError for rows of other columns.
    """
    own = {} if model is None else vars(model)
    names, used = own.get("columns_"), getattr(own.get("preparation_"), "row_columns", None)
    layout, count = own.get("layout_"), getattr(model, "n_features_in_", None)
    right = ColumnSelection(own.get("right_columns_"))
    if not are_names(rows.columns):
        known = ColumnNames.numbers(count) if names is None and count else names
        own_columns = ColumnSelection.by_user(rows.columns) if model is None else ColumnSelection(known, used)
        return rows, {TRIAL: own_columns, TEST: right}
    unnamed = replace(rows, columns=None)
    if names is None and layout is not None:
        if {*rows.columns} != {variable.name for variable in layout.variables}:  # type: ignore[misc]
            raise ValueError(f"columns must be those of the fit, {layout.names[:5]}, got {[*rows.columns]}. Omit them.")  # type: ignore[misc]
        return unnamed, {TRIAL: ColumnSelection(used=used), TEST: right}
    return unnamed, {TRIAL: _of_fit(rows.columns, ColumnSelection(names, used)), TEST: right}


def _of_fit(columns: Any, fitted: ColumnSelection) -> ColumnSelection:
    """Return the columns of these names; raise ValueError unless they are those of the fit."""
    if fitted.names is None:
        return ColumnSelection.by_user(columns)
    labels = (fitted.names if fitted.used is None else fitted.names.select(fitted.used)).labels
    if {*labels} != {*columns}:
        raise ValueError(f"columns must be those of the fit, {[*labels]}, got {[*columns]}. Omit them.")
    return fitted


def paired_views(first: Rows, arguments: dict[str, Any], wanted: dict[Role, ColumnSelection]) -> Rows:
    """Return pairs of views of each row; the second is y, removed from the arguments.

    If y names columns, these are selected; its latitude is stored separately. Raises ValueError for other options of y
    that differ from those of X.
    """
    given = arguments.pop("y")
    rows, plain = Rows.of(given), Rows(None)
    if isinstance(given, Rows):
        arguments[RIGHT_LATITUDE] = given.latitude
        arguments[RIGHT_WEIGHTS] = given.column_weights
    for name in (option.name for option in fields(Rows)[1:]):
        own, of_first = getattr(rows, name), getattr(first, name)
        if (
            (name == "columns" and are_names(own))
            or own is getattr(plain, name)
            or own is of_first
            or name in ("latitude", "column_weights")
        ):
            continue
        if name == "fields" or own != of_first:
            raise ValueError(f"{name}= must be an option of X, by which y is read too. Pass Rows(X, {name}=...).")
    if rows.columns is not None:
        wanted[TEST] = _of_fit(rows.columns, wanted[TEST])
    second = rows.data[:, None] if isinstance(rows.data, np.ndarray) and rows.data.ndim == 1 else rows.data
    return replace(first, data=(first.data, second))


def aligned(model: Any, part: Any, what: str, wanted: ColumnSelection) -> Any:
    """Return the selected columns of data in order (`named_reader`).

    Warns, as scikit-learn does, if the columns of the fit had names and those of the data have none.
    """
    found = named_reader(part, what, wanted)
    fitted = wanted.names is not None and wanted.names.feature_names is not None
    if fitted and _names_of(found) is None:
        name = type(model).__name__
        warn_user(f"{what} does not have valid feature names, but {name} was fitted with feature names", UserWarning)
    return found


def names_of(columns: ColumnNames | None, layout: Layout | None) -> Sequence[str]:
    """Return the names of columns, or of all places of a layout, for messages; empty without text."""
    if layout is not None:
        return layout.names
    return [] if columns is None or columns.feature_names is None else columns.texts


def add_place(error: InvalidRowError, stacked: StackedRows | None) -> None:
    """Add the coordinates of a row in labeled data to an error."""
    hint = "The option 'skip' excludes columns without a number first, such as land, and then such rows"
    if stacked is not None:
        column = "" if error.column is None else f", {stacked.layout.names[error.column]}"
        hint = f"It is at {stacked.rows.place(error.row)}{column}. {hint}"
    error.args = (f"{error}. {hint}", *error.args[1:])


def add_column_name(error: InvalidRowError, names: Sequence[str]) -> None:
    """Add the name of the column to an error, if columns have names."""
    if error.column is not None and error.column < len(names):
        error.args = (f"{error}. Column {error.column} is {names[error.column]!r}", *error.args[1:])


@dataclass(eq=False)
class CallArguments:
    """Arguments of one call, `values`, in which rows replace labeled data.

    `known` are the layouts of the fit. A call `learns` layouts if it is a fit or plans one; climatologies and trends
    are read from the `rows` that it `fits`. `wanted` are the columns of X and of test views. `stacked` is X if it has
    labels, and `cosines` (n,) are the weights of rows by latitude for anomalies.
    """

    estimator: Any
    values: dict[str, Any]
    known: Mapping[str, Any]
    learns: bool
    rows: Rows
    fits: bool
    wanted: Mapping[Role, ColumnSelection]
    stacked: StackedRows | None = None
    cosines: Any = None
    layouts: Mapping[str, Layout] | None = None
    columns: Mapping[str, ColumnNames] = field(default_factory=dict)

    def lay_out(self) -> None:
        """Replace labeled data by rows, order columns by name, and store layouts and names.

        Raises ValueError for labels that do not match, and for other columns than those of the fit.
        """
        self.layouts = self._lay()
        if self.layouts is None:
            refuse_names(self.rows, self.known.get("layout_"))
        self.values["X"], self.columns = self._named(self.values["X"])
        self._name_fields(self._column_names)

    @property
    def labels(self) -> dict[str, Any]:
        """Layouts and names of columns that a model stores."""
        return {**self.columns, **(self.layouts or {})}

    @property
    def _column_names(self) -> ColumnNames | None:
        return self.columns.get("columns_", self.wanted[TRIAL].names)

    @property
    def opened(self) -> OpenedRows:
        """Rows without labels, with the names of columns and the weights of layouts."""
        own = {option.name: getattr(self.rows, option.name) for option in fields(Rows)}
        own |= {"data": self.values["X"], "fields": self.values["fields"], **UNNAMED}
        layouts = self.layouts or {}
        factors, right = (layouts[name].weights if name in layouts else None for name in LAYOUTS)
        sides: dict[str, Any] = {"factors": factors, "right_factors": right}
        if self.learns:
            sides |= self._column_weights(layouts)
        return OpenedRows(**own, names=self._names, **sides)

    def _column_weights(self, layouts: Mapping[str, Layout]) -> dict[str, Any]:
        given = {"weights": self.rows.column_weights, "right_weights": self.values.get(RIGHT_WEIGHTS)}
        found, X = {}, self.values["X"]
        for (side, own), layout, names in zip(given.items(), LAYOUTS, LABELS[2:], strict=True):
            if own is None:
                continue
            part = (X[-1] if side == "right_weights" else X[0]) if is_several(X) and not isinstance(X, Reader) else X
            width = points_reader(part, "X").shape[1]
            known = self.columns.get(names)
            found[side] = column_weights(own, layouts.get(layout), known, width)
        return found

    @property
    def _names(self) -> Callable[[], Sequence[str]]:
        return partial(names_of, self._column_names, (self.layouts or {}).get("layout_"))

    def add_place(self, error: InvalidRowError) -> None:
        """Add the coordinates of a row in labeled data, or the name of its column, to an error."""
        if self.layouts is not None:
            add_place(error, self.stacked)
        else:
            add_column_name(error, self._names())

    def _lay(self) -> dict[str, Layout] | None:
        """Return the layouts of labeled data; None if X has no labels."""
        X = self.values["X"]
        if not is_sequence(X) or is_files(X):
            stacked = self._stacked(X, "X", weigh=True, drop_empty=self._dropping)
            if stacked is None:
                return None
            self.values["X"] = stacked.reader
            self.stacked = stacked
            _check_folds(self._folds, stacked, "folds")
            return {"layout_": self._lay_fields(stacked)}
        labeled = loaded("xarray.DataArray", "xarray.Dataset", "zarr.Group")
        if not X or not isinstance(X[0], (str, os.PathLike, labeled)):
            return None
        operator = getattr(self.estimator, "operator", None)
        if operator is not None and not of_trajectories(operator) and len(operator.views) > 1:
            return self._lay_views(X, operator.own_right_basis)
        return self._lay_trajectories(X)

    @property
    def _wanted_of_layout(self) -> ColumnSelection | None:
        return None if self.learns else ColumnSelection(used=self.wanted[TRIAL].used)

    def _named(self, X: Any) -> tuple[Any, dict[str, ColumnNames]]:
        """Return the rows with the columns of the fit, in its order if both have names, and the names.

        Several trajectories, and views in the space of the first, have the columns of the first.
        """
        if not is_several(X) or isinstance(X, Reader):
            chosen = self.stacked is not None and self.wanted[TRIAL].asked
            found = aligned(self.estimator, X, "X", ColumnSelection() if chosen else self.wanted[TRIAL])
            names = _names_of(found)
            return found, {} if names is None else {"columns_": names}
        operator = getattr(self.estimator, "operator", None)
        apart = len(X) - 1 if isinstance(X, tuple) and operator is not None and operator.own_right_basis else None
        readers: list[Any] = []
        known: dict[str, ColumnNames] = {}
        sides = dict(self.wanted)
        for i, part in enumerate(X):
            side = TEST if i == apart else TRIAL
            chosen = isinstance(part, Reader) and sides[side].asked  # stacked already
            stacked = None if isinstance(part, Reader) else stack_rows(part, f"X[{i}]", wanted=sides[side])
            part = part if stacked is None else stacked.reader
            found = aligned(self.estimator, part, f"X[{i}]", ColumnSelection() if chosen else sides[side])
            own = _names_of(found)
            if self.learns and own is not None and side.named("columns_") not in known:
                known[side.named("columns_")] = own
                sides[side] = replace(sides[side], names=own, asked=False)
            readers.append(found)
        return readers if isinstance(X, list) else tuple(readers), known

    def _name_fields(self, names: ColumnNames | None) -> None:
        """Order gradients, and fields with the names of the columns of X, as these.

        Raises ValueError for arrays without names if X has its columns in another order than the fit.
        """
        if names is None or is_several(self.rows.data):
            return
        given = {"gradients": self.values.get("gradients"), **(self.values.get("fields") or {})}
        found = {what: _by_columns(value, what, names) for what, value in given.items() if value is not None}
        along = [
            what for what, value in found.items() if not self.learns and _has_columns_last(value, len(names.labels))
        ]
        if along:
            own = _own_names(self.rows.data)
            if own is not None and own.labels != names.labels:
                raise ValueError(
                    f"{along[0]} must have names of columns, because X has them in another order than the fit."
                )
        if "gradients" in found:
            self.values["gradients"] = found.pop("gradients")
        if found:
            self.values["fields"] = {**self.values["fields"], **found}

    @property
    def _dropping(self) -> bool:
        return self.learns and self.rows.on_invalid != "raise"

    @property
    def _folds(self) -> Any:
        return vars(self.estimator).get("folds") if self.learns else self.values.get("folds")

    def _stacked(self, x: Any, what: str, layout: str = "layout_", **options: Any) -> StackedRows | None:
        """Return labeled data in the layout of the fit of this name, or by the options of the rows."""
        known, rows = self.known.get(layout), self.rows
        if layout == "right_layout_" and RIGHT_LATITUDE in self.values:
            rows = replace(rows, latitude=self.values[RIGHT_LATITUDE])
        wanted = self.wanted[TRIAL if layout == "layout_" else TEST]
        found = stacked_as(x, what, known, rows, **options, wanted=wanted)
        if found is None or known is not None:
            return found
        try:
            own = self._with_baseline(
                found, what, self.rows if layout == "layout_" else replace(self.rows, columns=None)
            )
        except InvalidRowError as error:
            add_place(error, found)
            raise
        weigh = options.get("weigh", False)
        if own is found.layout:
            return found
        return stack_rows(x, what, layout=own, weigh=weigh, wanted=self._wanted_of_layout)

    def _with_baseline(self, found: StackedRows, what: str, rows: Rows) -> Layout:
        """Return the layout with the requested baseline of anomalies, fitted to weighted rows."""
        if rows.anomaly is None and rows.detrend is None:
            return found.layout
        weight = self.values.get("sample_weight")
        if weight is not None:
            weight = stack_field(weight, found.rows, "sample_weight")[0]
        if found.weights is not None:
            self.cosines = found.weights
        if self.cosines is not None:
            weight = _times(self.cosines, weight)
        reader, weight = _read_together([found.reader, weight])
        return with_baseline(replace(found, reader=reader), rows, what, weight, read=self.fits)

    def _lay_views(self, views: Sequence[Any], apart: bool) -> dict[str, Layout] | None:
        """Return the layouts of views: that of the first, and others in other spaces."""
        first = self._stacked(views[0], "X[0]", weigh=True, drop_empty=self._dropping)
        if first is None:
            return None
        readers, layouts = [first.reader], {"layout_": first.layout}
        for i, view in enumerate(views[1:], 1):
            what = f"X[{i}]"
            if apart:
                stacked = self._stacked(view, what, "right_layout_", drop_empty=self._dropping)
            else:
                stacked = stack_rows(view, what, layout=first.layout, wanted=self._wanted_of_layout)
            readers.append(view if stacked is None else stacked.reader)
            if stacked is None:
                refuse_names(replace(self.rows, data=view, sample_dims=None, latitude=None), None)
                continue
            import xarray as xr

            index = {k: c for k, c in stacked.rows.coords.items() if k in stacked.rows.dims}
            empty = np.broadcast_to(np.zeros(()), stacked.rows.sizes)
            stack_field(xr.DataArray(empty, dims=stacked.rows.dims, coords=index), first.rows, what)
            if apart:
                layouts["right_layout_"] = stacked.layout
        self.values["X"] = tuple(_read_together(readers))
        self._lay_fields(first)
        return layouts

    def _lay_trajectories(self, X: Sequence[Any]) -> dict[str, Layout] | None:
        """Return the layout of several trajectories, without columns that are empty in all."""
        layout = self.known.get("layout_")
        if self.rows.anomaly is not None or self.rows.detrend is not None:
            raise ValueError(
                "anomaly= and detrend= require one series of times. Subtract anomalies of trajectories before the fit."
            )
        if layout is None:
            first = self._stacked(X[0], "X[0]")
            if first is None:
                return None
            layout = first.layout
            if self._dropping:
                parts = [self._stacked(x, f"X[{i}]", drop_empty=True) for i, x in enumerate(X)]
                masks = [None if part is None else part.layout.kept for part in parts]
                kept = np.logical_or.reduce([np.ones(layout.size, bool) if mask is None else mask for mask in masks])
                weights = None if layout.weights is None else layout.weights[kept]
                layout = layout if kept.all() else replace(layout, kept=kept, weights=weights)
        laid: dict[str, Any] = {"layout": layout, "weigh": True, "wanted": self._wanted_of_layout}
        stacked = [stack_rows(x, f"X[{i}]", **laid) for i, x in enumerate(X)]
        if any(part is not None and part.weights is not None for part in stacked):
            raise ValueError("latitude= weights rows, which trajectories do not support. Omit it.")
        self.values["X"] = _read_together(
            [x if part is None else part.reader for x, part in zip(X, stacked, strict=True)]
        )
        for name, given in {name: self.values.get(name) for name in FIELDS}.items():
            if _is_list(given, len(stacked)):
                self.values[name] = [
                    field if part is None else stack_field(field, part.rows, f"{name}[{i}]")[0]
                    for i, (field, part) in enumerate(zip(given, stacked, strict=True))
                ]
        if _is_list(self._folds, len(stacked)):
            for i, (labels, part) in enumerate(zip(self._folds, stacked, strict=True)):
                _check_folds(labels, part, f"folds[{i}]")
        return {"layout_": layout}

    def _lay_fields(self, stacked: StackedRows) -> Layout:
        """Replace targets, weights and fields by rows; return the layout with the targets' labels."""
        layout, values = stacked.layout, self.values
        for name in FIELDS:
            if values.get(name) is not None:
                values[name], data = stack_field(values[name], stacked.rows, name)
                if name == "y":
                    layout = with_target(layout, data, stacked.rows)
        if values.get("gradients") is not None:
            values["gradients"] = stack_gradients(values["gradients"], stacked)
        fields = values.get("fields")
        if isinstance(fields, Mapping):
            fields = {name: stack_field(value, stacked.rows, f"fields[{name!r}]")[0] for name, value in fields.items()}
            values["fields"] = fields
        if isinstance(values["X"], ZarrReader):
            others = [*(values.get(name) for name in (*FIELDS, "gradients")), *(fields or {}).values()]
            values["X"] = _read_together([values["X"], *others])[0]
        if stacked.weights is None:
            return layout
        if "sample_weight" not in values:
            name = type(self.estimator).__name__
            raise ValueError(f"latitude={layout.latitude!r} weights rows, but {name} does not support sample weights.")
        values["sample_weight"] = _times(stacked.weights, values["sample_weight"])
        return layout


def stacked_as(x: Any, what: str, layout: Layout | None, rows: Rows, **options: Any) -> StackedRows | None:
    """Return labeled data in the layout of a fit, or by the options of rows, or None.

    Raises ValueError for dimensions of rows, a latitude, or anomalies that contradict the layout.
    """
    if layout is None:
        return stack_rows(x, what, sample_dims=rows.sample_dims, latitude=rows.latitude, **options)
    stacked = stack_rows(x, what, layout=layout, **options)
    if stacked is None:
        return None
    dims, own = rows.sample_dims, layout.baseline
    if {*([dims] if isinstance(dims, str) else dims or stacked.rows.dims)} != {*stacked.rows.dims}:
        raise ValueError(f"sample_dims of {what} must be {stacked.rows.dims}, got {dims!r}. Omit it.")
    fitted = {"latitude": layout.latitude, "anomaly": own and own.anomaly, "detrend": own and own.degree}
    for name, wanted in fitted.items():
        if getattr(rows, name) not in (None, wanted):
            raise ValueError(f"{name} must be that of the fit, {wanted or None}, got {getattr(rows, name)!r}. Omit it.")
    return stacked


def refuse_names(rows: Rows, layout: Layout | None) -> None:
    """Raise ValueError if rows without labels name dimensions, or the fit requires labels.

    A fit to anomalies or to weighted columns requires them.
    """
    if layout is not None and layout.baseline is not None:
        raise ValueError("X must have labels with times, because the model was fitted to anomalies.")
    if layout is not None and layout.weights is not None:
        raise ValueError(
            f"X must be an xarray.DataArray along {', '.join(layout.dims)}, because the fit weighted its columns by "
            f"{layout.latitude!r}, got {type(rows.data).__name__}."
        )
    given = {name: getattr(rows, name) for name in UNNAMED}
    named = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
    if named:
        raise ValueError(f"{named} requires X with labels, got {type(rows.data).__name__}. Omit it.")


def _is_list(value: Any, size: int) -> TypeGuard[Sequence[Any]]:
    return is_sequence(value) and len(value) == size


def _check_folds(labels: Any, stacked: StackedRows | None, what: str) -> None:
    """Raise ValueError for labels of folds of other rows, or in another order."""
    if stacked is None or not is_data_array(labels):
        return
    stack_field(labels, stacked.rows, what)
    if labels.ndim > 1:
        raise ValueError(f"{what} must have one dimension, the rows, got {labels.dims}. Pass its raveled values.")


def _read_together(parts: list[Any]) -> list[Any]:
    """Return parts that are read together: zarr arrays are read by dask if one part is."""
    if not any(isinstance(part, (DaskReader, loaded("dask.array.Array"))) for part in parts):
        return parts
    return [
        DaskReader(lazy_rows(part), (part,)).set_times(part.times).set_names(part.column_names)
        if isinstance(part, ZarrReader)
        else part
        for part in parts
    ]


def _times(cosines: Any, weight: Any) -> Any:
    if weight is None:
        return cosines
    reader = as_reader(weight, "sample_weight")
    if reader.shape != cosines.shape:
        raise ValueError(f"sample_weight must have shape {cosines.shape}, got {reader.shape}.")
    return cosines * (reader.array if isinstance(reader, ArrayReader) else lazy_rows(reader))
