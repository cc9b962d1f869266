"""Diffusion maps as functions: leading eigenvectors of a normalized Gaussian kernel at landmarks.

Notation as in `DiffusionMap`: K_alpha = K / (q_i q_j)^alpha with q = K 1, A = K_alpha / √(m_i m_j) with m = K_alpha 1,
A_bar = A - v0 v0ᵀ, v0 = √(m / sum m). All are functions of features ψ(x) = Wᵀ k(Y, x) for landmarks Y, where W Wᵀ is
the pseudo-inverse of K_YY and K is replaced by ψᵀ ψ; the features of an exact map are k(Y, x) at all points Y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from daskspectral.embedding.problems import CUT
from daskspectral.kernels import Kernel
from daskspectral.registry import Registered
from daskspectral.solve.whitening import eigh, symmetric_part, whiten

Array = NDArray[np.floating[Any]]

COVERED = 0.1  # share of k(x, x) = 1, and of a degree, that landmarks must reproduce at the points of a fit
LEAST_EIGENVALUE = 1e-10  # below it, relative to the eigenvalue 1, an eigenvector is rounding error
_DIGITS = 1e-6  # a degree below this share of the product of norms has lost its digits
NEIGHBORS = 10  # neighbor whose distance is the scale
MODES = 10  # number of the nontrivial mode
JOINED = 0.9  # its eigenvalue: a walk leaves a group with probability 0.1 per step
FEW = 0.01  # of the rows: a coordinate that rests on fewer is of outliers
_ROWS = 3  # or on fewer than these, of 30 or more
_HALVINGS = 6  # of an octave: 1 %
_BLOCK_ENTRIES = 1 << 21


def point_blocks(x: Array, count: int) -> Iterator[tuple[slice, Array, NDArray[np.bool_]]]:
    """Yield bounds of blocks, their points (c, d) with 0 for non-finite ones, and the mask of finite ones.

    Sizes depend only on the number `count` of points of kernels.
    """
    step = max(1, min(2048, _BLOCK_ENTRIES // count))
    for start in range(0, len(x), step):
        rows = slice(start, min(start + step, len(x)))
        finite: NDArray[np.bool_] = np.asarray(np.isfinite(x[rows]).all(axis=1))
        yield rows, np.where(finite[:, None], x[rows], 0.0), finite


@dataclass(frozen=True, eq=False)
class DiffusionFunctions(Registered):
    """Coordinates x -> λ^t ψ(x) of a diffusion map, by Nystrom's formula, exact at points of the fit.

    The features g (c, q) are Wᵀ k(Y, x) with `whitening` W (p, q), k(Y, x) without it, Y = `points` (p, d). From them
    q(x) = g.first, m(x) = g.second / q(x)^alpha, and the coordinates g weights / (q(x)^alpha √(m(x))), (c, k). `mass`
    = sum m divides these by √(m(x) / mass) once more: eigenfunctions of the Markov operator.
    """

    expects: ClassVar = {"kernel": Kernel}
    kernel: Kernel
    points: Array
    whitening: Array | None
    first: Array
    second: Array
    weights: Array
    alpha: float = 0.0
    mass: float | None = None

    @property
    def width(self) -> int:
        return int(self.weights.shape[1])

    def features(self, x: Array) -> Array:
        values = self.kernel.values(x, self.points).T
        return np.asarray(values if self.whitening is None else values @ self.whitening)

    def __call__(self, x: Array) -> Array:
        """Return the coordinates (c, k) at x (c, d), NaN for tiny degrees or non-finite x."""
        result = np.empty((len(x), self.width))
        for rows, block, finite in point_blocks(x, len(self.points)):
            g = self.features(block)
            q, m = g @ self.first, g @ self.second
            norm = np.linalg.norm(g, axis=1)
            least = _DIGITS * norm
            known: NDArray[np.bool_] = finite & (norm > _DIGITS) & (q > least * np.linalg.norm(self.first))
            known &= m > least * np.linalg.norm(self.second)
            q, m = np.where(known, q, 1.0), np.where(known, m, 1.0)
            q **= self.alpha
            m /= q
            root = np.sqrt(m) if self.mass is None else m / np.sqrt(self.mass)
            result[rows] = (g / q[:, None]) @ self.weights / root[:, None]
            result[rows][~known] = np.nan
        return result


def landmark_features(kernel: Kernel, landmarks: Array, alpha: float = 0.0) -> DiffusionFunctions:
    """Return the features psi of landmarks (p, d) before any pass, without coordinates."""
    whitening = whiten(kernel.values(landmarks, landmarks), CUT).matrix
    zeros = np.zeros(whitening.shape[1])
    return DiffusionFunctions(kernel, landmarks, whitening, zeros, zeros, np.zeros((len(zeros), 0)), alpha)


def landmark_sums(
    f: DiffusionFunctions, step: str, batches: Iterable[Mapping[str, Array]], state: Any = None
) -> dict[str, Array]:
    """Return the sums over points of one step, from which the map at landmarks is solved.

    "first" is sum ψ_i (q,); "second" sum ψ_i / q_i^alpha (q,), which requires the first; "gram" S = Σ_i ψ_i ψ_iᵀ /
    (q_i^(2 alpha) m_i) (q, q), which requires both. `uncovered` counts points with |ψ_i|² below a tenth of k(x, x) =
    1, or a degree below a tenth of the point's contribution.
    """
    width = len(f.first)
    total: Array = np.zeros((width, width) if step == "gram" else width)
    uncovered = np.zeros(1)
    batched = (np.asarray(batch["x"], dtype=float) for batch in batches)
    for _, x, _ in (block for points in batched for block in point_blocks(points, len(f.points))):
        g = f.features(x)
        covered = np.einsum("cq,cq->c", g, g) >= COVERED
        if step != "first":
            q = g @ f.first
            covered &= q >= COVERED
            q = np.where(covered, q, 1.0) ** f.alpha
            g /= q[:, None]
        if step == "gram":
            m = g @ f.second
            covered &= m * q**2 >= COVERED
            g /= np.sqrt(np.where(covered, m, 1.0))[:, None]
        uncovered += np.count_nonzero(~covered)
        total = total + (g.T @ g if step == "gram" else g.sum(axis=0))
    return {step: total, "uncovered": uncovered}


def with_sums(functions: DiffusionFunctions, sums: Mapping[str, Array]) -> DiffusionFunctions:
    """Return the features with the sums of a step; for alpha = 0 the second sum is the first."""
    if "first" in sums:
        functions = replace(functions, first=sums["first"])
        return functions if functions.alpha else replace(functions, second=sums["first"])
    return replace(functions, second=sums["second"])


def landmark_map(
    functions: DiffusionFunctions, gram: Array, count: int, *, time: float = 1.0, symmetric: bool = True
) -> tuple[Array, DiffusionFunctions]:
    """Return the `count` leading eigenvalues of A_bar, those of P S P (k,), and the coordinates.

    P = I - σσᵀ / M with σ = sum ψ_i / q_i^alpha and M = |σ|² = sum m_i. An eigenvector w of P S P yields the
    eigenvector ψ_i.w / (q_i^alpha √(m_i λ)) of A_bar. Eigenvalues below 1e-10 are left out.
    """
    sigma = functions.second
    mass = float(sigma @ sigma)
    deflated = _projected(_projected(gram, sigma).T, sigma)
    values, vectors = eigh(symmetric_part(deflated))
    leading, found = _leading(values, vectors, count)
    weights = _projected(found, sigma) * leading ** (time - 0.5)
    return leading, replace(functions, weights=weights, mass=None if symmetric else mass)


def _projected(matrix: Array, sigma: Array) -> Array:
    """Return (I - sigma sigma^T / |sigma|^2) matrix."""
    return np.asarray(matrix - np.outer(sigma, sigma @ matrix) / (sigma @ sigma))


def _leading(values: Array, vectors: Array, count: int) -> tuple[Array, Array]:
    """Return the `count` largest values above rounding, and their vectors."""
    kept = np.argsort(-values, kind="stable")[: min(count, np.count_nonzero(values > LEAST_EIGENVALUE))]
    return values[kept], vectors[:, kept]


def exact_map(
    kernel: Kernel,
    points: Array,
    gram: Array,
    count: int,
    *,
    alpha: float = 0.0,
    time: float = 1.0,
    symmetric: bool = True,
) -> tuple[Array, DiffusionFunctions, Array]:
    """Return the `count` leading eigenvalues of A_bar (k,), the functions, and coordinates of all points (n, k)."""
    first = np.ones(len(points))
    second = gram.sum(axis=1) ** -alpha
    m = second * (gram @ second)
    root = np.sqrt(m)
    scale = second / root
    values, vectors = leading_pairs(scale[:, None] * gram * scale, root / np.linalg.norm(root), count)
    weights = scale[:, None] * vectors * values ** (time - 1)
    mass = None if symmetric else float(m.sum())
    coordinates = vectors * values**time / (1.0 if mass is None else root[:, None] / np.sqrt(mass))
    return values, DiffusionFunctions(kernel, points, None, first, second, weights, alpha, mass), coordinates


def leading_pairs(matrix: Array, trivial: Array, count: int) -> tuple[Array, Array]:
    """Return the `count` leading eigenvalues (k,) and eigenvectors (n, k) of A_bar, and overwrite A."""
    n, count = len(matrix), min(count, len(matrix))
    deflated: NDArray[Any] = matrix
    deflated -= np.outer(trivial, trivial)  # symmetric up to rounding
    values, vectors = scipy.linalg.eigh(deflated, subset_by_index=[n - count, n - 1])
    if np.abs(vectors.T @ vectors - np.eye(count)).max() > _DIGITS:  # LAPACK misses some of a cluster's
        values, vectors = eigh(deflated)
    return _leading(values, vectors, count)


def rows_of_coordinates(coordinates: Array) -> Array:
    """Return the shares (k,) of n rows that coordinates (n, k) rest on, (sum ψ²)² / (n sum ψ⁴)."""
    squares = np.square(np.nan_to_num(coordinates / np.nanmax(np.abs(coordinates), axis=0)))
    valid = np.count_nonzero(np.isfinite(coordinates).all(axis=1))
    return np.asarray(squares.sum(axis=0) ** 2 / (valid * np.square(squares).sum(axis=0)))


def rest_on_few(shares: Array, n: int) -> NDArray[np.bool_]:
    """Return the mask of coordinates that rest on fewer than 1 % of n rows, or three."""
    return np.asarray(shares < max(FEW, min(_ROWS / n, 0.1)))


def neighbor_scale(points: Array, vectors: Callable[[float], Array]) -> float:
    """Return the median distance of points to their 10th neighbor, robust to outliers.

    It is doubled while one of the `vectors` (n, k) at a bandwidth rests on few points, up to four times the median
    distance. Copies count once; below 50 points a fifth of their number replaces ten. Raises ValueError if all points
    are equal.
    """
    distinct = np.unique(points, axis=0)
    if len(distinct) < 2:
        raise ValueError("points must differ, got equal points only, for which no bandwidth can be chosen.")
    number = min(NEIGHBORS, max(1, len(distinct) // 5))
    scale = h = float(np.median(KDTree(distinct).query(distinct, [number + 1])[0]))
    widest = math.inf
    while h < widest:
        if not rest_on_few(rows_of_coordinates(vectors(h)), len(points)).any():
            return h
        if widest == math.inf:
            squares = pdist(points, "sqeuclidean")
            widest = 4 * math.sqrt(np.median(squares[squares > 0]))
        h *= 2
    return scale


def eigenvectors(squares: Array, count: int, h: float) -> Array:
    """Return the `count` leading eigenvectors (n, k) of A_bar, alpha = 0, from squared distances (n, n)."""
    k = np.exp(-squares / h**2)
    root = np.sqrt(k.sum(axis=1))
    return leading_pairs(k / root / root[:, None], root / np.linalg.norm(root), count)[1]


def joining_bandwidth(squares: Array) -> float:
    """Return the bandwidth h at which the graph of exp(-r² / h²) is just connected, to 1 %.

    There the tenth largest eigenvalue of Abar (1.2) is 0.9, from `squares` r² (n, n): k eigenvalues near 1 are k + 1
    groups that the random walk K_ij / m_i rarely leaves (Lee, Oveis Gharan and Trevisan 2014). Below 100 distinct
    points, a tenth of their number replaces ten. About a dozen counts of eigenvalues cost O(n³) each. Raises ValueError
    if all points are equal.
    """
    n = len(squares)
    first = np.argmin(squares, axis=1) == np.arange(n)  # the point itself, or the first one equal to it
    distinct = int(np.count_nonzero(first))
    if distinct < 2:
        raise ValueError("points must differ, got equal points only, for which no bandwidth can be chosen.")
    modes = min(MODES, max(1, distinct // 10))

    def joined(h: float) -> bool:
        return _number_above(squares, h, JOINED) <= modes

    h = float(np.sqrt(np.median(squares[squares > 0])))
    if joined(h):
        while joined(h / 2):
            h /= 2
    else:
        while not joined(h):
            h *= 2
    low = h / 2
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * h))
        low, h = (low, middle) if joined(middle) else (middle, h)
    return h


def _number_above(squares: Array, h: float, least: float) -> int:
    """Return the number of eigenvalues of A above `least`, from the inertia of `least` I - A (Sylvester)."""
    k = np.exp(-squares / h**2)
    root = np.sqrt(k.sum(axis=1))
    k /= root[:, None] * -root
    k[np.diag_indices(len(k))] += least
    size = int(scipy.linalg.lapack.dsytrf_lwork(len(k), lower=1)[0])
    factor, pivots, _ = scipy.linalg.lapack.dsytrf(k.T, lower=1, lwork=size, overwrite_a=True)
    blocks = np.count_nonzero(pivots < 0) // 2  # of two rows, with one negative eigenvalue
    return int(np.count_nonzero(np.diag(factor)[pivots > 0] < 0) + blocks)
