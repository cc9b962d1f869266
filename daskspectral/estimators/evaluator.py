"""Fitted objects that are evaluated at rows, saved and loaded: estimators, and functions of models."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.basis.role import Role
from daskspectral.data.columns import ColumnNames, ColumnSelection, check_columns
from daskspectral.data.containers import is_lazy, points_reader
from daskspectral.data.layout import Layout, column_weights
from daskspectral.data.readers import ArrayReader
from daskspectral.data.remote import using
from daskspectral.data.rows import Rows
from daskspectral.data.source import Preparation, are_trajectories, windows_of
from daskspectral.data.writing import refuse_existing, refuse_input
from daskspectral.errors import InvalidRowError
from daskspectral.estimators.reading import add_column_name, aligned, names_of, refuse_names, stacked_as, wanted_columns
from daskspectral.estimators.summary import summary_of
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.apply import Result, RowFunction, apply_rows, labeled_rows
from daskspectral.passes.parameters import EXTRAPOLATE
from daskspectral.registry import Registered, Trusted
from daskspectral.store import load, save
from daskspectral.validation import check_flag, check_option, is_data_array, is_path

Array = NDArray[np.inexact[Any]]
Path = str | os.PathLike[str]
RIGHT = "n_right_features_in_"


class Evaluator(Registered, ABC):
    """Fitted object that is evaluated at rows of data, in which it finds the columns of its fit.

    The attributes `n_features_in_`, `preparation_`, `layout_` and `columns_` describe the columns.
    """

    n_features_in_: int
    _numbering: ClassVar[tuple[str, int]] = ("component", 0)
    """Dimension of several functions in labeled results, and number of the first."""
    _options_of_rows: ClassVar[tuple[str, ...]] = ()
    """Options of `Rows` that only some estimators have, of `delays` and `column_weights`."""
    _values_name: ClassVar[str] = "eigenfunction"
    """Name of values of the functions in labeled results."""

    @abstractmethod
    def _summary_parts(self) -> dict[str, Any]:
        """Return `verdict` and `facts` of a `Summary`, and optionally other arguments."""

    @property
    @abstractmethod
    def _summary_attributes(self) -> tuple[str, ...]: ...

    @abstractmethod
    def _provenance(self) -> dict[str, Any]:
        """Return the origin of the object, as attributes of written results."""

    @final
    def save(self, path: Path, *, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> None:
        """Write the fitted object to a zarr group (`daskspectral.save`).

        Parameters
        ----------
        path : str or path
            Path or URL.
        overwrite : bool
            True to replace an existing group.
        storage_options : mapping, optional
            Options of the store of a URL.
        """
        save(self, path, overwrite=overwrite, storage_options=storage_options)

    @final
    @classmethod
    def load(
        cls, path: Path, *, trusted: Iterable[Trusted] = (), storage_options: Mapping[str, Any] | None = None
    ) -> Self:
        """Load a saved object of this class (`daskspectral.load`).

        Parameters
        ----------
        path : str or path
            Path or URL.
        trusted : bool or sequence of str
            Functions that may be imported, as in `daskspectral.load`.
        storage_options : mapping, optional
            Options of the store of a URL.

        Returns
        -------
        Self
            The object.

        Raises
        ------
        ValueError
            If it is of another class.
        """
        model = load(path, trusted=trusted, storage_options=storage_options)
        if not isinstance(model, cls):
            what = type(model).__name__
            raise ValueError(f"{os.fspath(path)} contains {what}, not {cls.__name__}. Use daskspectral.load.")
        return model

    @final
    def _rows(
        self,
        function: RowFunction,
        X: Any,
        *,
        coordinates: Mapping[str, Array] | None = None,
        name: str | None = None,
        output: Result | None = None,
        role: Role = Role.TRIAL,
        extrapolate: str = "nearest",
        out: Path | None = None,
        overwrite: bool = False,
        progress: bool | None = None,
        short: bool = False,
        **unknown: Any,
    ) -> Any:
        """Return a function at the rows of X, in X's container, with the options of `transform`.

        The result is in X's container. The `output` is by default named `name` or `_values_name`, with `coordinates`
        (columns,) along the dimension of its functions (`_numbering`). Rows of test functions may have other columns.
        """
        if self._takes_trajectories and are_trajectories(Rows.of(X).data):
            options = {"coordinates": coordinates, "name": name, "output": output, "role": role, **unknown}
            return self._of_each(function, X, out, extrapolate=extrapolate, progress=progress, **options)
        if unknown:
            raise TypeError(
                f"unknown option {next(iter(unknown))!r}. Available: extrapolate, out, overwrite, progress."
            )
        rows = Rows.of(X)
        check_option("extrapolate", extrapolate, EXTRAPOLATE)
        if progress is not None:
            check_flag("progress", progress)
        with using(rows.storage_options, rows.allow_missing or None):
            if out is not None:
                refuse_existing(out, overwrite)
                refuse_input(out, rows.data if is_path(rows.data) else None)
            if output is None:
                name = self._values_name if name is None else name
                output = Result.of_components(name, function.columns, coordinates, self._numbering)
            rows, columns = wanted_columns(rows, self)
            wanted, layout = columns[role], vars(self).get(role.named("layout_"))
            stacked = stacked_as(rows.data, "X", layout, rows, wanted=wanted)
            if stacked is None:
                refuse_names(rows, layout)
            if role == Role.TRIAL:
                self._check_as_fitted(rows)
            if rows.on_invalid == "pairwise" and not function.gaps:
                raise ValueError("on_invalid='pairwise' requires a model fitted with it. Use 'skip'.")
            X = aligned(self, rows.data if stacked is None else stacked.reader, "X", wanted)
            X, labels = self._like_fit(X, vars(self)[RIGHT] if role == Role.TEST else None), None
            if stacked is not None:
                labels = stacked.rows
            if function.preparation.delays > 1:
                X, labels = windows_of(X, labels, function.preparation.delays)
                if short and not X.shape[0]:
                    empty = output(np.empty((0, function.columns), function.dtype))
                    return empty if labels is None else labeled_rows(empty, output, labels)
            try:
                return apply_rows(
                    replace(function, nan_rows=rows.on_invalid != "raise", extrapolate=extrapolate),
                    X,
                    lazy=is_lazy(rows.data),
                    output=output,
                    rows=labels,
                    provenance=self._provenance() if out is not None else None,
                    out=out,
                    overwrite=overwrite,
                    progress=progress,
                )
            except InvalidRowError as error:
                add_column_name(error, names_of(vars(self).get(role.named("columns_")), layout))
                raise

    @property
    def _takes_trajectories(self) -> bool:
        """True if a list contains trajectories, each with its values."""
        return False

    def _of_each(self, function: RowFunction, X: Any, out: Path | None, **options: Any) -> list[Any]:
        if out is not None:
            raise ValueError(f"out= requires one array, got {len(Rows.of(X).data)} trajectories. Write each one.")
        found = []
        for i, part in enumerate(parts_of(X)):
            try:
                found.append(self._rows(function, part, short=True, **options))
            except InvalidRowError as error:
                error.args = (f"X[{i}]: {error}", *error.args[1:])
                raise
        return found

    def _check_as_fitted(self, rows: Rows) -> None:
        """Raise ValueError for other columns than those of the fit, or another scaling."""
        fitted = vars(self).get("preparation_") or Preparation()
        every = tuple(range(self.n_features_in_))
        if rows.columns is not None and check_columns(rows.columns, len(every)) != (fitted.row_columns or every):
            raise ValueError(f"columns must be those of the fit, got {list(rows.columns)}. Omit them.")
        if rows.delays not in (1, fitted.delays):
            raise ValueError(f"delays must be those of the fit, {fitted.delays}, got {rows.delays}. Omit them.")
        if rows.column_weights is not None:
            names = vars(self).get("columns_"), self.n_features_in_
            known, weights = fitted.weights, column_weights(rows.column_weights, vars(self).get("layout_"), *names)
            used = weights if fitted.row_columns is None else weights[list(fitted.row_columns)]
            if known is None or not np.allclose(np.tile(used, fitted.delays), known):
                raise ValueError("column_weights must be those of the fit. Omit them.")
        if rows.standardize and not fitted.standardized:
            raise ValueError("standardize=True requires a fit with it. Omit standardize, or fit again.")

    @final
    def _columns_wanted(self, role: Role = Role.TRIAL) -> ColumnSelection:
        return wanted_columns(Rows(None), self)[1][role]

    @final
    def _like_fit(self, X: Any, n_features: int | None = None) -> Any:
        """Return X, lists as arrays; raise ValueError for another number of columns than in the fit."""
        reader = points_reader(X, "X")
        found = reader.shape[1]
        wanted = self.n_features_in_ if n_features is None else n_features
        if found != wanted:
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {wanted} features as input"
            )
        if not isinstance(reader, ArrayReader) or reader.is_sparse or is_data_array(X):
            return X
        return reader.array if reader.times is None else reader


def parts_of(X: Any) -> list[Any]:
    """Return each of several trajectories, with the reading options of all."""
    return [replace(X, data=part) for part in X.data] if isinstance(X, Rows) else list(X)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ModelFunctions(Evaluator):
    """Functions in the span of a model's `basis`, evaluated and saved without the model.

    `model` is the class and parameters of the model, as in files of results, and `unit` that of times: rows of
    trajectories, or the time of a generator.
    """

    expects: ClassVar = {"basis": Basis, "preparation_": Preparation, "layout_": Layout, "columns_": ColumnNames}

    basis: Basis
    n_features_in_: int
    preparation_: Preparation
    layout_: Layout | None
    columns_: ColumnNames | None
    device: str
    model: Mapping[str, str]
    unit: str

    @classmethod
    def of(cls, model: Any, basis: Basis, **fields: Any) -> Self:
        """Return functions of the columns of a fitted estimator, with other `fields` of this class."""
        labels = {name: vars(model).get(name) for name in ("layout_", "columns_")}
        fitted = {"n_features_in_": model.n_features_in_, "preparation_": model.preparation_, "device": model.device}
        unit = "rows" if of_trajectories(model.moments_.operator) else "time of the generator"
        return cls(basis=basis, model=model._provenance(), unit=unit, **labels, **fitted, **fields)

    def _provenance(self) -> dict[str, Any]:
        return dict(self.model)

    @property
    def _takes_trajectories(self) -> bool:
        return True

    def __repr__(self) -> str:
        return str(summary_of(self).text())
