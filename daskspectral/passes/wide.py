"""Principal components of fewer rows than columns, from the Gram matrix of the rows.

For centered rows X (n, d), G = X Xᵀ = V Λ Vᵀ is a sum over blocks of columns. The leading q components have the scores
V Λ^(1/2), (n, q), and the directions Λ^(-1/2) Vᵀ X, (q, d), from a second pass over the columns. Rows of weight w are
multiplied by w^(1/2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from daskspectral.basis import Basis, Concatenated, ConstantBasis, LandmarkBasis
from daskspectral.data.batches import usable
from daskspectral.data.readers import ArrayReader, DaskReader, ZarrReader
from daskspectral.data.source import Preparation, Source, aligned
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import local_threads
from daskspectral.engine.sampling import count_rows, plan_of_rows, take_rows
from daskspectral.engine.threads import one_blas_thread
from daskspectral.kernels import Linear
from daskspectral.moments import NUMBER
from daskspectral.moments.autocovariance import Autocovariance, Series
from daskspectral.moments.counting import RowRuns, RunSums
from daskspectral.moments.pairwise import SQUARES, SUMS
from daskspectral.moments.shifting import columns_of_order
from daskspectral.operators.weights import check_total
from daskspectral.registry import Registered
from daskspectral.solve.problems import NORM_CUT

Array = NDArray[np.floating[Any]]
BLOCK_BYTES, LEAST_COLUMNS = 1 << 23, 512  # sizes of blocks of columns
SPARE, TIMES = 40, 3  # minimum number of components for folds, and multiple of the requested ones
GRAM, INVALID = "gram", "invalid"
DECODED = 12  # number of chunks at a time
STATISTICS = 4  # number of sums per column, in addition to products with vectors


def wide_components(components: int, n_rows: int) -> int:
    """Return the number of components in which folds are solved, for `components` requested ones."""
    return min(n_rows, max(SPARE, TIMES * components))


def wide_bytes(source: Source, size: int) -> int:
    """Return the memory of `size` leading components of rows, in bytes."""
    n, d, threads = source.n, source.dimension, local_threads()
    reader, held = source.readers["x"], 0
    columns = reader.transposed()
    if columns is None:
        held = 16 * n * d  # as read, and joined
    elif isinstance(stored := reader.parts[0], ZarrReader):  # several are decoded at a time
        held = DECODED * int(np.prod(stored.array.chunks)) * stored.dtype.itemsize
    elif isinstance(columns, DaskReader):  # blocks, and joined
        plan = plan_rows(Source({"x": columns}), float(n) ** 2)
        held = 16 * n * threads * max(stop - start for start, stop in plan.ranges)
    blocks = threads * (16 * n * n + 4 * max(BLOCK_BYTES, 8 * n * LEAST_COLUMNS))
    return held + blocks + 40 * n * n + 17 * (size + 2) * d


@dataclass(frozen=True, eq=False)
class RowScores(Registered):
    """Scores (n, q) of rows in directions, NaN for rows that are left out, and sums of the columns.

    `first` and `squares` (d,) are the sums of prepared columns and of their squares, `order` those over runs of rows
    (`moments.counting`). `lagged` and `pairs` (d,) are the sums of x y and (x + y) / 2 over consecutive rows x, y,
    weighted by the root of the product of their weights.
    """

    scores: Array
    first: Array
    squares: Array
    lagged: Array
    pairs: Array
    order: Array

    def basis(self, basis: Basis) -> Basis:
        """Return the functions of scores that equal those of a basis of columns."""
        q = self.scores.shape[1]
        functions = LandmarkBasis(Linear(), np.eye(q))
        return Concatenated((ConstantBasis(q), functions)) if basis.holds_constant else functions

    def autocovariance(self, found: Autocovariance) -> Autocovariance:
        return replace(found, columns=self.lagged, means=self.pairs)

    @property
    def arrays(self) -> dict[str, Array]:
        return {SUMS: self.first, SQUARES: self.squares}


def with_points(source: Source, points: Array) -> Source:
    """Return the source with other, prepared points (n, q)."""
    reader = ArrayReader(points).set_times(source.readers["x"].times)
    readers = aligned({**source.readers, "x": reader})
    return replace(
        source, readers=readers, preparation=Preparation(delays=source.delays), standardize=False, factors={}
    )


def leading_components(source: Source, size: int, *, centered: bool) -> tuple[Source, Array, RowScores]:
    """Return the source, r <= `size` directions (r, d) of leading components, and their scores.

    If `centered`, components are about the mean, and columns that are not standardized are centered in the returned
    source. The columns are read twice, in blocks if possible; otherwise the rows are held in memory. Raises
    InvalidRowError for the first invalid row (on_invalid="raise"), and ValueError if no row remains, all weights are
    zero, or squares overflow.
    """
    run = _by_columns(source)
    weight = source.readers.get("weight")
    weights = np.ones(source.n) if weight is None else np.asarray(weight.read(0, source.n), dtype=float)
    kept = np.isfinite(weights) & (weights >= 0)
    blocks = ColumnBlocks.of(source, kept, weights, centered)
    sums = run.reduce(GramTask(blocks)).sums
    if sums[INVALID].any():
        kept[kept] = sums[INVALID] == 0
        if source.on_invalid == "raise" or not kept.any():  # raises an error for the first invalid row
            Run(source, plan_of_rows(source, None), description="scan").reduce(count_rows)
        blocks = ColumnBlocks.of(source, kept, weights, centered)
        sums = run.reduce(GramTask(blocks)).sums
    total, gram = float(blocks.weights.sum()), sums[GRAM]
    check_total(total)
    _check_squares(gram)
    values, vectors = _decomposed(gram, size)
    found: Any = run.map(DirectionTask(blocks, vectors / np.sqrt(values)))
    columns = source.preparation.columns
    places = slice(None) if columns is None else np.argsort(np.argsort(columns))
    mean, squares, lagged, pairs = found[places, :STATISTICS].T.copy()
    directions = np.ascontiguousarray(found[places, STATISTICS:].T)
    if not len(directions):  # all rows are equal
        directions, vectors, values = np.eye(1, source.dimension), np.zeros((len(vectors), 1)), np.zeros(1)
    del found
    scores, roots = vectors * np.sqrt(values), blocks.roots[:, None]
    scores = np.divide(scores, roots, out=np.zeros_like(scores), where=roots > 0)
    some = columns_of_order(source.dimension)
    watched = np.stack([sums[f"column {column}"] for column in some.tolist()], axis=1)
    if centered and source.preparation.scale is None:
        before = source.preparation.mean
        source = source.with_preparation(mean=mean if before is None else before + mean)
        watched, mean = watched - mean[some], np.zeros_like(mean)
    elif centered:
        one, two = blocks.neighbors
        both = float(np.sum(blocks.roots[two] * blocks.roots[one]))
        scores, squares = scores + directions @ mean, squares + total * mean**2
        lagged, pairs = lagged + mean * (2 * pairs + both * mean), pairs + both * mean
    runs = RowRuns.of(LandmarkBasis(Linear(), directions), source.n)
    order = RunSums(replace(runs, columns=np.arange(len(some))))
    order.add(watched)
    every = np.full((source.n, scores.shape[1]), np.nan)
    every[kept] = scores
    return source, directions, RowScores(every, total * mean, squares, lagged, pairs, order.result())


def _by_columns(source: Source) -> Run:
    """Return a run over the columns of the raw points, as rows (d, n)."""
    reader = source.readers["x"].transposed()
    if reader is None:
        whole = replace(source, on_invalid="keep")
        _, points = take_rows(whole, np.arange(source.n), raw=True, description="rows")
        reader = ArrayReader(points.T)
    columns = Source({"x": reader}, on_invalid="keep", progress=source.progress)
    return Run(columns, plan_rows(columns, float(source.n) ** 2), description="columns")


def _check_squares(gram: Array) -> None:
    """Raise ValueError if sums of squares overflow or underflow."""
    if not np.isfinite(gram).all():
        raise ValueError("the sums of squares of the columns overflow. Scale the columns (Rows(X, standardize=True))")
    largest, numbers = float(gram.diagonal().max()), np.finfo(float)
    if 0 < largest < float(numbers.tiny) / float(numbers.eps):
        raise ValueError(
            f"the columns of X vary by {np.sqrt(largest):.1g}, whose square underflows. Multiply them by a constant"
        )


def _decomposed(gram: Array, size: int) -> tuple[Array, Array]:
    """Return up to `size` leading eigenvalues above rounding, descending, and their eigenvectors (n, r)."""
    n = len(gram)
    with one_blas_thread():
        values, vectors = scipy.linalg.eigh(gram, subset_by_index=(max(0, n - size), n - 1), overwrite_a=True)
    some = np.flatnonzero(values > NORM_CUT * max(values[-1], 0.0))[::-1]
    values, vectors = values[some], vectors[:, some]
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return values, vectors * np.sign(largest)


@dataclass(frozen=True, eq=False)
class ColumnBlocks:
    """Blocks of prepared columns of the `kept` rows, times the `roots` of their `weights`.

    `places` (width,) is the index of each raw column among the used ones, -1 if it is not used; None if all are used.
    """

    preparation: Preparation
    places: NDArray[np.int64] | None
    kept: NDArray[np.bool_] | None
    weights: Array
    roots: Array
    centered: bool
    dimension: int
    series: Series

    @classmethod
    def of(cls, source: Source, kept: NDArray[np.bool_], weights: Array, centered: bool) -> ColumnBlocks:
        columns, places = source.preparation.columns, None
        if columns is not None:
            places = np.full(source.n_features_in, -1)
            places[list(columns)] = np.arange(len(columns))
        some = None if kept.all() else kept
        found = weights[kept]
        shared = centered, source.dimension, source.series
        return cls(source.preparation, places, some, found, np.sqrt(found), *shared)

    @property
    def neighbors(self) -> tuple[Any, Any]:
        return self.series.neighbors(np.arange(len(self.roots)) if self.kept is None else np.flatnonzero(self.kept))

    def prepared(self, raw: Array, numbers: Array, out: Array) -> Array:
        """Write the prepared values of these columns."""
        mean, scale = self.preparation.mean, self.preparation.scale
        out[...] = raw
        if mean is not None:
            out -= mean[numbers]
        if scale is not None:
            out /= scale[numbers]
        return out

    def __call__(self, batch: Mapping[str, Array]) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield numbers (c,) of columns, raw values (n, c), means, and prepared values (n, c).

        The prepared values are overwritten by those of the next block.
        """
        x, numbers = batch["x"], batch[NUMBER]
        if self.places is not None:
            numbers = self.places[numbers]
            x, numbers = x[numbers >= 0], numbers[numbers >= 0]
        size, even = max(LEAST_COLUMNS, BLOCK_BYTES // (8 * len(self.weights))), (self.weights == 1).all()
        buffer = np.empty((len(self.weights), min(size, len(x))))
        for start in range(0, len(x), size):
            raw, some = x[start : start + size].T, numbers[start : start + size]
            raw = raw if self.kept is None else raw[self.kept]
            y = self.prepared(raw, some, buffer[:, : len(some)])
            mean = self.weights @ y / self.weights.sum()
            if self.centered:
                y -= mean
            if not even:
                y *= self.roots[:, None]
            yield some, raw, mean, y


@dataclass(frozen=True, eq=False)
class GramTask:
    """Gram matrix (n, n) of rows, counts of invalid entries, and some columns by number."""

    blocks: ColumnBlocks

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        n, watched = len(self.blocks.weights), columns_of_order(self.blocks.dimension)
        gram, product, invalid = np.zeros((n, n)), np.empty((n, n)), np.zeros(n, np.int64)
        found: dict[str, Any] = {}
        for batch in batches:
            for numbers, raw, _, y in self.blocks(batch):
                np.matmul(y, y.T, out=product)
                if not np.isfinite(product).all() and not (good := usable(raw)).all():
                    invalid += np.count_nonzero(~good, axis=1)
                    continue
                gram += product
                some = np.flatnonzero(np.isin(numbers, watched))
                columns = self.blocks.prepared(raw[:, some], numbers[some], np.empty((n, len(some))))
                found |= {f"column {number}": column for number, column in zip(numbers[some], columns.T, strict=True)}
        return {GRAM: gram, INVALID: invalid, **found}


@dataclass(frozen=True, eq=False)
class DirectionTask:
    """Sums of each column (`RowScores`), and products with vectors (n, q)."""

    blocks: ColumnBlocks
    vectors: Array

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        roots = self.blocks.roots
        (one, two), halves = self.blocks.neighbors, np.zeros_like(roots)
        halves[one] += roots[two] / 2
        halves[two] += roots[one] / 2
        found, count = np.empty((len(batch["x"]), self.vectors.shape[1] + STATISTICS)), 0
        for _, _, mean, y in self.blocks(batch):
            rows = found[count : count + len(mean)]
            rows[:, 0], rows[:, 1] = mean, np.einsum("nc,nc->c", y, y)
            rows[:, 2], rows[:, 3] = np.einsum("nc,nc->c", y[one], y[two]), halves @ y
            np.matmul(y.T, self.vectors, out=rows[:, STATISTICS:])
            count += len(mean)
        return found[:count]
