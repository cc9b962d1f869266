"""Whether a bandwidth is of use: errors where the kernel joins nothing, tells nothing apart, or loses its digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.kernels import Gaussian

Array = NDArray[np.floating[Any]]

ROUNDING = 1e-7  # of the kernel's exponent, for points far from the middle: 20 000 bandwidths


def check_reach(kernel: Gaussian, points: Array) -> None:
    """Raise ValueError where some of the points (n, d) are so far off that distances between others lose digits."""
    bandwidth = float(kernel.scale) * np.sqrt(2)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum((points - np.median(points, axis=0)) ** 2, axis=1)
    farthest = int(np.argmax(squares))
    if np.finfo(float).eps * squares[farthest] <= ROUNDING * bandwidth**2:
        return
    if squares[farthest] <= 1e4 * np.median(squares):  # groups far apart, or a bandwidth far too small
        raise ValueError(
            f"at bandwidth {bandwidth:g} the points reach {np.sqrt(squares[farthest]) / bandwidth:.2g} bandwidths from "
            "their middle, and distances of one bandwidth lose their digits: widen the bandwidth, or embed groups that "
            "are so far apart one by one"
        )
    raise ValueError(
        f"the point {points[farthest, :4].tolist()}{' and so on' if points.shape[1] > 4 else ''} is "
        f"{np.sqrt(squares[farthest]) / bandwidth:.2g} bandwidths away from the middle of the others, whose "
        "distances would lose their digits: leave such points out, or widen the bandwidth"
    )


def check_joined(kernel: Gaussian, points: Array, masses: Array) -> None:
    """Raise ValueError where the kernel, with these row sums (n,), joins none of the points (n, d) but equal ones."""
    if np.abs(masses - np.round(masses)).max() < 1e-8:
        _, group, counts = np.unique(points, axis=0, return_inverse=True, return_counts=True)
        copies = counts[group.reshape(-1)]
        if len(counts) > 1 and np.abs(masses - copies).max() < 1e-8:
            bandwidth = float(kernel.scale) * np.sqrt(2)
            raise ValueError(
                f"at bandwidth {bandwidth:g} the kernel joins equal points only: no two different ones are within "
                "reach of each other. Give a larger bandwidth"
            )


def check_masses(kernel: Gaussian, lightest: float, heaviest: float, total: float, n: int) -> None:
    """Raise ValueError where the kernel matrix of n points is the identity, or of rank one, to rounding.

    Masses are its row sums: the smallest, the largest, and their total.
    """
    bandwidth = float(kernel.scale) * np.sqrt(2)
    if n == 1:
        raise ValueError("X has 1 row; an embedding needs 2 points at least")
    if heaviest - 1 < 1e-8:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is the identity: no two points are within reach of each other. "
            "Give a larger bandwidth"
        )
    if 1 - lightest**2 / total < 1e-7:
        raise ValueError(
            f"at bandwidth {bandwidth:g} the kernel is of rank one: it cannot tell any two points apart. Give a "
            "smaller bandwidth, or points that differ"
        )
