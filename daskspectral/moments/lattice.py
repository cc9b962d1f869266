"""Solution from Fourier modes: moments are reduced to the leading functions for a spectral density, and solved.

The spectral density S² of a stationary kernel and the penalty determine which of the p functions of the lattice matter:
the leading v of A v = θ (A + t B) v, A = S Φ S, B = S L S + mu. A few hundred of them span the Ritz space of all rows
and, far below the errors, of nine tenths of the rows. The form, the Gram matrix and their folds are reduced to these
functions; error bars, groups and warnings are computed from the small matrices.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.basis.lattice import SpanBasis, SpectralDensityBasis
from daskspectral.kernels import Kernel
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.counting import counted_rows
from daskspectral.moments.moments import Moments, matrices_of
from daskspectral.moments.problem import combined, galerkin_system
from daskspectral.moments.solution import System
from daskspectral.solve.pencil import CERTAIN, leading_by_cholesky, ritz_size, scale_of
from daskspectral.solve.system import PRECISION
from daskspectral.solve.whitening import inverse_root

Array = NDArray[np.floating[Any]]
Arrays = Mapping[str, NDArray[Any]]
SPAN = 400  # number of leading functions
LOWEST = 4  # number of functions of lowest frequency per value, for the scale of the last value
FEWER = (0.5, 0.75)  # shares of the frequencies, for the discretization error
ITERATIONS = 2  # of the subspace iteration for fewer frequencies
CUT_SIZE = 1331  # maximum number of functions without a penalty, by dense algebra


class UnresolvedError(ValueError):
    """The rows fill too small a part of the box of a FourierBasis to be resolved by its functions."""


class WeightedModes:
    """Forms of Fourier modes on a lattice, weighted by the spectral density of a kernel.

    The lattice is the measured one, or one of lower frequencies. `sums` are those of all rows, with matrices of the
    forms; the data count as `rows` rows; `scale` is S (p,); `precision` is the relative precision of matrices from
    modes.
    """

    def __init__(self, moments: Moments, kernel: Kernel, lattice: FourierLattice):
        self.operator, self.basis = moments.operator, SpectralDensityBasis(lattice, kernel)
        self.sums = matrices_of(lattice, moments.operator, moments.arrays)
        self.moments = replace(moments, arrays=self.sums)
        eps = lattice.eps if lattice.method == "nufft" else 0.0
        self.rows, self.precision = counted_rows(moments), max(eps, PRECISION[moments.dtype])
        self.scale = np.sqrt(self.basis.weights)

    def mean(self, sums: Array) -> Array:
        """Return S F S for the mean F (p, p) of a form over the rows."""
        return np.asarray(sums * (self.scale[:, None] / self.moments.weight) * self.scale)

    def energy(self) -> Array:
        """Return the mean of the form that ranks functions, ascending."""
        found = self.operator.solver.energy(galerkin_system(self.operator, self.sums))
        if found is not None:
            return self.mean(found)
        w = self.basis.inner.frequencies.vectors * self.scale[:, None]
        return np.asarray(w @ w.T)  # without a form for ranking: smooth functions, for rows that fill the box

    def roughness(self, energy: Array) -> float:
        """Return kappa of the penalty."""
        squares = self.operator.slopes_squared(self.basis.dimension)
        return float(np.trace(energy)) if squares is None else squares * self.basis.slope_norm

    def leading(self, c: float, count: int, most: int) -> tuple[Array, int]:
        """Return an orthonormal basis (p, r) of leading functions, and the rank of the data.

        At most `most` functions follow the constant, for the least penalty c and `count` values. They are orthonormal
        in the norm of the kernel: if normalized on the data, smooth functions would be lost in the rounding of rough
        ones.
        """
        a, b, lattice = self.mean(self.sums["gram"]), self.energy(), self.basis.inner
        p = len(a)
        b[np.arange(1, p), np.arange(1, p)] += c * self.roughness(b) / self.rows
        null = int(not b[0].any())
        first = null * a[0, null:] / math.sqrt(a[0, 0])
        inner, outer = a[null:, null:] - np.outer(first, first), b[null:, null:]
        least = CERTAIN * self.precision * np.trace(a)  # below this is rounding, for example of equal rows
        t = scale_of(self._last_value(a, b, count), np.trace(outer), max(np.trace(inner), least))
        size = min(most, len(inner))
        try:
            theta, vectors, sigma = leading_by_cholesky(inner, outer, t, size)
        except scipy.linalg.LinAlgError:
            raise UnresolvedError(
                f"the rows fill a small part of the box {lattice.domain.bounds_text} of the FourierBasis. "
                "Pass a smaller box"
            ) from None
        seen = theta > self._blurred(vectors)
        rank = int(np.count_nonzero(seen))
        if rank == size:  # all rougher functions count as determined
            rank = len(inner)
        vectors = np.linalg.qr(vectors[:, seen])[0]
        self._pencil = inner, (1 + t * sigma) * inner + t * outer
        return scipy.linalg.block_diag(np.eye(null), vectors), rank + null

    def coarser(self, share: float, span: Array, count: int) -> tuple[float, Moments]:
        """Return moments for a share of the frequencies, and the exact share, by subspace iteration."""
        inner, total = self._pencil
        lattice, null = self.basis.inner, len(span) - len(inner)
        below = lattice.truncated([max(1, int(share * order)) for order in lattice.orders])
        places = lattice.frequencies.places(below.frequencies)[null:]
        among = np.ix_(places - null, places - null)
        inner, factor = inner[among], scipy.linalg.cho_factor(total[among], overwrite_a=True, check_finite=False)
        block = span[places, null : null + ritz_size(count)]
        for _ in range(ITERATIONS):
            block = np.linalg.qr(scipy.linalg.cho_solve(factor, inner @ block, check_finite=False))[0]
        few = np.zeros((len(span), null + block.shape[1]))
        few[:null, :null], few[places, null:] = np.eye(null), block
        width = (below.size / lattice.size) ** (1 / lattice.dimension)
        return width, self.reduced(few, by_fold=False)

    def _blurred(self, vectors: Array) -> Array:
        """Return the errors of the squares of functions (k,), from the modes and the eigensolver."""
        errors = CERTAIN * self.precision * self.basis.weights[-len(vectors) :] + np.finfo(float).eps
        return np.asarray(errors @ vectors**2)

    def _last_value(self, a: Array, b: Array, count: int) -> float:
        """Return an estimate of the last requested value from the functions of lowest frequency."""
        order = np.argsort(self.basis.inner.frequencies.squares, kind="stable")[: LOWEST * count]
        few, form = a[np.ix_(order, order)], b[np.ix_(order, order)]
        white = inverse_root(few, max(1e-10, CERTAIN * self.precision))
        values = scipy.linalg.eigvalsh(white.T @ form @ white)
        return float(values[min(count, len(values)) - 1])

    def reduced(self, span: Array, *, by_fold: bool = True) -> Moments:
        """Return the moments of the functions of a span (p, r), with folds if `by_fold`."""
        moments = self.moments if by_fold else replace(self.moments, folds=None)
        functions, operator = self.scale[:, None] * span, self.operator

        def few(sums: Arrays, _: float) -> dict[str, Array]:
            return combined(operator, matrices_of(self.basis.inner, operator, sums), functions)

        return moments.mapped(few, basis=SpanBasis(self.basis, span))


@dataclass(frozen=True, eq=False)
class ModeSystem(System):
    """Moments of the leading functions `span` (p, r) of `weighted` modes, of which the rows determine `rank`."""

    weighted: WeightedModes = field(kw_only=True)
    span: Array = field(kw_only=True)
    rank: int = field(kw_only=True)

    @classmethod
    def of(
        cls, moments: Moments, kernel: Kernel, orders: Sequence[int] | None, penalty: float | None, count: int
    ) -> ModeSystem:
        """Return the system of modes for the spectral density of a kernel, on the frequencies up to `orders`."""
        whole: Any = moments.basis
        lattice = whole if orders is None else whole.truncated(orders)
        weighted, ritz, size = WeightedModes(moments, kernel, lattice), ritz_size(count), lattice.size
        if penalty is None:
            check_cut_size(size)
            leading: tuple[Array, int] = np.eye(size), size
        else:
            leading = weighted.leading(penalty, ritz, max(SPAN, 2 * ritz))
        span, rank = leading
        fewer = [weighted.coarser(share, span, count) for share in FEWER if penalty is not None]
        return cls(weighted.reduced(span), penalty, fewer=fewer, weighted=weighted, span=span, rank=rank)

    def finished(self, found: dict[str, Any]) -> dict[str, Any]:
        weighted, measured, size = self.weighted, self.weighted.moments, self.weighted.basis.size
        for name in Attributes(measured.operator.solver).functions:
            found[name] = among_all(weighted.scale[:, None] * (self.span @ found[name]), measured, weighted.basis.inner)
        if self.penalty is not None:
            pair, few = isinstance(found["rank_"], tuple), self.span.shape[1]
            found["message_"] = re.sub(rf"\b\d+ of {few}\b", f"{self.rank} of {size}", found["message_"])
            found["rank_"] = (self.rank, self.rank) if pair else self.rank
        if measured.outside:
            found["message_"] += f"; {measured.outside} of {measured.rows} rows are outside the box and are not used"
        first, squares = (v / measured.weight for v in (weighted.sums["first"], np.diag(weighted.sums["gram"])))
        share = np.divide(first**2, squares, out=np.zeros_like(first), where=squares > 0)
        found["support_"] = among_all(share * counted_rows(measured), measured, weighted.basis.inner)
        if "right_support_" in found:
            found["right_support_"] = found["support_"]
        return found


def among_all(values: NDArray[Any], moments: Moments, lattice: FourierLattice) -> NDArray[Any]:
    """Return values (p', ...) of the functions of a lattice, extended by 0 to all measured functions."""
    measured: Any = moments.basis
    whole = np.zeros((measured.size, *values.shape[1:]), values.dtype)
    whole[measured.frequencies.places(lattice.frequencies)] = values
    return whole


def check_cut_size(size: int) -> None:
    """Raise ValueError if there are too many functions to be solved without a penalty."""
    if size > CUT_SIZE:
        raise ValueError(
            f"solvers.Truncated requires at most {CUT_SIZE} functions of a FourierBasis, got {size}. Use fewer."
        )
