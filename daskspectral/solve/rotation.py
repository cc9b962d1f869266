"""Varimax: the rotation of patterns after which each is large in few places."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

SWEEPS, STILL = 100, 1e-12  # at most, and the angle below which a pair is at its best


def varimax(loadings: Array) -> Array:
    """The rotation R (k, k) that maximises the variances of the squares of the columns of loadings (d, k) @ R.

    By planar rotations of pairs, each to the maximum that a closed form gives (Kaiser 1958), without his normalisation
    of the rows.

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
