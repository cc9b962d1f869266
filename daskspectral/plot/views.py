"""Data of a fitted estimator for pictures: the columns in use, in the units of X."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.role import Role
from daskspectral.data.columns import ColumnNames
from daskspectral.data.containers import points_reader
from daskspectral.data.labeled import stack_rows
from daskspectral.data.readers import ArrayReader
from daskspectral.data.rows import Rows
from daskspectral.data.source import Preparation, Source, are_trajectories, joined_rows, open_source, windows_of
from daskspectral.engine.sampling import draw_rows
from daskspectral.estimators.evaluator import RIGHT, parts_of
from daskspectral.estimators.reading import aligned
from daskspectral.plot.canvas import Canvas, Values
from daskspectral.plot.common import shown, with_unit

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class View:
    """Data of a fitted estimator, or with `right` the second view of each row of `Cross`."""

    estimator: Any
    right: bool = False

    @property
    def preparation(self) -> Preparation:
        found: Preparation = getattr(self.estimator, self._role.named("preparation_"), Preparation())
        return found

    @property
    def width(self) -> int:
        """Number of columns of the data of the fit, of all rows of a window."""
        own = self.estimator.n_right_features_in_ if self.right else self.estimator.n_features_in_
        return int(own) * self.preparation.delays

    @property
    def landmarks(self) -> Array | None:
        """Return the landmarks (p, d) in the units of X; None for a basis without landmarks."""
        basis = getattr(self.estimator, self._role.named("basis_"), None)
        if basis is None or not basis.landmark_parts:
            return None
        points: Array = basis.landmark_parts[0].landmarks
        return replace(self.preparation, columns=None).inverse(points, points.shape[1])

    @property
    def names(self) -> list[str]:
        layout, delays = self._layout, self.preparation.delays
        names = [f"column {i}" for i in range(self.width // delays)]
        if layout is not None:
            attrs = [v.attrs for v in layout.variables for _ in range(v.width)]
            attrs = attrs if layout.kept is None else [a for a, kept in zip(attrs, layout.kept, strict=True) if kept]
            names = [with_unit(name, of) for name, of in zip(layout.names, attrs, strict=True)]
        elif self._columns is not None:
            names = [shown(text) for text in self._columns.texts]
        names += [f"{name}, {delay} before" for delay in range(1, delays) for name in names]
        chosen = self.preparation.columns
        return names if chosen is None else [names[i] for i in chosen]

    @property
    def _columns(self) -> ColumnNames | None:
        found: ColumnNames | None = vars(self.estimator).get(self._role.named("columns_"))
        return found

    def along(self, X: Any, numbers: Array) -> tuple[str, Any]:
        """Return the coordinate of rows by number with its name, or the numbers."""
        rows = Rows.of(X)
        wanted = self.estimator._columns_wanted(self._role)
        stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=self._layout, wanted=wanted)
        if stacked is not None and len(stacked.rows.dims) == 1 and stacked.rows.dims[0] in stacked.rows.coords:
            labels: Any = stacked.rows
            if self.preparation.delays > 1:
                labels = windows_of(stacked.reader, labels, self.preparation.delays)[1]
            places = np.asarray(labels.coords[labels.dims[0]])
            if places.dtype.kind in "iufM":  # numbers or times
                return shown(str(stacked.rows.dims[0])), places[numbers.astype(int)]
        return "row", numbers.astype(float)

    def source(self, X: Any) -> Source:
        """Return the rows of X in the layout of the fit; raise ValueError for another number of columns."""
        several = self.estimator._takes_trajectories and are_trajectories(Rows.of(X).data)
        readers = [points_reader(self._data(part), "X") for part in (parts_of(X) if several else [X])]
        if self.preparation.delays > 1:
            readers = [windows_of(reader, None, self.preparation.delays)[0] for reader in readers]
        source = open_source(Rows(joined_rows(readers) if several else readers[0], on_invalid="skip"))
        if source.n_features_in != self.width:
            what = "the second view" if self.right else "X"
            raise ValueError(f"{what} has {source.n_features_in} columns, the model was fitted on {self.width}")
        return source.with_preparation(columns=self.preparation.columns)

    def _data(self, X: Any) -> Any:
        rows, wanted = Rows.of(X), self.estimator._columns_wanted(self._role)
        stacked = stack_rows(rows.data, sample_dims=rows.sample_dims, layout=self._layout, wanted=wanted)
        return aligned(self.estimator, rows.data if stacked is None else stacked.reader, "X", wanted)

    def sample(self, X: Any, size: int) -> Array:
        """Return random valid rows of X (m, d); raise ValueError without any."""
        return self.numbered(X, size)[1]

    def numbered(self, X: Any, size: int) -> tuple[NDArray[np.intp], Array]:
        """Return numbers (m,) and values (m, d) of random valid rows of X; raise ValueError without any."""
        numbers, points = draw_rows(self.source(X), size, np.random.default_rng(0))
        if not len(points):
            raise ValueError("X has no valid row to draw: each of them holds NaN or infinity")
        return numbers.astype(np.intp), points

    def like_fit(self, points: Array) -> Any:
        """Return rows (m, width), named as in the fit, of these points, 0 in unused columns."""
        columns = self.preparation.columns
        rows = np.zeros((int(np.prod(points.shape[:-1])), self.width))
        rows[:, slice(None) if columns is None else list(columns)] = points.reshape(len(rows), -1)
        named = self._columns is not None and self.preparation.delays == 1
        return ArrayReader(rows).set_names(self._columns) if named else rows

    @property
    def plain(self) -> Any:
        """Return the estimator for rows in the layout of the fit, with anomalies subtracted."""
        found = copy.copy(self.estimator)
        vars(found).pop("layout_", None)
        if self.preparation.delays > 1:  # rows are windows already
            preparation, width = self._role.named("preparation_"), RIGHT if self.right else "n_features_in_"
            vars(found).update({preparation: replace(self.preparation, delays=1), width: self.width})
        return found

    def evaluate(self, points: Array) -> Array:
        functions = partial(self.plain.transform, side="right") if self.right else self.plain.transform
        values = np.asarray(functions(self.like_fit(points), progress=False))
        return np.asarray(values.real.reshape(*points.shape[:-1], -1))

    def canvas(self, X: Any, size: int, values: Values | None = None) -> Canvas:
        """Return a canvas of the eigenfunctions, or other `values`, over `size` rows of X, or the landmarks.

        Raises ValueError if X is not given and there are no landmarks.
        """
        places = self.landmarks if X is None else self.sample(X, size)
        if places is None:
            raise ValueError(f"X must be rows of the data, because {type(self.estimator).__name__} has no landmarks.")
        return Canvas(places, values or self.evaluate, self.names)

    @property
    def _role(self) -> Role:
        return Role.TEST if self.right else Role.TRIAL

    @property
    def _layout(self) -> Any:
        return None if self.right else vars(self.estimator).get("layout_")
