"""Penalized pencil, whose leading functions span the space of a Rayleigh-Ritz solution.

With the penalty B = L + mu K, K the squared norm of the function space, the span of the leading functions of (B, Φ) is
well determined even if the Gram matrix Φ is singular to rounding; the form without the penalty is then solved in it.

The leading functions are those of largest θ = vᵀ A v / vᵀ (A + t (B + σ A)) v, A = Φ projected off the null functions
of the form; t = 1 / max(λ, 1e-3 tr B / tr A) with λ the last requested value, and σ ≥ 0 is raised until the sum is
positive semidefinite, for example with potential wells.
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
    at_unit_diagonal,
    check_seen,
    deflated,
    eigh,
    inverse_root,
    orthonormal,
    symmetric_part,
    unit_root,
    whiten,
    with_null,
)

Array = NDArray[np.floating[Any]]
LEAST_FUNCTIONS = 32  # minimum size of a Ritz space
MARGIN = 8  # functions of a Ritz space beyond the requested ones
POWERS = 2  # iterations for principal functions
PART = 3  # size of the space for parts of the data, relative to a Ritz space
PART_ROUNDING = 1e-10  # of directions of the whole data that vanish on a part
NO_VALUE = 1e-12  # of the largest singular value: smaller ones are 0, with arbitrary functions
CERTAIN = 100.0  # minimum share of a function, relative to the rounding of one that vanishes on the data
MANY = 5  # functions per eigenvector, up to which all eigenvectors are faster
RAISED = 1e12  # limit of σ t, above those for wells of a form of the same rows


def ritz_size(count: int) -> int:
    """Return the size of the Ritz space for `count` values."""
    return max(LEAST_FUNCTIONS, count + MARGIN)


def scale_of(last: float, outer_trace: float, inner_trace: float) -> float:
    """Return t for the last requested value, tr B and tr A."""
    return float(1 / max(last, 1e-3 * abs(outer_trace) / inner_trace))  # tr B is negative for deep wells


def next_shift(t: float, sigma: float) -> float:
    """Return the next larger σ; raise LinAlgError if no σ makes the sum positive."""
    if t * sigma > RAISED:
        raise np.linalg.LinAlgError(
            "the form has too large negative values to determine its leading functions. Check that its modes "
            "and the Gram matrix are of the same rows"
        )
    return max(2 * sigma, 1 / t)


def leading_by_cholesky(a: Array, b: Array, t: float, size: int) -> tuple[Array, Array, float]:
    """Return the `size` largest θ, descending, vectors (p, size), and σ."""
    p, sigma = len(a), 0.0
    some = (p - size, p - 1) if MANY * size < p else None  # all are faster than many
    while True:
        try:
            theta, vectors = scipy.linalg.eigh(
                a, (1 + t * sigma) * a + t * b, subset_by_index=some, driver="gvd" if some is None else "gvx"
            )
        except scipy.linalg.LinAlgError:
            sigma = next_shift(t, sigma)
        else:
            return theta[: -size - 1 : -1], vectors[:, : -size - 1 : -1], sigma


def last_value(energy: Array, white: Array, count: int) -> float:
    """Return the `count`-th smallest energy in whitened directions (p, s), or the largest, or 0."""
    k = min(count, white.shape[1]) - 1
    if k < 0:
        return 0.0
    reduced = symmetric_part(white.T @ energy @ white)
    return float(scipy.linalg.eigh(reduced, eigvals_only=True, subset_by_index=(k, k))[0])


def principal(gram: Array, count: int, cut: float) -> Array:
    """Return about the `count` leading principal functions (p, r) of a Gram matrix, orthonormal."""
    correlation, scale = at_unit_diagonal(gram)
    span = np.random.default_rng(0).standard_normal((len(gram), count))
    for _ in range(POWERS):
        span = np.linalg.qr(correlation @ span)[0]
    found: Array = scale[:, None] * (span @ inverse_root(symmetric_part(span.T @ correlation @ span), cut))
    return found


class Pencil:
    """Penalized problem B = energy + penalty, A = gram, (p, p), in the directions determined by the data.

    `null` (p,) marks functions annihilated by the energy (rows of exact zeros). `root` whitens A + t (B + σ A) of the
    others; `norm` is their penalty. λ is the last of `count` values of A above `cut`, estimated from principal
    functions if only parts of the data are solved, not the `whole`; `theta` (r,), descending, and `functions` (p, r)
    are its eigenpairs in `root`. Raises ValueError if every function vanishes.
    """

    def __init__(
        self,
        energy: Array,
        gram: Array,
        penalty: Penalty,
        count: int,
        cut: float,
        device: Device = HOST,
        whole: bool = True,
    ):
        self.count, self.cut, self.precision = count, cut, penalty.precision
        self.null = (energy == 0).all(axis=0) & (np.diag(gram) > 0)
        rest, self._gram, self._device = ~self.null, gram, device
        check_seen(gram)
        self._first, _, a = deflated(gram, self.null, cut)
        self.norm = penalty.left[np.ix_(rest, rest)]
        b, squares = energy[np.ix_(rest, rest)] + self.norm, np.diag(gram)[rest]
        self.t, self.sigma = 1.0, 0.0
        if np.trace(a) > 0:
            size = ritz_size(count)
            if whole:
                last = last_value(energy, self._white[:, self._first.shape[1] :], size - MARGIN)
            else:
                last = last_value(energy[np.ix_(rest, rest)], principal(a, size, cut), size - MARGIN)
            self.t = scale_of(last, np.trace(b), np.trace(a))
        self.root = InverseRoot(a + self.t * b, penalty.rounding, squares, device)
        while self.root.least < -100 * self.root.rounding and self.sigma * self.t < RAISED:
            self.sigma = next_shift(self.t, self.sigma)
            self.root = InverseRoot(a + self.t * (b + self.sigma * a), penalty.rounding, squares, device)
        self.theta, self.functions = self.root.leading(a)

    def leading(self, gram: Array) -> Whitening:
        """Return the leading functions (p, q) of the pencil, orthonormal in the Gram matrix, null functions first.

        `rank` is the number of functions that the data determine, q = min(rank, max(32, count + 8)).
        """
        parts, blurred = deflated(gram, self.null, self.cut), self.root.blurred(self.functions, self.precision)
        span = self._whitening(self.null, parts, self.theta, self.functions, blurred)
        return replace(span, coordinates=self._white.T @ gram @ span.matrix)

    @cached_property
    def _white(self) -> Array:
        """All functions above the cut, orthonormal (p, r)."""
        return whiten(self._gram, self.cut, self.null, device=self._device).matrix

    @cached_property
    def span(self) -> Array:
        """Functions (p, m) for parts of the data: null functions, and leading others."""
        first, w = self._first, self._part[0]
        return with_null(first, np.zeros((len(first), w.shape[1])), w, self.null)

    def part(self, energy: Array, gram: Array, factor: float) -> Whitening:
        """Return the leading functions of a part of the data, with `factor` times the penalty of the whole.

        All matrices are in terms of the functions of `span`.
        """
        null = np.arange(len(gram)) < self._first.shape[1]
        first, shift, a = deflated(gram, null, self.cut)
        w, norm = self._part
        inner, form = symmetric_part(a), energy[np.ix_(~null, ~null)] + factor * norm
        outer = symmetric_part(inner + self.t * (form + self.sigma * inner))
        try:
            theta, vectors = scipy.linalg.eigh(inner, outer, driver="gvd")
        except scipy.linalg.LinAlgError:  # directions that vanish on this part, without a penalty
            inverse = unit_root(outer, 0.0, PART_ROUNDING)[0]
            theta, vectors = eigh(symmetric_part(inverse.T @ inner @ inverse))
            vectors = inverse @ vectors
        some = slice(-1, -1 - ritz_size(self.count), -1)
        theta, vectors = theta[some], vectors[:, some]
        return self._whitening(null, (first, shift, a), theta, vectors, self.root.blurred(w @ vectors, self.precision))

    @cached_property
    def _part(self) -> tuple[Array, Array]:
        w = self.functions[:, : PART * ritz_size(self.count)]
        return w, w.T @ self.norm @ w

    def _whitening(
        self, null: NDArray[np.bool_], parts: tuple[Array, Array, Array], theta: Array, vectors: Array, blurred: Array
    ) -> Whitening:
        first, shift, a = parts
        seen = np.flatnonzero(theta > CERTAIN * blurred)
        chosen = seen[: max(0, ritz_size(self.count) - first.shape[1])]
        span: Array = vectors[:, chosen] / np.sqrt(theta[chosen])
        span = orthonormal(span, span.T @ a @ span)
        matrix = with_null(first, -first @ (shift @ span), span, null)
        return Whitening(matrix, theta, first.shape[1] + len(seen))


class InverseRoot:
    """Inverse root W (p, r), Wᵀ M W = I, of a symmetric `matrix` M (p, p) in directions above `rounding`.

    Directions are compared at unit diagonal; `least` and `largest` are the extreme eigenvalues, `least` = -1 for
    negative diagonal entries. Rounding is relative to `squares` (p,), the squares of functions before a constant was
    subtracted; functions that vanish on all rows, or are constant up to rounding, are excluded.
    """

    def __init__(self, matrix: Array, rounding: float, squares: Array, device: Device):
        self.squares, self.device, diagonal = squares, device, np.diag(matrix)
        seen = (squares > 0) & (np.abs(diagonal) > rounding * squares)
        excess = np.divide(squares, diagonal, out=np.ones(len(matrix)), where=seen & (diagonal > 0))
        self.rounding = rounding * float(excess.max(initial=1.0))
        known = np.where(np.outer(seen, seen), matrix, 0.0)
        self.matrix, values = unit_root(known, 0.0, self.rounding, device=device)
        self.least = -1.0 if (diagonal[seen] < 0).any() else float(values.min(initial=np.inf))
        self.largest = float(values.max(initial=0.0))

    def leading(self, inner: Array) -> tuple[Array, Array]:
        """Return descending eigenvalues of another matrix here, and functions (p, r)."""
        theta, vectors = eigh(symmetric_part(self.matrix.T @ inner @ self.matrix), device=self.device)
        return theta[::-1], self.matrix @ vectors[:, ::-1]

    def blurred(self, functions: Array, precision: float) -> Array:
        """Return the rounding (k,) of squared norms of functions (p, k)."""
        return np.asarray(precision * self.largest * (self.squares @ functions**2))


def leading_pairs(system: GalerkinSystem, penalty: Penalty, count: int, cut: float) -> tuple[Whitening, Whitening]:
    """Return orthonormal leading singular functions of Wᵀ form Z, (p, q) and (q', q).

    W Wᵀ = (gram + mu K)⁻¹ and Z Zᵀ = (right_gram + nu K')⁻¹, centered by means (p,) and (q',). Coordinates of the left
    functions are in the basis of `gram` whitened above `cut`.
    """
    squares, system = [np.diag(gram) for gram in system.grams], system.covariances
    form, (gram, right_gram) = system.form, system.grams
    right_penalty = penalty.left if penalty.right is None else penalty.right
    w = _joint_whitening(gram, penalty.left, penalty, squares[0], system.device)
    z = _joint_whitening(right_gram, right_penalty, penalty, squares[1], system.device)
    if not min(w.shape[1], z.shape[1]):
        if not (squares[0].any() and squares[1].any()):
            raise ValueError("every function is 0 on all rows. Fit columns that vary, or widen the kernel")
        raise ValueError("every basis function is below rounding relative to the penalty. Lower the penalty")
    size = ritz_size(count)
    u, values, vt = scipy.linalg.svd(w.T @ form @ z, full_matrices=False)
    q = min(size, np.count_nonzero(values > NO_VALUE * values[0]))
    left = w if w.shape[1] <= size else w @ u[:, :q]
    right = z if z.shape[1] <= size else z @ vt[:q].T
    left, right = orthonormal(left, left.T @ gram @ left), orthonormal(right, right.T @ right_gram @ right)
    seen = whiten(gram, cut, device=system.device).matrix.T @ gram @ left
    return Whitening(left, np.zeros(0), w.shape[1], seen), Whitening(right, np.zeros(0), z.shape[1])


def _joint_whitening(gram: Array, norm: Array, penalty: Penalty, squares: Array, device: Device) -> Array:
    """Return W (p, r), W^T (gram + norm) W = I, W^T gram W diagonal, above rounding."""
    root = InverseRoot(gram + norm, penalty.rounding, squares, device)
    theta, functions = root.leading(gram)
    return functions[:, theta > CERTAIN * root.blurred(functions, penalty.precision)]
