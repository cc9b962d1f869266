"""Cross-validation by scikit-learn, for data that are more than one array of independent rows.

`cross_val_score` and `GridSearchCV` take estimators that have a `score`, and arrays of rows: numpy, dask and xarray.
Other data need a word more.

| data | give | with `cv=` |
|---|---|---|
| a zarr array, or the path of one | `dask.array.from_zarr(path)` | any splitter of rows |
| several trajectories | the list of them | `KFold`, `GroupKFold`: whole trajectories are held out |
| one trajectory | `blocks(x, number)`, a list | `KFold(shuffle=True)`: blocks are held out |
| | `Trajectory(x)` | `BlockFold`: a block is held out, with a gap at its sides |
| views of each row, fit((x, y)) | `Views((x, y))` | any splitter of rows |
| fields of each row | `Rows(x, fields={"potential": v})` | any splitter of rows; x and v as above |

Neighbouring rows of a trajectory are alike: held out at random they are no test at all. And a training set with a hole
is no trajectory: `Transfer` would pair the last row before the hole with rows after it, and nothing in a plain array
tells. `Trajectory` and `blocks` give lists of contiguous pieces instead, and no pair crosses a cut; each cut costs as
many pairs as the lag has rows, and a piece that is no longer than the lag is skipped. Blocks should be many times (40,
say) longer than the process remembers.

Weights reach `fit` and `score` by scikit-learn's metadata routing: `set_fit_request(sample_weight=True)` and
`set_score_request(sample_weight=True)` on the estimator, under `sklearn.set_config(enable_metadata_routing=True)`.
Weights and fields are cut as the rows are: those of a `Trajectory` are another `Trajectory`, those of a list a list.

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
    """Each of `n_splits` contiguous blocks of rows is the test set once; `gap` rows at each side of it are left out.

    The training set has a hole: give a `Trajectory`, which is cut there, for an operator that pairs rows. The gap keeps
    rows that are almost those of the test set out of the training set; a few times the lag or the correlation time
    is enough.

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
        """The row numbers of the training and the test set, n_splits times; `y` and `groups` are ignored.

        Raises ValueError where there are fewer rows than blocks, or a gap leaves nothing to train on.
        """
        n = _rows_of(X)
        borders, rows = _borders(n, self.n_splits, "n_splits"), np.arange(n)
        for start, stop in borders:
            train = np.concatenate([rows[: max(start - self.gap, 0)], rows[stop + self.gap :]])
            if not len(train):
                raise ValueError(
                    f"a gap of {self.gap} rows at both sides of the block of rows {start} to {stop} leaves none of "
                    f"{n} to train on; take a smaller gap, or more and so smaller blocks"
                )
            yield train, rows[start:stop]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of blocks."""
        return self.n_splits


def blocks(x: Any, number: int) -> list[Any]:
    """A trajectory (n, d) as a list of `number` contiguous ones of almost equal length; nothing is copied.

    x is a numpy, dask, zarr or xarray array, or the path or URL of a zarr array; parts of zarr arrays are dask arrays.
    Raises ValueError for fewer rows than blocks.

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
    """The rows of a trajectory with these numbers, ascending, as a list of contiguous pieces; nothing is copied.

    x is as in `blocks`. Raises ValueError for rows that do not ascend, or that x does not have.

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
            f"the rows of a trajectory are ascending numbers from 0 to {len(array) - 1}; take a splitter of blocks, "
            "such as BlockFold, or KFold without shuffling"
        )
    starts = [0, *(np.flatnonzero(steps > 1) + 1).tolist(), len(numbers)]
    return [array[int(numbers[a]) : int(numbers[b - 1]) + 1] for a, b in pairwise(starts)]


@final
class Trajectory(list[Any]):
    """One trajectory, or its weights, that scikit-learn may cut: a set of its rows is a list of contiguous pieces.

    It is itself a list of one trajectory, x, as `fit` and `score` take it; x is as in `blocks`.

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
        """The shape of x."""
        return tuple(int(n) for n in _sliceable(self[0]).shape)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (SupportsIndex, slice)) and not isinstance(rows, np.ndarray):
            return super().__getitem__(rows)
        return pieces(self[0], _chosen(rows))


@final
class Views(tuple[Any, ...]):
    """The views (x, y, ...) of one sample, that scikit-learn may cut: a set of rows is the tuple of these rows of each.

    Each view is an array of any kind; parts of zarr arrays are dask arrays. Raises ValueError for views with different
    numbers of rows.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views((np.arange(4)[:, None], np.zeros((4, 7))))
    >>> views.shape, [view.shape for view in views[np.array([0, 2, 3])]]
    ((4,), [(3, 1), (3, 7)])
    """

    def __new__(cls, views: Iterable[Any]) -> Views:
        """The views, checked."""
        found = super().__new__(cls, (_sliceable(view) for view in views))
        rows = {f"view {i}": _rows_of(view) for i, view in enumerate(found)}
        if len(set(rows.values())) != 1:
            raise ValueError(f"views that are cut together have one number of rows; they have {rows}")
        return found

    @property
    def shape(self) -> tuple[int]:
        """The number of rows."""
        return (len(self[0]),)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (SupportsIndex, slice)) and not isinstance(rows, np.ndarray):
            return super().__getitem__(rows)
        return Views(view[_chosen(rows)] for view in self)


def _chosen(key: Any) -> Any:
    """Row numbers as scikit-learn gives them: alone, or as (rows, ...)."""
    rows = key[0] if isinstance(key, tuple) else key
    return np.asarray(rows)


def _sliceable(x: Any) -> Any:
    """An array whose slices and sets of rows are of its kind; dask for a zarr array, whose slices are read at once."""
    if isinstance(x, (str, os.PathLike, zarr.Array)):
        array = x if isinstance(x, zarr.Array) else open_zarr(x)
        return da.from_array(array, chunks=(array.chunks[0], *array.shape[1:]))
    return x if isinstance(x, (np.ndarray, da.Array, xr.DataArray)) else np.asarray(x)


def _rows_of(x: Any) -> int:
    shape = getattr(x, "shape", None)
    return int(shape[0]) if shape else len(x)


def _borders(n: int, number: int, what: str) -> list[tuple[int, int]]:
    """The first row of each of `number` blocks of n rows, and the row after its last."""
    if number > n:
        raise ValueError(f"{what}={number} blocks need as many rows at least, and X has {n}")
    cuts = np.cumsum([0, *(n // number + (i < n % number) for i in range(number))]).tolist()
    return list(pairwise(cuts))
