"""Landmarks: choosing p points y_i, at which the basis functions k(., y_i) sit, out of a sample of the rows.

    method         p rows of the data
    "uniform"      drawn uniformly
    "kmeans++"     k-means++ seeds: spread out, denser where the data are
    "farthest"     farthest-point traversal: even cover, also of the edges
    "cholesky"     pivots of a Cholesky factorisation of the kernel matrix

`basis.Landmarks` takes one of these as its argument `method` (and points of your own as `points`), a shell as
`--landmark-method`. All but the first choose among `sample` rows drawn uniformly (10 p by default, at least 10 000).
The choice matters where few rows decide. On two half-moons with noise 0.05, whose second eigenvalue tends to 0, 200
farthest-point landmarks give 0.058, k-means++ 0.27 and uniform ones 0.50: the functions that reach into the gap between
the clusters matter.

The functions here work on a sample (m, d) in memory:

    >>> import numpy as np
    >>> from daskspectral import landmarks
    >>> sample = np.array([[0.0], [0.1], [0.2], [5.0], [9.0]])
    >>> rows = landmarks.choose("farthest", sample, 3, np.random.default_rng(0))
    >>> np.sort(sample[rows, 0])[1:]  # and one of the three rows that lie together
    array([5., 9.])

Every method returns row indices into the sample, distinct and in the order in which they were chosen, and
depends only on its arguments and the state of the generator.

Distances are sums of squared coordinate differences, which need neither centring nor clipping: they are 0 for
equal rows and lose no digits far from the origin. A kernel enters as ``gram(a, b)``, the (len(a),
len(b)) array of its values; it sees the points as they are, since not every kernel is translation invariant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist, pdist

from daskspectral.validation import check_integer, check_option

__all__ = [
    "METHODS",
    "choose",
    "farthest_point",
    "kmeans_plus_plus",
    "median_distance",
    "pivoted_cholesky",
    "uniform",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Gram = Callable[[Array, Array], NDArray[Any]]
Diagonal = Callable[[Array], NDArray[Any]]

BY_KERNEL = ("cholesky",)  # methods that judge points by the kernel, not by distances
MANY_COLUMNS = 100  # from which distances are taken row by row
METHODS = ("uniform", "kmeans++", "cholesky", "farthest")

_EXHAUSTED = 1e-12  # a residual below this fraction of the largest diagonal entry is rounding


def choose(
    method: str,
    sample: ArrayLike,
    p: int,
    rng: np.random.Generator,
    *,
    gram: Gram | None = None,
    diagonal: Diagonal | None = None,
) -> Indices:
    """Return the indices (p,) of landmarks chosen by one of `METHODS`.

    "cholesky" needs ``gram``. All methods but "uniform" return fewer than p indices when the sample
    cannot support p (see each); the caller decides whether to warn. Raises ValueError for an unknown method, a
    missing kernel, a sample that is not a finite (m, d) array, or p outside 1..m.

    Examples
    --------
    >>> sample = np.random.default_rng(0).normal(size=(1000, 2))
    >>> choose("kmeans++", sample, 5, np.random.default_rng(0)).shape
    (5,)
    """
    if method in BY_KERNEL:
        if gram is None:
            raise ValueError(f"expected a kernel for method={method!r}, received None; pass gram=")
        return pivoted_cholesky(sample, p, rng, gram, diagonal=diagonal)
    geometric = {"uniform": uniform, "kmeans++": kmeans_plus_plus, "farthest": farthest_point}
    return geometric[check_option("method", method, METHODS)](sample, p, rng)


def uniform(sample: ArrayLike, p: int, rng: np.random.Generator) -> Indices:
    """Return p indices drawn uniformly without replacement.

    Examples
    --------
    >>> rows = uniform(np.arange(10.0)[:, None], 3, np.random.default_rng(0))
    >>> len(set(rows.tolist()))
    3
    """
    x, p = _checked(sample, p)
    return rng.choice(len(x), size=p, replace=False).astype(np.intp)


def kmeans_plus_plus(sample: ArrayLike, p: int, rng: np.random.Generator) -> Indices:
    """Return k-means++ seeds: each next point is drawn with probability proportional to D(x)².

    D(x) is the distance to the nearest point chosen so far. O(m p d). Fewer than p indices, one for each
    distinct row, when the sample has fewer than p of them. Arthur and Vassilvitskii, SODA 2007.

    Examples
    --------
    >>> sample = np.repeat([[0.0], [10.0]], 50, axis=0)
    >>> rows = kmeans_plus_plus(sample, 2, np.random.default_rng(0))
    >>> sorted(sample[rows, 0].tolist())
    [0.0, 10.0]
    """

    def draw(nearest: Array) -> int:
        mass = np.cumsum(nearest)
        target = min(rng.random() * mass[-1], np.nextafter(mass[-1], 0.0))
        return int(np.searchsorted(mass, target, side="right"))

    return _spread(sample, p, rng, draw)


def farthest_point(sample: ArrayLike, p: int, rng: np.random.Generator) -> Indices:
    """Return a farthest-point traversal from a random first point, ties to the lowest index.

    Its covering radius is at most twice the best one for p points. O(m p d). Fewer than p indices, one for
    each distinct row, when the sample has fewer than p of them. Gonzalez, Theor. Comput. Sci. 38, 1985.

    Examples
    --------
    >>> sample = np.linspace(0, 1, 101)[:, None]
    >>> rows = farthest_point(sample, 3, np.random.default_rng(0))
    >>> sample[rows[1], 0] in (0, 1)  # the end that is farther from the first row
    True
    """
    return _spread(sample, p, rng, lambda nearest: int(np.argmax(nearest)))


def pivoted_cholesky(
    sample: ArrayLike, p: int, rng: np.random.Generator, gram: Gram, *, diagonal: Diagonal | None = None
) -> Indices:
    """Return the pivots of the diagonally pivoted partial Cholesky factorisation of K = gram(sample, sample).

    Each step takes the largest entry of diag(K - Lᵀ L): the point farthest, in the kernel's feature space,
    from the span of the points chosen so far; ties, up to rounding, go to the lowest index. K is never formed:
    O(m p²) time, 8 m p bytes. ``diagonal(a)`` (len(a),) spares evaluating diag(K) in blocks. `rng` is not used.
    Fewer than p indices when the residual first falls to 1e-12 of the largest entry of diag(K) (64 eps where
    the kernel answers in a lower precision). Raises ValueError when K is zero or not positive semi-definite.
    Harbrecht, Peters and Schneider, Appl. Numer. Math. 62, 2012.

    Examples
    --------
    >>> from daskspectral.kernels import Gaussian
    >>> sample = np.linspace(-1, 1, 21)[:, None]
    >>> pivoted_cholesky(sample, 3, np.random.default_rng(0), Gaussian(1.0)).tolist()
    [0, 20, 10]
    """
    x, p = _checked(sample, p)
    residual = _diagonal(x, gram, diagonal)
    largest = float(residual.max())
    if largest == 0.0:
        raise ValueError("expected a kernel that is not zero, received k(x, x) = 0 in every row; change it")
    dtype = _values(gram, x[:1], x[:1]).dtype
    eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
    exhausted = max(_EXHAUSTED, 64 * eps) * largest
    negative = -np.sqrt(exhausted * largest)
    factor = np.empty((p, len(x)))
    chosen = np.empty(p, dtype=np.intp)
    for k in range(p):
        best = float(residual.max())
        if best <= exhausted:
            return chosen[:k]
        pivot = int(np.argmax(residual >= best - 64 * eps * largest))
        row = factor[k]
        row[:] = _values(gram, x[pivot : pivot + 1], x)[0]
        row -= factor[:k, pivot] @ factor[:k]
        row /= np.sqrt(residual[pivot])
        residual -= row * row
        if residual.min() < negative:
            raise ValueError(
                "expected a positive semi-definite kernel, received a Cholesky residual of "
                f"{residual.min():.3g} in row {residual.argmin()} of the sample (largest diagonal entry "
                f"{largest:.3g}); correct the kernel, or choose landmarks by a method that needs none"
            )
        chosen[k] = pivot
        residual[chosen[: k + 1]] = 0.0
    return chosen


def median_distance(sample: ArrayLike, rng: np.random.Generator, *, size: int = 1000) -> float:
    """Return the median of |x_i - x_j| over the pairs i < j of at most ``size`` rows drawn from the sample.

    Raises ValueError for fewer than two rows, and when the median is 0, which is no length scale.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]), np.random.default_rng(0))
    2.0
    """
    x, _ = _checked(sample, 1)
    size = operator.index(size)
    if min(len(x), size) < 2:
        raise ValueError(f"expected at least two rows, received {len(x)} with size={size}; give a scale")
    rows = np.sort(rng.choice(len(x), size=size, replace=False)) if len(x) > size else slice(None)
    x, exponent = _scaled(x[rows])
    median = float(np.ldexp(np.median(pdist(x)), exponent))
    if median == 0.0:
        raise ValueError(
            f"expected rows that differ, received {len(x)} of which at least half the pairs coincide: "
            "their median distance is 0 and sets no scale; give a scale"
        )
    return median


def median_of_distinct(sample: ArrayLike, rng: np.random.Generator) -> float:
    """The median distance, of the distinct rows where most coincide; 0 where all are equal.

    Examples
    --------
    >>> median_of_distinct(np.array([[0.0], [0.0], [0.0], [0.0], [3.0]]), np.random.default_rng(0))
    3.0
    """
    try:
        return median_distance(sample, rng)
    except ValueError:
        distinct = np.unique(np.asarray(sample), axis=0)
        return median_distance(distinct, rng) if len(distinct) > 1 else 0.0


def _spread(sample: ArrayLike, p: int, rng: np.random.Generator, pick: Callable[[Array], int]) -> Indices:
    """Grow a set from a random row by ``pick(squared distances to the set)``, to p rows or until none is left."""
    x, p = _checked(sample, p)
    x = _scaled(x)[0]
    wide = x.shape[1] > MANY_COLUMNS
    columns = () if wide else np.ascontiguousarray(x.T)
    chosen = np.empty(p, dtype=np.intp)
    chosen[0] = rng.integers(len(x))
    nearest = np.full(len(x), np.inf)
    scratch, square = np.empty_like(nearest), np.empty_like(nearest)
    for k in range(1, p):
        square[:] = cdist(x, x[chosen[k - 1 : k]], "sqeuclidean")[:, 0] if wide else 0.0
        for column in columns:
            np.subtract(column, column[chosen[k - 1]], out=scratch)
            np.multiply(scratch, scratch, out=scratch)
            np.add(square, scratch, out=square)
        np.minimum(nearest, square, out=nearest)
        if not nearest.any():
            return chosen[:k]
        chosen[k] = pick(nearest)
    return chosen


def _checked(sample: ArrayLike, p: int) -> tuple[Array, int]:
    x = np.asarray(sample, dtype=np.float64)
    if x.ndim != 2 or not x.size:
        raise ValueError(f"expected a sample of shape (m, d) that is not empty, received shape {x.shape}")
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise ValueError(f"expected finite numbers, received {x[row, column]} in row {row} of the sample; drop it")
    return x, check_integer("p", p, 1, len(x))


def _scaled(x: Array) -> tuple[Array, int]:
    """Return x / 2^e with entries within [-1, 1], and e: the division is exact, and squares stay in range."""
    exponent = int(np.frexp(np.abs(x).max())[1])
    return np.ldexp(x, -exponent), exponent


def _values(gram: Gram, a: Array, b: Array) -> NDArray[Any]:
    k = np.asarray(gram(a, b))
    if k.shape != (len(a), len(b)):
        raise ValueError(f"expected gram(a, b) of shape {(len(a), len(b))}, received {k.shape}")
    if not np.isfinite(k).all():
        raise ValueError("expected finite kernel values, received NaN or infinity; scale the data")
    return k


def _diagonal(x: Array, gram: Gram, diagonal: Diagonal | None) -> Array:
    """Return diag K (m,), as a new float64 array."""
    if diagonal is None:
        blocks = (x[start : start + 64] for start in range(0, len(x), 64))
        k = np.concatenate([_values(gram, block, block).diagonal() for block in blocks])
    else:
        k = np.asarray(diagonal(x))
        if k.shape != (len(x),):
            raise ValueError(f"expected diagonal(x) of shape {(len(x),)}, received {k.shape}")
    if not (np.isfinite(k).all() and k.min() >= 0):
        bad = int(np.argmin(np.where(np.isfinite(k), k, -np.inf)))
        raise ValueError(f"expected k(x, x) >= 0 and finite, received {k[bad]} in row {bad}; correct the kernel")
    return np.array(k, dtype=np.float64)
