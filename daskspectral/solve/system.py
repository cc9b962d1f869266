"""Galerkin systems: a form and Gram matrices of basis functions, and the penalty of a solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device
from daskspectral.solve.whitening import Whitening

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]
PRECISION = {"float64": 2e-16, "float32": 1e-8}  # relative precision of sums, whose errors average out in float32


@dataclass(frozen=True, eq=False)
class Penalty:
    """Penalty on rough functions, in units of the means.

    Parameters
    ----------
    left, right : ndarray of shape (p, p) and (q, q)
        mu K of the left functions, nu K' of the right ones, None if both are the same.
    energy : ndarray of shape (p, p), optional
        Symmetric form that ranks functions; by default they are ranked by singular values of the form.
    rounding : float
        Smallest eigenvalue of retained directions, at unit diagonal.
    precision : float
        Relative precision of the entries of matrices.
    """

    left: Array
    right: Array | None = None
    energy: Array | None = None
    rounding: float = 1e-13
    precision: float = 2e-16


# returns the penalty mu K of each side, mu = c κ / n, κ = tr(K^+ Φ), with centered linear functions if True
ByValues = Callable[[bool], Penalty]
# returns the penalty of a symmetric form that ranks functions, with κ the mean squared norm of its functionals
BySlopes = Callable[[Array], Penalty]


@dataclass(frozen=True, eq=False)
class GalerkinSystem:
    """Galerkin system of a form <f, L g> between p left and q right functions, as means over rows.

    Parameters
    ----------
    form : ndarray of shape (p, q)
        Form between all functions.
    gram : ndarray of shape (p, p)
        Inner products of the left functions; their squared norm in the function space for `NormConstrained`.
    right_gram : ndarray of shape (q, q), optional
        Inner products of the right functions; None if these are the left ones.
    means : tuple of ndarrays of shape (p,) and (q,), optional
        Means of the functions, which are subtracted.
    energy : ndarray of shape (p, p), optional
        Symmetric form that ranks functions if the form is not symmetric.
    bounded : bool
        Whether the form has no derivatives.
    count : int
        Requested number of values.
    cut : float
        Relative cutoff of eigenvalues of the Gram matrices.
    ridge : float
        Added to the diagonal of a symmetric form, relative to its mean.
    within : Penalty, Whitening or tuple of Whitening, optional
        Space of the solution: leading functions of a penalized problem, or orthonormal functions (of each side); by
        default all directions above the cutoff.
    root : ndarray, optional
        `norm_root` of a squared norm, if known.
    part : bool
        Whether the system is of a part of the data, whose rank is the number of its values.
    positive : bool
        Whether the form is positive semidefinite, so that negative values are rounding.
    dtype : {"float64", "float32"}
        Precision of the features in the sums.
    device : Device
        Device for eigenvectors of large matrices.
    """

    form: Array
    gram: Array
    right_gram: Array | None = None
    means: tuple[Array, Array] | None = None
    _: KW_ONLY
    energy: Array | None = None
    bounded: bool = False
    count: int = 0
    cut: float = 0.0
    ridge: float = 0.0
    within: Penalty | Whitening | tuple[Whitening, Whitening] | None = None
    root: Array | None = None
    part: bool = False
    positive: bool = False
    dtype: str = "float64"
    device: Device = HOST

    @property
    def precision(self) -> float:
        return PRECISION[self.dtype]

    @property
    def covariances(self) -> GalerkinSystem:
        """System of the centered functions, exactly 0 for constants."""
        if self.means is None:
            return self
        (mu, nu), (gram, right_gram) = self.means, self.grams
        form, gram, right_gram = self.form - np.outer(mu, nu), gram - np.outer(mu, mu), right_gram - np.outer(nu, nu)
        return replace(self, form=form, gram=gram, right_gram=right_gram, means=None)

    @property
    def grams(self) -> tuple[Array, Array]:
        return self.gram, self.gram if self.right_gram is None else self.right_gram

    def between(self, left: Functions, right: Functions) -> tuple[Functions, Functions, Functions]:
        """Return the form between functions U and V, and their Gram matrices, about the means."""
        u, v = left.conj().T, right.conj().T
        form, gram = u @ self.form @ right, u @ self.gram @ left
        right_gram = gram if self.right_gram is None and left is right else v @ self.grams[1] @ right
        if self.means is None:
            return form, gram, right_gram
        mu, nu = u @ self.means[0], v @ self.means[1]
        return form - np.outer(mu, nu.conj()), gram - np.outer(mu, mu.conj()), right_gram - np.outer(nu, nu.conj())
