"""Selection of landmarks: the p centers y_i of the basis functions k(., y_i), out of a sample of the rows.

    method         p rows of the data
    "uniform"      drawn uniformly
    "kmeans++"     k-means++ seeds: well separated, denser in regions of many rows
    "farthest"     farthest-point traversal: even cover, edges included
    "cholesky"     pivots of a Cholesky factorization of the kernel matrix

`basis.Landmarks(method=)` selects one. The method matters if few rows determine the result: on two half-moons with
noise 0.05, whose second eigenvalue tends to 0, 200 landmarks yield 0.058 (farthest-point), 0.27 (k-means++) or 0.50
(uniform).

    >>> import numpy as np
    >>> from daskspectral import landmarks
    >>> sample = np.array([[0.0], [0.1], [0.2], [5.0], [9.0]])
    >>> rows = landmarks.choose("farthest", sample, 3, np.random.default_rng(0))
    >>> np.sort(sample[rows, 0])[1:]  # and one of the three neighboring rows
    array([5., 9.])

Distances are sums of squared coordinate differences, without loss of digits far from the origin.
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

BY_KERNEL = ("cholesky",)  # methods that use the kernel in place of distances
MANY_COLUMNS = 100  # above which distances are computed row by row
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
    """Return the indices of landmarks selected by one of `METHODS`.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    sample : array-like of shape (m, d)
        Candidate rows, finite.
    p : int
        Number of landmarks, from 1 to m.
    rng : numpy.random.Generator
        Source of random numbers.
    gram : callable, optional
        ``gram(a, b)`` returns the kernel matrix of shape ``(len(a), len(b))``; required by "cholesky".
    diagonal : callable, optional
        ``diagonal(a)`` returns k(x, x) of shape ``(len(a),)``; avoids the evaluation of diag K in blocks.

    Returns
    -------
    ndarray of int, shape (q,), q <= p
        Row indices into the sample; fewer than p, without a warning, if the sample does not support p.

    Raises
    ------
    ValueError
        If the method is unknown, its kernel is missing, the sample is not a finite (m, d) array, or p is not in
        1..m.

    See Also
    --------
    daskspectral.basis.Landmarks : The basis of kernel functions at landmarks.

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
    """Return p row indices drawn uniformly without replacement.

    Parameters
    ----------
    sample : array-like of shape (m, d)
        Candidate rows, finite.
    p : int
        Number of landmarks, from 1 to m.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ndarray of int, shape (p,)
        Row indices into the sample.

    Raises
    ------
    ValueError
        If the sample is not a finite (m, d) array, or p is not in 1..m.

    See Also
    --------
    choose : Select landmarks by the name of a method.

    Examples
    --------
    >>> rows = uniform(np.arange(10.0)[:, None], 3, np.random.default_rng(0))
    >>> len(set(rows.tolist()))
    3
    """
    x, p = _checked(sample, p)
    return rng.choice(len(x), size=p, replace=False).astype(np.intp)


