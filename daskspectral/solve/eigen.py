"""The symmetric generalised eigenproblem L v = lambda Phi v, on the directions that Phi sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.spectrum import Spectrum, fix_signs
from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]


def solve_symmetric(form: Array, gram: Array, *, count: int, cut: float, ridge: float = 0.0) -> Spectrum:
    """The `count` lowest eigenvalues of form against gram, (p, p), ascending; fewer when the rank is less.

    `ridge` adds that multiple of the form's mean diagonal to its diagonal (footnote 6 of the Galerkin paper:
    (L + eps I, Phi), never the Gram alone). Functions have unit norm in the Gram's metric. The cut keeps
    those that the form kills (rows of exact zeros: the constant) whole, so that the eigenvalue 0 is exact.
    """
    whitening = whiten(gram, cut, (form == 0).all(axis=0))
    w = whitening.matrix
    if ridge:
        form = form + ridge * np.trace(form) / len(form) * np.eye(len(form))
    reduced = w.T @ form @ w
    reduced = 0.5 * (reduced + reduced.T)
    k = min(count, whitening.rank)
    values, vectors = scipy.linalg.eigh(reduced, subset_by_index=(0, k - 1))
    fix_signs(vectors)
    residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
    coefficients = w @ vectors
    return Spectrum(values, coefficients, coefficients, whitening.rank, residuals)
