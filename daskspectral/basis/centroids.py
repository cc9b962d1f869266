"""Weights of nearest centroids, which define a random walk between rows.

The walk steps from a row to a centroid and back to a row, with probabilities proportional to the weights a(x) (p,),
whose sum is 1: `operators.NeighborJumps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import NDArray
from scipy.spatial import KDTree

from daskspectral.basis.accumulators import Accumulator
from daskspectral.basis.base import Array, Basis, Translation
from daskspectral.basis.callable import Differentiated
from daskspectral.basis.evaluation import Block
from daskspectral.basis.recipe import BasisRecipe, Sample
from daskspectral.devices import HOST, Device
from daskspectral.errors import SmoothnessError
from daskspectral.forms import Forms, Functionals
from daskspectral.modes.sums import SumCost
from daskspectral.registry import CallRepr, Parameterized, Registered
from daskspectral.solve.jumps import CLOSED, has_gap, walk_values
from daskspectral.validation import check_integer
from daskspectral.workspace import Workspace

PILOT = 20_000  # most rows for k-means
ROWS_OF_CENTROID = 10  # most rows of the pilot, per centroid
PER_DIMENSION = 1.5  # rows per centroid at least: neighborhoods in more dimensions need more rows
FEWEST_ROWS, MOST_ROWS = 3, 10  # rows per centroid
NEIGHBORS, QUERIES = 10, 500  # for the local dimension
GROUP_CENTROIDS = 5  # of a small group of rows separated from all others
SEPARATION = 3.0  # medians of the distance between centroids over the radius of a cell, for isolated cells
LLOYD_STEPS = 3  # more steps follow the density, and lose small clusters
FUNCTIONS, MOST_SETS = 1000, 20  # defaults, of all sets together
TREE_COLUMNS = 12  # up to which a tree is faster than matrix products
TABLE_ROWS = 2048  # rows of a table of distances to all centroids
BLOCK_ROWS = 16_384
Indices = NDArray[np.integer[Any]]
NEAR = 1e-3  # lower bound of local radii, in median radii
FAR = 3.0  # in units of the largest radius in the pilot: rows beyond have no neighbors
LEVELS = (1, 2, 4, 8)  # divisors of the number of centroids, until their graph is connected enough
JUMPS = "neighbor_jumps"
"""Name of the Gram form that is summed by `JumpSums`."""


@dataclass(frozen=True, eq=False)
class CentroidBasis(Differentiated):
    """Weights a_i(x) of the nearest centroids of one or several sets, with sum 1.

    In each set the nearest `n_nearest` centroids, at distances d_1 <= ... <= d_k, have weights proportional to
    exp(-d_j² / d_k²). The local radius r(x) is the distance to the next centroid, averaged over the sets.

    Parameters
    ----------
    centroids : array of shape (n_sets, n_centroids, d)
        Centroids.
    n_nearest : int
        Number of centroids of each set with a positive weight.
    radius : float
        Median local radius of the rows; 0 if unknown.
    reach : float
        Largest local radius of the rows; rows farther than three times this from the centroids are outliers.

    See Also
    --------
    NearestCentroids : Construction from the data.
    daskspectral.operators.NeighborJumps : The random walk.

    Examples
    --------
    >>> basis = CentroidBasis(np.array([[[0.0], [1.0], [5.0], [6.0]]]), n_nearest=2)
    >>> basis.values(np.array([[0.5], [5.0]])).round(2).T.tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.73, 0.27]]
    """

    order = 0
    description = "weights of the nearest centroids"
    holds_constant = True
    cheap_sums = True
    block_rows = BLOCK_ROWS

    centroids: Array
    n_nearest: int = 3
    radius: float = 0.0
    reach: float = np.inf

    def __post_init__(self) -> None:
        centroids = np.ascontiguousarray(self.centroids, dtype=float)
        if centroids.ndim != 3 or not centroids.size or not np.isfinite(centroids).all():
            raise ValueError(f"centroids must be finite numbers (n_sets, n_centroids, d), got shape {centroids.shape}.")
        self._set(centroids=centroids, n_nearest=check_integer("n_nearest", self.n_nearest))

    @classmethod
    def from_rows(
        cls, points: Array, m: int, sets: int, n_nearest: int, rng: np.random.Generator, *groups: Indices
    ) -> Self:
        """Return sets of m centroids by k-means of the rows (n, d), five in each of the given groups of rows."""
        rest = np.delete(points, np.concatenate(groups), axis=0) if groups else points
        some = [(rest, m - GROUP_CENTROIDS * len(groups)), *((points[rows], GROUP_CENTROIDS) for rows in groups)]
        parts = [(x, distinct_rows(x)[0], count) for x, count in some]
        centroids = [np.vstack([kmeans(*part, rng) for part in parts]) for _ in range(sets)]
        basis = cls(np.stack(centroids), n_nearest)
        radii = basis.neighbors(points)[1]
        positive = radii[radii > 0]
        return replace(basis, radius=float(np.median(positive)) if len(positive) else 0.0, reach=float(radii.max()))

    def redrawn(self, points: Array, rng: np.random.Generator) -> CentroidBasis:
        """Return a basis of as many new centroids, by k-means of rows (n, d) from other random starts."""
        sets, m, _ = self.centroids.shape
        shape = min(m, len(distinct_rows(points)[0])), sets, self.n_nearest
        basis = CentroidBasis.from_rows(points, *shape, rng)
        groups = basis.small_groups(points)
        return CentroidBasis.from_rows(points, *shape, rng, *groups) if groups else basis

    def walk_values(self, points: Array, most: int) -> Array:
        """Return the `most` smallest eigenvalues of the walk on rows (n, d), without the constant's."""
        a, radii = self.neighbors(points)
        return walk_values(jumps(a, self.row_weights(radii)).toarray(), most)

    def small_groups(self, points: Array) -> list[Indices]:
        """Return the indices of isolated groups of rows (n, d) that have few centroids.

        The ten nearest neighbors of each row are in its group. Only rows of cells that are small relative to the
        distance to the third nearest centroid are considered.
        """
        m, n, distinct, number = self.centroids.shape[1], len(points), *distinct_rows(points)
        if not GROUP_CENTROIDS * n / m > NEIGHBORS or m < GROUP_CENTROIDS or len(distinct) <= NEIGHBORS:
            return []
        suspect = np.zeros(len(distinct), bool)
        for search in self._searches:
            distances, cell = (found[:, 0] for found in search(distinct, 1))
            radii = np.bincount(cell, distances, m) / np.maximum(np.bincount(cell, minlength=m), 1)
            apart = search.neighbor_distances(3)
            ratio = apart / np.maximum(radii, max(NEAR * apart.max(), np.finfo(float).tiny))
            suspect |= (ratio > SEPARATION * np.median(ratio))[cell]
        rows = np.flatnonzero(suspect)
        near = NearestSearch(distinct)(distinct[rows], NEIGHBORS + 1)[1] if len(rows) else np.empty((0, 1), int)
        order = np.cumsum(suspect) - 1
        ends = np.where(suspect, order, len(rows))[near]  # the last one is all others
        starts, size = np.repeat(np.arange(len(rows)), near.shape[1]), len(rows) + 1
        graph = scipy.sparse.coo_array((np.ones(ends.size), (starts, ends.ravel())), (size, size))
        owner = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
        apart = np.setdiff1d(owner, owner[-1:])
        groups: list[Indices] = [np.flatnonzero(np.isin(number, rows[owner[:-1] == each])) for each in apart]
        few = [found for found in groups if len(found) < GROUP_CENTROIDS * n / m]
        return few if 2 * GROUP_CENTROIDS * len(few) <= m else []

    @property
    def size(self) -> int:
        return int(np.prod(self.centroids.shape[:2]))

    @property
    def dimension(self) -> int:
        return int(self.centroids.shape[2])

    def translated(self, delta: Array) -> Translation:
        return Translation.identity(replace(self, centroids=self.centroids + delta))

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @cached_property
    def _searches(self) -> list[NearestSearch]:
        return [NearestSearch(points) for points in self.centroids]

    def neighbors(self, x: Array) -> tuple[Any, Array]:
        """Return the sparse weights (c, p) of centroids at rows x (c, d), and local radii (c,)."""
        sets, m, _ = self.centroids.shape
        k = min(self.n_nearest, m)
        distances, places = zip(*(search(x, min(k + 1, m)) for search in self._searches), strict=True)
        radii = np.mean([found[:, -1] for found in distances], axis=0)
        weights = np.empty((len(x), sets, k))
        columns = np.empty((len(x), sets, k), np.int32)
        for number, (found, nearest) in enumerate(zip(distances, places, strict=True)):
            last = np.maximum(found[:, k - 1 : k], np.finfo(float).tiny)
            weights[:, number] = np.exp(-((found[:, :k] / last) ** 2))
            columns[:, number] = nearest[:, :k] + number * m
        weights /= sets * weights.sum(axis=2, keepdims=True)
        ends = np.arange(len(x) + 1) * (sets * k)
        return scipy.sparse.csr_array((weights.ravel(), columns.ravel(), ends), (len(x), self.size)), radii

    def row_weights(self, radii: Array) -> Array:
        """Return the row weights (radius / r)² for local radii r (c,)."""
        if not self.radius > 0:
            return np.ones(len(radii))
        return np.asarray((self.radius / np.maximum(radii, NEAR * self.radius)) ** 2)

    def is_far(self, radii: Array) -> NDArray[np.bool_]:
        """Return the mask (c,) of rows far from every centroid, by their local radii (c,)."""
        return np.asarray(radii > FAR * self.reach)

    def evaluate(self, x: Array) -> Array:
        return np.asarray(self.neighbors(x)[0].toarray().T)

    def differentiate(self, x: Array) -> Array:
        raise SmoothnessError(f"{self.description} have no derivatives. {self.remedy(1)}")

    def evaluator(self, coefficients: Array, device: Device = HOST) -> Callable[[Array], Array]:
        return lambda x: np.asarray(self.neighbors(np.asarray(x, dtype=float))[0] @ coefficients)

    def accumulator(
        self, right: Basis, forms: Forms, functionals: Functionals, *, workspace: Workspace, **options: Any
    ) -> Accumulator:
        if right is self and _of_jumps(forms):
            return JumpSums(self, workspace)
        return super().accumulator(right, forms, functionals, workspace=workspace, **options)

    def matrices(self, forms: Forms, functionals: Functionals, sums: Mapping[str, Array]) -> dict[str, Array]:
        """Return the form D - M and the Gram matrix M = sum w a aᵀ, with the diagonal D = sum w a."""
        if JUMPS not in sums:
            return dict(sums)
        gram = symmetric(np.asarray(sums[JUMPS]), self.size).toarray()
        first = gram.sum(axis=1)
        found = {"gram": gram, "form": np.diag(first) - gram, "first": first}
        return found | {name: values for name, values in sums.items() if name != JUMPS}

    def sum_cost(self, forms: Forms, functionals: Functionals, device: str) -> SumCost | None:
        if not _of_jumps(forms):
            return None
        sets, m, d = self.centroids.shape
        k, p, few = sets * (self.n_nearest + 1), self.size, d <= TREE_COLUMNS
        flops = 1e4 * sets + 30 * k**2 if few else 4.0 * sets * m * d
        block = 16 * BLOCK_ROWS * (d + 4 * k) + (0 if few else 24 * TABLE_ROWS * m)
        return SumCost(flops, block, 12 * p * min(p, 100), 8 * 6 * p**2)