def kmeans_plus_plus(sample: ArrayLike, p: int, rng: np.random.Generator) -> Indices:
    """Return the indices of at most p k-means++ seeds of rows (m, d) (Arthur and Vassilvitskii 2007).

    Each next point is drawn with probability proportional to D(x)², D(x) the distance to the nearest point chosen so
    far.

    Parameters
    ----------
    sample : array-like of shape (m, d)
        Candidate rows, finite.
    p : int
        Number of landmarks, from 1 to m.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ndarray of int, shape (q,), q <= p
        Row indices into the sample; q < p if the sample has only q distinct rows.

    Raises
    ------
    ValueError
        If the sample is not a finite (m, d) array, or p is not in 1..m.

    See Also
    --------
    farthest_point : Even cover, edges included.

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

    return _greedy(sample, p, rng, draw)


def farthest_point(sample: ArrayLike, p: int, rng: np.random.Generator) -> Indices:
    """Return the indices of rows (m, d) in a farthest-point traversal from a random first one, in O(m p d).

    The covering radius is at most twice the optimum for p points. Gonzalez, Theor. Comput. Sci. 38, 1985.

    Parameters
    ----------
    sample : array-like of shape (m, d)
        Candidate rows, finite.
    p : int
        Number of landmarks, from 1 to m.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ndarray of int, shape (q,), q <= p
        Row indices into the sample; q < p if the sample has only q distinct rows.

    Raises
    ------
    ValueError
        If the sample is not a finite (m, d) array, or p is not in 1..m.

    See Also
    --------
    kmeans_plus_plus : Random seeds, denser near the data.

    Examples
    --------
    >>> sample = np.linspace(0, 1, 101)[:, None]
    >>> rows = farthest_point(sample, 3, np.random.default_rng(0))
    >>> sample[rows[1], 0] in (0, 1)  # the end that is farther from the first row
    True
    """
    return _greedy(sample, p, rng, lambda nearest: int(np.argmax(nearest)))


def pivoted_cholesky(
    sample: ArrayLike, p: int, rng: np.random.Generator, gram: Gram, *, diagonal: Diagonal | None = None
) -> Indices:
    """Return the pivots of a diagonally pivoted partial Cholesky factorization of K.

    K = gram(sample, sample) is never formed: time O(m p²), memory 8 m p bytes. Each pivot is the largest entry of
    diag(K - Lᵀ L), the point farthest, in feature space, from the span of the points chosen so far. Harbrecht, Peters
    and Schneider, Appl. Numer. Math. 62, 2012.

    Parameters
    ----------
    sample : array-like of shape (m, d)
        Candidate rows, finite.
    p : int
        Number of landmarks, from 1 to m.
    rng : numpy.random.Generator
        Not used.
    gram : callable
        ``gram(a, b)`` returns the kernel matrix of shape ``(len(a), len(b))``.
    diagonal : callable, optional
        ``diagonal(a)`` returns k(x, x) of shape ``(len(a),)``.

    Returns
    -------
    ndarray of int, shape (q,), q <= p
        Row indices into the sample; q < p if the residual falls to 1e-12 of the largest entry of diag K first (64 eps
        if the kernel's values have a lower precision).

    Raises
    ------
    ValueError
        If K is zero or not positive semi-definite, the sample is not a finite (m, d) array, or p is not in 1..m.

    See Also
    --------
    choose : Select landmarks by the name of a method.

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
                f"{largest:.3g}); correct the kernel, or choose another landmark method"
            )
        chosen[k] = pivot
        residual[chosen[: k + 1]] = 0.0
    return chosen


def median_distance(sample: ArrayLike, rng: np.random.Generator, *, size: int = 1000) -> float:
    """Return the median distance between rows of the sample.

    Parameters
    ----------
    sample : array-like of shape (m, d)
        Rows, finite.
    rng : numpy.random.Generator
        Source of random numbers.
    size : int, default=1000
        Number of rows drawn if the sample has more.

    Returns
    -------
    float
        Median of abs(x_i - x_j) over all pairs i < j of these rows.

    Raises
    ------
    ValueError
        If there are fewer than two rows, or the median is 0.

    See Also
    --------
    choose : Select landmarks by the name of a method.

    Examples
    --------
    >>> median_distance(np.array([[0.0], [1.0], [3.0]]), np.random.default_rng(0))
    2.0
    """
    x, _ = _checked(sample, 1)
    size = operator.index(size)
    if min(len(x), size) < 2:
        raise ValueError(f"expected at least two rows, received {len(x)} with size={size}; pass a scale")
    rows = np.sort(rng.choice(len(x), size=size, replace=False)) if len(x) > size else slice(None)
    x, exponent = _scaled(x[rows])
    median = float(np.ldexp(np.median(pdist(x)), exponent))
    if median == 0.0:
        raise ValueError(
            f"expected rows that differ, received {len(x)} of which at least half the pairs coincide: their "
            "median distance is 0. Pass a scale"
        )
    return median


def median_of_distinct(sample: ArrayLike, rng: np.random.Generator) -> float:
    """Return the median distance, of distinct rows if most coincide, and 0 if all are equal.

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


def _greedy(sample: ArrayLike, p: int, rng: np.random.Generator, pick: Callable[[Array], int]) -> Indices:
    """Return rows selected one by one by ``pick(squared distances to the set)``."""
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
    """Return x / 2^e with entries within [-1, 1], and e, exactly."""
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
