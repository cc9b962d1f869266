"""Files of points or images and their classes, and replacements for those that are not in the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits


def load(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """The arrays X (n, d) and y (n,) of a file; raises ValueError where they are missing or do not match."""
    with np.load(path) as file:
        if missing := {"X", "y"} - set(file.files):
            raise ValueError(f"{path} must hold the arrays X (n, d) and y (n,); {sorted(missing)} missing")
        x, y = file["X"], file["y"]
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise ValueError(f"X must be (n, d) and y (n,); X is {x.shape} and y {y.shape}")
    return x, y


def pulsars(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """In place of HTRU2: points (n, 8) with heavy tails; a tenth of them, the class 1, lie apart in three columns."""
    rng = np.random.default_rng(0)
    y = (np.arange(n) % 10 == 0).astype(int)
    x = rng.standard_normal((n, 8)) * rng.chisquare(8, (n, 1)) ** -0.5 * 8**0.5
    x[:, :3] += np.outer(y, [-3.0, 4.0, 4.0])
    return x, y


def digits() -> tuple[np.ndarray, np.ndarray]:
    """In place of MNIST: scikit-learn's 1797 digits, uint8, three times as wide, so that a pixel is within a stroke."""
    small = load_digits()
    images = ndimage.zoom(small.images, (1, 3, 3), order=1)
    return np.round(images / 16 * 255).astype(np.uint8).reshape(len(images), -1), small.target
