"""The signs of functions: their largest coefficient is positive."""

from __future__ import annotations

import numpy as np

from daskspectral.solve.signs import fix_signs


def test_signs() -> None:
    columns = np.array([[1.0, -3.0, 2.0, 0.0, -1.0], [-2.0, 1.0, -2.0, 0.0, 1.0 + 1e-9]])
    follower = np.ones((1, 5))
    fix_signs(columns, follower)
    assert columns.tolist() == [[-1.0, 3.0, 2.0, 0.0, 1.0], [2.0, -1.0, -2.0, 0.0, -1.0 - 1e-9]]
    assert follower.tolist() == [[-1.0, -1.0, 1.0, 1.0, -1.0]]  # of equal magnitudes the first decides
