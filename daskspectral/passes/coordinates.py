"""The passes of a diffusion map: coordinates of rows, sums over rows, and products with a matrix never stored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.source import Source, open_source
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.passes.rows import RowFunction
from daskspectral.solve.diffusion import DiffusionFunctions, KernelMatrix, LandmarkSums

Array = NDArray[np.floating[Any]]


class PointFunctions(Protocol):
    """Functions of points (c, d), in float64: (c, k), NaN where they are undefined."""

    @property
    def width(self) -> int: ...

    def __call__(self, x: Array, /) -> Array: ...


@final
@dataclass(frozen=True, eq=False)
class Coordinates(RowFunction):
    """Embedding coordinates of rows (c, d), as (c, k) float64.

    Where they are undefined, ValueError is raised, or with `nan_rows` they are NaN.
    """

    functions: PointFunctions

    @property
    def columns(self) -> int:
        return self.functions.width

    @property
    def rows(self) -> None:
        return None

    def block(self, x: Array, out: Array) -> None:
        out[:] = self.functions(x)

    def undefined(self, x: Array, count: int) -> str:
        return (
            f"{len(x)} of {count} points, the first of them {x[0]}, are so far from the points of the fit that the "
            "kernel vanishes and their coordinates are undefined: widen the bandwidth, fit on data that reach there, "
            "or make them NaN with Rows(X, on_invalid='skip')"
        )


@dataclass(frozen=True, eq=False)
class Embed:
    """The task that evaluates the coordinates (c, k) of the rows of a batch."""

    function: Coordinates

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        return self.function(batch["x"])[0]


@dataclass(frozen=True)
class _Points:
    """The points themselves, as float64."""

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        return np.array(batch["x"], dtype=float)


@dataclass(frozen=True)
class SumTask:
    """The sums over one range for a diffusion map at landmarks; the state has the step and earlier sums."""

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: LandmarkSums) -> dict[str, Array]:
        total: dict[str, Array] = {}
        for batch in batches:
            part = state(np.asarray(batch["x"], dtype=float))
            total = {name: total[name] + value for name, value in part.items()} if total else part
        return total


@dataclass(frozen=True, eq=False)
class _RowsOfProduct:
    """Some rows of K @ vectors, for a matrix K of which no block is kept; the state is the vectors."""

    matrix: KernelMatrix

    def __call__(self, batch: Mapping[str, Array], state: Array) -> Array:
        x, step = batch["x"], self.matrix.block_rows
        return np.concatenate([self.matrix.block(x[i : i + step]) @ state for i in range(0, len(x), step)])


@dataclass(frozen=True, eq=False)
class StreamedMatrix:
    """Products K @ vectors (n, r) with the kernel matrix K (n, n), whose blocks are computed anew in each product."""

    run: Run
    matrix: KernelMatrix

    @classmethod
    def of(cls, matrix: KernelMatrix, progress: bool | None) -> StreamedMatrix:
        """The product in tasks of whole blocks, so that results have the same bits as with blocks kept in memory."""
        n, step = len(matrix.points), matrix.block_rows * math.ceil(2048 / matrix.block_rows)
        ranges = tuple((start, min(start + step, n)) for start in range(0, n, step))
        return cls(Run(open_source(matrix.points, progress=progress), Plan(ranges), None, "kernel"), matrix)

    def __matmul__(self, vectors: Array) -> Array:
        result = self.run.map(_RowsOfProduct(self.matrix), state=vectors)
        assert result is not None
        return result


def feature_run(source: Source, functions: DiffusionFunctions, description: str) -> Run:
    """A run over a source that evaluates the features of a diffusion map, in tasks of even work."""
    p, d = functions.points.shape
    q = len(functions.first)
    flops = 2.0 * p * d + 50.0 * p + 2.0 * q * (q if functions.whitening is None else p + q)
    return Run(source, plan_rows(source, flops), None, description)


def read_points(source: Source) -> Array:
    """All valid rows as points in memory, (n, d) float64. With "raise", an invalid row raises InvalidRowError."""
    points = Run(source, plan_rows(source, 50.0), None, "points").map(_Points())
    return np.empty((0, source.dimension)) if points is None else points
