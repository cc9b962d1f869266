"""All pairs of the rows of a source: each task takes one tile, a range of rows, and reads the tiles to pair it with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.batches import Batches
from daskspectral.data.readers import Reader, ZarrReader
from daskspectral.engine import Plan
from daskspectral.engine.memory import Memory, local_threads, predict_memory
from daskspectral.pairs import Cloud, CloudGram, PairMeasure, SparsePairs

Array = NDArray[np.floating[Any]]
TILE_ROWS = 2048  # rows of one task; it meets half of the other tasks' rows
LEAST_TILE_ROWS = 256
LEAST_TILES = 16


@dataclass(frozen=True, eq=False)
class Tiles:
    """The ranges of a run as clouds of points with masses; a task reads other tiles through these readers.

    Masses are sample weights in units of 2^exponent, times `factors` where given: one array (c,) for the valid rows of
    each tile.
    """

    readers: Mapping[str, Reader]
    ranges: tuple[tuple[int, int], ...]
    factors: tuple[Array, ...] | None = None
    exponent: int = 0

    def number(self, start: int) -> int:
        """The number of the tile that begins at a row."""
        return next(i for i, (first, _) in enumerate(self.ranges) if first == start)

    def partners(self, number: int) -> list[int]:
        """The tiles that a tile is paired with, cyclically the next half: each pair of tiles once, at even loads."""
        m = len(self.ranges)
        offsets = [*range(1, (m - 1) // 2 + 1), *([m // 2] if m % 2 == 0 and number < m // 2 else [])]
        return [(number + offset) % m for offset in offsets]

    def cloud(self, number: int, batches: Iterable[Mapping[str, Array]]) -> Cloud:
        """The valid rows of a tile, with their masses."""
        parts = list(batches)
        if not parts:
            return Cloud(np.empty((0, 0)), np.empty(0))
        x = np.concatenate([np.asarray(b["x"], dtype=float) for b in parts])
        masses = [np.asarray(b["weight"], dtype=float) if "weight" in b else np.ones(len(b["x"])) for b in parts]
        mass = np.ldexp(np.concatenate(masses), -self.exponent)
        return Cloud(x, mass if self.factors is None else mass * self.factors[number])

    def of(self, sums: Mapping[str, Array]) -> tuple[Array, ...]:
        """The degrees among the sums of a pass, one array (c,) for the rows of each tile."""
        return tuple(sums.get(_degree(i), np.empty(0)) for i in range(len(self.ranges)))


def _degree(number: int) -> str:
    return f"degree {number}"


@dataclass(frozen=True)
class PairTask:
    """The sums of a `PairMeasure` over one tile with itself and its partners, and their parts of the rows' degrees."""

    measure: PairMeasure

    def __call__(self, batches: Batches, state: Tiles) -> dict[str, Array]:
        number = state.number(batches.start)
        own = state.cloud(number, batches)
        if not len(own):
            return {}
        held = {name: _held(reader) for name, reader in state.readers.items()}
        others = (
            (i, state.cloud(i, Batches(held, batches.rows, *state.ranges[i], batches.edges, batches.cancelled)))
            for i in state.partners(number)
        )
        found = self.measure(number, own, (pair for pair in others if len(pair[1])))
        return {**found.cross, **{_degree(key): degree for key, degree in found.degrees.items()}}  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class GramTask:
    """Two sums over the rows: `gram`, the Gram matrix of the basis, and `diagonal`, weighted by degrees too.

    `degrees` has an array (c,) for each tile. `diagonal` takes the functions less their offsets.
    """

    gram: CloudGram
    degrees: tuple[Array, ...]

    def __call__(self, batches: Batches, state: Tiles) -> dict[str, Array]:
        number = state.number(batches.start)
        cloud = replace(state, factors=None).cloud(number, batches)
        if not len(cloud):
            return {}
        factor = 1.0 if state.factors is None else state.factors[number]
        plain = replace(self.gram, offset=np.zeros_like(self.gram.offset))
        return {
            "gram": plain(cloud),
            "diagonal": self.gram(replace(cloud, mass=cloud.mass * factor * self.degrees[number])),
        }


@dataclass(frozen=True)
class NeighbourTask:
    """The sum over the pairs of the rows of one range with their neighbours."""

    def __call__(self, batches: Batches, state: SparsePairs) -> dict[str, Array]:
        for _ in batches:  # the rows are in the state; the engine counts them here
            pass
        return {"cross": state(batches.start, batches.stop)}


@dataclass(eq=False)
class _Held(Reader):
    """A reader that keeps the chunk it decoded last: tiles smaller than chunks are read one after another."""

    reader: Reader
    chunk: int = -1
    rows: Array = field(default_factory=lambda: np.empty(0))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.reader.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.reader.dtype

    @property
    def edges(self) -> Array:
        return self.reader.edges

    def read(self, start: int, stop: int) -> Array:
        edges = self.edges
        first, last = np.searchsorted(edges, [start, stop - 1], "right") - 1
        if first != last:
            return self.reader.read(start, stop)
        if first != self.chunk:
            self.rows, self.chunk = self.reader.read(int(edges[first]), int(edges[first + 1])), int(first)
        return self.rows[start - edges[first] : stop - edges[first]]


def _held(reader: Reader) -> Reader:
    return _Held(reader) if isinstance(reader, ZarrReader) else reader


def tile_plan(n: int) -> Plan:
    """Ranges of equal size; they depend on n alone, so that a chunked store gives the same bits as an array."""
    rows = min(TILE_ROWS, max(LEAST_TILE_ROWS, -(-n // LEAST_TILES)))
    cuts = np.linspace(0, n, -(-n // rows) + 1).astype(np.int64).tolist()
    return Plan(tuple(pairwise(cuts)))


def tile_memory(p: int, n: int, d: int) -> Memory:
    """The peak memory of a process that runs the tiles of n rows on the local scheduler, with p functions."""
    plan, threads = tile_plan(n), local_threads()
    rows = max(stop - start for start, stop in plan.ranges)
    live = 1 + plan.live(1 + math.ceil(threads / plan.epoch))
    return predict_memory(p, d, rows=rows, dtype="float64", threads=threads, live=live)
