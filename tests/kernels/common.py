"""Kernels and their formulas, of real points and of complex ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskspectral.kernels import Exponential, Gaussian, Kernel, Linear, Matern, Polynomial


def gauss(s: Any, scale: float = 0.8) -> Any:
    return np.exp(-s / (2 * scale**2))


def exponential(s: Any) -> Any:
    return np.exp(-np.sqrt(s) / 0.7)


def matern(s: Any) -> Any:
    z = np.sqrt(5 * s) / 1.1
    return (1 + z + z * z / 3) * np.exp(-z)


KERNELS: dict[str, tuple[Kernel, Callable[[Any, Any], Any], float]] = {
    "gaussian": (Gaussian(0.8), lambda s, t: gauss(s), 0.5),
    "exponential": (Exponential(0.7), lambda s, t: exponential(s), 0.1),
    "matern": (Matern(2.5, 1.1), lambda s, t: matern(s), 0.1),
    "radial sum": (2.5 * Gaussian(0.8) + Exponential(0.7), lambda s, t: 2.5 * gauss(s) + exponential(s), 0.1),
    "radial product": (Gaussian(0.8) * Exponential(0.7), lambda s, t: gauss(s) * exponential(s), 0.1),
    "polynomial": (Polynomial(3, 0.5, 1.2), lambda s, t: (0.5 + t / 1.2**2) ** 3, 0.5),
    "homogeneous": (Polynomial(5, offset=0.0), lambda s, t: t**5, 0.5),
    "linear": (Linear(), lambda s, t: t, 0.5),
    "dot product": (3 * (Linear() * Polynomial(2)), lambda s, t: 3 * t * (1 + t) ** 2, 0.5),
    "dot sum": (Linear() + 0.5 * Polynomial(2), lambda s, t: t + 0.5 * (1 + t) ** 2, 0.5),
    "mixed sum": (Gaussian(0.8) + Linear(), lambda s, t: gauss(s) + t, 0.5),
    "mixed product": (3 * (Matern(2.5, 1.1) * Polynomial(2)), lambda s, t: 3 * matern(s) * (1 + t) ** 2, 0.1),
}
"""Kernels, their formulas of s = |x - y|^2 and t = x.y, and how far these are analytic around the points."""


def at_landmarks(formula: Callable[[Any, Any], Any], y: Any) -> Callable[[Any], Any]:
    return lambda x: np.array([formula(((x - b) ** 2).sum(axis=1), x @ b) for b in y])
