"""Functions of rows, block by block, and what applies them to data in any container: results come in one of its kind.

`labelled_rows` gives results the labels of the rows.
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
from daskspectral.data.labelled import ROW
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
Guessed = tuple[NDArray[np.bool_], Array | None]
"""At which points (c,) values are a guess, and how far (c,) each is from being none; None if that is not measured."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFunction(ABC):
    """A function from raw rows (c, n_features) to values (c, columns): rows are prepared, then evaluated in blocks.

    Parameters
    ----------
    nan_rows : bool
        Whether invalid rows, and rows at which the function is undefined, become NaN instead of an error.
    extrapolate : {"nearest", "nan", "raise"}
        The value at the nearest place of the fit, NaN, or an error. It is for rows far from those of the fit.
    device : str
        Where the costly part is computed.
    """

    preparation: Preparation = field(default_factory=Preparation)
    gaps: ClassVar[bool] = False
    """Whether the function takes rows of which some entries are missing."""
    needed: ClassVar[slice] = slice(None)
    """The columns of which none is NaN where the function is defined."""
    missing: ClassVar[Any] = np.nan
    """The value at rows that are invalid, and far from those of the fit with extrapolate="nan"."""
    nearest: ClassVar[str] = "have the values of the nearest of its points"
    """What rows far from those of the fit get with extrapolate="nearest"."""
    nan_rows: bool = False
    extrapolate: str = "nearest"
    device: str = "cpu"

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of values for each row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return np.dtype(float)

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """The number of rows in a block; None where the function takes any number at once."""

    @abstractmethod
    def block(self, x: Array, out: Array) -> Guessed | None:
        """Write the values at valid, prepared points x (c, d) into `out` (c, columns); NaN where they are undefined.

        Returns at which points the values are a guess, of which `doubt` tells; None where they are none.
        """

    def undefined(self, x: Array, count: int) -> str:
        """The error message for values that are undefined at points x (m, d), out of `count` rows."""
        return f"the function is undefined at {len(x)} of {count} rows, the first of them {x[0]}"

    def doubt(self, found: Tally, count: int) -> str:
        """The warning for values that are a guess at those `found` out of `count` rows, by default far ones."""
        return (
            f"{found.count} of {count} rows are so far from those of the fit that the kernel vanishes"
            f"{', and ' if self.there else ''}{self.there}: fit on rows like these, or widen the kernel"
        )

    @property
    def there(self) -> str:
        """What rows far from those of the fit get, in words."""
        return {"nearest": self.nearest, "nan": "are NaN"}.get(self.extrapolate, "")

    @final
    def __call__(self, rows: Any) -> tuple[Array, Tally]:
        """The values (c, columns) at raw rows, and at how many they are a guess.

        Raises ValueError where they are undefined, unless `nan_rows`.
        """
        return self._blocks(np.asarray(rows), self.preparation)

    @final
    def of_prepared(self, x: Array) -> tuple[Array, Tally]:
        """The values (c, columns) at rows that are prepared already, (c, d), and at how many they are a guess."""
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
                x = np.where(valid[:, None], x, x[valid.argmax()])  # 0 may be no point of a manifold
            with renumbered(partial(operator.add, start)):
                guessed = self.block(x, out)
            lost = valid & np.isnan(out[:, self.needed]).any(axis=1)
            if guessed is not None:
                far, distances = guessed[0] & valid, guessed[1]
                most = 0.0 if distances is None else float(distances[far].max(initial=0))
                tally = Tally(int(np.count_nonzero(far)), most)
                found += tally
                lost &= ~guessed[0]
                if tally.count and self.extrapolate == "raise":
                    raise ValueError(f"{self.doubt(tally, len(x))}. The first of them is {_shown(x[far.argmax()])}")
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
    """Return a function of a batch that the engine has checked and prepared; a task once `function` is bound."""
    with renumbered(batch[NUMBER].__getitem__):
        values, tally = function.of_prepared(batch["x"])
    return Counted(values if output is None else output(values), tally)


def _lazy_values(function: RowFunction, rows: Array, windows: Windows | None = None, block_info: Any = None) -> Array:
    """The values of a function on a block of a lazy array, whose rows are not checked yet."""
    start = block_info[0]["array-location"][0][0] if block_info else 0
    if not function.nan_rows:
        columns = None if function.preparation.columns is None else {"x": function.preparation.columns}
        delays = {"x": function.preparation.delays}
        bad = first_invalid({"x": function.preparation.selected(rows)}, columns, delays)
        if bad is not None:
            row = start + bad.row if windows is None else windows.row(start + bad.row, bad.delay)
            raise InvalidRowError(
                f"row {row} cannot be used: {bad.reason}. With Rows(X, on_invalid='skip') such rows become NaN",
                row,
                bad.column,
            )
    with renumbered(lambda k: start + k):
        values, found = function(rows)
    if found.count:
        block = f"rows {start} to {start + len(rows)}: {function.doubt(found, len(rows))}"
        warn_from_task(ExtrapolationWarning(block, found.count, len(rows)), ExtrapolationWarning)
    return values


