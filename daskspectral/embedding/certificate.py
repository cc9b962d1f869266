"""The dual certificate, which proves an embedding optimal: is diag(y) - Abar psd (appendix B, Fanuel et al. 2022)?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from daskspectral.registry import Registered
from daskspectral.solve.whitening import symmetric_part

Array = NDArray[np.floating[Any]]

DENSE = 2000  # points up to which every eigenvalue is computed
TOLERANCES = (1e-3, 1e-6, 1e-10)  # of Lanczos, tightened until the answer is clear
ITERATIONS = 3000
SMALL = 1e-3  # columns of a solution below this share of the largest do not count as known eigenvectors


@dataclass(frozen=True)
class Certificate(Registered):
    """A bound on how far from the optimum a solution can be.

    `least_eigenvalue` is the least eigenvalue of diag(y) - Abar for y_i = (Abar B)_ii / d_i, or a lower bound of it.
    Where it is negative, y - least_eigenvalue is dual feasible, and the optimum is above the objective by no more than
    gap = max(0, -least_eigenvalue) sum d. `optimal` says whether the gap, relative to the objective, is within the
    tolerance asked for. `products` counts the vectors that the kernel was multiplied by for the proof.

    With landmarks the certificate is of the problem at the landmarks. `approximation` then estimates the error of its
    Gram matrix E Eᵀ, relative to that of the full problem, from 1000 probe rows: how far the matrix is from that at
    half the landmarks, shrunk as one step of the full problem moves it less. `full_eigenvalue` is the least eigenvalue
    of diag(y) - Abar among these rows, with the Abar of all points: where it is negative, y proves nothing of the full
    problem.

    With more than 2000 points the bound comes from Lanczos on the orthogonal complement of the solution, widened by the
    residuals of its Ritz pair and of the solution. It is a proof unless the random start was orthogonal to the
    eigenvector in question.

    Of a `KernelEmbedding`, the eigenvalue is that of diag(y) - (K_bar / n² - λ K^+) in the range of K, all in the units
    of the objective, and `error` is the largest |diag(B) - d| / d, which must be within the tolerance too.
    """

    least_eigenvalue: float
    gap: float
    optimal: bool
    products: int = 0
    approximation: float | None = None
    full_eigenvalue: float | None = None
    error: float | None = None
    direction: Array | None = field(default=None, repr=False, compare=False)


def certificate(
    least: float, d_sum: float, objective: float, tolerance: float, direction: Array, products: int = 0
) -> Certificate:
    """The certificate from a least eigenvalue; it keeps the direction of further ascent where it is not optimal."""
    gap = max(0.0, -least) * d_sum
    optimal = bool(gap <= tolerance * abs(objective))
    return Certificate(float(least), float(gap), optimal, products, direction=None if optimal else direction)


def certify_dense(matrix: Array, y: Array, d: Array, tolerance: float) -> Certificate:
    """From Abar (n, n), by all eigenvalues."""
    matrix = np.diag(y) - matrix
    values, vectors = np.linalg.eigh(symmetric_part(matrix))
    return certificate(values[0], d.sum(), float(d @ y), tolerance, vectors[:, 0], len(y))


def certify_lanczos(matrix: Any, y: Array, e: Array, d: Array, tolerance: float) -> Certificate:
    """From products of Abar with vectors (n, c), at a solution E (n, r).

    S = diag(y) - Abar = Y^(1/2) (I - M) Y^(1/2) with M = Y^(-1/2) Abar Y^(-1/2), for which the columns of Y^(1/2) E are
    eigenvectors of the eigenvalue 1. Let Q be their orthonormal basis, θ the largest Ritz value of M on the
    complement of Q, ρ its residual. The least eigenvalue of I - M is no less than the least one, nu, of
    [[a, -c], [-c, b]], where a = 1 - lambda_max(Qᵀ M Q), b = 1 - θ - ρ, c = |M Q - Q Qᵀ M Q|; where nu is
    negative, no eigenvalue of S is below nu max(y). Entries of y that are not positive, which no solution has, are
    raised for this, and the increase is subtracted from the bound.
    """
    positive, objective = np.where(y > 0, y, np.abs(y).max()), float(d @ y)
    root = np.sqrt(positive)[:, None]
    q, sizes, _ = np.linalg.svd(root * e, full_matrices=False)
    q = q[:, sizes > SMALL * sizes[0]]
    count = 0

    def product(v: Array) -> Array:
        nonlocal count
        v = v.reshape(len(y), -1)
        count += v.shape[1]
        return np.asarray((matrix @ (v / root)) / root)

    pulled = product(q)
    inside = q.T @ pulled
    coupling = float(np.linalg.norm(pulled - q @ inside, 2))
    own = 1 - float(np.linalg.eigvalsh(symmetric_part(inside))[-1])

    def outside(v: Array) -> Array:
        v = v.reshape(-1, 1)
        w = product(v - q @ (q.T @ v))
        return np.asarray((w - q @ (q.T @ w))[:, 0])

    start = np.random.default_rng(0).standard_normal(len(y))
    operator = LinearOperator((len(y), len(y)), matvec=outside, dtype=float)
    theta, rho, v = 1.0, 1.0, start
    for precision in TOLERANCES:
        try:
            _, vectors = eigsh(operator, 1, which="LA", v0=v, tol=precision, maxiter=ITERATIONS, ncv=min(40, len(y)))
        except ArpackNoConvergence:
            break
        v = vectors[:, 0]
        w = outside(v)
        theta = float(v @ w)
        rho = float(np.linalg.norm(w - theta * v))
        if theta + rho <= 1 or theta - rho > 1:
            break
    other = 1 - theta - rho
    least = min(0.0, 0.5 * (own + other) - float(np.hypot(0.5 * (own - other), coupling)))
    least = least * float(positive.max()) - float((positive - y).max())
    return certificate(least, d.sum(), objective, tolerance, v / root[:, 0], count)
