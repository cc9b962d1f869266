"""Varimax rotation, for localized patterns."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

SWEEPS, STILL = 100, 1e-12  # maximum number of sweeps, and angle of convergence


def varimax(loadings: Array) -> Array:
    """Return the varimax rotation R (k, k) of loadings (d, k).

    R maximizes the variances of the squares of the columns of loadings @ R (Kaiser 1958), without normalization of the
    rows.

    Examples
    --------
    >>> angle = 0.5
    >>> turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    >>> np.abs(turned @ varimax(turned)).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    found = np.array(loadings, dtype=float)
    size, k = found.shape
    rotation = np.eye(k)
    for _ in range(SWEEPS):
        largest = 0.0
        for pair in map(list, combinations(range(k), 2)):
            x, y = found[:, pair].T
            u, v = x**2 - y**2, 2 * x * y
            a, b = u.sum(), v.sum()
            angle = math.atan2(2 * (u @ v - a * b / size), u @ u - v @ v - (a * a - b * b) / size) / 4
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            found[:, pair] = found[:, pair] @ turn
            rotation[:, pair] = rotation[:, pair] @ turn
            largest = max(largest, abs(angle))
        if largest < STILL:
            break
    return rotation
