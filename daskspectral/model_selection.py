"""Cross-validation by scikit-learn, for data other than one array of independent rows.

`cross_val_score` and `GridSearchCV` accept estimators with a `score`, and arrays of rows: numpy, dask and xarray. For
other data:

| data | pass | with `cv=` |
|---|---|---|
| a zarr array, or the path of one | `dask.array.from_zarr(path)` | any splitter of rows |
| several trajectories | the list of them | `KFold`, `GroupKFold`: whole trajectories are held out |
| one trajectory | `blocks(x, number)`, a list | `KFold(shuffle=True)`: blocks are held out |
| | `Trajectory(x)` | `BlockFold`: a block is held out, with a gap at its sides |
| views of each row, fit((x, y)) | `Views((x, y))` | any splitter of rows |
| fields of each row | `Rows(x, fields={"potential": v})` | any splitter of rows; x and v as above |

Neighboring rows of a trajectory are correlated: held out at random, they do not test a model. And in a plain array
with a gap `Transfer` would pair the last row before the gap with rows after it. `Trajectory` and `blocks` return lists
of contiguous pieces instead. Each cut costs as many pairs as the lag has rows, and pieces that are not longer than the
lag are skipped. Blocks should be many times, such as 40 times, longer than the correlation time.

Weights reach `fit` and `score` by scikit-learn's metadata routing: `set_fit_request(sample_weight=True)` and
`set_score_request(sample_weight=True)` on the estimator, under `sklearn.set_config(enable_metadata_routing=True)`.
Weights and fields are split like the rows: those of a `Trajectory` are another `Trajectory`, those of a list a list.

Examples
--------
The scale of a kernel, chosen for a trajectory of 10_000 rows:

>>> import numpy as np
>>> import daskspectral as dsp
>>> from daskspectral.model_selection import BlockFold, Trajectory
>>> from sklearn.model_selection import GridSearchCV
>>> x = np.zeros((10_000, 1))
>>> noise = np.random.default_rng(0).standard_normal(10_000)
>>> for t in range(1, 10_000):
...     x[t] = 0.8 * x[t - 1] + 0.6 * noise[t]
>>> basis = dsp.basis.Landmarks(dsp.kernels.Gaussian(1.0), 50)
>>> model = dsp.Koopman(basis=basis, n_components=3, random_state=0)
>>> search = GridSearchCV(model, {"basis__kernel__scale": [0.1, 1.0]}, cv=BlockFold(5, gap=20)).fit(Trajectory(x))
>>> search.best_params_
{'basis__kernel__scale': 1.0}
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, SupportsIndex, final

import dask.array as da
import numpy as np
import xarray as xr
import zarr
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator

from daskspectral.data.stores import open_zarr
from daskspectral.validation import check_integer

Numbers = NDArray[np.intp]

__all__ = ["BlockFold", "Trajectory", "Views", "blocks", "pieces"]


@final
class BlockFold(BaseCrossValidator):  # type: ignore[misc]
    """Cross-validation splitter whose test sets are contiguous blocks of rows.

    The training set has a gap: pass a `Trajectory`, which is cut there, for an operator that pairs rows.

    Parameters
    ----------
    n_splits : int
        Number of blocks, at least 2.
    gap : int
        Number of rows excluded from the training set on each side of the test set, because they are correlated with it.
        A few times the lag or the correlation time is enough.

    See Also
    --------
    Trajectory : A trajectory that is cut at gaps.
    blocks : Blocks of a trajectory, for other splitters.

    Examples
    --------
    >>> import numpy as np
    >>> for train, test in BlockFold(3, gap=1).split(np.zeros((9, 1))):
    ...     print(train, test)
    [4 5 6 7 8] [0 1 2]
    [0 1 7 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    def __init__(self, n_splits: int = 5, *, gap: int = 0):
        check_integer("n_splits", n_splits, 2)
        check_integer("gap", gap, 0)
        self.n_splits, self.gap = int(n_splits), int(gap)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the row indices of the training and the test set, n_splits times.

        Parameters
        ----------
        X : array-like or Trajectory
            Rows.
        y, groups : object
            Ignored.

        Yields
        ------
        train, test : array of int
            Row indices.

        Raises
        ------
        ValueError
            If there are fewer rows than blocks, or the gap excludes all training rows.
        """
        n = _rows_of(X)
        borders, rows = _borders(n, self.n_splits, "n_splits"), np.arange(n)
        for start, stop in borders:
            train = np.concatenate([rows[: max(start - self.gap, 0)], rows[stop + self.gap :]])
            if not len(train):
                raise ValueError(
                    f"gap={self.gap} leaves no training rows for the test rows {start} to {stop} of {n}. Use a smaller "
                    "gap, or more and so smaller blocks."
                )
            yield train, rows[start:stop]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of blocks.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        int
            Number of blocks.
        """
        return self.n_splits


def blocks(x: Any, number: int) -> list[Any]:
    """Split a trajectory (n, d) into contiguous ones of almost equal length, without copies.

    Parameters
    ----------
    x : array-like, str or path
        A numpy, dask, zarr or xarray array, or the path or URL of a zarr array.
    number : int
        Number of blocks.

    Returns
    -------
    list of array
        Blocks; those of zarr arrays are dask arrays.

    Raises
    ------
    ValueError
        If there are fewer rows than blocks.

    See Also
    --------
    pieces : Contiguous pieces of selected rows.
    BlockFold : Splitter that holds out blocks.

    Examples
    --------
    >>> import numpy as np
    >>> [len(block) for block in blocks(np.zeros((10, 2)), 3)]
    [4, 3, 3]
    """
    array = _sliceable(x)
    check_integer("number", number)
    return [array[start:stop] for start, stop in _borders(len(array), int(number), "number")]


def pieces(x: Any, rows: Any) -> list[Any]:
    """Return selected rows of a trajectory as a list of contiguous pieces, without copies.

    Parameters
    ----------
    x : array-like, str or path
        As in `blocks`.
    rows : array-like of int or bool
        Row indices, ascending, or a mask.

    Returns
    -------
    list of array
        Pieces.

    Raises
    ------
    ValueError
        If the indices do not ascend, or are not rows of x.

    See Also
    --------
    Trajectory : A trajectory with such pieces as its subsets.

    Examples
    --------
    >>> import numpy as np
    >>> [piece.ravel() for piece in pieces(np.arange(9)[:, None], [0, 1, 2, 6, 7])]
    [array([0, 1, 2]), array([6, 7])]
    """
    array, numbers = _sliceable(x), np.asarray(rows)
    if numbers.dtype == bool:
        numbers = np.flatnonzero(numbers)
    steps = np.diff(numbers)
    if not len(numbers) or np.any(steps <= 0) or numbers[0] < 0 or numbers[-1] >= len(array):
        raise ValueError(
            f"rows of a trajectory must be ascending indices from 0 to {len(array) - 1}. Use a splitter of blocks, "
            "such as BlockFold, or KFold without shuffling."
        )
    starts = [0, *(np.flatnonzero(steps > 1) + 1).tolist(), len(numbers)]
    return [array[int(numbers[a]) : int(numbers[b - 1]) + 1] for a, b in pairwise(starts)]


@final
class Trajectory(list[Any]):
    """Trajectory, or its weights, that scikit-learn splits into contiguous pieces.

    It is a list of one trajectory, as accepted by `fit` and `score`.

    Parameters
    ----------
    x : array-like, str or path
        As in `blocks`.

    See Also
    --------
    BlockFold : Splitter that holds out blocks.

    Examples
    --------
    >>> import numpy as np
    >>> trajectory = Trajectory(np.arange(9)[:, None])
    >>> trajectory.shape, len(trajectory)
    ((9, 1), 1)
    >>> [piece.ravel() for piece in trajectory[np.array([0, 1, 2, 6, 7])]]
    [array([0, 1, 2]), array([6, 7])]
    """

    def __init__(self, x: Any):
        super().__init__([x if isinstance(x, (str, os.PathLike, zarr.Array)) else _sliceable(x)])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return tuple(int(n) for n in _sliceable(self[0]).shape)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (SupportsIndex, slice)) and not isinstance(rows, np.ndarray):
            return super().__getitem__(rows)
        return pieces(self[0], _chosen(rows))


