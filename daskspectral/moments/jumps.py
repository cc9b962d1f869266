"""Solution from sums of jumps between centroids, in the leading functions of the walk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.centroids import JUMPS, symmetric
from daskspectral.basis.lattice import SpanBasis
from daskspectral.moments.counting import counted_rows
from daskspectral.moments.intervals import jackknife_errors, jackknife_factor
from daskspectral.moments.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.moments.solution import System
from daskspectral.solve.jumps import gap_ratio, jump_span
from daskspectral.solve.pencil import ritz_size

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class JumpSystem(System):
    """Moments of the leading functions `span` (p, r) of a walk, reduced from the moments `measured`."""

    measured: Moments = field(kw_only=True)
    span: Array = field(kw_only=True)

    @classmethod
    def of(cls, measured: Moments, count: int) -> JumpSystem:
        """Return the system for `count` values; raise ValueError if sums are not finite, or weights 0."""
        checked_means(measured)
        basis, p = measured.basis, measured.basis.size
        span = jump_span(symmetric(measured.arrays[JUMPS], p).toarray(), 2 * ritz_size(count))

        def few(sums: Mapping[str, Array], _: float) -> dict[str, Array]:
            matrix = symmetric(sums[JUMPS], p)
            degrees = matrix.sum(axis=1)
            gram = span.T @ (matrix @ span)
            form = span.T @ (degrees[:, None] * span) - gram
            form[0] = form[:, 0] = 0.0  # for the constant
            others = {name: values for name, values in sums.items() if name != JUMPS}
            return {**others, "gram": gram, "form": form, "first": span.T @ degrees}

        return cls(measured.mapped(few, basis=SpanBasis(basis, span)), None, measured=measured, span=span)

    def finished(self, found: dict[str, Any]) -> dict[str, Any]:
        measured, (p, r) = self.measured, self.span.shape
        gram = symmetric(measured.arrays[JUMPS], p)
        first, squares = (v / measured.weight for v in (gram.sum(axis=1), gram.diagonal()))
        share = np.divide(first**2, squares, out=np.zeros(p), where=squares > 0)
        found["message_"] += f"; the leading {r} functions of {p} centroids"
        found["coefficients_"] = self.span @ found["coefficients_"]
        return found | {"support_": share * counted_rows(measured)}


def gap_ratios(moments: Moments, coefficients: Array) -> tuple[Array, Array]:
    """Return ratios r_k = (λ_k + e) / (λ_(k + 1) + e), e = 3e-5, of eigenvalues, with standard errors.

    Values without a fold are those of the same functions, correct to first order. Errors are 0 without folds.
    """
    p = len(coefficients)

    def parts(packed: Array) -> Array:
        matrix = symmetric(packed, p)
        return np.stack([np.sum(coefficients * (matrix @ coefficients), axis=0), matrix.sum(axis=1) @ coefficients**2])

    def ratios(sums: Array) -> Array:
        return gap_ratio(1 - np.sqrt(np.clip(sums[0] / sums[1], 0, 1)))[1:]

    whole, folds = parts(moments.arrays[JUMPS]), moments.folds
    found = ratios(whole)
    if folds is None or len(folds.filled) < 2:
        return found, np.zeros_like(found)
    samples = np.stack([ratios(whole - parts(folds.arrays[JUMPS][fold])) for fold in folds.filled])
    return found, jackknife_errors(samples, jackknife_factor(folds, len(samples)))
