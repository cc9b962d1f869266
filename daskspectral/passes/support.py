"""Support of the rows of a fit, and detection of extrapolation: beyond the ends of intervals, or far from all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.engine.tasks import Tally
from daskspectral.kernels import Kernel, of_distances
from daskspectral.manifolds import Manifold
from daskspectral.passes.apply import Extrapolated
from daskspectral.registry import Registered
from daskspectral.solve.whitening import eigh

Array = NDArray[Any]
FUNCTIONS = 100  # maximum number of functions for the leverage
ROWS_OF_A_FUNCTION = 10  # minimum
FLOOR = 1e-12  # of eigenvalues of the Gram matrix, relative to the largest
VANISHED = 1e-6  # of the kernel at equal points: a Gaussian at 5.3 scales
BLOCK = 1 << 22  # number of distances that are computed at once
FAR = 0.01  # of the width of an interval, within which other rows from the same distribution are expected


@dataclass(frozen=True, eq=False)
class Coverage(Registered):
    """Leverage of new rows among those of a fit, u(x)ᵀ G⁻¹ u(x) / n, by invariant functions u.

    G is the mean of u uᵀ over the rows (the inverse Christoffel function is n times the leverage). Rows of the fit have
    leverages of at most 1, with sum r. A leverage above 1 means that the fit has no rows near the new one, at the
    resolution of these functions. For equivariant functions u (r, k) with k components it is the largest eigenvalue of
    the matrix (k, k). `whitening` (r, r) times u has the Gram matrix 1; `rows` is n.
    """

    whitening: Array
    rows: float

    @classmethod
    def of(cls, basis: InvariantBasis | EquivariantBasis, gram: Array, rows: float) -> Coverage:
        """Return the coverage by levels of at most 100 and n / 10 functions, from the mean `gram` of u u^T."""
        size = leading(basis, max(1, min(FUNCTIONS, int(rows / ROWS_OF_A_FUNCTION))))
        values, vectors = eigh(gram[:size, :size])
        return cls(vectors.T / np.sqrt(np.maximum(values, FLOOR * values[-1]))[:, None], float(rows))

    def leverage(self, feature: Array, components: int = 1) -> Array:
        """Return the leverage (c,) of rows with features u (p, c), or (p, k c) for k components."""
        whitened = self.whitening @ feature[: len(self.whitening)]
        if components == 1:
            return np.asarray(np.sum(whitened**2, axis=0) / self.rows)
        each = whitened.reshape(len(whitened), components, -1)
        products = np.einsum("rac,rbc->cab", each, each, optimize=True)
        return np.asarray(np.linalg.eigvalsh(products)[:, -1] / self.rows)


@final
@dataclass(frozen=True, eq=False)
class Support:
    """Support of a fit: `ends` (2, d) of intervals, infinite for other coordinates, and `coverage`; None without.

    Rows beyond the ends are moved to the ends. They are extrapolated if farther by more than 1 % of the width; so are
    rows that are far from those of the fit by the coverage.
    """

    ends: Array | None = None
    coverage: Coverage | None = None

    @classmethod
    def of(cls, manifold: Manifold, coverage: Coverage | None) -> Self:
        ends = manifold.ends
        return cls(ends if np.isfinite(ends).any() else None, coverage)

    def nearest(self, x: Array) -> Array:
        return x if self.ends is None else np.clip(x, *self.ends)

    def extrapolated(self, x: Array, feature: Array | None, components: int = 1) -> Extrapolated | None:
        """Return which rows (c, d) are extrapolated, and their distances beyond the ends in widths.

        `feature` are the functions of the coverage at the rows, or None.
        """
        beyond = None if self.ends is None else self._beyond(x)
        if self.coverage is None or feature is None:
            return None if beyond is None else (beyond > FAR, beyond)
        rows = np.asarray(self.coverage.leverage(feature, components) > 1)
        return (rows if beyond is None else rows | (beyond > FAR)), beyond

    def warning_text(self, found: Tally, count: int, values: str) -> str:
        beyond = (
            f"beyond the end of an interval by more than {FAR:.0%} of its width (the farthest by {found.most:.3g} "
            f"times its width), with the {values} at the end (`manifold_` has the ends)"
        )
        far = (
            f"far from the rows of the fit, at a leverage above 1: the {values} there are extrapolated, and the "
            "validation score is not valid for them (`leverage` returns the leverages)"
        )
        reasons = [beyond] * (found.most > FAR) + [far] * (self.coverage is not None)
        return f"{found.count} of {count} rows are {', or '.join(reasons)}"

    def _beyond(self, x: Array) -> Array:
        """Return the distances (c,) of rows beyond the ends, in widths between the ends."""
        assert self.ends is not None
        return np.asarray(np.max(np.abs(self.nearest(x) - x) / np.ptp(self.ends, axis=0), axis=1))


def peak(kernel: Kernel, points: Array) -> float:
    """Return the value of the kernel at equal points."""
    return float(kernel.values(points[:1], points[:1])[0, 0])


def beyond_reach(kernel: Kernel, points: Array, x: Array) -> NDArray[np.bool_]:
    """Return at which rows x (c, d) the kernel with all points (p, d) vanishes, below 1e-6."""
    if not of_distances(kernel.inner):
        return np.zeros(len(x), bool)
    return np.asarray(kernel.values(x, points).max(axis=0) < VANISHED * peak(kernel, points))


def nearest_points(x: Array, points: Array, kernel: Kernel | None = None) -> Array:
    """Return the nearest of the points (p, d) to each row of x (c, d), in the metric of a kernel if given."""
    center = points.mean(axis=0) if kernel is None or kernel.stationary else 0.0  # distances far from 0 are inaccurate
    rows, places = points - center, x - center
    if kernel is not None:
        rows, places = kernel.embedded(rows), kernel.embedded(places)
    squares, step = np.square(rows).sum(axis=1), max(1, BLOCK // len(rows))
    parts = [(squares - 2 * (places[i : i + step] @ rows.T)).argmin(axis=1) for i in range(0, len(x), step)]
    return np.asarray(points[np.concatenate(parts)])


def leading(basis: InvariantBasis | EquivariantBasis, most: int) -> int:
    """Return the number of functions of the first complete levels, at most `most`, but at least one level."""
    ends = [part.stop for part in basis.slices if part.stop]
    return int(max(end for end in ends if end <= max(most, ends[0])))
