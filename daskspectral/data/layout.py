"""Layout of labeled data: dimensions of rows and columns, from which results are labeled."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.anomalies import Baseline
from daskspectral.data.columns import ColumnNames
from daskspectral.registry import Registered
from daskspectral.validation import is_data_array, is_sequence

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[Any]
Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Coordinate(Registered):
    """Coordinate of columns in stored form: text as a list, times as integers of their unit."""

    dims: tuple[str, ...]
    values: Any
    dtype: str
    attrs: Plain = field(default_factory=dict)

    @classmethod
    def of(cls, variable: Any) -> Self | None:
        """Return the coordinate of an xarray variable; None if it is not of numbers, times or text."""
        values, dims = np.asarray(variable.values), tuple(map(str, variable.dims))
        if values.dtype.kind in "mMbiufc":
            numbers = values.astype(np.int64) if values.dtype.kind in "mM" else values
            return cls(dims, numbers, values.dtype.str, plain(variable.attrs))
        if values.dtype.kind in "UTO" and values.ndim == 1 and all(isinstance(v, str) for v in values):
            return cls(dims, [str(v) for v in values], "text", plain(variable.attrs))
        return None

    def variable(self, dims: tuple[str, ...] | None = None) -> xr.Variable:
        """Return the coordinate as an xarray variable, along its dimensions or others."""
        import xarray as xr

        times = self.dtype[1:3] in ("M8", "m8")
        values = np.asarray(self.values, None if self.dtype == "text" else np.int64 if times else self.dtype)
        return xr.Variable(
            self.dims if dims is None else dims, values.astype(self.dtype) if times else values, self.attrs
        )


@dataclass(frozen=True, eq=False)
class Variable(Registered):
    """Array without its values: name, dimensions and sizes besides the rows, attributes."""

    name: str | None
    dims: tuple[str, ...]
    sizes: tuple[int, ...]
    attrs: Plain = field(default_factory=dict)

    @property
    def width(self) -> int:
        return int(np.prod(self.sizes, dtype=int))


NAMED = ("coords", "target_coords", "stacked")  # mappings of a layout whose keys are names of the data


@dataclass(frozen=True, eq=False)
class Layout(Registered):
    """Layout of labeled data as rows and columns, stored with a model to label its results.

    The rows are all combinations of `sample_dims`, the last fastest. The columns are the entries of the `variables` in
    order, each with its other dimensions stacked; of these `size` columns those with `kept` are used, multiplied by
    `weights` (the square root of the cosine of the `latitude`, if that belongs to the columns). `target` has the labels
    of a regression's target and `target_coords` its coordinates. The `baseline` is subtracted last. `stacked` has the
    names of the levels of a MultiIndex.
    """

    sample_dims: tuple[str, ...]
    variables: tuple[Variable, ...]
    coords: Mapping[str, Coordinate] = field(default_factory=dict)
    kept: Array | None = None
    weights: Array | None = None
    latitude: str | None = None
    attrs: Plain = field(default_factory=dict)
    target: Variable | None = None
    target_coords: Mapping[str, Coordinate] = field(default_factory=dict)
    baseline: Baseline | None = None
    stacked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    expects: ClassVar = {"target": Variable, "baseline": Baseline}

    def state(self) -> dict[str, Any]:
        """Return the arguments, with mappings by names of the data as pairs, because names may be arguments."""
        named = {key: tuple(getattr(self, key).items()) for key in NAMED}
        return {**super().state(), **named}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Layout:
        return cls(**{**state, **{key: dict(state[key]) for key in NAMED if key in state}})

    @property
    def size(self) -> int:
        """Number of columns of the data."""
        return sum(variable.width for variable in self.variables)

    @property
    def width(self) -> int:
        """Number d of used columns."""
        return self.size if self.kept is None else int(np.count_nonzero(self.kept))

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for variable in self.variables for dim in variable.dims))

    @property
    def whole(self) -> bool:
        """Whether all columns are used, unweighted."""
        return self.kept is None and self.weights is None

    @property
    def trivial(self) -> bool:
        """Whether the columns are those of one array, all and unweighted, without coordinates."""
        dims = self.variables[0].dims
        single = len(self.variables) == 1 and len(dims) == 1 and dims[0] not in self.coords
        return single and self.whole

    @property
    def column_names(self) -> ColumnNames | None:
        """Names of all columns, used or not; None if several coordinates locate them."""
        if not any(variable.dims for variable in self.variables):
            return None if None in (names := [v.name for v in self.variables]) else ColumnNames.of(names)
        dims = self.variables[0].dims
        if len(self.variables) > 1 or len(dims) > 1:
            return None
        levels = self.stacked.get(dims[0])
        if levels is not None:
            return ColumnNames.of(
                zip(*(self.coords[k].variable().values.tolist() for k in levels), strict=True), levels
            )
        coordinate = self.coords.get(dims[0])
        if coordinate is None or not (coordinate.dtype == "text" or coordinate.dtype[1:2] in ("f", "i", "u")):
            return None
        values = coordinate.variable().values
        if coordinate.dtype != "text" and len(np.unique(values[np.isfinite(values)])) < len(values):
            return None
        return ColumnNames.of(values)

    @property
    def used_names(self) -> ColumnNames | None:
        names = self.column_names
        return names if names is None or self.kept is None else names.select(np.flatnonzero(self.kept).tolist())

    @property
    def names(self) -> list[str]:
        """Name of each used column: its variable, and its position if the variable has dimensions."""
        found: list[str] = []
        for variable in self.variables:
            name, axes = variable.name or "", []
            for dim, size in zip(variable.dims, variable.sizes, strict=True):
                values = self.coords[dim].variable().values if dim in self.coords else np.arange(size)
                axes.append(
                    [v if isinstance(v, str) else f"{v:g}" if values.dtype.kind == "f" else str(v) for v in values]
                )
            text = [dim for dim in variable.dims if dim in self.coords and self.coords[dim].dtype == "text"]
            if len(axes) == len(self.variables) == len(text) == 1:
                found += axes[0]
                continue
            for place in np.ndindex(*variable.sizes):
                inside = ", ".join(
                    f"{d}={axes[i][j]}" for i, (d, j) in enumerate(zip(variable.dims, place, strict=True))
                )
                found.append(f"{name}[{inside}]" if inside else name)
        return found if self.kept is None else [name for name, kept in zip(found, self.kept, strict=True) if kept]

    @property
    def units(self) -> Any:
        """Factors (d,) or 1 from values in weighted columns to the units of the data."""
        if self.weights is None:
            return 1.0
        return np.divide(1.0, self.weights, out=np.full_like(self.weights, np.nan), where=self.weights > 0)

    def weights_by_variable(self, given: Any) -> Array | None:
        """Return weights (size,) of a DataArray or a mapping by variable; None for others."""
        names = [variable.name or "x" for variable in self.variables]
        if is_data_array(given):
            given = {name: given for name, v in zip(names, self.variables, strict=True) if {*given.dims} <= {*v.dims}}
            if not given:
                raise ValueError(f"column_weights must have dimensions of the columns, {self.dims}")
        if not hasattr(given, "items"):
            return None
        weights = dict(given.items())
        if strange := [name for name in weights if name not in names]:
            raise ValueError(f"column_weights has no variable {strange[0]!r} of X. Available: {names[:20]}")
        found = []
        for name, variable in zip(names, self.variables, strict=True):
            own = weights.get(name, 1.0)
            if is_data_array(own):
                dims = tuple(dim for dim in variable.dims if dim in own.dims)
                if {*own.dims} != {*dims}:
                    raise ValueError(f"column_weights must have dimensions of the columns, {self.dims}, got {own.dims}")
                own = in_order(own.transpose(*dims), dims, self)
                check_columns(own, dims, self, "column_weights")
                shape = [size if dim in dims else 1 for dim, size in zip(variable.dims, variable.sizes, strict=True)]
                own = own.values.reshape(shape)
            found.append(np.broadcast_to(np.asarray(own, dtype=float), variable.sizes).ravel())
        return np.concatenate(found)

    def spread(
        self,
        values: Any,
        dims: tuple[Hashable, ...] = (),
        coords: Mapping[Any, Any] | None = None,
        *,
        reserved: Collection[Any] = (),
    ) -> dict[str, xr.DataArray]:
        """Return values in the used columns, (..., d) with leading `dims`, as an array of each variable.

        Each has its original dimensions and coordinates, and NaN at unused columns; a variable without a name is x.
        Names of leading dimensions, of `coords`, or in `reserved`, become x_... . Dask arrays stay lazy.
        """
        import xarray as xr

        if values.shape[-1] != self.width:
            raise ValueError(f"values must have the {self.width} columns of the layout, got {values.shape[-1]}")
        if self.kept is not None:
            values = placed(values, self.kept)
        start, found = 0, {}
        names = free_names([*self.dims, *self.coords], {*dims, *(coords or {}), *reserved})
        levels = {names[dim]: [names[level] for level in inner] for dim, inner in self.stacked.items()}
        for variable in self.variables:
            part = values[..., start : start + variable.width].reshape((*values.shape[:-1], *variable.sizes))
            inside = {
                names[key]: c.variable(tuple(names[dim] for dim in c.dims))
                for key, c in self.coords.items()
                if set(c.dims) <= set(variable.dims)
            }
            along = (*dims, *(names[dim] for dim in variable.dims))
            name = variable.name or "x"
            array = xr.DataArray(part, {**inside, **(coords or {})}, along, variable.name, variable.attrs)
            indexes: dict[Any, Any] = {dim: inner for dim, inner in levels.items() if dim in along}
            found[name] = array.set_index(indexes)
            start += variable.width
        return found


@dataclass(frozen=True, eq=False)
class RowLabels:
    """Dimensions, sizes and coordinates of the rows of a container."""

    dims: tuple[Hashable, ...]
    sizes: tuple[int, ...]
    coords: Mapping[Any, Any] = field(default_factory=dict)
    attrs: Plain = field(default_factory=dict)

    def without(self, reserved: Collection[Any]) -> RowLabels:
        """Return these labels, with dimensions and coordinates in `reserved` renamed to x_... ."""
        names = free_names([*self.dims, *self.coords], reserved)
        if all(name == new for name, new in names.items()):
            return self
        coords = {}
        for name, coordinate in self.coords.items():
            renamed = {key: names[key] for key in (*coordinate.dims, *coordinate.coords) if key in names}
            coords[names[name]] = coordinate.rename({key: new for key, new in renamed.items() if key != new})
        return replace(self, dims=tuple(names[dim] for dim in self.dims), coords=coords)

    def select(self, dim: Hashable, places: Array) -> RowLabels:
        sizes = tuple(len(places) if name == dim else size for name, size in zip(self.dims, self.sizes, strict=True))
        coords = {k: c.isel({dim: places}) if dim in c.dims else c for k, c in self.coords.items()}
        return replace(self, sizes=sizes, coords=coords)

    def place(self, row: int) -> str:
        """Return the position of a row as text, such as "time=2001-03-01T00:00:00"."""
        found = []
        for dim, i in zip(self.dims, np.unravel_index(row, self.sizes), strict=True):
            value = self.coords[dim].values[i] if dim in self.coords else i
            found.append(f"{dim}={np.datetime_as_string(value, 's') if isinstance(value, np.datetime64) else value}")
        return ", ".join(found)


def column_weights(given: Any, layout: Layout | None, names: ColumnNames | None, width: int) -> Array:
    """Return the weight (d,) of each used column of data, which have a layout, or names, or neither.

    Raises ValueError for weights of other columns, and unless all are finite and positive.
    """
    if layout is not None:
        found = layout.weights_by_variable(given)
        if found is None:
            found = np.asarray(given, dtype=float).ravel()
        if layout.kept is not None and len(found) == layout.size:
            found = found[layout.kept]
    elif hasattr(given, "items"):
        known = {} if names is None else {label: place for place, label in enumerate(names.labels)}
        weights = dict(given.items())
        if strange := [name for name in weights if name not in known]:
            raise ValueError(f"column_weights has no column {strange[0]!r} of X. Available: {[*known][:20]}")
        found = np.ones(width)
        for name, weight in weights.items():
            found[known[name]] = weight
    else:
        found = np.asarray(given, dtype=float)
    if found.shape != (width,):
        raise ValueError(f"column_weights must have {width} weights, one for each column of X, got {found.shape}")
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise ValueError("column_weights must be finite and positive. Omit other columns by Rows(X, columns=[...])")
    return found


def free_names(names: Iterable[Any], reserved: Collection[Any]) -> dict[Any, Any]:
    """Return a name for each of these, x_... for those in `reserved`."""
    found: dict[Any, Any] = {}
    names = list(dict.fromkeys(names))
    for name in names:
        new = name
        while new in reserved or (new != name and (new in names or new in found.values())):
            new = f"x_{new}"
        found[name] = new
    return found


def plain(attrs: Mapping[Any, Any]) -> Plain:
    """Return attributes in stored form: numbers, text, and lists of these; others as text."""
    return {str(key): _plain_value(value) for key, value in attrs.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if is_sequence(value):
        return [_plain_value(v) for v in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def placed(values: Any, kept: Array) -> Any:
    """Return values (..., width) at their positions among all columns (..., size), NaN elsewhere."""
    place = np.cumsum(kept) - 1

    def at(block: Array) -> Array:
        return np.where(kept, block[..., place], np.nan)

    if isinstance(values, np.ndarray):
        return at(values)
    values = values.rechunk({values.ndim - 1: -1})
    return values.map_blocks(at, chunks=(*values.chunks[:-1], (len(kept),)), dtype=np.result_type(values.dtype, float))


NEAR = 1e-3  # tolerance in spacings of a coordinate, and
ROUNDED = 1e-6  # relative to the largest of one without an index, such as float32 from float64


def in_order(array: xr.DataArray, dims: tuple[str, ...], layout: Layout) -> xr.DataArray:
    """Return an array with its entries along `dims` in the order of the fit, without others.

    Entries are matched by coordinates; without one, by all coordinates of that dimension alone.
    """
    for dim in dims:
        names = [dim] if dim in layout.coords else [k for k, c in layout.coords.items() if c.dims == (dim,)]
        names = [name for name in names if name in array.coords and array.coords[name].dims == (dim,)]
        pairs = [(np.asarray(array.coords[k].values), layout.coords[k].variable().values) for k in names]
        if not pairs or all(_same_places(came, wanted, dim not in layout.coords) for came, wanted in pairs):
            continue
        places = _positions(pairs[0][0], pairs[0][1]) if names == [dim] else _joint_positions(pairs)
        if places is not None:
            array = array.isel({dim: places})
    return array


def _positions(came: Array, wanted: Array) -> list[int] | None:
    """Return the positions of labels, numbers up to rounding; None if one is missing or ambiguous."""
    if wanted.dtype.kind not in "fiu" or came.dtype.kind not in "fiu":
        return _joint_positions([(came, wanted)])
    distance = np.abs(came[None, :] - wanted.astype(float)[:, None]) <= _nearness(wanted, False)
    return distance.argmax(axis=1).tolist() if np.all(distance.sum(axis=1) == 1) else None


def _joint_positions(pairs: list[tuple[Array, Array]]) -> list[int] | None:
    came, wanted = (
        [*zip(*([f"{v:.6g}" if a.dtype.kind == "f" else str(v) for v in a] for a in side), strict=True)]
        for side in zip(*pairs, strict=True)
    )
    known = {label: place for place, label in enumerate(came)}
    if len(known) < len(came) or len({*wanted}) < len(wanted) or not {*wanted} <= {*known}:
        return None
    return [known[label] for label in wanted]


def check_columns(array: xr.DataArray, dims: tuple[str, ...], layout: Layout, what: str) -> None:
    """Raise ValueError if the columns, along `dims`, differ from those of the fit, or in order.

    A dimension without a coordinate, such as one of stations, is checked by the coordinates that depend on it.
    """
    for name, coordinate in layout.coords.items():
        bare = any(dim not in layout.coords for dim in coordinate.dims)
        if {*coordinate.dims} <= {*dims} and (bare or name in dims):
            _check_same(array, name, coordinate.variable(), bare, f"{what} and the fit differ")


def check_rows(data: xr.DataArray, rows: RowLabels, what: str) -> None:
    """Raise ValueError if the rows of a field are not those of X."""
    for dim, size in zip(rows.dims, rows.sizes, strict=True):
        if int(data.sizes[dim]) != size:
            raise ValueError(f"{what} must have {size} entries along {dim!r}, as X has, got {data.sizes[dim]}")
    for name, wanted in rows.coords.items():
        if wanted.ndim == 1 and wanted.dims == (name,) and name in data.coords:
            if not wanted.indexes[name].equals(data.coords[name].indexes[name]):
                raise ValueError(f"{what} and X differ along {name!r}. Align them by xarray.align(X, {what})")
        elif not all(
            dim in rows.coords and dim in data.coords for dim in wanted.dims
        ):  # otherwise their index is checked
            _check_same(data, name, wanted, True, f"{what} and X differ")


def _check_same(array: xr.DataArray, name: Any, wanted: Any, bare: bool, differ: str) -> None:
    if name not in array.coords or {*map(str, array.coords[name].dims)} != {*map(str, wanted.dims)}:
        return
    came, values = np.asarray(array.coords[name].transpose(*wanted.dims).values), np.asarray(wanted.values)
    if not _same_places(came, values, bare):
        raise ValueError(f"{differ} along {name!r}. Align them by reindex, or interpolate by interp")


def _same_places(came: Array, wanted: Array, bare: bool) -> bool:
    """Return whether coordinates are equal, numbers up to rounding."""
    if came.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "fiu" and came.dtype.kind in "fiu":
        return np.allclose(came, wanted.astype(float), rtol=0, atol=_nearness(wanted, bare), equal_nan=True)
    return bool(came.astype(str).tolist() == wanted.astype(str).tolist())


def _nearness(wanted: Array, bare: bool) -> float:
    """Return the largest distance of two numbers that are the same position among these."""
    known = np.unique(wanted[np.isfinite(wanted)])
    largest = float(np.max(np.abs(known), initial=0))
    spacing = float(np.min(np.diff(known))) if len(known) > 1 else max(largest, 1.0)
    return max(NEAR * spacing, ROUNDED * largest if bare else 0.0)
