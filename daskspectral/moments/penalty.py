"""How strongly a solution is penalised: mu = c kappa / n times the squared norm of the function space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.operators import Operator
from daskspectral.solve.whitening import inverse_root, symmetric_part

Array = NDArray[np.floating[Any]]
ROUNDING = {"float64": 1e-13, "float32": 1e-5}  # of matrices of unit diagonal
PRECISION = {"float64": 2e-16, "float32": 1e-8}  # of sums, whose errors average out in float32
CUTS = {"float64": 1e-10, "float32": 1e-6}  # of the norm, relative: K^+ raises the rounding of sums


def roughness(operator: Operator, basis: Basis, energy: Array, root: Callable[[], Array]) -> float:
    """kappa, the mean over rows of the squared norm of the form's functionals in the function space with norm K.

    For the Dirichlet form of a smooth radial kernel k(x, y) = q(s) this is -2 d q'(0), d / scale² for a Gaussian;
    where the space or the form tells no such constant, tr(K^+ F) from the mean F = `energy` of the form. `root` gives
    `inverse_norm(K)`.
    """
    squares, slope = operator.slopes_squared(basis.dimension), basis.slope_norm
    if squares is not None and slope is not None:
        return squares * slope
    return max(trace(root(), energy), 0.0)


def inverse_norm(norm: Array, dtype: str = "float64") -> Array:
    """R (p, r) with R R^T = K^+ for the norm K (p, p), on directions where sums of the `dtype` are not all rounding."""
    return inverse_root(symmetric_part(norm), CUTS[dtype])


def trace(root: Array, form: Array) -> float:
    """tr(K^+ F) for a form F (p, p) and R with R R^T = K^+."""
    return float(np.sum(root * (form @ root)))
