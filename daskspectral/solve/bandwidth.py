"""The bandwidth of a Gaussian kernel by the spectrum that it gives some points: how well it joins them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

MODES = 10  # nontrivial modes, the last of which decides
JOINED = 0.9  # its eigenvalue: a walk leaves a group with a probability of a tenth a step
_HALVINGS = 6  # of an octave: to 1 %


def joining_bandwidth(squares: Array) -> float:
    """The bandwidth h at which exp(-r² / h²) just joins some points, of squared distances r² (n, n).

    It is where the tenth largest eigenvalue of Abar = D^(-1/2) K D^(-1/2) - v0 v0ᵀ, equation (1.2) of Fanuel et al.
    2022, has fallen to 0.9. The eigenvalues are those of the random walk with transition probabilities K_ij / m_i: k
    of them near 1 are k + 1 groups, clusters or outliers, that the walk hardly leaves (Lee, Oveis Gharan and Trevisan
    2014), so that for a smaller h the leading eigenvectors are indicators of single points. Below 100 distinct points,
    a tenth of their number takes the place of ten. Accurate to 1 %; O(n³) for each of some dozen eigenvalues.

    Raises ValueError where all points are equal.
    """
    n = len(squares)
    first = np.argmin(squares, axis=1) == np.arange(n)  # the point itself, or the first one equal to it
    distinct = int(np.count_nonzero(first))
    if distinct < 2:
        raise ValueError("expected points that differ, received equal ones, which no bandwidth tells apart")
    modes = min(MODES, max(1, distinct // 10))

    def joined(h: float) -> bool:
        return _eigenvalue(squares, h, modes) < JOINED

    h = float(np.sqrt(np.median(squares[squares > 0])))
    if joined(h):
        while joined(h / 2):
            h /= 2
    else:
        while not joined(h):
            h *= 2
    low = h / 2
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * h))
        low, h = (low, middle) if joined(middle) else (middle, h)
    return h


def _eigenvalue(squares: Array, h: float, mode: int) -> float:
    """The eigenvalue of Abar with this number, 1 for the largest."""
    k = np.exp(-squares / h**2)
    root = np.sqrt(k.sum(axis=1))
    k /= root[:, None] * root
    return float(scipy.linalg.eigvalsh(k, overwrite_a=True)[-1 - mode])  # all: LAPACK misses some of a cluster's
