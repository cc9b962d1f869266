"""All points of a fit in memory, and checks of bandwidths at which their kernel is degenerate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source
from daskspectral.engine import Run, plan_rows

Array = NDArray[np.floating[Any]]
ROUNDING = 1e-7  # of the kernel's exponent, for points far from the center: 20 000 bandwidths


def _rows(batch: Mapping[str, Array], state: Any = None) -> Array:
    """Return the rows (c, d), with bounds on the diagonal as the last column."""
    return np.column_stack([np.asarray(batch[name], dtype=float) for name in ("x", "diagonal") if name in batch])


def points_in_memory(source: Source) -> tuple[Array, Array | None]:
    """Return all valid points (n, d) in memory, and the bounds on the diagonal (n,) or None.

    Raises ValueError without valid rows, InvalidRowError for an invalid row (on_invalid="raise").
    """
    rows = Run(source, plan_rows(source, 50.0), None, "points").map(_rows)
    if rows is None:
        raise ValueError("no rows are left: every row is invalid")
    bounded = "diagonal" in source.readers
    return np.ascontiguousarray(rows[:, :-1] if bounded else rows), rows[:, -1] if bounded else None


def check_reach(bandwidth: float, points: Array) -> None:
    """Raise ValueError if points are so far away that other distances lose digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum((points - np.median(points, axis=0)) ** 2, axis=1)
    farthest = int(np.argmax(squares))
    if np.finfo(float).eps * squares[farthest] <= ROUNDING * bandwidth**2:
        return
    if squares[farthest] <= 1e4 * np.median(squares):  # distant groups, or a bandwidth far too small
        raise ValueError(
            f"at bandwidth {bandwidth:g} the points are up to {np.sqrt(squares[farthest]) / bandwidth:.2g} "
            "bandwidths from their center, and small distances lose their digits. Increase the bandwidth, or "
            "embed distant groups separately."
        )
    raise ValueError(
        f"the point {points[farthest, :4].tolist()}{(' and so on' if points.shape[1] > 4 else '')} is "
        f"{np.sqrt(squares[farthest]) / bandwidth:.2g} bandwidths away from the center of the others, whose "
        "distances lose their digits. Exclude such points, or increase the bandwidth."
    )


def check_joined(bandwidth: float, points: Array, masses: Array) -> None:
    """Raise ValueError if the kernel with row sums `masses` (n,) is 0 between all distinct points."""
    if np.abs(masses - np.round(masses)).max() < 1e-8:
        _, group, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
        copies = counts[group.reshape(-1)]
        if len(counts) > 1 and np.abs(masses - copies).max() < 1e-8:
            raise ValueError(
                f"at bandwidth {bandwidth:g} the kernel is 0 between all distinct points. Use a larger bandwidth."
            )


def check_masses(bandwidth: float, masses: Array, total: float | None = None) -> None:
    """Raise ValueError if the kernel matrix is the identity or of rank one, up to rounding.

    `masses` are its row sums, or the extreme ones, with the `total` of all.
    """
    total = float(masses.sum()) if total is None else total
    if len(masses) == 1:
        raise ValueError("an embedding requires at least 2 rows, got 1.")
    if masses.max() - 1 < 1e-8:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is the identity: every point is isolated. Use a larger bandwidth."
        )
    if 1 - masses.min() ** 2 / total < 1e-7:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is of rank one: it does not distinguish points. Use a "
            "smaller bandwidth, or distinct points."
        )