def _of_jumps(forms: Forms) -> bool:
    return any(form.name == JUMPS for form in forms.values())


def symmetric(packed: Array, size: int) -> Any:
    """Return the symmetric sparse matrix (p, p) from its upper triangle, row by row."""
    places, numbers = np.flatnonzero(packed), np.arange(size)
    starts = numbers * size - numbers * (numbers - 1) // 2
    row = np.searchsorted(starts, places, "right") - 1
    upper = scipy.sparse.csr_array((packed[places], (row, places - starts[row] + row)), (size, size))
    return upper + scipy.sparse.triu(upper, 1).T


class NearestSearch:
    """Nearest-neighbor search among points (m, d)."""

    def __init__(self, points: Array):
        mean = points.mean(axis=0)
        spread = float(np.abs(points - mean).max())
        self.unit = 2.0 ** np.round(np.log2(spread)) if spread > 0 else 1.0
        self.center = np.rint(mean / self.unit * 256) / 256 * self.unit
        own = (points - self.center) / self.unit
        self.tree = KDTree(own) if points.shape[1] <= TREE_COLUMNS else None
        self.points, self.squares = own, np.square(own).sum(axis=1)

    def neighbor_distances(self, k: int) -> Array:
        """Return the distance (m,) of each point to its k-th neighbor."""
        return self(self.points * self.unit + self.center, k + 1)[0][:, -1]

    def __call__(self, x: Array, k: int) -> tuple[Array, NDArray[np.integer[Any]]]:
        """Return distances (c, k) and indices of the k nearest points, ascending."""
        x = (x - self.center) / self.unit
        if self.tree is not None:
            found = self.tree.query(x, np.arange(1, k + 1))
            return np.asarray(found[0]) * self.unit, np.asarray(found[1])
        distances, places = np.empty((len(x), k)), np.empty((len(x), k), np.intp)
        for start in range(0, len(x), TABLE_ROWS):
            rows = slice(start, start + TABLE_ROWS)
            table = self.squares - 2 * (x[rows] @ self.points.T)
            nearest = np.argpartition(table, k - 1, axis=1)[:, :k]
            near = np.take_along_axis(table, nearest, axis=1)
            order = np.argsort(near, axis=1, kind="stable")
            places[rows] = np.take_along_axis(nearest, order, axis=1)
            near = np.take_along_axis(near, order, axis=1) + np.square(x[rows]).sum(axis=1)[:, None]
            distances[rows] = np.sqrt(np.maximum(near, 0.0))
        return distances * self.unit, places


