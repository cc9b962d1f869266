"""Bandwidths that join points, against the eigenvalues of the whole matrix."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from daskspectral.embedding.diffusion_functions import joining_bandwidth
from tests.solve.common import Array, moons


def test_points_are_joined_where_the_tenth_eigenvalue_has_fallen() -> None:
    """Of D^-1 K, from the non-symmetric matrix; of fewer than a hundred points a tenth of their number.

    The bandwidth is the first of 64 an octave, from the root of the median square on, that is above the crossing.
    """
    two, thrice = np.array([[0.0], [5.0]]), np.repeat(moons(15), 3, axis=0)
    for x, mode in ((moons(150), 10), (moons(37), 3), (thrice, 1), (1e3 * moons(20), 2), (two, 1)):
        squares = ((x[:, None] - x) ** 2).sum(axis=2)
        first = np.sqrt(np.median(squares[squares > 0]))

        def above(log: float, squares: Array = squares, mode: int = mode, first: float = first) -> float:
            k = np.exp(-squares / (first * 2**log) ** 2)
            return float(np.sort(scipy.linalg.eigvals(k / k.sum(axis=1, keepdims=True)).real)[-1 - mode]) - 0.9

        crossing = scipy.optimize.brentq(above, -6, 6, xtol=1e-9)
        assert joining_bandwidth(squares) == pytest.approx(first * 2 ** (np.ceil(64 * crossing) / 64))
    with pytest.raises(ValueError, match="expected points that differ"):
        joining_bandwidth(np.zeros((5, 5)))
