"""What the tests of several solvers share."""

from __future__ import annotations

from typing import Any

import numpy as np


def spd(p: int, rng: np.random.Generator, least: float = 0.1, most: float = 1.0) -> Any:
    """A symmetric matrix with eigenvalues between two numbers."""
    q = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return q * rng.uniform(least, most, p) @ q.T
