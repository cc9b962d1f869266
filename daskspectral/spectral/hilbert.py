"""Complex principal components, of the analytic signal of a field, which tell what propagates (Hilbert EOFs)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import lazy_rows
from daskspectral.data.rows import Rows
from daskspectral.data.source import check_even, check_widths, open_data
from daskspectral.errors import InvalidRowError, RankWarning, TrustWarning
from daskspectral.passes.sums import Discretisation

if TYPE_CHECKING:
    import dask.array as da

Array = NDArray[np.inexact[Any]]
BLOCKS = 10  # of rows that follow one another, for error bars


def analytic_rows(model: Any, rows: Rows) -> da.Array:
    """The analytic signal (n, d) of prepared columns of mean 0: x + i H x, by an FFT along all rows at once.

    Lazy, in blocks of columns; the values are those of `scipy.signal.hilbert`. Raises ValueError for gaps in the times
    of the rows, and InvalidRowError, which is one, for missing values.
    """
    source = open_data(model.moments_.operator, rows, weight=None, progress=False)
    check_widths(model.moments_, source)
    check_even(source, "an analytic signal takes rows in the order of time")
    source = Discretisation.of(model.moments_).prepared(source, model.moments_.operator)
    x = lazy_rows(source.readers["x"]).rechunk({1: -1})
    x = x.map_blocks(source.preparation, dtype=float, chunks=(x.chunks[0], (source.dimension,)))
    known = np.asarray((abs(x) < np.inf).all(axis=1).compute())
    if not known.all():
        row = int(known.argmin())
        raise InvalidRowError(f"row {row} of X has missing values: an analytic signal takes rows without gaps", row)
    x = x.rechunk({0: -1, 1: "auto"})
    found: da.Array = (x - x.mean(axis=0)).map_blocks(_analytic, dtype=complex)
    return found


def _analytic(x: Any) -> Any:
    from scipy.signal import hilbert

    return hilbert(x, axis=0) if x.size else x.astype(complex)


def complex_components(model: Any, z: da.Array, count: int) -> tuple[Any, Array, da.Array]:
    """The fitted model of pairs of real components, complex patterns (count, d) and their scores (n, count), lazy.

    The rows (Re z, Im z) and (-Im z, Re z) have the covariance of z, a Hermitian matrix, as a real one, half as large,
    each of whose values is there twice. Scores have the mean square 1; the largest entry of a pattern is positive.
    """
    import dask.array as da

    n, d = z.shape
    rows = z.rechunk({0: "auto", 1: -1})
    both = da.concatenate([da.concatenate([rows.real, rows.imag], 1), da.concatenate([-rows.imag, rows.real], 1)])
    labels = None if model.folds is None else np.tile(np.arange(n) * BLOCKS // n, 2)
    own = {name: getattr(model, name) for name in ("dtype", "device", "random_state")}
    fitted = type(model)(model.operator, n_components=2 * count, folds=labels, **own)
    with warnings.catch_warnings():
        for category in (TrustWarning, RankWarning):  # of values that are there twice; what is trusted is told
            warnings.simplefilter("ignore", category)
        fitted.fit(both.rechunk({1: -1}), progress=False)
    maps = np.sqrt(2) * fitted.patterns_.single[::2]
    patterns = maps[:, :d] + 1j * maps[:, d:]
    largest = np.take_along_axis(patterns, np.abs(patterns).argmax(axis=1)[:, None], axis=1)
    patterns *= largest.conj() / np.abs(largest)
    weights = patterns.conj().T / (2 * fitted.eigenvalues_[::2])
    return fitted, patterns, rows @ weights
