"""Ritz values: a form restricted to given functions, for example on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.system import GalerkinSystem
from daskspectral.solve.whitening import inverse_root, symmetric_part

Array = NDArray[np.floating[Any]]
Functions = NDArray[np.inexact[Any]]

SMALL = 0.003  # of the last value: differences of smaller eigenvalues have little weight
NEGLIGIBLE = 1e-9  # of the largest value
ROUNDING = {"float64": 1e-14, "float32": 1e-7}  # relative precision of entries of sums, by the dtype of features


def ritz(
    coefficients: Functions, form: Array, gram: Array, *, symmetric: bool = True, dtype: str = "float64"
) -> Functions:
    """Return the Ritz values (k,) of a form (p, p) on the span of functions C (p, k).

    The eigenvalues of (C^H form C, C^H gram C): ascending for a symmetric form, by min-max no less than the
    eigenvalues on all functions; otherwise complex, by descending real part. Undetermined directions are NaN at the
    end.
    """
    white = _whitened(coefficients, coefficients.conj().T @ gram @ coefficients, np.diag(gram), dtype)
    functions = coefficients @ white
    reduced = functions.conj().T @ form @ functions
    if symmetric:
        values: Functions = scipy.linalg.eigvalsh(symmetric_part(reduced))
    else:
        found: Any = scipy.linalg.eigvals(reduced)
        values = found[np.lexsort([-found.imag, -found.real])]
    return np.append(values, np.full(coefficients.shape[1] - len(values), np.nan))


def ritz_singular(left: Functions, right: Functions, system: GalerkinSystem) -> Array:
    """Return the singular values (k,) of a form (p, q) between spans U (p, k) and V (q, k).

    Those of (U^H gram U)^(-1/2) U^H form V (V^H right_gram V)^(-1/2), 0 in undetermined directions. The sum of their
    squares is the VAMP-2 score of Wu and Noe (2020).
    """
    reduced, gram_left, gram_right = system.between(left, right)
    squares, right_squares = (np.diag(gram) for gram in system.grams)
    white = _whitened(left, gram_left, squares, system.dtype)
    right_white = _whitened(right, gram_right, right_squares, system.dtype)
    reduced = white.conj().T @ reduced @ right_white
    values: Array = scipy.linalg.svdvals(reduced) if reduced.size else np.zeros(0)
    return np.append(values, np.zeros(min(left.shape[1], right.shape[1]) - len(values)))


def explained(values: Array, left: Functions, right: Functions, system: GalerkinSystem) -> Array:
    """Return the shares (k,) of the squared norm that fitted triples explain on other rows.

    For singular values s (k,) and functions U (p, k), V (q, k), normalized on these rows so that no single row
    dominates, share i is 2 s_i (U^H form V)_ii - Σ_j s_i s_j (U^H gram U)_ij (V^H right_gram V)_ij: s_i² on the rows
    of the fit, negative if it is overfitted. The sum is the VAMP-E score of Wu and Noe (2020) up to normalization.
    """
    reduced, gram_left, gram_right = system.between(left, right)
    norms = np.sqrt(np.maximum(np.diag(gram_left).real * np.diag(gram_right).real, 0))
    scale = np.divide(values, norms, out=np.zeros(len(norms)), where=norms > 0)
    products = np.outer(scale, scale) * (gram_left * gram_right.conj()).real
    return np.asarray(2 * scale * np.diag(reduced).real - products.sum(axis=1))


def _whitened(coefficients: Functions, gram: Functions, squares: Array, dtype: str) -> Functions:
    """Return W (k, r) with W^H gram W = I for the Gram matrix (k, k) of functions (p, k).

    Eigenvalues below the rounding of `squares` (p,) of the basis functions are excluded.
    """
    size = np.linalg.norm(np.sqrt(np.maximum(squares, 0))[:, None] * coefficients, 2)
    return inverse_root(symmetric_part(gram), 0.0, ROUNDING[dtype] * float(size) ** 2)


def overfitted(held_out: Array, fitted: Array) -> Array:
    """Return h √(h / l) for validation values h above fitted values l > 0, otherwise h."""
    known = np.isfinite(held_out) & (held_out > fitted) & (fitted > NEGLIGIBLE * np.abs(fitted).max(initial=0.0))
    return np.asarray(held_out * np.sqrt(np.divide(held_out, fitted, out=np.ones_like(fitted), where=known)))


def energy_scores(found: Mapping[Any, Array]) -> dict[Any, float]:
    """Return the scores of validation values (splits, k) of a symmetric form; larger is better.

    Minus the mean of log(h_i + m), one m for all candidates, with weights 1 / i.
    """
    least = min(0.0, *(float(np.mean(h[:, 0])) for h in found.values()))
    shifted = {s: np.maximum(h - least, 0) for s, h in found.items()}
    middle = SMALL * _least_last_value(shifted.values())
    most = max(float(h[np.isfinite(h)].max(initial=0)) for h in shifted.values()) + middle
    sizes = {s: np.log(np.minimum(h, 10 * most) + middle).mean(axis=0) for s, h in shifted.items()}
    return {s: -float(np.average(size, weights=1 / np.arange(1.0, 1 + len(size)))) for s, size in sizes.items()}


def _least_last_value(values: Iterable[Array]) -> float:
    """Return the least mean of the last positive value over candidates."""
    means = np.stack([np.mean(h, axis=0) for h in values])
    best = np.min(np.where(np.isfinite(means) & (means > 0), means, np.inf), axis=0)
    known = best[np.isfinite(best)]
    return float(known[-1]) if len(known) else 1.0
