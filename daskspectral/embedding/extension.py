"""Embeddings as functions of any point: the normalised Nystrom extension (1.5) of Fanuel et al. 2022, and others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Preparation
from daskspectral.devices import ACCELERATOR_ROWS, Device, device_of
from daskspectral.embedding.problems import alpha
from daskspectral.engine.tasks import Tally
from daskspectral.kernels import Kernel
from daskspectral.passes.apply import Guessed, RowFunction
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]
COVERED = 0.5  # least |psi(x)|^2 of a point that the landmarks cover; 1 where they span k(x, .)
REACHED = 1e-3  # least mass of a point within reach of the fit's rows: the kernel of one row 2.6 bandwidths away
NEAREST = 50  # rows that stand for all where landmarks do not cover a point
BLOCK = 1 << 22  # kernel values that are computed at once
BLOCK_THERE = 1 << 27  # and on an accelerator


@final
@dataclass(frozen=True, eq=False)
class Extension(Registered, RowFunction):
    """An embedding as a function of any point x, Xi(x) = sqrt(d(x)) u(x) / |u(x)|, u(x) = coefficients^T k(Y, x) (r,).

    d(x) = 1 / m(x) - m(x) / total with the mass m(x) = masses.k(Y, x), `longest` at most; with `unit`, d(x) = 1.
    `points` Y are all n points of the fit, or p landmarks. It takes raw rows (c, n_features) to (c, columns). Each of
    the `stages`, numbers of columns that add up to r, has its own length |u(x)|; `kept` of the columns are returned.
    Kernel values below `cut` count as 0.

    Landmarks do not cover x where |psi(x)|^2 = |whitening^T k(Y, x)|^2 is below 0.5: there m and u are sums over the 50
    nearest of `fit_rows` (s, d), one of `share` rows of the fit each, with weights `row_weights` (s, r). Where the mass
    is below 1e-3, no row is within reach: x gets the direction of its nearest row in `row_embedding` (s, r) with
    `uncovered` "nearest", NaN with "nan", or is refused with "raise".
    """

    expects: ClassVar = {"kernel": Kernel, "preparation": Preparation}
    shapes: ClassVar = {
        "points": "nd",
        "masses": "n",
        "coefficients": "nr",
        "whitening": "nq",
        "row_embedding": "sr",
        "fit_rows": "sd",
        "row_weights": "sr",
    }

    kernel: Kernel
    points: Array
    masses: Array
    total: float
    coefficients: Array
    row_embedding: Array
    longest: float
    stages: tuple[int, ...]
    kept: int
    whitening: Array | None = None
    fit_rows: Array | None = None
    row_weights: Array | None = None
    share: float = 1.0
    cut: float = 0.0
    unit: bool = False
    uncovered: str = "nearest"

    def __post_init__(self) -> None:
        for name in ("points", "masses", "coefficients", "whitening", "row_embedding", "fit_rows", "row_weights"):
            if getattr(self, name) is not None:  # as a store gives them back, row by row
                object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name)))
        object.__setattr__(self, "stages", tuple(self.stages))

    @property
    def columns(self) -> int:
        return self.kept

    @property
    def rows(self) -> int:
        if self.device != "cpu":
            return max(16, min(ACCELERATOR_ROWS, BLOCK_THERE // len(self.points)))
        return max(16, BLOCK // len(self.points))

    @cached_property
    def _there(self) -> tuple[Device, Array, Array, Array, Array | None]:
        """The device, with the points, the masses, the coefficients and the whitening there."""
        device = device_of(self.device)
        moved: Any = device.moved((self.points, self.masses, self.coefficients, self.whitening))
        return device, *moved

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_there"}

    def block(self, x: Array, out: Array) -> Guessed:
        device, points, masses, coefficients, whitening = self._there
        k = self._values(device.put(x), points)
        m, u = device.get(k.T @ masses), device.get(k.T @ coefficients)
        if whitening is not None:
            cover = device.get(np.square(whitening.T @ k).sum(axis=0))
            missed = np.flatnonzero((cover < COVERED) | ~(m > 0))
            if len(missed):
                m[missed], u[missed] = self._by_rows(x[missed])
        reached = m >= REACHED
        lengths = self._lengths(u)
        reached &= (lengths > 0).all(axis=1)
        if not reached.all() and self.uncovered == "nearest":
            u[~reached] = self.row_embedding[self._nearest(x[~reached])]
            lengths[~reached] = self._lengths(u[~reached])
        bound = np.ones_like(m) if self.unit else np.full_like(m, self.longest)
        if not self.unit:
            bound[reached] = np.clip(alpha(m[reached], self.total), 0.0, self.longest)
        size = np.sqrt(bound)[:, None] / np.where(lengths > 0, lengths, 1.0)
        values = u * np.repeat(size, self.stages, axis=1)
        if self.uncovered != "nearest":
            values[~reached] = np.nan
        out[:] = values[:, : self.kept]
        return Guessed(np.zeros_like(reached) if self.uncovered == "raise" else ~reached)

    def whole(self, x: Array) -> list[Array]:
        """The columns of each stage at prepared points, (c, rank) each, whatever `kept` is."""
        function = replace(self, kept=sum(self.stages), uncovered="nearest")
        return np.split(function.of_prepared(x)[0], np.cumsum(self.stages)[:-1], axis=1)

    def undefined(self, x: Array, count: int) -> str:
        return (
            f"no row of the fit is within reach of {len(x)} of {count} rows, the first of them "
            f"{x[0, :4].tolist()}{' and so on' if x.shape[1] > 4 else ''}: their kernel mass is below {REACHED:g}. "
            "Fit on rows like these, widen the bandwidth, or take the direction of the nearest row with "
            "on_uncovered='nearest', or NaN with on_uncovered='nan'"
        )

    def doubt(self, found: Tally, count: int) -> str:
        given = "are NaN" if self.uncovered == "nan" else "have the direction of their nearest row"
        return (
            f"{found.count} of {count} rows {given}: no row of the fit is within reach, their kernel mass is below "
            f"{REACHED:g}. Fit on rows like these, or widen the bandwidth"
        )

    def _values(self, x: Array, points: Array) -> Array:
        k = self.kernel.values(x, points)
        if self.cut:
            k[k < self.cut] = 0.0
        return k

    def _lengths(self, u: Array) -> Array:
        """|u| of each stage, (c, stages)."""
        cuts = np.cumsum([0, *self.stages])
        return np.stack([np.linalg.norm(u[:, a:b], axis=1) for a, b in pairwise(cuts)], axis=1)

    def _by_rows(self, x: Array) -> tuple[Array, Array]:
        """m (c,) and u (c, r) by the exact kernel to the nearest rows of the fit."""
        assert self.fit_rows is not None
        assert self.row_weights is not None
        k = self.kernel.values(x, self.fit_rows)
        count = min(NEAREST, len(k))
        near = np.argpartition(k, len(k) - count, axis=0)[len(k) - count :]
        values = np.take_along_axis(k, near, axis=0)
        return self.share * values.sum(axis=0), np.einsum("sc,scr->cr", values, self.row_weights[near])

    def _nearest(self, x: Array) -> NDArray[np.intp]:
        """The numbers (c,) of the nearest rows."""
        rows = self.points if self.fit_rows is None else self.fit_rows
        squares = np.square(rows).sum(axis=1)
        step = max(1, BLOCK // len(rows))
        parts = [(squares - 2 * (x[i : i + step] @ rows.T)).argmin(axis=1) for i in range(0, len(x), step)]
        return np.concatenate(parts)

    def state(self) -> dict[str, Any]:
        found = super().state() | {"nan_rows": False, "uncovered": "nearest"}
        return {name: value for name, value in found.items() if name != "device"}  # of a run, not of a model


@final
@dataclass(frozen=True, eq=False)
class Coordinates(RowFunction):
    """Coordinates of rows, (c, width) float64, by a function of points (c, d) that gives NaN where it is undefined."""

    function: Callable[[Array], Array]
    width: int

    @property
    def columns(self) -> int:
        return self.width

    @property
    def rows(self) -> None:
        return None

    def block(self, x: Array, out: Array) -> None:
        out[:] = self.function(x)

    def undefined(self, x: Array, count: int) -> str:
        return (
            f"{len(x)} of {count} points, the first of them {x[0]}, are so far from the points of the fit that the "
            "kernel vanishes and their coordinates are undefined: widen the bandwidth, fit on data that reach there, "
            "or make them NaN with Rows(X, on_invalid='skip')"
        )
