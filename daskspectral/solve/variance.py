"""How far the form's mean over n rows may be from its expectation, and with it the spectrum: Theorem 1's variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.dense import symmetric_part
from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]
SAME = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class EnergyBasis:
    """Functions u_i = f_i / sqrt|λ_i| for the eigenfunctions f_i that the form does not kill.

    L is diag(+-1) in them. `values` are λ (r,), `matrix` (p, r) the coefficients of u; `deflated` counts the
    functions left out.
    """

    values: Array
    matrix: Array
    deflated: int

    @property
    def inverse(self) -> float:
        """The norm of L^(-1) in L2(rho), 1 / min |lambda_i|."""
        return float(1 / np.abs(self.values).min())


def energy_basis(form: Array, gram: Array, cut: float) -> EnergyBasis:
    """The energy basis of a symmetric form (p, p), on the directions that the Gram matrix sees.

    Functions that the form kills (rows of exact zeros: the constant) are deflated: the others become orthogonal to
    them, which leaves the form as it is. Raises ValueError where the form is not invertible on what is left.
    """
    killed = (form == 0).all(axis=0)
    w = whiten(gram, cut, killed).matrix
    kept = (w[~killed] != 0).any(axis=0)
    if not kept.any():
        raise ValueError("the form kills every function of the basis, and nothing is left to invert")
    w = w[:, kept]
    reduced = w.T @ form @ w
    values, vectors = scipy.linalg.eigh(symmetric_part(reduced))
    size = np.abs(values)
    if not size.min() > 10 * len(size) * SAME * size.max():
        raise ValueError(
            f"the form is not invertible once the constant is removed: the least of {len(size)} eigenvalues is "
            f"{values[size.argmin()]:.3g}, the largest {size.max():.3g}; leave out functions that the form kills"
        )
    return EnergyBasis(values, w @ (vectors / np.sqrt(size)), int(np.count_nonzero(~kept)))


def theorem_term(inverse: float, rank: int, largest: float, count: int, delta: float) -> tuple[float, int]:
    """The first term of (8) in an energy basis of r = rank functions, and the rows from which the proof gives it.

        3 |Ψ^(1/2) L⁻¹| |L⁻¹ Φ^(1/2)| t,              t = √(8 r² H² / (3 n) log(2 r / delta)),

    with |L⁻¹ Φ^(1/2)|² = `inverse` and H = `largest` of |H(u_i, u_j, x)|. The proof of Lemma 2 takes
    |L⁻¹ (Lhat - L)| ≤ 1/2, which is t ≤ 1/2 here: n ≥ 32/3 r² H² log(2 r / delta), where the theorem prints 3
    for 32/3 (and the norm of L⁻¹, 1 in this basis, to the power -2 where it must be 2).
    """
    log = math.log(2 * rank / delta)
    return 3 * inverse * rank * largest * math.sqrt(8 * log / (3 * count)), math.ceil(
        max(3.0, 32 / 3 * (rank * largest) ** 2) * log
    )


def bernstein_deviation(second: float, peak: float, rank: int, count: int, delta: float) -> float:
    """The t that |Lhat - L| exceeds with probability delta at most, by the matrix Bernstein inequality.

    For the mean of n = `count` independent symmetric matrices A (r, r), r = `rank`, with |E A Aᵀ| ≤ second and
    |A| ≤ peak (corollary 6.2.1, Tropp 2015): 2 r exp(-n t² / 2 / (second + 2 peak t / 3)) = delta.
    """
    log = math.log(2 * rank / delta) / count
    half = 2 * peak * log / 3
    return half + math.sqrt(half**2 + 2 * second * log)
