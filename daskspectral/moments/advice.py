"""What a user should know about a solution: functions left out, directions missing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, LandmarkBasis
from daskspectral.errors import ManifoldWarning, RankWarning, warn_user
from daskspectral.kernels import Polynomial
from daskspectral.moments.moments import Moments
from daskspectral.operators.laplacian import OFF
from daskspectral.solve import Spectrum

ROUNDING = 1e-5  # of single precision, a hundredfold


def advise_manifold(moments: Moments) -> None:
    """Warn where the rows lie off the operator's manifold by more than rounding, in the root mean square."""
    squares = moments.arrays.get(OFF)
    distance = 0.0 if squares is None else math.sqrt(float(squares[0]) / moments.weight)
    if distance <= ROUNDING:
        return
    warn_user(
        f"the rows lie {distance:.2g} off the manifold of {moments.operator} (root mean square), more than rounding. "
        "The tangential form does not see functions of this distance, and so it repeats its eigenvalues, from 0 on, "
        "once the kernel tells such functions apart: with noise of 0.01 off the sphere in R^3 they are 0, 0, 1.9, 1.9, "
        "2, 2, 2, 2.1 in place of 0, 2, 2, 2, 6. Project the rows onto the manifold, or leave the manifold out: the "
        "ambient form has no such functions",
        ManifoldWarning,
    )


def advise_support(kept: NDArray[np.bool_], basis: Basis, least: float) -> None:
    """Warn of basis functions left out for resting on fewer than `least` points; raise ValueError when all are."""
    if not kept.any():
        raise ValueError(
            f"each of the {basis.size} basis functions rests on fewer than min_support={least:g} points; widen the "
            "kernel's scale (scale='median' is a start)"
        )
    if not kept.all():
        warn_user(
            f"{np.count_nonzero(~kept)} of {basis.size} basis functions rest on fewer than min_support={least:g} "
            "effective points and were left out: their landmarks lie where the data are sparse at this scale; widen "
            "the kernel's scale, or use more rows",
            RankWarning,
        )


def advise_rank(solution: Spectrum, basis: Basis, wanted: int, *, right: Basis | None = None) -> None:
    """Warn where there are fewer values than were wanted, and say what would give more.

    `right` is the basis of the right functions, where the solution has ranks of two sides.
    """
    if len(solution.values) >= wanted:
        return
    what, found = f"the basis has rank {solution.rank}", "eigenvalues"
    if isinstance(solution.rank, tuple):
        what = f"the bases of the two sides have ranks {solution.rank[0]} and {solution.rank[1]}"
        found = "singular values"
        basis = right if right is not None and solution.rank[1] < solution.rank[0] else basis
    advice = "use more landmarks or a narrower kernel, or ask for fewer values"
    kernels = [part.core.kernel for part in basis.parts if isinstance(part.core, LandmarkBasis)]
    if not kernels:
        advice = "use more rows or a basis of more functions, or ask for fewer values"
    degrees = [kernel.degree for kernel in kernels if isinstance(kernel, Polynomial)]
    if degrees:
        most = math.comb(basis.dimension + max(degrees), basis.dimension)
        advice = (
            f"polynomials of degree {max(degrees)} in {basis.dimension} variables have {most} dimensions; for more "
            "raise the degree or use more landmarks, and where directions were lost to rounding, standardize the "
            "columns or lower the degree"
        )
    warn_user(
        f"{what} on these data, fewer than n_components={wanted}: {len(solution.values)} {found} are "
        f"returned; {advice}",
        RankWarning,
    )
