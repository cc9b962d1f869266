"""Labeled data of any dimensions as lazy rows and columns (n, d), with the layout for labels of results."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.columns import ColumnNames, ColumnSelection, select_columns
from daskspectral.data.containers import chunked, reader_of
from daskspectral.data.files import LabeledData, open_labeled
from daskspectral.data.frames import Table, refuse_kind
from daskspectral.data.layout import Coordinate, Layout, RowLabels, Variable, check_columns, check_rows, in_order, plain
from daskspectral.data.readers import Reader, by_block, lazy_rows
from daskspectral.data.times import RowTimes
from daskspectral.validation import is_dask_array, is_data_array, loaded

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[Any]
BLOCK_BYTES = 1 << 26  # of rows read together, if the chunks of a field are larger
LEAST_BYTES = 1 << 22  # of rows read together, if the chunks of a field are smaller


def _cosine(angles: xr.DataArray) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(np.clip(np.cos(np.deg2rad(np.asarray(angles.values, float))), 0, None), dims=angles.dims)


def column_weights(arrays: list[xr.DataArray], samples: tuple[Hashable, ...], angles: xr.DataArray) -> Array:
    """Return sqrt(cos latitude) for each column, 1 for variables without a latitude."""
    import xarray as xr

    found, root = [], _cosine(angles) ** 0.5
    for array in arrays:
        sizes = {dim: size for dim, size in array.sizes.items() if dim not in samples}
        factors = root if set(angles.dims) <= set(sizes) else xr.DataArray(1.0)
        found.append(np.asarray(factors.variable.set_dims(sizes).values).ravel())  # type: ignore[no-untyped-call]
    return np.concatenate(found)


def latitude_weights(angles: xr.DataArray, samples: tuple[Hashable, ...], sizes: tuple[int, ...], values: Any) -> Any:
    """Return cos latitude for each row, lazily if the rows are lazy."""
    import dask.array as da

    cosine = _cosine(angles).transpose(*(dim for dim in samples if dim in angles.dims))
    shape = [size if dim in angles.dims else 1 for dim, size in zip(samples, sizes, strict=True)]
    small = np.asarray(cosine.values).reshape(shape)
    if not is_dask_array(values):
        return np.broadcast_to(small, sizes).ravel()
    behind = int(np.prod(sizes[1:], dtype=int))
    first = tuple(rows // behind for rows in values.chunks[0])
    return da.broadcast_to(da.from_array(small, chunks=-1), sizes, chunks=(first, *sizes[1:])).reshape(-1)


def stacked(arrays: list[xr.DataArray], rows: int, *, flat: bool = True) -> Any:
    """Return arrays stacked to one (n, d), their first `rows` dimensions as rows; dask if one is lazy.

    Unless `flat`, arrays without other dimensions become (n,).
    """
    import dask.array as da

    blocks = [chunked(array) for array in arrays]
    lazy = any(is_dask_array(block.data) for block in blocks)
    n = int(np.prod(arrays[0].shape[:rows], dtype=int))
    shapes = [(n, int(np.prod(b.shape[rows:], dtype=int))) if flat else (n,) for b in blocks]
    if not lazy:
        parts = [np.asanyarray(b.data).reshape(shape) for b, shape in zip(blocks, shapes, strict=True)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    row_bytes = sum(b.dtype.itemsize * int(np.prod(b.shape[1:], dtype=int)) for b in blocks)
    largest = max(max(b.chunks[0]) for b in blocks if b.chunks is not None)
    if largest * row_bytes <= BLOCK_BYTES:
        first: Any = joined(next(b.chunks[0] for b in blocks if b.chunks is not None), LEAST_BYTES // max(1, row_bytes))
    else:
        first = max(1, BLOCK_BYTES // max(1, row_bytes))
    lazies = []
    for block, shape in zip(blocks, shapes, strict=True):
        data = da.asarray(block.data)
        data = data.rechunk({0: first, **dict.fromkeys(range(1, data.ndim), -1)})
        lazies.append(data.reshape(shape))
    return lazies[0] if len(lazies) == 1 else da.concatenate(lazies, axis=1).rechunk({1: -1})


def joined(chunks: Sequence[int], rows: int) -> tuple[int, ...]:
    """Return chunks of rows merged up to `rows`, because `groupby` makes chunks of single times."""
    found = [0]
    for size in chunks:
        if found[-1] and found[-1] + size > rows:
            found.append(0)
        found[-1] += size
    return tuple(found)


def columns_with_numbers(values: Any, what: str) -> Array | None:
    """Return which columns have a number in some row, None if all; raise ValueError if none has."""
    import dask.array as da

    if isinstance(values, Reader):
        values = lazy_rows(values)
    first = values.blocks[0].compute() if is_dask_array(values) else values
    found: Array = np.asarray(np.isfinite(first).any(axis=0))
    if not found.all() and is_dask_array(values) and values.numblocks[0] > 1:
        found |= np.asarray(da.isfinite(values.blocks[1:]).any(axis=0).compute())
    if not found.any():
        raise ValueError(
            f"{what} must have a column with numbers, but all {len(found)} are NaN. Check its mask and fill values"
        )
    return None if found.all() else found


def _used(block: Array, kept: Array | None, factors: Array | None) -> Array:
    if kept is not None:
        block = block[:, kept]
    if factors is None:
        return block
    dtype = block.dtype if block.dtype.kind == "f" and block.dtype.itemsize >= 4 else float
    return np.asarray(block * factors, dtype=dtype)


def chosen_columns(values: Any, layout: Layout, unweighted: bool) -> Any:
    """Return the columns of a layout, weighted."""
    if layout.whole:
        return values
    factors = layout.weights
    if factors is not None and unweighted:
        factors = np.where(factors > 0, 1 / np.where(factors > 0, factors, 1), 0)
    return by_block(partial(_used, kept=layout.kept, factors=factors), values, token="columns")


Dims = str | Sequence[str] | None
QUANTITY = {
    "units",
    "long_name",
    "standard_name",
    "cell_methods",
    "grid_mapping",
    "valid_min",
    "valid_max",
    "coordinates",
}
"""Attributes that describe the values of an array, and not quantities computed from them."""
TIME = "time"
ROW = "row"  # the dimension of the rows of data without labels


@dataclass(frozen=True, eq=False)
class StackedRows:
    """Labeled data as rows: reader of the used columns, layout, and labels of the rows.

    `weights` (n,) are cosines of the rows' latitudes, if requested.
    """

    reader: Reader
    layout: Layout
    rows: RowLabels
    weights: Any = None


def stack_rows(
    x: Any,
    what: str = "X",
    *,
    sample_dims: Dims = None,
    latitude: str | None = None,
    layout: Layout | None = None,
    drop_empty: bool = False,
    weigh: bool = False,
    unweighted: bool = False,
    wanted: ColumnSelection | None = None,
) -> StackedRows | None:
    """Return labeled data as rows and columns; None for data without labels.

    Rows are the combinations of `sample_dims`, by default the first dimension; all other dimensions are columns.
    `drop_empty` drops columns without numbers, for which the data are read once if their first rows have such columns.
    With the `layout` of a fit, columns are those of the fit and rows all other dimensions. Named columns are restricted
    to `wanted`. `latitude` is a coordinate in degrees: columns are multiplied by sqrt(cos), or divided if `unweighted`
    (for derivatives); `weigh` returns weights of rows.

    Raises ValueError or TypeError for incompatible dimensions, variables or coordinates before values are read, and
    ValueError if no column has a number.
    """
    dims = _checked_dims(sample_dims)
    found = open_labeled(x, what)
    if found is None or (is_data_array(found.data) and found.data.ndim < 2 and not (dims or layout)):
        return None
    first, wanted = layout is None, _of_layout(layout, wanted or ColumnSelection())
    if isinstance(found.data, Table):
        if dims not in (None, (ROW,)) or latitude is not None:
            raise ValueError(f"{what} is a table, which has rows: omit sample_dims and latitude")
        return _table(found.data, what, layout, wanted, unweighted)
    named = _by_name(found.data, what, dims, layout, wanted)
    moved = named is not None
    if named is not None:
        arrays, samples, places = named
    else:
        arrays = _variables(found.data, what, layout)
        given, places = [*arrays], None
        samples = _samples(arrays, what, dims) if layout is None else _other_dims(arrays, layout, what)
        moved = any(array is not before for array, before in zip(arrays, given, strict=True))
    for i, array in enumerate(arrays):
        behind: list[Hashable] = [dim for dim in array.dims if dim not in samples]
        if named is None and layout is not None and set(behind) == set(layout.variables[i].dims):
            behind = [*layout.variables[i].dims]
        arrays[i] = array.transpose(*samples, *behind)
    _check_columns(arrays, samples, what)
    name = latitude if layout is None else layout.latitude
    angles = None if name is None else _latitude(found.data, name, samples, what, asked=layout is None or weigh)
    across = angles if angles is not None and not set(angles.dims) & set(samples) else None
    layout = _layout(found.data, arrays, samples, latitude) if layout is None else layout
    values = (None if moved else _direct(found, arrays, layout)) or stacked(arrays, len(samples))
    if places is not None:
        values = _columns_of(values, places)
    if first:
        kept = columns_with_numbers(values, what) if drop_empty else None
        weights = None if across is None else column_weights(arrays, samples, across)
        layout = replace(layout, kept=kept, weights=weights if kept is None or weights is None else weights[kept])
    sizes = tuple(int(arrays[0].sizes[dim]) for dim in samples)
    cosines = None
    if weigh and angles is not None and across is None:
        cosines = latitude_weights(angles, samples, sizes, values)
    coords = {k: c for k, c in found.data.coords.items() if set(c.dims) <= set(samples)}
    rows = RowLabels(samples, sizes, coords, {k: v for k, v in plain(found.data.attrs).items() if k not in QUANTITY})
    values = chosen_columns(values, layout, unweighted)
    if layout.baseline is not None and not unweighted:
        values = layout.baseline.removed(values, rows, what)
    reader = reader_of(values, what)
    reader = found.behind(reader, [array.name for array in arrays])
    by_model = first and places is not None and not wanted.asked
    known = named is not None or all(dim in arrays[0].coords for dim in layout.dims)
    reader.set_names(wanted.names if by_model else layout.used_names if known else None)
    return StackedRows(reader.set_times(times_of(rows)), layout, rows, cosines)


def times_of(rows: RowLabels) -> RowTimes | None:
    """Return the times of rows: numbers of a single dimension, or the coordinate of times along one of several."""
    along: list[tuple[int, int, RowTimes]] = []
    for name, coordinate in rows.coords.items():
        if len(coordinate.dims) != 1:
            continue
        axis = rows.dims.index(coordinate.dims[0])
        before, behind = (int(np.prod(sizes, dtype=int)) for sizes in (rows.sizes[:axis], rows.sizes[axis + 1 :]))
        found = RowTimes.of(coordinate.to_index(), str(name), before, behind)
        if found is None:
            continue
        attrs, index = coordinate.attrs, name in rows.dims
        named = name == TIME or attrs.get("axis") == "T" or attrs.get("standard_name") == TIME
        if found.of_clock or named or (index and len(rows.dims) == 1):
            along.append((2 * (not (found.of_clock or named)) + (not index), axis, found))
    if along:
        return min(along, key=lambda one: one[:2])[2]
    if len(rows.dims) == 1:
        return None
    if TIME not in rows.dims:
        return RowTimes(", ".join(map(str, rows.dims)))
    axis = rows.dims.index(TIME)
    before, behind = (int(np.prod(sizes, dtype=int)) for sizes in (rows.sizes[:axis], rows.sizes[axis + 1 :]))
    return RowTimes.of(np.arange(rows.sizes[axis]), TIME, before, behind)


def stack_field(value: Any, rows: RowLabels, what: str) -> tuple[Any, xr.DataArray | None]:
    """Return a field with one value for each row, (n,) or (n, m), and its labels.

    Other dimensions are stacked; data without labels are unchanged. Raises ValueError if dimensions or coordinates
    differ from those of the rows.
    """
    found = open_labeled(value, what)
    if found is None or isinstance(found.data, Table):
        return (value if found is None else found.data.reader()), None
    data = found.data
    if isinstance(data, loaded("xarray.Dataset")):
        if len(data.data_vars) != 1:
            raise ValueError(f"{what} must be one variable, got {sorted(map(str, data.data_vars))}")
        data = next(iter(data.data_vars.values()))
    if not set(rows.dims) <= set(data.dims):
        if data.ndim in (1, 2) and len(rows.dims) == 1:  # labeled by other names: row by row
            return value if found.direct is None else found.direct, None
        raise ValueError(f"{what} must have the dimensions {rows.dims} of the rows of X, got {data.dims}")
    behind = [dim for dim in data.dims if dim not in rows.dims]
    check_rows(data, rows, what)
    if found.direct is not None and len(rows.dims) == 1 and data.ndim < 3 and data.dims == (*rows.dims, *behind):
        return found.direct, data
    values = stacked([data.transpose(*rows.dims, *behind)], len(rows.dims), flat=bool(behind))
    lazy = is_dask_array(values)
    return (found.behind(reader_of(values, what), [data.name]) if lazy else values), data


def stack_gradients(value: Any, points: StackedRows) -> Any:
    """Return derivatives with respect to columns (n, d), or (n, m, d) for m targets.

    Dimensions with other names are matched by position if all columns are used. Data without labels are unchanged.
    Raises ValueError for other dimensions, rows or columns.
    """
    import dask.array as da

    layout, rows = points.layout, points.rows
    found = open_labeled(value, "gradients")
    if found is None:
        return value
    data, dims = found.data, layout.variables[0].dims
    single = is_data_array(data)
    if not single or {*rows.dims, *layout.dims} == {*data.dims} or _has_columns(data, layout, rows):
        stacked_rows = stack_rows(value, "gradients", layout=layout, unweighted=True)
        return value if stacked_rows is None else stacked_rows.reader
    behind = [dim for dim in data.dims if dim not in rows.dims]
    if len(layout.variables) == 1 and {*dims} <= {*behind}:
        behind = [*(dim for dim in behind if dim not in dims), *dims]
    elif not layout.whole or not {*rows.dims} <= {*data.dims}:
        raise ValueError(f"gradients must have the dimensions {(*rows.dims, *layout.dims)} of X, got {data.dims}")
    check_rows(data, rows, "gradients")
    values = stacked([data.transpose(*rows.dims, *behind)], len(rows.dims))
    targets = values.shape[1] // layout.size
    parts = [chosen_columns(values[:, i * layout.size : (i + 1) * layout.size], layout, True) for i in range(targets)]
    if len(behind) == len(dims):
        return parts[0]
    return da.stack(parts, axis=1) if is_dask_array(values) else np.stack(parts, axis=1)


def _has_columns(data: xr.DataArray, layout: Layout, rows: RowLabels) -> bool:
    """Return whether the only column dimension of an array has the column names of a layout."""
    names, along = layout.column_names, _labeled_dim(data, layout, rows.dims)
    if names is None or along is None or data.ndim != len(rows.dims) + 1:
        return False
    found = ColumnNames.of(data.coords[along].values)
    return found is not None and {*found.labels} == {*names.labels}


def with_target(layout: Layout, target: xr.DataArray | None, rows: RowLabels) -> Layout:
    """Return the layout with the labels of the target of a regression."""
    if target is None:
        return layout
    variable, coords = _described(target, rows.dims)
    return replace(layout, target=variable, target_coords=coords)


def _described(array: xr.DataArray, rows: tuple[Hashable, ...]) -> tuple[Variable, dict[str, Coordinate]]:
    """Return an array without values and rows, and the coordinates of its other dimensions."""
    dims = [dim for dim in array.dims if dim not in rows]
    name = None if array.name is None else str(array.name)
    variable = Variable(name, tuple(map(str, dims)), tuple(int(array.sizes[d]) for d in dims), plain(array.attrs))
    coords = {str(key): c.variable for key, c in array.coords.items() if c.dims and set(c.dims) <= set(dims)}
    return variable, {key: kept for key, c in coords.items() if (kept := Coordinate.of(c)) is not None}


def _checked_dims(sample_dims: Dims) -> tuple[str, ...] | None:
    if sample_dims is None:
        return None
    several = isinstance(sample_dims, Iterable) and not isinstance(sample_dims, str)
    dims: tuple[Any, ...] = tuple(sample_dims) if several else (sample_dims,)
    if not dims or len(set(dims)) < len(dims) or not all(isinstance(dim, str) for dim in dims):
        raise ValueError(f"sample_dims must be distinct names of dimensions, such as ('time',), got {dims!r}")
    return dims


def _of_layout(layout: Layout | None, wanted: ColumnSelection) -> ColumnSelection:
    """Return the columns of a layout as requested ones, of which unused ones may be missing."""
    if layout is None:
        return wanted
    kept = np.arange(layout.size) if layout.kept is None else np.flatnonzero(layout.kept)
    used = kept if wanted.used is None else kept[list(wanted.used)]
    return ColumnSelection(layout.column_names, tuple(used.tolist()))


def _table(table: Table, what: str, layout: Layout | None, wanted: ColumnSelection, unweighted: bool) -> StackedRows:
    if layout is not None and wanted.names is None and not layout.trivial:
        raise ValueError(f"{what} must have the columns of the fit, {layout.names[:5]}, got {list(table.names)}")
    places = wanted.places(ColumnNames(table.names), len(table.names), what)
    reader: Reader = table.reader(places, wanted)
    names = wanted.names or ColumnNames(table.names)
    rows, first = RowLabels((ROW,), (reader.shape[0],)), layout is None
    layout = layout or Layout((ROW,), tuple(Variable(n, (), ()) for n in names.texts))
    values = chosen_columns(reader, layout, unweighted)
    if layout.baseline is not None and not unweighted:
        values = layout.baseline.removed(values, rows, what)
    reader = reader_of(values, what).set_names(names if first else layout.used_names)
    return StackedRows(reader.set_times(table.times(places)), layout, rows)


def _columns_of(values: Any, places: Sequence[int | None]) -> Any:
    """Return the columns at these positions of a Reader, dask or numpy array, 0 for None."""
    if isinstance(values, Reader):
        return values.columns_at(places)
    whole = [*places] == [*range(values.shape[1])]
    return values if whole else by_block(partial(select_columns, places=places), values, token="taken")


def _by_name(
    data: Any, what: str, dims: tuple[str, ...] | None, layout: Layout | None, wanted: ColumnSelection
) -> tuple[list[xr.DataArray], tuple[Hashable, ...], Sequence[int | None]] | None:
    """Return the arrays of the requested names, the dimensions of rows, and positions of columns.

    None if no names are requested, or the data have none.
    """
    names = wanted.names
    if names is None or (names.feature_names is None and not wanted.asked):
        return None
    arrays = _variables(data, what, None)
    hint = dims or (None if layout is None else layout.sample_dims)
    along = None if len(arrays) > 1 else _labeled_dim(arrays[0], layout, hint)
    if along is None:
        variables = [array.name for array in arrays]
        if None in variables and wanted.asked:
            wanted.places(None, int(np.prod(arrays[0].shape[1:], dtype=int)), what)  # raises: they have no names
        if None in variables or (len(arrays) == 1 and arrays[0].ndim > 1 and not wanted.asked):
            return None
        places = wanted.places(ColumnNames(tuple(map(str, variables))), len(variables), what)
        arrays = [arrays[place] for place in places if place is not None]
        if not wanted.asked and any(set(array.dims) != set(arrays[0].dims) for array in arrays):
            return None
        given = hint is not None and set(hint) <= set(arrays[0].dims)
        samples: tuple[Hashable, ...] = tuple(hint or ()) if given else arrays[0].dims[: 1 if wanted.asked else None]
        if any(set(samples) - set(array.dims) for array in arrays):
            samples = _samples(arrays, what, dims)
        wide = any(array.ndim > len(samples) for array in arrays)
    else:
        array = arrays[0]
        places = wanted.places(ColumnNames.of(array.coords[along].values), array.sizes[along], what)
        arrays = [array.isel({along: [place for place in places if place is not None]})]
        others = tuple(dim for dim in array.dims if dim != along)
        samples = tuple(hint) if hint is not None and set(hint) == set(others) else others
        wide = False
        if layout is None and wanted.asked:
            samples = dims or others[:1]
            wide = {*samples} != {*others} and {*samples} <= {*others}
        elif layout is None and dims is not None and set(dims) != set(others):
            return None
    if wide:
        return (arrays, samples, [*range(sum(_width(array, samples) for array in arrays))]) if wanted.asked else None
    numbers = iter(range(len(places)))
    return arrays, samples, [None if place is None else next(numbers) for place in places]


def _width(array: xr.DataArray, samples: tuple[Hashable, ...]) -> int:
    return int(np.prod([size for dim, size in array.sizes.items() if dim not in samples], dtype=int))


def _labeled_dim(array: xr.DataArray, layout: Layout | None, hint: Any) -> Hashable | None:
    """Return the dimension of an array whose entries are named and that is not a row, or None."""
    named = [dim for dim in array.dims if dim in array.coords and dim not in (hint or ())]
    named = [dim for dim in named if array.indexes[dim].nlevels > 1 or _texts(array.coords[dim].values)]
    if layout is not None and layout.dims and layout.dims[0] in named:
        return layout.dims[0]
    return named[0] if len(named) == 1 and array.ndim > 1 else None


def _texts(values: Array) -> bool:
    return values.dtype.kind in "UTO" and all(isinstance(value, str) for value in values)


def _variables(data: Any, what: str, layout: Layout | None) -> list[xr.DataArray]:
    """Return the arrays that become columns, in order; with a layout, those of its names."""
    if is_data_array(data):
        if layout is not None and len(layout.variables) > 1:
            raise ValueError(f"{what} must have the variables {[v.name for v in layout.variables]}, got one array")
        return [data]
    arrays = {str(name): array for name, array in data.data_vars.items()}
    for array in [*arrays.values()]:
        for key in ("bounds", "grid_mapping"):
            arrays.pop(str(array.attrs.get(key, array.encoding.get(key, ""))), None)
    for coordinate in data.coords.values():
        arrays.pop(str(coordinate.attrs.get("bounds", "")), None)
    if not arrays:
        raise ValueError(f"{what} must have variables, got an empty Dataset")
    if layout is None or len(arrays) == len(layout.variables) == 1:
        return list(arrays.values())
    names = [str(v.name) for v in layout.variables]
    if not {*names} <= {*arrays}:
        raise ValueError(f"{what} must have the variables {names}, got {list(arrays)}")
    return [arrays[name] for name in names]


def _samples(arrays: list[xr.DataArray], what: str, dims: tuple[str, ...] | None) -> tuple[Hashable, ...]:
    """Return the dimensions of the rows; raise ValueError if an array lacks one."""
    named: tuple[Hashable, ...] = (dims or arrays[0].dims[:1]) if arrays[0].ndim else (dims or ())
    for array in arrays:
        if not named or not {*named} <= {*array.dims}:
            raise ValueError(
                f"sample_dims={named!r} must be dimensions of each variable of {what}, but {array.name!r} has "
                f"{array.dims}. Choose common dimensions, or drop it"
            )
    return named


def _other_dims(arrays: list[xr.DataArray], layout: Layout, what: str) -> tuple[Hashable, ...]:
    samples: tuple[Hashable, ...] | None = None
    for i, (array, variable) in enumerate(zip(arrays, layout.variables, strict=True)):
        dims = variable.dims
        if len(arrays) == 1 and layout.trivial and array.ndim == 2 and dims[0] not in array.dims:
            dims = (str(array.dims[1]),)  # columns by position, because they have no names
        if {*dims} <= {*array.dims}:
            array = arrays[i] = in_order(array, tuple(map(str, dims)), layout)
        wanted, found = dict(zip(dims, variable.sizes, strict=True)), {dim: array.sizes.get(dim) for dim in dims}
        if found != wanted:
            raise ValueError(f"{what} must have the columns {wanted} of the fit, got {dict(array.sizes)}")
        check_columns(array, tuple(map(str, dims)), layout, what)
        left = tuple(dim for dim in array.dims if dim not in dims)
        ordered = layout.sample_dims if set(left) == set(layout.sample_dims) else left
        if not ordered or set(ordered) != set(samples or ordered):
            raise ValueError(f"{array.name!r} of {what} must have rows along {layout.sample_dims}, got {left}")
        samples = samples or ordered
    assert samples is not None
    return samples


def _check_columns(arrays: list[xr.DataArray], samples: tuple[Hashable, ...], what: str) -> None:
    """Raise TypeError or ValueError for columns or dimensions of times, text, complex numbers or size 0."""
    for array in arrays:
        if array.dtype.kind == "c":
            refuse_kind(array.dtype, f"{what} ({array.name})")
    unfit = {str(array.name): str(array.dtype) for array in arrays if array.dtype.kind not in "fiub"}
    if unfit:
        raise TypeError(f"the columns of {what} must be real numbers, got {unfit}. Drop these variables")
    for array in arrays:
        if strange := [dim for dim in array.dims if not isinstance(dim, str)]:
            raise TypeError(f"the dimensions of {what} must have text names, got {strange[0]!r}. Rename it")
        for dim in array.dims:
            if dim in samples:
                continue
            if dim in array.coords and array.coords[dim].dtype.kind == "M":
                several = f", sample_dims={(*samples, dim)} for members of an ensemble"
                raise ValueError(
                    f"{what} has times along {dim!r}, which is a dimension of columns. Pass sample_dims=({dim!r},)"
                    f"{several}, or {what}.drop_vars({dim!r}) to use them as columns"
                )
            if not array.sizes[dim]:
                raise ValueError(f"{what} must not be empty, but its dimension {dim!r} has the size 0")


def _latitude(data: Any, name: str, samples: tuple[Hashable, ...], what: str, *, asked: bool) -> xr.DataArray | None:
    if name not in data.coords:
        if not asked:
            return None
        raise ValueError(
            f"latitude={name!r} must be a coordinate of {what}. Available: {sorted(map(str, data.coords))}"
        )
    angles: xr.DataArray = data.coords[name]
    inside = set(angles.dims) & set(samples)
    if not angles.ndim or (inside and inside != set(angles.dims)):
        raise ValueError(f"latitude={name!r} must belong to either rows {samples} or columns, got {angles.dims}")
    values, unit = np.asarray(angles.values), str(angles.attrs.get("units", ""))
    number = values.dtype.kind in "fiu" and np.all(np.abs(values) <= 90 + 1e-6)
    if not number or unit.lower().startswith("rad"):
        raise ValueError(f"latitude={name!r} must be in degrees from -90 to 90, got {values.dtype} with units {unit!r}")
    return angles


def _layout(data: Any, arrays: list[xr.DataArray], samples: tuple[Hashable, ...], latitude: str | None) -> Layout:
    variables, coordinates = zip(*(_described(array, samples) for array in arrays), strict=True)
    coords = {key: coordinate for found in coordinates for key, coordinate in found.items()}
    attrs = plain(data.attrs) if isinstance(data, loaded("xarray.Dataset")) else {}
    indexes = {str(dim): index for array in arrays for dim, index in array.indexes.items() if dim in array.dims}
    levels = {dim: tuple(map(str, index.names)) for dim, index in indexes.items() if index.nlevels > 1}
    stacked = {dim: names for dim, names in levels.items() if {*names} <= {*coords}}
    return Layout(tuple(map(str, samples)), variables, coords, latitude=latitude, attrs=attrs, stacked=stacked)


def _direct(found: LabeledData, arrays: list[xr.DataArray], layout: Layout) -> Reader | None:
    """Return the zarr array itself if rows and columns are its two dimensions, unweighted; else None."""
    data = found.data
    if found.direct is None or data.ndim != 2 or arrays[0].dims != data.dims or len(layout.variables[0].dims) != 1:
        return None
    return found.direct if layout.latitude is None and layout.kept is None else None
