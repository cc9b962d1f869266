"""Evaluation of functions of rows, in blocks, on data in any container; results have the same kind of container.

`labeled_rows` adds the labels of the rows to results.
"""

from __future__ import annotations

import hashlib
import json
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.batches import first_invalid, usable
from daskspectral.data.integrity import Manifest, check_whole_source
from daskspectral.data.labeled import ROW
from daskspectral.data.layout import Layout, RowLabels, placed
from daskspectral.data.readers import ZarrReader, lazy_rows
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.data.writing import Grid, create_dataset, default_chunk_rows, refuse_input
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.engine.scheduler import warn_from_task
from daskspectral.engine.tasks import Counted, Tally
from daskspectral.errors import ExtrapolationWarning, InvalidRowError, renumbered, warn_user
from daskspectral.moments import NUMBER
from daskspectral.validation import is_data_array

if TYPE_CHECKING:
    import dask.array as da
    import xarray as xr

    from daskspectral.data.windows import Windows

Array = NDArray[Any]
Extrapolated = tuple[NDArray[np.bool_], Array | None]
"""Points (c,) at which values are extrapolated, and their distances (c,) from the support; None if not measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFunction(ABC):
    """Function from raw rows (c, n_features) to values (c, columns), evaluated in blocks of prepared rows.

    Parameters
    ----------
    nan_rows : bool, default=False
        Return NaN, in place of an error, for invalid rows and rows at which the function is undefined.
    extrapolate : {"nearest", "nan", "raise"}, default="nearest"
        Value for rows far from those of the fit: that at the nearest point of the fit, NaN, or an error.
    device : str, default="cpu"
        Device of the evaluation.
    """

    preparation: Preparation = field(default_factory=Preparation)
    gaps: ClassVar[bool] = False
    """Whether the function accepts rows with missing entries."""
    needed: ClassVar[slice] = slice(None)
    """Columns that are not NaN at points at which the function is defined."""
    missing: ClassVar[Any] = np.nan
    """Value for invalid rows, and for rows far from those of the fit if extrapolate="nan"."""
    nearest: ClassVar[str] = "have the values of the nearest of its points"
    """Phrase for the values of rows far from those of the fit if extrapolate="nearest"."""
    nan_rows: bool = False
    extrapolate: str = "nearest"
    device: str = "cpu"

    @property
    @abstractmethod
    def columns(self) -> int:
        """Number of values per row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(float)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """Number of rows per block; None for any number."""

    @abstractmethod
    def block(self, x: Array, out: Array) -> Extrapolated | None:
        """Write the values at valid, prepared points x (c, d) to `out` (c, columns), NaN if undefined.

        Returns the points at which values are extrapolated, for `warning_text`, or None.
        """

    def undefined(self, x: Array, count: int) -> str:
        """Return the error message for values that are undefined at points x (m, d), of `count` rows."""
        return f"the function is undefined at {len(x)} of {count} rows; the first is {x[0]}"

    def warning_text(self, found: Tally, count: int) -> str:
        return (
            f"{found.count} of {count} rows are so far from those of the fit that the kernel vanishes"
            f"{', and ' if self.there else ''}{self.there}. Fit on rows like these, or widen the kernel"
        )

    @property
    def there(self) -> str:
        """Phrase for the values of rows far from those of the fit."""
        return {"nearest": self.nearest, "nan": "are NaN"}.get(self.extrapolate, "")

    @final
    def __call__(self, rows: Any) -> tuple[Array, Tally]:
        """Return the values (c, columns) at raw rows, and the number of extrapolated ones."""
        return self._blocks(np.asarray(rows), self.preparation)

    @final
    def of_prepared(self, x: Array) -> tuple[Array, Tally]:
        """Return the values (c, columns) at prepared rows (c, d), and the number of extrapolated ones."""
        return self._blocks(x, Preparation())

    def _blocks(self, rows: Array, preparation: Preparation) -> tuple[Array, Tally]:
        result = np.empty((len(rows), self.columns), self.dtype)
        step, found = self.rows or max(1, len(rows)), Tally()
        for start in range(0, len(rows), step):
            x = np.asarray(preparation(rows[start : start + step]), dtype=float)
            out = result[start : start + step]
            valid: NDArray[np.bool_] = np.asarray((np.any if self.gaps else np.all)(usable(x), axis=1))
            if not valid.any():
                out[:] = self.missing
                continue
            if not valid.all():
                x = np.where(valid[:, None], x, x[valid.argmax()])  # 0 may not be on a manifold
            with renumbered(partial(operator.add, start)):
                extrapolated = self.block(x, out)
            lost = valid & np.isnan(out[:, self.needed]).any(axis=1)
            if extrapolated is not None:
                far, distances = extrapolated[0] & valid, extrapolated[1]
                most = 0.0 if distances is None else float(distances[far].max(initial=0))
                tally = Tally(int(np.count_nonzero(far)), most)
                found += tally
                lost &= ~extrapolated[0]
                if tally.count and self.extrapolate == "raise":
                    raise ValueError(
                        f"{self.warning_text(tally, len(x))}. The first of them is {_shown(x[far.argmax()])}"
                    )
                if self.extrapolate == "nan":
                    out[far] = self.missing
            if lost.any() and not self.nan_rows:
                raise ValueError(self.undefined(x[lost], len(x)))
            out[~valid] = self.missing
        return result, found


