"""Whether labelled arrays lie on the same places: the columns of a fit, and rows that go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskspectral.data.layout import Layout, RowLabels

Array = NDArray[Any]
NEAR = 1e-3  # of the spacing of a coordinate, and
ROUNDED = 1e-6  # of the largest of one without an index, such as a float32 of a float64: the same place


def check_columns(array: xr.DataArray, dims: tuple[str, ...], layout: Layout, what: str) -> None:
    """Raise ValueError where the columns, along `dims`, lie elsewhere than those of the fit, or in another order.

    Along a dimension without a coordinate of its own, such as one of stations or of stacked ones, those that depend on
    it tell its places.
    """
    for name, coordinate in layout.coords.items():
        bare = any(dim not in layout.coords for dim in coordinate.dims)
        if not {*coordinate.dims} <= {*dims} or name not in array.coords or not (bare or name in dims):
            continue
        came = array.coords[name]
        if {*map(str, came.dims)} != {*coordinate.dims}:
            continue
        wanted, values = coordinate.variable().values, np.asarray(came.transpose(*coordinate.dims).values)
        if not _same_places(values, wanted, bare):
            raise ValueError(
                f"{what} has other columns than the fit: along {name!r} they are {_ends(values)}, and were "
                f"{_ends(wanted)}{_first_other(values, wanted)}. Bring it to the fit's by {what}.reindex or "
                f"{what}.interp"
            )


def check_rows(data: xr.DataArray, rows: RowLabels, what: str) -> None:
    """Raise ValueError where the rows of a field are not those of X."""
    for dim, size in zip(rows.dims, rows.sizes, strict=True):
        if int(data.sizes[dim]) != size:
            raise ValueError(
                f"{what} has {data.sizes[dim]} entries along {dim!r} and X has {size}; they go together row by row"
            )
        if dim in rows.coords and dim in data.coords:
            wanted, came = rows.coords[dim], data.coords[dim]
            if wanted.dims == came.dims and not wanted.indexes[dim].equals(came.indexes[dim]):
                raise ValueError(
                    f"{what} and X do not align along {dim!r}: {_ends(came.values)} and {_ends(wanted.values)}. Bring "
                    f"them together by xarray.align(X, {what})"
                )
    for name, wanted in rows.coords.items():
        bare = any(dim not in rows.coords or dim not in data.coords for dim in wanted.dims)
        if not bare or name not in data.coords or {*data.coords[name].dims} != {*wanted.dims}:
            continue
        came = np.asarray(data.coords[name].transpose(*wanted.dims).values)
        if not _same_places(came, np.asarray(wanted.values), bare):
            raise ValueError(
                f"{what} and X do not align: their rows have no index, and {name!r} is {_ends(came)} in {what} and "
                f"{_ends(wanted.values)} in X{_first_other(came, np.asarray(wanted.values))}. Bring them to one order, "
                f"or leave the coordinate out by {what}.drop_vars({name!r})"
            )


def _same_places(came: Array, wanted: Array, bare: bool) -> bool:
    """Whether coordinates are the same, numbers to rounding."""
    if came.shape != wanted.shape:
        return False
    if wanted.dtype.kind in "fiu" and came.dtype.kind in "fiu":
        known = np.unique(wanted[np.isfinite(wanted)])
        spacing = np.min(np.diff(known)) if len(known) > 1 else max(float(np.max(np.abs(known), initial=0)), 1.0)
        near = max(NEAR * spacing, ROUNDED * float(np.max(np.abs(known), initial=0)) if bare else 0.0)
        both = np.isnan(came.astype(float)) & np.isnan(wanted.astype(float))
        return bool(np.all(both | (np.abs(came - wanted.astype(float)) <= near)))
    return bool(came.astype(str).tolist() == wanted.astype(str).tolist())


def _ends(values: Array) -> str:
    flat = np.asarray(values).ravel()
    return f"{flat[0]} ... {flat[-1]}"


def _first_other(came: Array, wanted: Array) -> str:
    """Where coordinates whose ends are the same differ first."""
    if came.shape != wanted.shape or _ends(came) != _ends(wanted):
        return ""
    place = int(np.argmax(came.astype(str).ravel() != wanted.astype(str).ravel()))
    return f" (entry {place} is {came.ravel()[place]}, for {wanted.ravel()[place]})"