@dataclass(frozen=True, eq=False)
class Result:
    """The shape behind the rows, and the labels, of the values (n, columns) of a function.

    `name` is the result's, `dims` are its dimensions behind the rows, `coords` their coordinates as xarray takes them,
    `attrs` its attributes. `finish` brings values (c, columns) to (c, *shape) where that is more than a reshaping.
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
        """Values (n, count) along a dimension, with `coordinates` (count,) of it; its name and its first number."""
        dim, first = numbering
        along = {key: (dim, values) for key, values in (coordinates or {}).items()}
        return cls(name, (count,), (dim,), {**along, dim: np.arange(first, first + count)})

    def __call__(self, values: Array) -> Array:
        return (values if self.finish is None else self.finish(values)).reshape(len(values), *self.shape)

    @property
    def names(self) -> set[Any]:
        """The names of these values and their dimensions, which rows cannot have."""
        return {self.name, *self.dims}

    def lazily(self, values: da.Array) -> da.Array:
        """The values of a dask array (n, columns) of whole rows."""
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
    """The values of a function at every row of x, (n, *shape) of the `output`.

    Rows at which the values are a guess give an ExtrapolationWarning with their number, block by block if results are
    lazy.

    Rows in memory give numpy, unless the result is to be `lazy`; others give a lazy dask array. With `rows`, the
    labels of the rows of x, the result is an xarray.DataArray with their dimensions and coordinates, lazy where x is
    not in memory. With `out`, values are written to a new zarr group at that path or URL, of one array and its
    coordinates with the `provenance` as attributes, and None is returned.

    Raises InvalidRowError for an invalid row unless the function makes it NaN, OSError for a chunk of a zarr array that
    is missing and not meant to be. A dimension or coordinate of the rows with the name of the result, or of one of its
    dimensions, is called x_... . With `out`, raises OSError where the data changed meanwhile. Lazy results raise when
    they are computed; whether the data changed until then is not known.
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
        _tell(function, run)
    else:
        import dask.array as da

        blocks = lazy_rows(reader)
        chunks, meta = (blocks.chunks[0], (function.columns,)), np.empty((0, 0), function.dtype)
        own = {"dtype": function.dtype, "chunks": chunks, "meta": meta, "token": "apply"}
        each = partial(_lazy_values, function, windows=reader.windows)
        values = output.lazily(da.map_blocks(each, blocks, **own))
    return values if rows is None else labelled_rows(values, output, rows)


def labelled_rows(values: Any, output: Result, rows: RowLabels) -> xr.DataArray:
    """Values (n, *shape) of an output at rows, with the dimensions and coordinates of the rows."""
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
    """Write to a zarr group with one chunk a task, so that no two tasks write to the same chunk."""
    import xarray as xr

    snapshot = Manifest(source)
    behind, edges = int(np.prod(rows.sizes[1:], dtype=int)), source.edges
    widest = (source.n, max(function.columns, source.n_features_in))
    count, unit = min(source.n, default_chunk_rows(widest, function.dtype)), 1
    if not source.dask_fields and len(edges) > 2:  # whole chunks of the input, so that each is read once
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
        _tell(function, run)


def data_fingerprint(snapshot: Manifest) -> str:
    """A digest of what tells these rows from others: metadata and files, or in memory the contents."""
    return hashlib.sha256(json.dumps(snapshot.identity, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _tell(function: RowFunction, run: Run) -> None:
    count, rows = run.counted.count, run.source.n
    if count:
        warn_user(ExtrapolationWarning(function.doubt(run.counted, rows), count, rows), ExtrapolationWarning)


def _shown(x: Array) -> str:
    return f"{x[:4].tolist()}{' and so on' if len(x) > 4 else ''}"


def slopes_of(target: Result, layout: Layout | None, x: Any, width: int) -> Result:
    """Gradients (n, *targets, d) by the columns of x of a function with this output.

    With a layout they are by the columns of the data before weights, and NaN by those that are left out; columns of one
    array have its dimensions.
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
    """Derivatives (c, m size) by all columns of a layout, from those (c, m d) by the weighted columns that it keeps."""
    found = values.reshape(len(values), -1, layout.width)
    if layout.weights is not None:
        found = found * layout.weights
    return found if layout.kept is None else placed(found, layout.kept)