# -- a function of rows on data in any container -----------------------------------------------------------------------


def mapped_rows(
    function: RowFunction, batch: Mapping[str, Array], state: Any = None, *, output: Result | None = None
) -> Counted:
    """Return values at a checked and prepared batch; a task if `function` is bound."""
    with renumbered(batch[NUMBER].__getitem__):
        values, tally = function.of_prepared(batch["x"])
    return Counted(values if output is None else output(values), tally)


def _lazy_values(function: RowFunction, rows: Array, windows: Windows | None = None, block_info: Any = None) -> Array:
    """Return the values of a function on a block of a lazy array, whose rows are checked first."""
    start = block_info[0]["array-location"][0][0] if block_info else 0
    if not function.nan_rows:
        columns = None if function.preparation.columns is None else {"x": function.preparation.columns}
        delays = {"x": function.preparation.delays}
        bad = first_invalid({"x": function.preparation.selected(rows)}, columns, delays)
        if bad is not None:
            row = start + bad.row if windows is None else windows.row(start + bad.row, bad.delay)
            raise InvalidRowError(
                f"row {row} cannot be used: {bad.reason}. Pass Rows(X, on_invalid='skip') for NaN there",
                row,
                bad.column,
            )
    with renumbered(lambda k: start + k):
        values, found = function(rows)
    if found.count:
        block = f"rows {start} to {start + len(rows)}: {function.warning_text(found, len(rows))}"
        warn_from_task(ExtrapolationWarning(block, found.count, len(rows)), ExtrapolationWarning)
    return values


@dataclass(frozen=True, eq=False)
class Result:
    """Shape and labels of the values (n, columns) of a function.

    `name` is that of the result, `dims` are its dimensions after the rows, of sizes `shape`, `coords` their coordinates
    in the form of xarray. `finish` maps values (c, columns) to (c, *shape) if this is not a plain reshape.
    """

    name: str
    shape: tuple[int, ...]
    dims: tuple[str, ...]
    coords: Mapping[Any, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Array], Array] | None = None

    @classmethod
    def of_components(
        cls,
        name: str,
        count: int,
        coordinates: Mapping[str, Array] | None = None,
        numbering: tuple[str, int] = ("component", 0),
    ) -> Result:
        """Return the result for values (n, count) along a numbered dimension."""
        dim, first = numbering
        along = {key: (dim, values) for key, values in (coordinates or {}).items()}
        return cls(name, (count,), (dim,), {**along, dim: np.arange(first, first + count)})

    def __call__(self, values: Array) -> Array:
        return (values if self.finish is None else self.finish(values)).reshape(len(values), *self.shape)

    @property
    def names(self) -> set[Any]:
        """Names of the values and their dimensions, which rows must not have."""
        return {self.name, *self.dims}

    def lazily(self, values: da.Array) -> da.Array:
        import dask.array as da

        chunks = (values.chunks[0], *((size,) for size in self.shape))
        meta = np.empty((0,) * len(chunks), values.dtype)
        drop = 1 if not self.shape else None
        new = list(range(2, 1 + len(self.shape))) or None
        found: da.Array = da.map_blocks(
            self, values, dtype=values.dtype, chunks=chunks, meta=meta, drop_axis=drop, new_axis=new, token="labels"
        )
        return found


