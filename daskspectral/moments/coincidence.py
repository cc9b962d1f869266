"""Which points are landmarks themselves: the test that tells rows that became landmarks, wherever these came from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BITS = 17


class Coincidence:
    """A test of points (c, d) for equality with any of the landmarks (p, d), in every coordinate, bit for bit.

    A table of hashes of the coordinate in which most landmarks differ rules out nearly all points; only points that
    pass are compared whole.

    Examples
    --------
    >>> test = Coincidence(np.array([[0.0, 1.0], [2.0, 3.0]]))
    >>> test(np.array([[2.0, 3.0], [2.0, 1.0], [0.0, 1.0]], dtype="float32"))
    array([ True, False,  True])
    """

    def __init__(self, landmarks: Array):
        points = np.asarray(landmarks, dtype=float) + 0.0  # -0.0 is 0.0
        self.column = int(np.argmax([len(np.unique(column)) for column in points.T]))
        self.table = np.zeros(1 << BITS, dtype=bool)
        self.table[_hashes(points[:, self.column])] = True
        self.points = np.sort(_whole(points))

    def __str__(self) -> str:
        return "landmarks, which are left out: take fewer of them, or exclude_landmarks=False"

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        """Which of the points (c, d) are landmarks, (c,)."""
        result = self.table[_hashes(x[:, self.column])]
        rows = np.flatnonzero(result)
        if len(rows):
            wanted = _whole(np.asarray(x[rows], dtype=float) + 0.0)
            places = np.minimum(np.searchsorted(self.points, wanted), len(self.points) - 1)
            result[rows] = self.points[places] == wanted
        return result


def _hashes(values: Array) -> Array:
    """A hash of each number, 0 to 2^BITS - 1."""
    bits = (np.asarray(values, dtype=float) + 0.0).view(np.uint64)
    bits *= np.uint64(0x9E3779B97F4A7C15)  # on the fresh sum above
    bits >>= np.uint64(64 - BITS)
    return bits


def _whole(points: Array) -> Array:
    """Each point as one value, which compares by its bytes."""
    points = np.ascontiguousarray(points)
    return points.view(np.dtype((np.void, points.itemsize * points.shape[1])))[:, 0]
