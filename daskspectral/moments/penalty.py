"""How strongly a solution is penalised: mu = c kappa / n times the squared norm of the function space."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.operators import Operator

Array = NDArray[np.floating[Any]]
ROUNDING = {"float64": 1e-13, "float32": 1e-5}  # of matrices of unit diagonal
PRECISION = {"float64": 2e-16, "float32": 1e-8}  # of sums, whose errors average out in float32
CUT = 1e-10  # of the norm, relative, for its pseudo-inverse


def roughness(operator: Operator, basis: Basis, energy: Array, norm: Array) -> float:
    """kappa, the mean over rows of the squared norm of the form's functionals in the function space with norm K.

    For the Dirichlet form of a smooth radial kernel k(x, y) = q(s) this is -2 d q'(0), d / scale^2 for a Gaussian;
    where the space or the form tells no such constant, tr(K^+ F) from the mean F = `energy` of the form.
    """
    gradients, slope = operator.slopes_squared(basis.dimension), basis.slope_norm
    if gradients is not None and slope is not None:
        return gradients * slope
    return max(trace(norm, energy), 0.0)


def trace(norm: Array, form: Array) -> float:
    """tr(K^+ F) for a norm K and a form F, (p, p)."""
    values, vectors = scipy.linalg.eigh(0.5 * (norm + norm.T))
    kept = values > CUT * values[-1]
    seen = vectors[:, kept]
    return float(np.sum(np.einsum("ij,ij->j", seen, form @ seen) / values[kept]))