@final
class Views(tuple[Any, ...]):
    """Views (x, y, ...) of one sample, that scikit-learn splits by rows.

    Parameters
    ----------
    views : sequence of array-like
        Arrays of any kind with the same number of rows; subsets of zarr arrays are dask arrays.

    Raises
    ------
    ValueError
        If the numbers of rows differ.

    See Also
    --------
    Trajectory : One trajectory.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views((np.arange(4)[:, None], np.zeros((4, 7))))
    >>> views.shape, [view.shape for view in views[np.array([0, 2, 3])]]
    ((4,), [(3, 1), (3, 7)])
    """

    def __new__(cls, views: Iterable[Any]) -> Views:
        found = super().__new__(cls, (_sliceable(view) for view in views))
        rows = {f"view {i}": _rows_of(view) for i, view in enumerate(found)}
        if len(set(rows.values())) != 1:
            raise ValueError(f"views must have the same number of rows, got {rows}.")
        return found

    @property
    def shape(self) -> tuple[int]:
        """Number of rows."""
        return (len(self[0]),)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (SupportsIndex, slice)) and not isinstance(rows, np.ndarray):
            return super().__getitem__(rows)
        return Views(view[_chosen(rows)] for view in self)


def _chosen(key: Any) -> Any:
    """Return row indices that scikit-learn passes alone or as (rows, ...)."""
    rows = key[0] if isinstance(key, tuple) else key
    return np.asarray(rows)


def _sliceable(x: Any) -> Any:
    """Return an array whose slices and subsets are of its kind; a dask array for a zarr array."""
    if isinstance(x, (str, os.PathLike, zarr.Array)):
        array = x if isinstance(x, zarr.Array) else open_zarr(x)
        return da.from_array(array, chunks=(array.chunks[0], *array.shape[1:]))
    return x if isinstance(x, (np.ndarray, da.Array, xr.DataArray)) else np.asarray(x)


def _rows_of(x: Any) -> int:
    shape = getattr(x, "shape", None)
    return int(shape[0]) if shape else len(x)


def _borders(n: int, number: int, what: str) -> list[tuple[int, int]]:
    """Return the first row of each of `number` blocks of n rows, and the row after its last."""
    if number > n:
        raise ValueError(f"{what} must be at most the number of rows, {n}, got {number}.")
    cuts = np.cumsum([0, *(n // number + (i < n % number) for i in range(number))]).tolist()
    return list(pairwise(cuts))