def apply_rows(
    function: RowFunction,
    x: Any,
    *,
    output: Result,
    lazy: bool = False,
    rows: RowLabels | None = None,
    provenance: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Any:
    """Return the values of a function at every row of x, (n, *shape) of the `output`.

    A numpy array for rows in memory, unless `lazy`, otherwise a lazy dask array; with labels `rows` of x, an
    xarray.DataArray with their dimensions and coordinates, those with a name of the result renamed to x_... . With
    `out`, values are written to a new zarr group of one array, with coordinates and the `provenance` as attributes.

    Raises InvalidRowError for an invalid row, unless it becomes NaN, and OSError if a chunk of a zarr array is missing,
    or, with `out`, if the data changed during the pass. Lazy results raise when they are computed, and do not detect
    changes. An ExtrapolationWarning reports the number of extrapolated rows, per block if lazy.
    """
    source = open_source(x, progress=progress)
    check_whole_source(source)
    invalid = "keep" if function.nan_rows else "raise"
    source = replace(source, preparation=function.preparation, on_invalid=invalid)
    labels, reader = RowLabels((ROW,), (source.n,)) if rows is None else rows, source.readers["x"]
    labels = labels.without(output.names)
    if out is not None:
        refuse_input(out, next((part.name for part in reader.parts if isinstance(part, ZarrReader)), None))
        return _write(function, source, output, labels, provenance or {}, os.fspath(out), overwrite)
    if reader.in_memory and not lazy:
        size = 8 * max(source.n_features_in, function.columns)
        plan = plan_rows(source, 2000.0 * function.columns, row_bytes=size, device=function.device)
        run = Run(source, plan, None, "transform", function.device)
        found = run.map(partial(mapped_rows, function))
        assert found is not None
        values: Any = output(found)
        _warn_extrapolated(function, run)
    else:
        import dask.array as da

        blocks = lazy_rows(reader)
        chunks, meta = (blocks.chunks[0], (function.columns,)), np.empty((0, 0), function.dtype)
        options = {"dtype": function.dtype, "chunks": chunks, "meta": meta, "token": "apply"}
        each = partial(_lazy_values, function, windows=reader.windows)
        values = output.lazily(da.map_blocks(each, blocks, **options))
    return values if rows is None else labeled_rows(values, output, rows)


def labeled_rows(values: Any, output: Result, rows: RowLabels) -> xr.DataArray:
    """Return values (n, *shape) as a DataArray with the labels of the rows."""
    import xarray as xr

    rows = rows.without(output.names)
    shaped = values if len(rows.dims) == 1 else values.reshape(*rows.sizes, *output.shape)
    dims, attrs = (*rows.dims, *output.dims), {**rows.attrs, **output.attrs}
    return xr.DataArray(shaped, dims=dims, coords={**output.coords, **rows.coords}, name=output.name, attrs=attrs)


def _write(
    function: RowFunction,
    source: Source,
    output: Result,
    rows: RowLabels,
    provenance: Mapping[str, Any],
    out: str,
    overwrite: bool,
) -> None:
    """Write to a zarr group with one chunk per task, so that tasks never share a chunk."""
    import xarray as xr

    snapshot = Manifest(source)
    behind, edges = int(np.prod(rows.sizes[1:], dtype=int)), source.edges
    widest = (source.n, max(function.columns, source.n_features_in))
    count, unit = min(source.n, default_chunk_rows(widest, function.dtype)), 1
    if not source.dask_fields and len(edges) > 2:  # complete chunks of the input, which are read once
        unit = max(1, int(edges[1]) // behind)
    grid = Grid.of(rows.sizes, count, unit)
    plan = Plan(tuple(grid.ranges))
    if source.dask_fields:
        lengths = tuple(stop - start for start, stop in plan.ranges)
        source = replace(source, readers=open_source(source.dask_fields["x"].rechunk({0: lengths})).readers)
    coords = {**output.coords, **rows.coords}
    attributes = {**rows.attrs, **provenance, "data_fingerprint": data_fingerprint(snapshot)}
    with create_dataset(
        out,
        output.name,
        xr.Dataset(coords=coords, attrs=attributes),
        (*rows.dims, *output.dims),
        (*rows.sizes, *output.shape),
        function.dtype,
        grid=grid,
        attributes=output.attrs,
        overwrite=overwrite,
    ) as target:
        run = Run(source, plan, None, "transform", function.device)
        run.map(partial(mapped_rows, function, output=output), out=target)
        snapshot.check_unchanged()
        _warn_extrapolated(function, run)


def data_fingerprint(snapshot: Manifest) -> str:
    """Return a digest of the identity of the rows: metadata and files, or the contents in memory."""
    return hashlib.sha256(json.dumps(snapshot.identity, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _warn_extrapolated(function: RowFunction, run: Run) -> None:
    count, rows = run.counted.count, run.source.n
    if count:
        warn_user(ExtrapolationWarning(function.warning_text(run.counted, rows), count, rows), ExtrapolationWarning)


def _shown(x: Array) -> str:
    return f"{x[:4].tolist()}{' ...' if len(x) > 4 else ''}"


def slopes_of(target: Result, layout: Layout | None, x: Any, width: int) -> Result:
    """Return the output of gradients (n, *targets, d), with respect to the columns of x, of a function.

    With a layout, derivatives are with respect to the columns before weighting, and NaN for those that were left out.
    """
    rows = layout is None and is_data_array(x) and x.ndim == 2
    if layout is None:
        dims: tuple[str, ...] = (str(x.dims[1]),) if rows else ("feature",)
        names = {name: c for name, c in x.coords.items() if c.dims == (x.dims[1],)} if rows else {}
        return Result("gradient", (*target.shape, width), (*target.dims, *dims), {**target.coords, **names})
    single = len(layout.variables) == 1
    sizes, dims = (layout.variables[0].sizes, layout.variables[0].dims) if single else ((layout.size,), ("feature",))
    whole = replace(layout, kept=None)
    coords = {k: c.variable() for k, c in layout.coords.items()} if single else {"feature": whole.names}
    finish = None if layout.kept is None and layout.weights is None else partial(_by_all_columns, layout)
    return Result(
        "gradient", (*target.shape, *sizes), (*target.dims, *dims), {**target.coords, **coords}, finish=finish
    )


def _by_all_columns(layout: Layout, values: Array) -> Array:
    """Return derivatives by all columns of a layout, from those by its weighted columns."""
    found = values.reshape(len(values), -1, layout.width)
    if layout.weights is not None:
        found = found * layout.weights
    return found if layout.kept is None else placed(found, layout.kept)
