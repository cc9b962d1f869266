"""Maps of several vectors that turn all of them alike, and mix them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SAME = 1e-9  # relative, of what is no product


def by_vectors(g: Array, size: int) -> tuple[Array, Array] | None:
    """P (k, k) and R (size, size) of an orthogonal matrix g = P x R on k vectors, a Kronecker product; None for others.

    R is orthogonal. Of the two signs that P and R have together, the sum of the entries of P is not negative: those of
    permutations of the vectors are positive.

    Examples
    --------
    >>> swap, turn = np.eye(2)[::-1], np.array([[0.0, -1], [1, 0]])
    >>> [part.round(9).tolist() for part in by_vectors(np.kron(swap, turn), 2)]
    [[[0.0, 1.0], [1.0, 0.0]], [[0.0, -1.0], [1.0, 0.0]]]
    """
    k = len(g) // size
    blocks = g.reshape(k, size, k, size).transpose(0, 2, 1, 3).reshape(k * k, size * size)
    left, values, right = np.linalg.svd(blocks)
    if values[1:].max(initial=0) > _SAME * values[0]:
        return None
    turn = right[0].reshape(size, size) * np.sqrt(size)
    mixing = left[:, 0].reshape(k, k) * values[0] / np.sqrt(size)
    sign = -1.0 if mixing.sum() < 0 else 1.0
    return sign * mixing + 0.0, sign * turn + 0.0
