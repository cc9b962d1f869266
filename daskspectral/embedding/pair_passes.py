"""The kernel between all pairs of points, or between near ones: products with its matrix, which a fit makes."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from scipy.sparse import csr_array

from daskspectral.basis import Arena, LandmarkBasis
from daskspectral.data.source import Source, open_source
from daskspectral.embedding.landmark_passes import BLOCK_ROWS, SCRATCH, SHARE, values
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.engine.memory import available, local_threads
from daskspectral.kernels import Gaussian, Kernel

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
CUT = 1e-6  # kernel values below are left out
SQUARES = 1 << 20  # squared distances computed at once
ROWS, PARTS = 256, 256  # rows of a block at least, and blocks of all rows at most
NEIGHBOURHOODS = 500  # points whose neighbours are counted
FIELDS = ("data", "indices", "indptr")
ENTRY = 12  # bytes of a kept value and its column
DENSE = 0.5  # share of all pairs within reach above which the sparse kernel is no gain


def _rows(batch: Mapping[str, Array], state: Any = None) -> Array:
    """The rows themselves, (c, d) float64, with the bounds on the diagonal as a last column where they are given."""
    return np.column_stack([np.asarray(batch[name], dtype=float) for name in ("x", "diagonal") if name in batch])


def points_in_memory(source: Source) -> tuple[Array, Array | None]:
    """All valid points (n, d) in memory, and the bounds on the diagonal (n,), None where none are given.

    Raises ValueError where no row is valid, InvalidRowError for an invalid row (on_invalid="raise").
    """
    rows = Run(source, plan_rows(source, 50.0), None, "points").map(_rows)
    if rows is None:
        raise ValueError("no rows are left: every row is invalid")
    bounded = "diagonal" in source.readers
    return np.ascontiguousarray(rows[:, :-1] if bounded else rows), rows[:, -1] if bounded else None


def _products(panels: tuple[LandmarkBasis, ...], batch: Mapping[str, Array], state: Array) -> Array:
    """k(x, X) h for each row x of a block, (c, r), by panels of X whose kernel values stay in the cache."""
    rows, arena = np.asarray(batch["x"]), Arena()
    result = np.zeros((state.shape[1], len(rows)))
    for panel, h in zip(panels, np.split(state, range(BLOCK_ROWS, len(state), BLOCK_ROWS)), strict=True):
        result += h.T @ values(panel, rows, arena)
    return result.T


def _kernel_rows(kernel: Kernel, x: Array, batch: Mapping[str, Array], state: Any = None) -> Array:
    """The rows of K, (c, n)."""
    return np.ascontiguousarray(kernel.values(np.asarray(batch["x"]), x).T)


@dataclass(frozen=True, eq=False)
class KernelProduct:
    """Products K @ h of the kernel matrix (n, n) with h (n, r), whose rows are made each time."""

    run: Run
    panels: tuple[LandmarkBasis, ...]

    @classmethod
    def of(cls, kernel: Kernel, x: Array, *, kept: bool, progress: bool | None = None) -> KernelProduct | Array | None:
        """What multiplies as the kernel matrix of points x (n, d): where it is `kept` in memory, the matrix itself."""
        n = len(x)
        rows = max(64, min(1024, -(-n // 16)))
        plan = Plan(tuple(pairwise([*range(0, n, rows), n])))
        run, starts = Run(open_source(x, progress=progress), plan, None, "kernel"), range(0, n, BLOCK_ROWS)
        if kept:
            return run.map(partial(_kernel_rows, kernel, x))
        logger.info("%d x %d kernel values do not fit and are made anew in every pass", n, n)
        return cls(run, tuple(LandmarkBasis(kernel, x[i : i + BLOCK_ROWS]) for i in starts))

    def __matmul__(self, h: Array) -> Array:
        result = self.run.map(partial(_products, self.panels), np.ascontiguousarray(h))
        assert result is not None
        return result


@dataclass(frozen=True, eq=False)
class SparseProduct:
    """Products K @ h of the kernel matrix (n, n) without values below 1e-6, kept as compressed rows, block by block.

    A truncated Gaussian need not be positive semidefinite; the dual certificate does not ask for it. The blocks are in
    memory, or groups of a zarr store.
    """

    blocks: tuple[csr_array | zarr.Group, ...]

    @classmethod
    def of(cls, kernel: Gaussian, x: Array, scratch: str | None) -> SparseProduct:
        """The products for points x (n, d), kept in a new zarr group at the path `scratch` where one is given.

        Raises MemoryError, naming the size, where the values fit neither way.
        """
        n = len(x)
        rows = max(ROWS, -(-n // PARTS))
        if scratch is None:
            size = ENTRY * n * degree(kernel, x, x[np.random.default_rng(0).permutation(n)[:NEIGHBOURHOODS]])
            if size > available() / SHARE:
                raise MemoryError(
                    f"the kernel values above {CUT:g} of {n} points take about {size / 1e9:.3g} GB, more than a "
                    "quarter of the free memory: give a path as cache, a place to keep them in, or a smaller bandwidth"
                )
            store = None
        else:
            store = zarr.create_group(scratch, overwrite=True, attributes={SCRATCH: True})

        def make(start: int) -> csr_array | zarr.Group:
            block = near(kernel, x[start : start + rows], x)
            return block if store is None else _kept(block, store.create_group(str(start)))

        with ThreadPoolExecutor(local_threads()) as pool:
            return cls(tuple(pool.map(make, range(0, n, rows))))

    def __matmul__(self, h: Array) -> Array:
        with ThreadPoolExecutor(local_threads()) as pool:
            return np.concatenate(list(pool.map(partial(_product, h=h), self.blocks)))


def _kept(block: csr_array, group: zarr.Group) -> zarr.Group:
    """The block in a zarr group."""
    for name in FIELDS:
        group.create_array(name, data=getattr(block, name))
    return group


def _product(block: csr_array | zarr.Group, h: Array) -> Array:
    if isinstance(block, zarr.Group):
        fields = tuple(np.asarray(dict(block.arrays())[name][:]) for name in FIELDS)
        block = csr_array(fields, shape=(len(fields[-1]) - 1, len(h)))
    return np.asarray(block @ h)


def near(kernel: Gaussian, x: Array, y: Array) -> csr_array:
    """k(x, y) (a, b) without values below 1e-6; the kernel is taken of the pairs within reach alone."""
    counts, columns, values = [np.zeros(1, dtype=np.int64)], [], []
    for part in _squares(x, y):
        inside = part <= _reach(kernel)
        counts.append(np.count_nonzero(inside, axis=1))
        columns.append(np.nonzero(inside)[1].astype(np.int32))
        values.append(np.exp(part[inside] / (-2 * float(kernel.scale) ** 2)))
    indptr = np.cumsum(np.concatenate(counts))
    return csr_array((np.concatenate(values), np.concatenate(columns), indptr), shape=(len(x), len(y)))


def degree(kernel: Gaussian, x: Array, sample: Array) -> float:
    """The mean number of the points x within reach of a point of the sample."""
    return sum(np.count_nonzero(part <= _reach(kernel)) for part in _squares(sample, x)) / len(sample)


def _reach(kernel: Gaussian) -> float:
    """The squared distance at which the kernel is 1e-6."""
    return -2 * float(kernel.scale) ** 2 * math.log(CUT)


def _squares(x: Array, y: Array) -> Iterator[Array]:
    """Squared distances (c, b) of blocks of x to y; the same point is at distance 0."""
    middle = y.mean(axis=0)
    x, y = x - middle, y - middle
    squares = np.square(y).sum(axis=1)
    rows = max(1, SQUARES // len(y))
    for start in range(0, len(x), rows):
        block = x[start : start + rows]
        own = np.square(block).sum(axis=1)[:, None]
        found = block @ y.T
        found *= -2
        found += own
        found += squares
        found[found <= 64 * np.finfo(float).eps * (own + squares)] = 0.0
        yield found
