"""Rotation, pattern intervals, significance, and complex patterns of principal components."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.readers import lazy_rows
from daskspectral.data.rows import Rows
from daskspectral.data.source import Source, check_even, check_widths, open_data
from daskspectral.devices import Device
from daskspectral.errors import InvalidRowError, RankWarning, ReliabilityWarning, warn_user
from daskspectral.kernels import Linear
from daskspectral.moments import Moments
from daskspectral.moments.field_modes import LEAST_ROWS, Significance, significance_of
from daskspectral.moments.intervals import pattern_ends
from daskspectral.moments.patterns import patterns_of
from daskspectral.moments.problem import GalerkinProblem
from daskspectral.passes.sums import Discretization
from daskspectral.solve.rotation import varimax
from daskspectral.solve.whitening import fix_signs
from daskspectral.solvers import Solving, solver_of
from daskspectral.validation import is_dask_array, is_data_array

Array = NDArray[np.floating[Any]]
Complex = NDArray[np.complexfloating[Any, Any]]

ROUNDING = 1e-9  # of the sum of shares, which is 1
BLOCKS = 10  # of contiguous rows, for error bars
SIGNIFICANCE = "_significance_"  # attribute in which the result is cached


# -- rotation ----------------------------------------------------------------------------------------------------------


def rotated(model: Any, count: int) -> Any:
    """Return the fitted model of `EOF.rotated`."""
    found, coefficients = copy.copy(model), model.coefficients_[:, :count]
    loadings = np.array(patterns_of(model.moments_, coefficients).maps.real.T, dtype=float)
    rotation = varimax(loadings)
    loadings = loadings @ rotation
    variances = np.sum(loadings**2, axis=0)
    order = np.argsort(-variances, kind="stable")
    loadings, rotation = loadings[:, order], rotation[:, order]
    fix_signs(loadings, rotation)
    missing = np.full(count, np.nan)
    unknown = ("standard_errors_", "validation_values_", "function_errors_", "discretization_errors_", "residuals_")
    values = {
        "n_components": count,
        "coefficients_": coefficients @ rotation,
        "rotation_": rotation,
        "eigenvalues_": variances[order],
        "eigenvalue_errors_": np.full((count, 2), np.nan),
        **dict.fromkeys(unknown, missing),
        "multiplets_": np.arange(count),
        "reliable_": np.zeros(count, dtype=bool),
        "message_": f"{count} components rotated by varimax; no error bars after a rotation",
    }
    vars(found).update(values)
    vars(found).pop(SIGNIFICANCE, None)
    if "search_results_" in vars(found):
        found.search_results_ = replace(
            found.search_results_, best_params={**found.search_results_.best_params, "n_components": count}
        )
    return found


# -- a share of the variance ---------------------------------------------------------------------------------------


def components_of(moments: Moments, share: float, solver: Solving, device: Device) -> int:
    """Return the least number of components that explain more than a share of the variance.

    Issues a RankWarning if all of them explain less. Raises ValueError for components of a kernel.
    """
    if linear_landmarks(moments) is None:
        raise ValueError(
            f"n_components={share!r} requires components of columns, got those of a kernel. Pass an integer"
        )
    problem = GalerkinProblem(moments, moments.basis.size, None, solver, device=device)
    explained = np.cumsum(patterns_of(moments, problem.left.spread(problem.whole.left)).explained)
    if not len(explained) or explained[-1] < share * (1 - ROUNDING):
        found = f"{len(explained)} components explain {explained[-1] if len(explained) else 0:.3g} of the variance"
        warn_user(f"{found}, less than n_components={share!r}. Pass more rows, or a smaller share", RankWarning)
    return max(1, min(int(np.searchsorted(explained, share, "right")) + 1, len(explained)))


# -- intervals of patterns ---------------------------------------------------------------------------------------------


def linear_landmarks(moments: Moments) -> Array | None:
    """Return the orthonormal landmarks (r, d) of components of columns; None for a kernel."""
    basis: Any = moments.basis.parts[-1]
    return basis.landmarks if isinstance(getattr(basis, "kernel", None), Linear) else None


def pattern_errors(model: Any) -> Array:
    """Return the intervals of `EOF.pattern_errors_`."""
    moments, found = model.moments_, model.patterns_.single
    landmarks, known = linear_landmarks(moments), not np.isnan(model.standard_errors_).any()
    if landmarks is None or moments.folds is None or not known:
        return np.full((*found.shape, 2), np.nan)
    problem = GalerkinProblem(moments, len(found), None, solver_of(model.solver))
    ends = pattern_ends(problem, moments.folds, model.multiplets_, landmarks)
    turned = (
        np.sum(problem.left.spread(problem.whole.left) * model.coefficients_, axis=0) < 0
    )  # sign changed by an update
    ends[turned] = -ends[turned][..., ::-1]
    raw = model.preparation_.of_directions.inverse(ends.swapaxes(1, 2), model.n_features_in_)
    layout = vars(model).get("layout_")
    units = 1.0 if layout is None or layout.weights is None else np.tile(layout.units, model.preparation_.delays)
    return np.asarray((raw * units).swapaxes(1, 2))


# -- significance ------------------------------------------------------------------------------------------------------


def modes_of(model: Any) -> Significance | None:
    """Return the significance of the components of a fitted model, cached; None if not available."""
    known = vars(model)
    if SIGNIFICANCE not in known:
        whole = "rotation_" not in known and known["moments_"].autocovariance is not None
        known[SIGNIFICANCE] = significance_of(known["moments_"], known["coefficients_"]) if whole else None
    found: Significance | None = known[SIGNIFICANCE]
    return found


def significance(model: Any) -> Significance:
    """Return the result of `EOF.significance`, or raise ValueError."""
    found = modes_of(model)
    if found is None:
        raise ValueError(
            f"significance requires components of columns, without rotation or delays, and at least {LEAST_ROWS} "
            f"rows; the fit has {model.moments_.count} rows of {model.preparation_.delays} delays"
        )
    return found


def _in_time(model: Any, rows: Rows, why: str) -> Source:
    """Return the prepared rows; raise ValueError with the reason `why` for gaps in their times."""
    source = open_data(model.moments_.operator, rows, weight=None, progress=False)
    check_widths(model.moments_, source)
    check_even(source, why)
    return Discretization.of(model.moments_).prepared(source, model.moments_.operator)


# -- complex components of the analytic signal, for patterns that propagate (Hilbert EOFs) -----------------------------


def analytic_rows(model: Any, rows: Rows) -> tuple[Any, NDArray[np.int64]]:
    """Return the analytic signal (n, d) of centered columns, and the block (n,) of each row.

    The signal, `scipy.signal.hilbert` along all rows of a member of an ensemble, is a dask array in blocks of columns.
    Blocks contain the same times of all members. Raises ValueError for gaps in the times, and InvalidRowError for
    missing values.
    """
    source = _in_time(model, rows, "an analytic signal requires rows in the order of time")
    x, series = _whole_rows(source).rechunk({0: -1, 1: "auto"}), source.series
    signal = (x - x.mean(axis=0)).map_blocks(_analytic, series.length or source.n, series.stride, dtype=complex)
    return signal, _blocks_of(source)


def complex_rows(model: Any, rows: Rows) -> tuple[Any, NDArray[np.int64]]:
    """Return complex rows (n, d) from columns of real, then imaginary parts, and the block (n,) of each row.

    Columns are prepared and centered. Raises InvalidRowError for missing values.
    """
    source = open_data(model.moments_.operator, rows, weight=None, progress=False)
    source = Discretization.of(model.moments_).prepared(source, model.moments_.operator)
    x, d = _whole_rows(source), source.dimension // 2
    x = x - x.mean(axis=0)
    return x[:, :d] + 1j * x[:, d:], _blocks_of(source)


def _whole_rows(source: Source) -> Any:
    """Return the prepared rows as a dask array; raise InvalidRowError for missing values."""
    x = lazy_rows(source.readers["x"]).rechunk({1: -1})
    x = x.map_blocks(source.preparation, dtype=float, chunks=(x.chunks[0], (source.dimension,)))
    known = np.asarray((abs(x) < np.inf).all(axis=1).compute())
    if not known.all():
        row = int(known.argmin())
        raise InvalidRowError(f"row {row} of X has missing values. Fill them first: all rows are required", row)
    return x


def _blocks_of(source: Source) -> NDArray[np.int64]:
    """Return the block (n,) of each row, of the same times in all members of an ensemble."""
    series = source.series
    length = series.length or source.n
    return np.arange(source.n) % length // series.stride * BLOCKS * series.stride // length


PARTS = ("real", "imag")


def complex_parts(data: Any) -> Any:
    """Return the real and the imaginary parts of complex data as columns, the first before the second.

    Those of labeled data are the variables `<name>_real` and `<name>_imag`. Both are NaN if one is. Raises TypeError
    for data that are not complex, or not an array, a DataArray or a Dataset.
    """
    import xarray as xr

    arrays = isinstance(data, np.ndarray) or is_dask_array(data)
    labeled = {"x" if data.name is None else str(data.name): data} if is_data_array(data) else {}
    if isinstance(data, xr.Dataset):
        labeled = {str(name): array for name, array in data.data_vars.items()}
    found = [data] if arrays else [*labeled.values()]
    if not found or any(array.dtype.kind != "c" for array in found):
        kinds = [str(array.dtype) for array in found] or type(data).__name__
        raise TypeError(f"X must be a complex array, DataArray or Dataset, such as u + 1j * v, got {kinds}")
    if arrays:
        missing = 0 * (data.real + data.imag)  # NaN if either part is
        return np.concatenate([data.real + missing, data.imag + missing], axis=1)
    both = {f"{name}_{part}": (getattr(a, part), a.notnull()) for part in PARTS for name, a in labeled.items()}
    return xr.Dataset({name: part.where(known) for name, (part, known) in both.items()})


def _analytic(x: Any, length: int, stride: int) -> Any:
    from scipy.signal import hilbert

    if not x.size:
        return x.astype(complex)
    series = x.reshape(-1, length // stride, stride, x.shape[1])
    return hilbert(series, axis=1).reshape(x.shape)


def complex_components(model: Any, z: Any, blocks: NDArray[np.int64], count: int) -> tuple[Any, Complex, Any]:
    """Return a model of pairs of real components, complex patterns (count, d), and lazy scores (n, count).

    The rows (Re z, Im z) and (-Im z, Re z) represent half the Hermitian covariance of z, with each eigenvalue twice.
    Scores have mean square 1; the largest entry of a pattern is positive.
    """
    import dask.array as da

    d = z.shape[1]
    rows = z.rechunk({0: "auto", 1: -1})
    both = da.concatenate([da.concatenate([rows.real, rows.imag], 1), da.concatenate([-rows.imag, rows.real], 1)])
    labels = None if model.folds is None else np.tile(blocks, 2)
    options = {name: getattr(model, name) for name in ("dtype", "device", "random_state")}
    fitted = type(model)(2 * count, folds=labels, **options)
    with warnings.catch_warnings():
        for category in (ReliabilityWarning, RankWarning):  # values are double; reliability is reported in the result
            warnings.simplefilter("ignore", category)
        fitted.fit(both.rechunk({1: -1}), progress=False)
    maps = np.sqrt(2) * fitted.patterns_.single[::2]
    patterns = maps[:, :d] + 1j * maps[:, d:]
    largest = np.take_along_axis(patterns, np.abs(patterns).argmax(axis=1)[:, None], axis=1)
    patterns *= largest.conj() / np.abs(largest)
    weights = patterns.conj().T / (2 * fitted.eigenvalues_[::2])
    return fitted, patterns, rows @ weights
