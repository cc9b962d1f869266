"""Base class of transformers: names of columns, and data frames by `set_output`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray

from daskspectral.data.containers import is_lazy
from daskspectral.data.frames import is_frame
from daskspectral.data.integrity import Manifest
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, are_trajectories, open_source, windows_of
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.bases import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from daskspectral.estimators.reading import aligned
from daskspectral.estimators.table import Table
from daskspectral.passes.apply import RowFunction
from daskspectral.validation import is_data_array


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Estimator with a `transform` to numeric columns, named after its class."""

    dimension_names: ClassVar = {"embedding_": ("row", "component"), "spectrum_": ("component",)}
    spectrum_: NDArray[np.floating[Any]]

    @property
    def _n_features_out(self) -> int:
        return len(self.spectrum_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of the fit.

        Returns
        -------
        array of str
            Names.
        """
        return np.asarray(super().get_feature_names_out(input_features))

    def set_output(self, *, transform: str | None = None) -> Any:
        """Set the container of `transform` and `fit_transform`.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}
            Container.

        Returns
        -------
        Self
            The estimator.
        """
        return super().set_output(transform=transform)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit with these options, then transform the same rows.

        Parameters
        ----------
        X : array-like or Rows
            Rows (n, n_features); invalid ones become NaN with on_invalid="skip".
        y : array-like, optional
            As in `fit`.
        **options
            Those of `fit`.

        Returns
        -------
        array
            As from `transform`.
        """
        self._check_frame(X)
        self.fit(X, y, **options)
        shown = {"progress": options["progress"]} if "progress" in options else {}
        return self._unlabeled(self._of_fit(X, **shown), X)

    @contextmanager
    def _fitting(self, table: Table, *, several: bool = True, **fields: Any) -> Iterator[tuple[Source, Manifest]]:
        """Yield the opened rows of a fit, and store their columns.

        Raises ValueError for a single row if `several` are required, OSError if the data have changed at the end.
        """
        source = open_source(table.rows, progress=table.context.progress, **fields)
        if several:
            self._check_several(source)
        snapshot = Manifest(source)
        yield source, snapshot
        snapshot.check_unchanged()
        self.n_features_in_ = source.n_features_in

    def _of_fit(self, X: Any, **options: Any) -> Any:
        return self.transform(X, **options)

    @property
    def _wanted(self) -> str:
        own = vars(self).get("_sklearn_output_config", {})
        return str(own.get("transform", sklearn.get_config()["transform_output"]))

    def _framed(self, function: RowFunction, X: Any, **options: Any) -> Any:
        """Return the function at the rows of X, or the values that scikit-learn wraps in a frame."""
        self._check_frame(X, options.get("out"))
        return self._unlabeled(self._rows(function, X, **options), X)

    def _check_frame(self, X: Any, out: Any = None) -> None:
        data = Rows.of(X).data
        several = self._takes_trajectories and are_trajectories(data)
        if self._wanted == "default" or (out is None and not several and not is_lazy(data)):
            return
        if several:
            raise ValueError(
                f"set_output(transform={self._wanted!r}) requires one array, got {len(data)} trajectories. Transform "
                "each one, or use set_output(transform='default')."
            )
        where = "out writes to a file" if out is not None else f"X ({type(data).__name__}) is read lazily"
        raise ValueError(
            f"set_output(transform={self._wanted!r}) requires results in memory, but {where}. Use "
            "set_output(transform='default'), or pass X in memory."
        )

    def _unlabeled(self, found: Any, X: Any) -> Any:
        """Return the values (n, columns) of a DataArray, if a data frame is requested.

        The frame is indexed by the rows' coordinates, or the index of a frame in `Rows`, which scikit-learn does not
        see.
        """
        data = Rows.of(X).data
        delays = vars(self)["preparation_"].delays if "delays" in self._options_of_rows else 1
        if self._wanted == "pandas" and (data is not X or delays > 1) and is_frame(data) and hasattr(data, "index"):
            index = data.index
            if delays > 1:
                windows: Any = windows_of(aligned(self, data, "X", self._columns_wanted()), None, delays)[0].windows
                index = index[windows.last]
            return importlib.import_module("pandas").DataFrame(found, index=index)
        if self._wanted == "default" or not is_data_array(found):
            return found
        values = np.asarray(found).reshape(-1, found.shape[-1])
        if self._wanted != "pandas":
            return values
        rows = found.isel({found.dims[-1]: 0}, drop=True)
        return importlib.import_module("pandas").DataFrame(values, index=rows.coords.to_index(rows.dims))