# -- sums --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SparseSum(Registered):
    """Sparse vector with `size` entries, for sums over groups of rows."""

    places: NDArray[np.int64]
    values: Array
    size: int
    dtype: ClassVar = np.dtype(float)

    @property
    def shape(self) -> tuple[int]:
        return (self.size,)

    def __add__(self, other: SparseSum) -> SparseSum:
        places, number = np.unique(np.concatenate([self.places, other.places]), return_inverse=True)
        values = np.bincount(number, np.concatenate([self.values, other.values]), len(places))
        return SparseSum(places, np.asarray(values, dtype=float), self.size)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        found = np.zeros(self.size, dtype)
        found[self.places] = self.values
        return found


class JumpSums(Accumulator):
    """Sum of w a aᵀ for centroid weights a, w = (radius / r)² times sample weights."""

    def __init__(self, basis: CentroidBasis, workspace: Workspace):
        super().__init__(workspace)
        self._basis = basis
        self._sum: Any = scipy.sparse.csr_array((basis.size, basis.size))

    def _add(self, block: Block) -> None:
        a, radii = self._basis.neighbors(np.asarray(block.x, dtype=float))
        weights = self._basis.row_weights(radii)
        if block.scale is not None:
            weights *= np.asarray(block.scale, dtype=float) ** 2
        self._sum = self._sum + jumps(a, weights)

    def result(self) -> dict[str, Any]:
        p, found = self._basis.size, self._sum.tocoo()
        row, column = found.row.astype(np.int64), found.col.astype(np.int64)
        upper = row <= column
        row, column = row[upper], column[upper]
        places = row * p - row * (row - 1) // 2 + column - row
        order = np.argsort(places)
        return {JUMPS: SparseSum(places[order], found.data[upper][order], p * (p + 1) // 2)}


def jumps(a: Any, weights: Array) -> Any:
    """Return the sum of w a aᵀ for sparse weights a (c, p) and row weights w (c,)."""
    root = scipy.sparse.diags_array(np.sqrt(weights)) @ a
    return root.T @ root


# -- the recipe --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NearestCentroids(CallRepr, Parameterized, BasisRecipe):
    """Recipe of a `CentroidBasis`: centroids by k-means on a pilot of 20 000 rows.

    Parameters
    ----------
    n_centroids : int
        Number of centroids of a set; a cluster requires four. At most a third of the distinct rows or, for a local
        dimension d > 2, one centroid per 1.5 d rows (at most ten rows).
    n_nearest : int
        Number of nearest centroids of each set with a positive weight at a row.
    n_sets : int or "auto"
        Number of independent sets, whose average is smoother than one. "auto": about 1000 functions together, at most
        20 sets.
    max_components : int, optional
        Number of clusters. The number of centroids is halved, up to three times, while their graph has more
        components. Isolated groups of at least 11 rows get five centroids if only this opens a gap in the eigenvalues
        after this number.

    See Also
    --------
    CentroidBasis : The basis.
    daskspectral.operators.NeighborJumps : The random walk.

    Examples
    --------
    >>> NearestCentroids().cost(None, 2, 100_000), NearestCentroids(200).cost(None, 2, 100_000)
    (1000, 1000)
    """

    n_centroids: int = 500
    n_nearest: int = 3
    n_sets: int | str = "auto"
    max_components: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_centroids", "n_nearest", "n_sets", "max_components"):
            value = getattr(self, name)
            if not (isinstance(value, str) and (name, value) == ("n_sets", "auto")) and value is not None:
                self._set(**{name: check_integer(name, value)})

    @property
    def holds_constant(self) -> bool:
        return True

    def sets_of(self, m: int) -> int:
        """Return the number of sets of m centroids."""
        return int(np.clip(round(FUNCTIONS / m), 1, MOST_SETS)) if isinstance(self.n_sets, str) else self.n_sets

    def cost(self, operator: Any, dimension: int, n_rows: int) -> int:
        m = max(1, min(self.n_centroids, n_rows // 3))
        return m * self.sets_of(m)

    def probe(self, sample: Sample) -> CentroidBasis:
        m = max(1, min(self.n_centroids, sample.n_rows // 3))
        return CentroidBasis(np.zeros((self.sets_of(m), m, sample.dimension)), self.n_nearest)

    def build(self, sample: Sample, rng: np.random.Generator) -> CentroidBasis:
        rows, _, points = sample.draw(PILOT, rng)
        sample.check(rows, points)
        return self.from_rows(np.asarray(points, dtype=float), rng)

    def from_rows(self, points: Array, rng: np.random.Generator) -> CentroidBasis:
        """Return the basis for a pilot of rows (n, d)."""
        distinct = distinct_rows(points)[0]
        rows = np.clip(PER_DIMENSION * local_dimension(distinct, rng), FEWEST_ROWS, MOST_ROWS)
        most, least = max(1, min(self.n_centroids, int(len(distinct) / rows))), 1
        if self.max_components is not None:
            least = min(len(distinct), 2 * self.max_components + 2)
        for level in LEVELS:
            m = max(most // level, least)
            shape = m, self.sets_of(m), self.n_nearest
            basis = CentroidBasis.from_rows(points, *shape, rng)
            if self.max_components is None:
                break
            values = basis.walk_values(points, self.max_components)
            if level == 1 and not has_gap(values) and (groups := basis.small_groups(points)):
                other = CentroidBasis.from_rows(points, *shape, rng, *groups)
                if has_gap(others := other.walk_values(points, self.max_components)) and others[-1] > CLOSED:
                    return other
            if m == least or values[-1] > CLOSED:
                break
        return basis


def distinct_rows(points: Array) -> tuple[Array, Indices]:
    """Return the distinct rows in order, and the index of each row in them."""
    _, first, number = np.unique(points, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return np.asarray(points[first[order]]), np.argsort(order)[number.ravel()]


def local_dimension(distinct: Array, rng: np.random.Generator) -> float:
    """Return the local dimension of distinct rows (n, d), by maximum likelihood from ten neighbors.

    Levina and Bickel 2004; MacKay and Ghahramani.
    """
    k = min(NEIGHBORS, len(distinct) - 1)
    if k < 3:
        return 1.0
    some = distinct[rng.permutation(len(distinct))[:QUERIES]]
    distances = np.maximum(NearestSearch(distinct)(some, k + 1)[0][:, 1:], np.finfo(float).tiny)
    steps = np.log(distances[:, -1:] / distances[:, :-1]).sum(axis=1).mean()
    return float((k - 2) / steps) if steps > 0 else np.inf


def spread_rows(points: Array, m: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
    """Return the indices of m random rows (n, d), stratified by region.

    Regions are halved at the median along the difference of two of their rows, which is invariant under rotations;
    every (n / m)-th row in this order is selected.
    """
    order, ends, n = np.arange(len(points)), np.array([0, len(points)]), len(points)
    points = points - points[0]
    while m < n and (sizes := np.diff(ends)).max() > max(n // m, 1):
        pairs = order[ends[:-1] + (rng.random((2, len(sizes))) * sizes).astype(int)]
        cells = np.repeat(np.arange(len(sizes)), sizes)
        along = np.einsum("ij,ij->i", points[order], (points[pairs[0]] - points[pairs[1]])[cells])
        order = order[np.lexsort((along, cells))]
        ends = np.unique(np.concatenate([ends, ends[:-1] + sizes // 2]))
    return np.asarray(order[((np.arange(m) + rng.random()) * (n / m)).astype(int)])


def kmeans(points: Array, distinct: Array, m: int, rng: np.random.Generator) -> Array:
    """Return m centroids (m, d) of rows (n, d) by few steps of k-means from stratified rows.

    Seeds at large distances, as those of k-means++, would be outliers.
    """
    few = ROWS_OF_CENTROID * m
    some = points if len(points) <= few else points[np.sort(spread_rows(points, few, rng))]
    starts = distinct if len(some) == len(points) else distinct_rows(some)[0]
    starts = starts if len(starts) >= m else distinct
    centroids = starts[spread_rows(starts, m, rng)]
    for _ in range(LLOYD_STEPS):
        cell = NearestSearch(centroids)(some, 1)[1][:, 0]
        counts = np.bincount(cell, minlength=m)
        sums = scipy.sparse.csr_array((np.ones(len(some)), (cell, np.arange(len(some)))), (m, len(some)))
        origin = some[0]  # means of rows far from the origin lose digits
        means = sums @ (some - origin) / np.maximum(counts, 1)[:, None] + origin
        centroids = np.where(counts[:, None] > 0, means, centroids)
    return np.asarray(centroids)
