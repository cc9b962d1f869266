"""The penalised pencil: its leading functions span what a Rayleigh-Ritz solution is sought in.

Smoothness decides which directions are trusted: B = L + mu K adds the squared norm K of the function space to the form.
The span of the leading functions of (B, Φ) is well determined where the Gram matrix Φ alone is singular to
rounding; the form without the penalty is then solved within it, so that no value carries the penalty.

They are the functions of largest θ = vᵀ A v / vᵀ (A + t (B + σ A)) v, for A = Φ without what the functions have of
those that the form kills; t = 1 / max(λ, 1e-3 tr B / tr A) with λ the last value wanted, and σ ≥ 0 is raised until the
sum is positive semidefinite, as below potential wells.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.devices import HOST, Device
from daskspectral.solve.system import GalerkinSystem, Penalty
from daskspectral.solve.whitening import (
    Whitening,
    beside,
    deflated,
    eigh,
    orthonormal,
    symmetric_part,
    unit_root,
    whiten,
)

Array = NDArray[np.floating[Any]]
LEAST_FUNCTIONS = 32  # of a Ritz space
MARGIN = 8  # functions of a Ritz space beyond those that are wanted
PART = 3  # times a Ritz space: the leading functions of the whole data in which a part of them is solved
PART_ROUNDING = 1e-10  # of directions of the whole data that a part of them does not see
NO_VALUE = 1e-12  # of the largest singular value: what is below is zero, of arbitrary functions
CERTAIN = 100.0  # times what rounding leaves of a function that vanishes on the data, a function's share must be
RAISED = 1e12  # σ t, which no well of a form of the same rows needs


def ritz_size(count: int) -> int:
    """The number of functions of the Ritz space in which `count` values are sought."""
    return max(LEAST_FUNCTIONS, count + MARGIN)


def scale_of(last: float, outer_trace: float, inner_trace: float) -> float:
    """t for the last value wanted, tr B and tr A."""
    return float(1 / max(last, 1e-3 * abs(outer_trace) / inner_trace))  # tr B is negative below deep wells


def raised(t: float, sigma: float) -> float:
    """The next σ. Raises LinAlgError where none can make the sum positive."""
    if t * sigma > RAISED:
        raise np.linalg.LinAlgError(
            "the form has values too far below 0 for its leading functions to be told apart; are its modes and the "
            "Gram matrix's those of the same rows?"
        )
    return max(2 * sigma, 1 / t)


def leading_by_cholesky(a: Array, b: Array, t: float, size: int) -> tuple[Array, Array, float]:
    """The `size` largest θ, descending, their vectors (p, size), and σ, where A + t (B + σ A) is well conditioned."""
    p, sigma = len(a), 0.0
    while True:
        try:
            theta, vectors = scipy.linalg.eigh(
                a,
                (1 + t * sigma) * a + t * b,
                subset_by_index=(p - size, p - 1) if size < p else None,
                driver="gvx" if size < p else "gvd",
            )
        except scipy.linalg.LinAlgError:
            sigma = raised(t, sigma)
        else:
            return theta[::-1], vectors[:, ::-1], sigma


def last_value(energy: Array, white: Array, count: int) -> float:
    """The value number `count` of the energy on white directions (p, s), or the largest one there is; 0 for none."""
    k = min(count, white.shape[1]) - 1
    if k < 0:
        return 0.0
    reduced = symmetric_part(white.T @ energy @ white)
    return float(scipy.linalg.eigh(reduced, eigvals_only=True, subset_by_index=(k, k))[0])


class Pencil:
    """The penalised problem B = energy + penalty, A = gram, (p, p), in the directions that the data see.

    `null` (p,) marks the functions that the energy kills (rows of exact zeros, the constant's). `root` whitens
    A + t (B + σ A) of the others, without what they have of the null ones; `norm` is the penalty of these. `count`
    values are wanted, and λ is sought among the directions of A above `cut`. `theta` (r,), descending, are the
    eigenvalues of A in the directions of `root`, `functions` (p, r) their functions. Parts of the data are solved in
    these. Raises ValueError where every function vanishes on the data.
    """

    def __init__(self, energy: Array, gram: Array, penalty: Penalty, count: int, cut: float, device: Device = HOST):
        self.count, self.cut, self.precision = count, cut, penalty.precision
        self.null = (energy == 0).all(axis=0) & (np.diag(gram) > 0)
        rest, self._white = ~self.null, whiten(gram, cut, self.null, device=device).matrix
        self._first, _, a = deflated(gram, self.null, cut)
        self.norm = penalty.left[np.ix_(rest, rest)]
        b, squares = energy[np.ix_(rest, rest)] + self.norm, np.diag(gram)[rest]
        self.t, self.sigma = 1.0, 0.0
        if np.trace(a) > 0:
            last = last_value(energy, self._white[:, self._first.shape[1] :], ritz_size(count) - MARGIN)
            self.t = scale_of(last, np.trace(b), np.trace(a))
        self.root = InverseRoot(a + self.t * b, penalty.rounding, squares, device)
        while self.root.least < -100 * self.root.rounding and self.sigma * self.t < RAISED:
            self.sigma = raised(self.t, self.sigma)
            self.root = InverseRoot(a + self.t * (b + self.sigma * a), penalty.rounding, squares, device)
        self.theta, self.functions = self.root.leading(a)

    def leading(self, gram: Array) -> Whitening:
        """The leading functions of the data that the pencil is of, orthonormal in their Gram matrix: (p, q).

        The null functions lead, and the others are orthogonal to them. `rank` counts all functions that the data see;
        the span holds q = min(rank, max(32, count + 8)) of them.
        """
        parts, blurred = deflated(gram, self.null, self.cut), self.root.blurred(self.functions, self.precision)
        span = self._whitening(self.null, parts, self.theta, self.functions, blurred)
        return replace(span, coordinates=self._white.T @ gram @ span.matrix)

    @cached_property
    def span(self) -> Array:
        """The functions in which parts of the data are solved, (p, m): null ones, orthonormal, and leading others."""
        first, w = self._first, self._part[0]
        return beside(first, np.zeros((len(first), w.shape[1])), w, self.null)

    def part(self, energy: Array, gram: Array, factor: float) -> Whitening:
        """The leading functions of a part of the data, whose penalty is `factor` times that of the whole.

        Its form and Gram matrix (m, m) are of the functions of `span`, and so are the functions that are found.
        """
        null = np.arange(len(gram)) < self._first.shape[1]
        first, shift, a = deflated(gram, null, self.cut)
        w, norm = self._part
        inner, form = symmetric_part(a), energy[np.ix_(~null, ~null)] + factor * norm
        outer = symmetric_part(inner + self.t * (form + self.sigma * inner))
        try:
            theta, vectors = scipy.linalg.eigh(inner, outer, driver="gvd")
        except scipy.linalg.LinAlgError:  # directions that this part does not see, and no penalty holds
            inverse = unit_root(outer, 0.0, PART_ROUNDING)[0]
            theta, vectors = eigh(symmetric_part(inverse.T @ inner @ inverse))
            vectors = inverse @ vectors
        some = slice(-1, -1 - ritz_size(self.count), -1)
        theta, vectors = theta[some], vectors[:, some]
        return self._whitening(null, (first, shift, a), theta, vectors, self.root.blurred(w @ vectors, self.precision))

    @cached_property
    def _part(self) -> tuple[Array, Array]:
        """The functions (r, q) besides the null ones in which parts are solved, and their norm (q, q)."""
        w = self.functions[:, : PART * ritz_size(self.count)]
        return w, w.T @ self.norm @ w

    def _whitening(
        self, null: NDArray[np.bool_], parts: tuple[Array, Array, Array], theta: Array, vectors: Array, blurred: Array
    ) -> Whitening:
        """The null functions and the leading others, orthonormal, from theta and their vectors, both descending."""
        first, shift, a = parts
        seen = np.flatnonzero(theta > CERTAIN * blurred)
        chosen = seen[: max(0, ritz_size(self.count) - first.shape[1])]
        span: Array = vectors[:, chosen] / np.sqrt(theta[chosen])
        span = orthonormal(span, span.T @ a @ span)
        matrix = beside(first, -first @ (shift @ span), span, null)
        return Whitening(matrix, theta, first.shape[1] + len(seen))


class InverseRoot:
    """W (p, r) with Wᵀ M W = I for a symmetric `matrix` M (p, p), on directions above `rounding` at unit diagonal.

    `least` and `largest` are the extreme eigenvalues there; `least` is -1 where the diagonal is negative. The rounding
    of the entries of M is relative to `squares` (p,), those of the functions where M is of what is left of them,
    without a constant: what was subtracted leaves its rounding. Functions of none are seen by no row, and left out
    whatever their norm.
    """

    def __init__(self, matrix: Array, rounding: float, squares: Array, device: Device):
        self.squares, self.device, diagonal, seen = squares, device, np.diag(matrix), squares > 0
        excess = np.divide(squares, diagonal, out=np.ones(len(matrix)), where=diagonal > 0)
        self.rounding = rounding * float(excess.max(initial=1.0))
        known = np.where(np.outer(seen, seen), matrix, 0.0)
        self.matrix, values = unit_root(known, 0.0, self.rounding, device=device)
        self.least = -1.0 if (diagonal < 0).any() else float(values.min(initial=np.inf))
        self.largest = float(values.max(initial=0.0))

    def leading(self, inner: Array) -> tuple[Array, Array]:
        """The eigenvalues of another matrix in these directions, descending, and their functions (p, r)."""
        theta, vectors = eigh(symmetric_part(self.matrix.T @ inner @ self.matrix), device=self.device)
        return theta[::-1], self.matrix @ vectors[:, ::-1]

    def blurred(self, functions: Array, precision: float) -> Array:
        """How much of the squared norms (k,) of functions (p, k) is rounding: large coefficients cancel."""
        return np.asarray(precision * self.largest * (self.squares @ functions**2))


def leading_pairs(system: GalerkinSystem, penalty: Penalty, count: int, cut: float) -> tuple[Whitening, Whitening]:
    """The leading singular functions of Wᵀ form Z, orthonormal in the Gram matrices: (p, q) and (q', q).

    W Wᵀ = (gram + mu K)⁻¹ and Z Zᵀ = (right_gram + nu K')⁻¹. With means, (p,) and (q',), all
    matrices are those of the functions less their means. A side of no more functions than a Ritz space holds is taken
    whole. The left ones have coordinates in the basis of `gram` whitened on the directions above `cut`.
    """
    squares, system = [np.diag(gram) for gram in system.grams], system.covariances
    form, (gram, right_gram) = system.form, system.grams
    right_penalty = penalty.left if penalty.right is None else penalty.right
    w = _certain(gram, penalty.left, penalty, squares[0], system.device)
    z = _certain(right_gram, right_penalty, penalty, squares[1], system.device)
    if not min(w.shape[1], z.shape[1]):
        if not (squares[0].any() and squares[1].any()):
            raise ValueError("every function is zero on every point; fit columns that vary, or widen a kernel's scale")
        raise ValueError("beside the penalty every basis function is rounding on these data; lower the penalty")
    size = ritz_size(count)
    u, values, vt = scipy.linalg.svd(w.T @ form @ z, full_matrices=False)
    q = min(size, np.count_nonzero(values > NO_VALUE * values[0]))
    left = w if w.shape[1] <= size else w @ u[:, :q]
    right = z if z.shape[1] <= size else z @ vt[:q].T
    left, right = orthonormal(left, left.T @ gram @ left), orthonormal(right, right.T @ right_gram @ right)
    seen = whiten(gram, cut, device=system.device).matrix.T @ gram @ left
    return Whitening(left, np.zeros(0), w.shape[1], seen), Whitening(right, np.zeros(0), z.shape[1])


def _certain(gram: Array, norm: Array, penalty: Penalty, squares: Array, device: Device) -> Array:
    """W (p, r) with W^T (gram + norm) W = I and W^T gram W diagonal, of the functions whose norm is not rounding."""
    root = InverseRoot(gram + norm, penalty.rounding, squares, device)
    theta, functions = root.leading(gram)
    return functions[:, theta > CERTAIN * root.blurred(functions, penalty.precision)]
