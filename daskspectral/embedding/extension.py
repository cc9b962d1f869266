"""Embeddings as functions of any point: the normalized Nystrom extension (1.5) of Fanuel et al. 2022, and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Preparation
from daskspectral.devices import ACCELERATOR_ROWS, Device, device_of
from daskspectral.embedding.problems import Degrees
from daskspectral.engine.tasks import Tally
from daskspectral.kernels import Kernel
from daskspectral.passes.apply import Extrapolated, RowFunction
from daskspectral.passes.support import beyond_reach, nearest_points
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]
COVERED = 0.5  # least |psi(x)|^2 of a point that the landmarks cover; 1 if they span k(x, .)
REACHED = 1e-3  # least mass of a point within reach of the fit's rows: that of one row 2.6 bandwidths away
BLOCK = 1 << 22  # kernel values per block
BLOCK_THERE = 1 << 27  # the same on an accelerator


@final
@dataclass(frozen=True, eq=False)
class Extension(Registered, RowFunction):
    """Embedding of any point by the normalized Nystrom extension.

    Xi(x) = sqrt(d(x)) u(x) / |u(x)|, u(x) = coefficients^T k(Y, x) (r,), d(x) the bound by the `masses`, at most the
    largest of the fit, or 1 if the fit had given bounds. `points` Y are all n points or p landmarks. Each of the
    `stages`, numbers of columns with sum r, is normalized by its length; `kept` columns are returned. If the mass is
    below 1e-3, or landmarks do not cover x, |whitening^T k(Y, x)|^2 < 0.5, x is mapped to the direction of the nearest
    of the `drawn` rows (s, d), unless `extrapolate` selects NaN or an error.
    """

    expects: ClassVar = {"kernel": Kernel, "masses": Degrees, "preparation": Preparation}
    dimension_names: ClassVar = {"points": ("point", "column"), "coefficients": ("point", "component")}
    kernel: Kernel
    points: Array
    masses: Degrees
    coefficients: Array
    stages: tuple[int, ...]
    kept: int
    whitening: Array | None = None
    drawn: Array | None = None

    @property
    def columns(self) -> int:
        return self.kept

    @property
    def unit(self) -> bool:
        """True if the fit had given bounds, which multiply the result."""
        return self.masses.longest is None

    @property
    def rows(self) -> int:
        if self.device != "cpu":
            return max(16, min(ACCELERATOR_ROWS, BLOCK_THERE // len(self.points)))
        return max(16, BLOCK // len(self.points))

    @cached_property
    def _on_device(self) -> tuple[Device, Array, Array, Array, Array | None]:
        """Device, with points, mass weights, coefficients and whitening on it."""
        device = device_of(self.device)
        moved: Any = device.moved((self.points, self.masses.weights, self.coefficients, self.whitening))
        return device, *moved

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_on_device"}

    def block(self, x: Array, out: Array) -> Extrapolated:
        m, u, covered = self._sums(x)
        lengths = self._lengths(u)
        reached = covered & (m >= REACHED) & (lengths > 0).all(axis=1)
        if not reached.all() and self.extrapolate == "nearest":
            u[~reached] = self._sums(self._nearest(x[~reached]))[1]
            lengths[~reached] = self._lengths(u[~reached])
        bound, longest = np.ones_like(m), self.masses.longest
        if longest is not None:
            bound[:] = longest
            bound[reached] = np.clip(self.masses.bound(m[reached]), 0.0, longest)
        size = np.sqrt(bound)[:, None] / np.where(lengths > 0, lengths, 1.0)
        values = u * np.repeat(size, self.stages, axis=1)
        out[:] = values[:, : self.kept]
        return ~reached, None

    def warning_text(self, found: Tally, count: int) -> str:
        there = {"nearest": " have the direction of their nearest row", "nan": " are NaN"}.get(self.extrapolate, "")
        return (
            f"{found.count} of {count} rows{there}: no row of the fit is within reach (kernel mass below "
            f"{REACHED:g}), or no landmark covers them. Fit on similar rows, or increase the bandwidth"
        )

    def _sums(self, x: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return m (c,), u (c, r), and the mask of covered points."""
        device, points, weights, coefficients, whitening = self._on_device
        k = self.kernel.values(device.put(x), points)
        m, u, covered = device.get(k.T @ weights), device.get(k.T @ coefficients), np.ones(len(x), dtype=bool)
        if whitening is not None:
            covered = device.get(np.square(whitening.T @ k).sum(axis=0)) >= COVERED
        return m, u, covered

    def _lengths(self, u: Array) -> Array:
        """Return |u| of each stage, (c, stages)."""
        cuts = np.cumsum([0, *self.stages])
        return np.stack([np.linalg.norm(u[:, a:b], axis=1) for a, b in pairwise(cuts)], axis=1)

    def _nearest(self, x: Array) -> Array:
        return nearest_points(x, self.points if self.drawn is None else self.drawn)


@final
@dataclass(frozen=True, eq=False)
class Coordinates(RowFunction):
    """Coordinates (c, width) of rows, by a function of points (c, d) with a `kernel` at `points` (p, d).

    Rows at which it is NaN, or all kernel values are below 1e-6 of the largest, have the coordinates of the nearest
    point.
    """

    function: Callable[[Array], Array]
    width: int
    kernel: Kernel
    points: Array

    @property
    def columns(self) -> int:
        return self.width

    @property
    def rows(self) -> int:
        return max(16, BLOCK // len(self.points))

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        out[:] = self.function(x)
        far = beyond_reach(self.kernel, self.points, x) | np.isnan(out).any(axis=1)
        if far.any() and self.extrapolate == "nearest":
            out[far] = self.function(nearest_points(x[far], self.points, self.kernel))
        return far, None
