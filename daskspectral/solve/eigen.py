"""The symmetric generalised eigenproblem L v = lambda Phi v, on the directions that Phi sees."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.solve.spectrum import Spectrum, fix_signs
from daskspectral.solve.whiten import whiten

Array = NDArray[np.floating[Any]]


def solve_symmetric(
    form: Array, gram: Array, *, count: int, cut: float, ridge: float = 0.0, descending: bool = False
) -> Spectrum:
    """The `count` lowest eigenvalues of form against gram, (p, p), ascending; fewer when the rank is less.

    With `descending` the largest, from the largest down: those of a generator, which is negative.

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
    rank = whitening.rank
    k = min(count, rank)
    wanted = (rank - k, rank - 1) if descending else (0, k - 1)
    values, vectors = scipy.linalg.eigh(reduced, subset_by_index=wanted)
    if descending:
        values, vectors = values[::-1], vectors[:, ::-1].copy()
    fix_signs(vectors)
    residuals = np.linalg.norm(reduced @ vectors - vectors * values, axis=0)
    coefficients = w @ vectors
    return Spectrum(values, coefficients, coefficients, rank, residuals)
