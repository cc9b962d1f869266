"""The blocks of a user's dask array, compared with the shape and dtype that the array promises when evaluated."""

from __future__ import annotations

from itertools import accumulate, product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import NDArray

Array = NDArray[Any]


def checked_blocks(array: da.Array, what: str) -> da.Array:
    """The same array, whose blocks are checked for the shape and dtype that it promises; masked entries become NaN.

    Evaluating a block raises ValueError where its shape is another, and TypeError where it does not hold real numbers
    of the promised type (labels may be text); `what` names the array in these errors. An array of masked whole numbers
    becomes float64.
    """
    dtype = np.dtype(array.dtype)
    if isinstance(array._meta, np.ma.MaskedArray) and dtype.kind in "iub":
        dtype = np.dtype(float)
    before: Any = array
    name = f"checked-{tokenize(array.name, what, dtype)}"
    starts = [0, *accumulate(array.chunks[0])] if array.ndim else [0]
    layer: dict[Any, Any] = {}
    for index in product(*(range(len(axis)) for axis in array.chunks)):
        shape = tuple(int(axis[i]) for axis, i in zip(array.chunks, index, strict=True))
        first = int(starts[index[0]]) if index else 0
        layer[name, *index] = (_checked, (array.name, *index), index, first, shape, dtype, what)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[before])
    return da.Array(graph, name, array.chunks, meta=np.empty((0,) * array.ndim, dtype))


def _checked(block: Any, index: tuple[int, ...], first: int, shape: tuple[int, ...], dtype: Any, what: str) -> Array:
    """One block as numpy; `index` is its place among the blocks and `first` the number of its first row."""
    values = np.asanyarray(block)
    rows = f" (rows {first} to {first + shape[0]})" if shape else ""
    place = f"block {index} of the dask array {what}{rows}"
    if values.shape != shape:
        raise ValueError(
            f"{place} has shape {values.shape}, and its chunks promise {shape}: a function in its graph changes the "
            "shape of blocks; tell dask with map_blocks(..., chunks=...), or call compute_chunk_sizes()"
        )
    if dtype.kind not in "fiub":  # labels, as long as they are
        return np.asarray(values)
    if values.dtype.kind not in "fiub" or not np.can_cast(values.dtype, dtype, "same_kind"):
        raise TypeError(
            f"{place} has dtype {values.dtype}, and its array promises {dtype}: a function in its graph changes the "
            "type of blocks; convert them there to real numbers, and tell dask with map_blocks(..., dtype=...)"
        )
    if not np.ma.is_masked(values):
        return np.asarray(values, dtype=dtype)
    if dtype.kind != "f":
        raise TypeError(
            f"{place} has {np.ma.count_masked(values)} masked entries, and whole numbers cannot be NaN in their place: "
            "make the array floating by .astype('float64')"
        )
    return np.asarray(values.astype(dtype).filled(np.nan))
