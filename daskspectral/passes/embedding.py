"""Passes of the semidefinite embedding over the rows: kernel values block by block, and products with the kernel."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from zarr.storage import LocalStore

from daskspectral.basis import Arena, Basis, Block, LandmarkBasis
from daskspectral.basis.base import VALUE, evaluated
from daskspectral.data.containers import points_reader
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.data.stores import open_node
from daskspectral.data.writing import create_array, default_chunk_rows, refuse_existing, refuse_input
from daskspectral.devices import ACCELERATOR_ROWS, Device, device_of
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import available, check_memory, local_threads, predict_memory
from daskspectral.engine.plan import Plan
from daskspectral.engine.tasks import Total
from daskspectral.kernels import Kernel
from daskspectral.moments import block_rows
from daskspectral.passes.extension import COVERED
from daskspectral.passes.sums import PassPlan, flops_of
from daskspectral.solve.extremes import Largest, Smallest
from daskspectral.solve.sdp import Frame, Problem, Prove, Pull, SDPSolution

Array = NDArray[np.floating[Any]]
Solve = Callable[[Problem, Array], SDPSolution]
logger = logging.getLogger("daskspectral")
ASKED = "asked"
BLOCK_ROWS = 512  # kernel values of a block are read three times: they should stay in the cache
KEPT = 1 << 30  # bytes of kernel values that are kept in memory, at most
SCRATCH = "daskspectral_scratch"
"""Attribute of the array of kernel values that a fit leaves at the path of its cache."""

SHARE = 4  # kernel values take at most 1 / SHARE of the free memory


@dataclass(frozen=True, eq=False)
class Features:
    """Kernel values k(Y, x) between p landmarks Y and rows x, in blocks (p, c).

    With `kept`, the rows (c, p) are kernel values that were computed before. They are arrays of the `device`.
    """

    basis: LandmarkBasis
    kept: bool = False
    device: str = "cpu"

    @property
    def accelerator(self) -> Device:
        """Where the kernel values are. Raises ImportError or RuntimeError where there is none."""
        return device_of(self.device)

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return BLOCK_ROWS if self.device == "cpu" else ACCELERATOR_ROWS

    def blocks(self, batches: Iterable[Mapping[str, Array]]) -> Iterator[tuple[Array, Array | None]]:
        """Block by block k(Y, x) (p, c), and the bounds on the diagonal (c,), None where none are given."""
        device, step = self.accelerator, self.rows
        arena, basis = Arena(device), device.moved(self.basis)
        for batch in batches:
            for start in range(0, len(batch["x"]), step):
                x = batch["x"][start : start + step]
                given = batch.get("diagonal")
                bound = None if given is None else device.put(np.asarray(given[start : start + step], dtype=float))
                yield device.put(np.ascontiguousarray(x.T)) if self.kept else values(basis, x, arena), bound
                arena.launched()


def values(basis: Basis, x: Array, arena: Arena) -> Array:
    """k(Y, x) (p, c) on the device of the arena, where the basis is, valid until the next call."""
    block = Block({"x": x}, np.dtype(float), arena).on(arena)
    return evaluated(basis, block, [VALUE]).feature(VALUE)


@dataclass(frozen=True, eq=False)
class KeepTask:
    """The task that evaluates the kernel values of each row, (c, p), so that they can be kept."""

    features: Features

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        get = self.features.accelerator.get
        return np.concatenate([get(k).T.copy() for k, _ in self.features.blocks([batch])])


@dataclass(frozen=True, eq=False)
class TotalTask:
    """The sum of the kernel values of all rows x_i at the landmarks Y, sum_i k(Y, x_i) (p,)."""

    features: Features

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        device = self.features.accelerator
        with device.guarded():
            total = device.zeros(self.features.basis.size)
            for k, _ in self.features.blocks(batches):
                total += k.sum(axis=1)
            return {"total": device.get(total)}


@dataclass(frozen=True, eq=False)
class CoverTask:
    """How well p landmarks cover the rows: a row x is covered if |psi(x)|^2 >= 0.5 and its mass m(x) is positive.

    |psi(x)|^2 = |W^T k(Y, x)|^2, with W W^T the pseudo-inverse of k(Y, Y), is 1 where the landmarks span k(x, .). Of
    the sums, `uncovered` is the number of rows that are not covered and `missed` holds the first of them; `farthest`
    is the largest 1 - |psi|^2, `heaviest` and `lightest` are the largest and the smallest mass, `unbounded` is the
    number of rows whose bound on the diagonal is not positive, and `rows` that of all valid rows.
    """

    features: Features

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Frame) -> dict[str, Any]:
        uncovered, unbounded, least, missed, rows_seen = 0, 0, 1.0, First(()), 0
        lightest, heaviest = np.inf, 0.0
        device = self.features.accelerator
        get, whitening, masses = device.get, device.put(state.whitening), device.put(state.masses)
        for batch in batches:
            for start, (k, given) in zip(count(0, self.features.rows), self.features.blocks([batch]), strict=False):
                cover, bound = get(np.square(whitening.T @ k).sum(axis=0)), None if given is None else get(given)
                m = get(k.T @ masses)
                rows_seen += len(m)
                lightest, heaviest = min(lightest, float(m.min())), max(heaviest, float(m.max()))
                rows = np.flatnonzero(~((cover >= COVERED) & (m > 0)))
                uncovered += len(rows)
                missed += First(tuple(np.asarray(batch["x"][start + rows], dtype=float)))
                least = min(least, float(cover.min()))
                unbounded += 0 if bound is None else int(np.count_nonzero(~(bound > 0)))
        return {
            "uncovered": np.array(uncovered),
            "unbounded": np.array(unbounded),
            "rows": np.array(rows_seen),
            "farthest": Largest(1 - least),
            "heaviest": Largest(heaviest),
            "lightest": Smallest(lightest),
            "missed": missed,
        }


@dataclass(frozen=True, eq=False)
class First:
    """The first rows of some kind, 1000 at most, which add up like a sum."""

    rows: tuple[Array, ...]

    def __add__(self, other: First) -> First:
        return First((self.rows + other.rows)[:1000])

    @property
    def value(self) -> Array:
        """The rows as an array (k, d)."""
        return np.array(self.rows)


@dataclass(frozen=True, eq=False)
class BlockTask:
    """The sums over one range for a step of the ascent (`Pull`) or for the certificate (`Prove`)."""

    features: Features
    block: Pull | Prove

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Array) -> dict[str, Any]:
        sums: dict[str, Any] = {}
        device = self.features.accelerator
        with device.guarded():
            block, point = device.moved(self.block), device.put(state)
            for k, bound in self.features.blocks(batches):
                part = block(k, point, bound)
                sums = {name: sums[name] + value if sums else value for name, value in part.items()}
            return {name: v if isinstance(v, Largest) else device.get(v) for name, v in sums.items()}


@dataclass(eq=False)
class Passes:
    """One pass after the other over the same rows; a pass whose sums a checkpoint holds is not made again."""

    run: Run
    checkpoint: Checkpoint | None = None
    count: int = 0

    def __call__(self, task: Any, state: Any = None) -> Mapping[str, Any]:
        """The sums of a task over all rows."""
        checkpoint, number = self.checkpoint, self.count
        self.count += 1
        saved = {} if checkpoint is None or checkpoint.total is None else dict(checkpoint.total.sums)
        asked = _digest(task, state)
        if str(number) in saved and np.array_equal(saved[str(number)][ASKED], asked):
            return dict(saved[str(number)])
        found = self.run.reduce(task, state).sums
        sums = {k: np.asarray(v.value if isinstance(v, (First, Largest, Smallest)) else v) for k, v in found.items()}
        if checkpoint is not None:  # later sums follow another course, and are dropped
            before = {key: value for key, value in saved.items() if int(key) < number}
            checkpoint.add(self.count, Total({**before, str(number): {**sums, ASKED: asked}}, count=1))
        return sums


def _digest(task: Any, state: Any) -> Array:
    """A digest of a pass, its task and the point at which it is made, as four numbers."""
    digest = hashlib.sha256(repr([type(part).__name__ for part in (task, getattr(task, "block", None))]).encode())
    if isinstance(state, np.ndarray):
        digest.update(np.ascontiguousarray(state).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.int64)


def plan_embedding(source: Source, p: int, device: str = "cpu") -> PassPlan:
    """The tasks and memory of one pass of an embedding with p landmarks. Raises MemoryError where it would not fit."""
    plan, threads = plan_rows(source, flops_of(source, p), device=device), local_threads()
    live = 1 + plan.live(1 + math.ceil(threads / plan.epoch))
    rows = block_rows(p) if device == "cpu" else ACCELERATOR_ROWS
    memory = predict_memory(
        p, source.dimension, rows=rows, dtype="float64", threads=threads, live=live, buffers=4, sums=1, device=device
    )
    check_memory(memory)
    return PassPlan(plan, memory)


def keeps(size: int) -> bool:
    """Whether an array of so many bytes may be kept in memory: 1 GB at most, and a quarter of what is free."""
    return size <= min(KEPT, available() // SHARE)


def kept_features(run: Run, features: Features) -> Source:
    """A source whose x are the kernel values (n, p), in memory, with the other fields of the rows."""
    kept = run.map(KeepTask(features))
    assert kept is not None
    others = {name: reader.read(0, run.source.n) for name, reader in run.source.readers.items() if name != "x"}
    return open_source(kept, fields=others)


def check_scratch(path: str | os.PathLike[str], source: Source) -> None:
    """Raise an error for a path where a fit cannot keep its kernel values in a scratch array.

    Raises FileExistsError where anything but the scratch array of an earlier fit lies there, FileNotFoundError or
    PermissionError for a directory that is missing or cannot be written, and ValueError for the path of the input and
    for dask arrays, whose blocks the scratch array does not share.
    """
    if source.dask_fields:
        raise ValueError("a scratch array takes no dask array: write X by X.to_zarr(path) and give the path")
    refuse_input(path, *(reader.name for reader in source.readers.values() if isinstance(reader, ZarrReader)))
    try:
        refuse_existing(path, False)
    except FileExistsError:
        if not _is_scratch(path):
            raise FileExistsError(
                f"{os.fspath(path)} exists and is not the scratch of an earlier fit, so it is never replaced: give "
                "another path"
            ) from None


def _is_scratch(path: str | os.PathLike[str]) -> bool:
    try:
        node = open_node(path)
    except (OSError, KeyError, ValueError):  # no zarr store, or one that cannot be read
        return False
    return node.attrs.get(SCRATCH) is True


def scratch_features(run: Run, features: Features, path: str) -> Source:
    """A source whose x are the kernel values (n, p), written to a zarr array at a path, with the other fields."""
    n, p = run.source.n, features.basis.size
    rows = min(n, default_chunk_rows((n, p), "float64"))
    check_scratch(path, run.source)
    marked = {SCRATCH: True}
    with create_array(path, (n, p), "float64", chunk_rows=rows, attributes=marked, overwrite=True) as array:
        target = str(array.store.root) if isinstance(array.store, LocalStore) else array.store
        plan = Plan(tuple(pairwise([*range(0, n, rows), n])))
        keeping = Run(run.source, plan, None, "features", run.device)
        keeping.map(KeepTask(features), out=target)
    readers = {**run.source.readers, "x": points_reader(path, "features")}
    return replace(run.source, readers=readers, preparation=Preparation())


@dataclass(frozen=True, eq=False)
class _RowTask:
    """The rows themselves, (c, d) float64, with the bounds on the diagonal as a last column where they are given."""

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        fields = [np.asarray(batch["x"], dtype=float)]
        if "diagonal" in batch:
            fields.append(np.asarray(batch["diagonal"], dtype=float)[:, None])
        return np.concatenate(fields, axis=1)


def points_in_memory(run: Run) -> tuple[Array, Array | None]:
    """All valid points (n, d) in memory, and the bounds on the diagonal (n,), None where none are given."""
    rows = run.map(_RowTask())
    if rows is None:
        raise ValueError("no rows are left: every row is invalid")
    return (
        (rows[:, :-1].copy(), rows[:, -1]) if "diagonal" in run.source.readers else (np.ascontiguousarray(rows), None)
    )


@dataclass(frozen=True, eq=False)
class _ProductTask:
    """k(x, X) h for each row x of a block, (c, r), by panels of X whose kernel values stay in the cache."""

    panels: tuple[LandmarkBasis, ...]

    @classmethod
    def of(cls, kernel: Kernel, x: Array) -> _ProductTask:
        """All panels of X (n, d)."""
        starts = range(0, len(x), BLOCK_ROWS)
        return cls(tuple(LandmarkBasis(kernel, x[i : i + BLOCK_ROWS]) for i in starts))

    def __call__(self, batch: Mapping[str, Array], state: Array) -> Array:
        rows, arena = np.asarray(batch["x"]), Arena()
        result = np.zeros((state.shape[1], len(rows)))
        for panel, h in zip(self.panels, np.split(state, range(BLOCK_ROWS, len(state), BLOCK_ROWS)), strict=True):
            result += h.T @ values(panel, rows, arena)
        return result.T


@dataclass(frozen=True, eq=False)
class KernelProduct:
    """Products K h of the kernel matrix (n, n) with h (n, r): K is kept in memory, or its rows are made each time."""

    run: Run
    task: _ProductTask
    matrix: Array | None = None

    @classmethod
    def of(cls, kernel: Kernel, x: Array) -> KernelProduct:
        """The products with the kernel matrix of points x (n, d), kept in memory where it fits."""
        n = len(x)
        rows = max(64, min(1024, -(-n // 16)))
        cuts = [*range(0, n, rows), n]
        plan = Plan(tuple(pairwise(cuts)))
        product = cls(Run(open_source(x), plan, None, "kernel"), _ProductTask.of(kernel, x))
        if not keeps(8 * n * n):
            logger.info("%d x %d kernel values do not fit and are made anew in every pass", n, n)
            return product
        return replace(product, matrix=product.run.map(_KernelTask(kernel, x)))

    def __call__(self, h: Array) -> Array:
        if self.matrix is not None:
            return np.asarray(self.matrix @ h)
        result = self.run.map(self.task, np.ascontiguousarray(h))
        assert result is not None
        return result


@dataclass(frozen=True, eq=False)
class _KernelTask:
    """The rows of K, (c, n)."""

    kernel: Kernel
    x: Array

    def __call__(self, batch: Mapping[str, Array], state: Any = None) -> Array:
        return np.ascontiguousarray(self.kernel.values(np.asarray(batch["x"]), self.x).T)


def positive(columns: Array) -> Array:
    """Signs (r,) that make each column's entry of largest magnitude positive, the first where several tie."""
    size = np.abs(columns)
    first = (size >= (1 - 1e-6) * size.max(axis=0)).argmax(axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
