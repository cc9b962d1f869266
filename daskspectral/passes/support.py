"""Where the rows of a fit lie, and which new rows do not: beyond the ends of intervals, or far from all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.engine.tasks import Tally
from daskspectral.kernels import Kernel, of_distances
from daskspectral.manifolds import Manifold
from daskspectral.passes.apply import Guessed
from daskspectral.registry import Registered
from daskspectral.solve.whitening import eigh

Array = NDArray[Any]
FUNCTIONS = 100  # by which rows are judged
ROWS_OF_A_FUNCTION = 10  # at least, where new rows are judged
FLOOR = 1e-12  # of the eigenvalues of the Gram matrix, relative to the largest
VANISHED = 1e-6  # of the kernel of equal points: a Gaussian at 5.3 scales
BLOCK = 1 << 22  # distances that are computed at once
FAR = 0.01  # of an interval's width, by which the least and the largest of other rows go beyond it as a rule


@dataclass(frozen=True, eq=False)
class Coverage(Registered):
    """The leverage of new rows among the rows of a fit, u(x)ᵀ G⁻¹ u(x) / n, by its first invariant functions u.

    G is the mean of u uᵀ over the rows (their inverse Christoffel function, times n). Each row of the fit has at most
    1, all together r. Of a new row it says how many times it would outweigh all rows of the fit near it; above 1 there
    are none at the resolution of these functions. Of equivariant functions u (r, k) with k components it is the largest
    eigenvalue of the matrix (k, k). `whitening` (r, r) times u has the Gram matrix 1; `rows` is n.
    """

    whitening: Array
    rows: float

    @classmethod
    def of(cls, basis: InvariantBasis | EquivariantBasis, gram: Array, rows: float) -> Coverage:
        """By whole levels of at most 100 functions, each with 10 rows; `gram` (p, p) is the mean of u u^T over rows."""
        size = leading(basis, max(1, min(FUNCTIONS, int(rows / ROWS_OF_A_FUNCTION))))
        values, vectors = eigh(gram[:size, :size])
        return cls(vectors.T / np.sqrt(np.maximum(values, FLOOR * values[-1]))[:, None], float(rows))

    def leverage(self, feature: Array, components: int = 1) -> Array:
        """The leverage (c,) of rows with the features u (p, c), or (p, k c) component by component."""
        whitened = self.whitening @ feature[: len(self.whitening)]
        if components == 1:
            return np.asarray(np.sum(whitened**2, axis=0) / self.rows)
        each = whitened.reshape(len(whitened), components, -1)
        products = np.einsum("rac,rbc->cab", each, each, optimize=True)
        return np.asarray(np.linalg.eigvalsh(products)[:, -1] / self.rows)


@final
@dataclass(frozen=True, eq=False)
class Support:
    """The `ends` (2, d) of intervals, infinite for other coordinates, and the `coverage` by the rows; None without.

    Rows beyond the ends count as rows there. Those farther by more than 1 % of the width between the ends are guesses,
    and rows that the coverage finds far from those of the fit.
    """

    ends: Array | None = None
    coverage: Coverage | None = None

    @classmethod
    def of(cls, manifold: Manifold, coverage: Coverage | None) -> Self:
        """On a manifold, with its ends where it has any."""
        ends = manifold.ends
        return cls(ends if np.isfinite(ends).any() else None, coverage)

    def nearest(self, x: Array) -> Array:
        """Points (c, d), those beyond the ends taken to them."""
        return x if self.ends is None else np.clip(x, *self.ends)

    def guessed(self, x: Array, feature: Array | None, components: int = 1) -> Guessed | None:
        """Which rows (c, d) are guesses, and by how many widths they are beyond the ends.

        `feature` are those of the coverage at the rows, None without one.
        """
        beyond = None if self.ends is None else self._beyond(x)
        if self.coverage is None or feature is None:
            return None if beyond is None else (beyond > FAR, beyond)
        rows = np.asarray(self.coverage.leverage(feature, components) > 1)
        return (rows if beyond is None else rows | (beyond > FAR)), beyond

    def doubt(self, found: Tally, count: int, values: str) -> str:
        """The warning of rows that are guesses, with `values` there: those at an end, and those far from the fit's."""
        beyond = (
            f"beyond the end of an interval by more than {FAR:.0%} of its width (the farthest by {found.most:.3g} "
            f"times its width), with the {values} at the end (`manifold_` has the ends)"
        )
        far = (
            f"where the fit had no rows, at a leverage above 1, the most that a row of the fit can have: the {values} "
            "there are extrapolated, and the held-out score does not hold for them (`leverage` tells which rows)"
        )
        told = [beyond] * (found.most > FAR) + [far] * (self.coverage is not None)
        return f"{found.count} of {count} rows lie {', or '.join(told)}"

    def _beyond(self, x: Array) -> Array:
        """By how many widths between the ends rows are beyond them, (c,)."""
        assert self.ends is not None
        return np.asarray(np.max(np.abs(self.nearest(x) - x) / np.ptp(self.ends, axis=0), axis=1))


def peak(kernel: Kernel, points: Array) -> float:
    """Return the value of the kernel at equal points."""
    return float(kernel.values(points[:1], points[:1])[0, 0])


def beyond_reach(kernel: Kernel, points: Array, x: Array) -> NDArray[np.bool_]:
    """Return at which rows x (c, d) the kernel with all points (p, d) vanishes; at none if it does not decay.

    It does below 1e-6 of its value at equal points.
    """
    if not of_distances(kernel.inner):
        return np.zeros(len(x), bool)
    return np.asarray(kernel.values(x, points).max(axis=0) < VANISHED * peak(kernel, points))


def nearest_points(x: Array, points: Array, kernel: Kernel | None = None) -> Array:
    """Return the nearest of the points (p, d) to each row of x (c, d), in the metric of a kernel if it is given."""
    center = points.mean(axis=0) if kernel is None or kernel.stationary else 0.0  # far from 0 distances lose digits
    rows, places = points - center, x - center
    if kernel is not None:
        rows, places = kernel.embedded(rows), kernel.embedded(places)
    squares, step = np.square(rows).sum(axis=1), max(1, BLOCK // len(rows))
    parts = [(squares - 2 * (places[i : i + step] @ rows.T)).argmin(axis=1) for i in range(0, len(x), step)]
    return np.asarray(points[np.concatenate(parts)])


def leading(basis: InvariantBasis | EquivariantBasis, most: int) -> int:
    """How many functions the first whole levels have that have at most so many; those of the first level at least."""
    ends = [part.stop for part in basis.slices if part.stop]
    return int(max(end for end in ends if end <= max(most, ends[0])))
