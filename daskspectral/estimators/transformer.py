"""What transformers share: the names of their columns, and data frames where `set_output` asks for them."""

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
from daskspectral.data.source import Source, are_trajectories, open_source
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.bases import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from daskspectral.estimators.table import Table
from daskspectral.passes.apply import RowFunction
from daskspectral.validation import is_data_array


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """An estimator whose `transform` gives columns of numbers, named after its class by `get_feature_names_out`."""

    dimension_names: ClassVar = {"embedding_": ("row", "component"), "spectrum_": ("component",)}
    spectrum_: NDArray[np.floating[Any]]

    @property
    def _n_features_out(self) -> int:
        """The number of columns that `transform` gives, by default one for each number of the spectrum."""
        return len(self.spectrum_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`; `input_features`, if given, must be those of the fit."""
        return np.asarray(super().get_feature_names_out(input_features))

    def set_output(self, *, transform: str | None = None) -> Any:
        """Set the container of `transform` and `fit_transform`: "default", "pandas" or "polars"."""
        return super().set_output(transform=transform)

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """`fit` with these options, then `transform` of the same rows: invalid ones are NaN with on_invalid="skip"."""
        self._check_frame(X)
        self.fit(X, y, **options)
        shown = {"progress": options["progress"]} if "progress" in options else {}
        return self._unlabelled(self._of_fit(X, **shown), X)

    @contextmanager
    def _fitting(self, table: Table, *, several: bool = True, **fields: Any) -> Iterator[tuple[Source, Manifest]]:
        """Yield the opened rows of a fit; at the end of the block they must be as they were. Keeps their columns.

        Raises ValueError for a single row if there are to be `several`, OSError if the data changed meanwhile.
        """
        source = open_source(table.rows, progress=table.context.progress, **fields)
        if several:
            self._check_several(source)
        snapshot = Manifest(source)
        yield source, snapshot
        snapshot.check_unchanged()
        self.n_features_in_ = source.n_features_in

    def _of_fit(self, X: Any, **options: Any) -> Any:
        """What `transform` gives at the rows X of the fit."""
        return self.transform(X, **options)

    @property
    def _wanted(self) -> str:
        """The container that `set_output`, or scikit-learn's configuration, asks for."""
        own = vars(self).get("_sklearn_output_config", {})
        return str(own.get("transform", sklearn.get_config()["transform_output"]))

    def _framed(self, function: RowFunction, X: Any, **options: Any) -> Any:
        """Return the function at the rows of X (see `_rows`), or what scikit-learn makes a data frame of."""
        self._check_frame(X, options.get("out"))
        return self._unlabelled(self._rows(function, X, **options), X)

    def _check_frame(self, X: Any, out: Any = None) -> None:
        """Raise ValueError where a data frame is asked for and the result of `transform` is not in memory."""
        data = Rows.of(X).data
        several = self._takes_trajectories and are_trajectories(data)
        if self._wanted == "default" or (out is None and not several and not is_lazy(data)):
            return
        if several:
            raise ValueError(
                f"set_output(transform={self._wanted!r}) makes one data frame, got {len(data)} trajectories. Transform "
                "each one, or take set_output(transform='default')"
            )
        where = "out writes to a file" if out is not None else f"X ({type(data).__name__}) is read lazily"
        raise ValueError(
            f"set_output(transform={self._wanted!r}) makes a data frame in memory, and {where}: take "
            "set_output(transform='default'), or give X in memory"
        )

    def _unlabelled(self, found: Any, X: Any) -> Any:
        """The values (n, columns) of a DataArray, where a data frame is asked for: the rows' coordinates are its index.

        A frame without an index has the values alone. scikit-learn sees no frame in `Rows`, and its index is taken
        here.
        """
        data = Rows.of(X).data
        if self._wanted == "pandas" and data is not X and is_frame(data) and hasattr(data, "index"):
            return importlib.import_module("pandas").DataFrame(found, index=data.index)
        if self._wanted == "default" or not is_data_array(found):
            return found
        values = np.asarray(found).reshape(-1, found.shape[-1])
        if self._wanted != "pandas":
            return values
        rows = found.isel({found.dims[-1]: 0}, drop=True)
        return importlib.import_module("pandas").DataFrame(values, index=rows.coords.to_index(rows.dims))
