"""Passes of the semidefinite embedding at landmarks: kernel values by block, sums, and probes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Block, LandmarkBasis
from daskspectral.basis.evaluation import VALUE, evaluated
from daskspectral.data.source import Source
from daskspectral.devices import ACCELERATOR_ROWS, Device, device_of
from daskspectral.embedding.extension import COVERED, Extension
from daskspectral.embedding.problems import LandmarkWhitening, Maximum
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import check_memory, local_threads, predict_memory
from daskspectral.engine.plan import Plan
from daskspectral.engine.tasks import Total
from daskspectral.moments import DENSE_ROWS
from daskspectral.passes.sums import flops_of
from daskspectral.workspace import Workspace

Array = NDArray[np.floating[Any]]
ASKED = "asked"
BLOCK_ROWS = 512  # kernel values of a block are read three times and should fit the cache
PROBES = 1000  # rows
PROBE_ROWS = 1024  # of a block of kernel values


@dataclass(frozen=True, eq=False)
class LandmarkKernel:
    """Kernel values k(Y, x) between p landmarks Y and rows x, by blocks (p, c) on a device."""

    basis: LandmarkBasis
    device: str = "cpu"

    @property
    def accelerator(self) -> Device:
        """Device of the kernel values; raises ImportError or RuntimeError without it."""
        return device_of(self.device)

    def blocks(self, batches: Iterable[Mapping[str, Array]]) -> Iterator[tuple[Array, Array | None, Array]]:
        """Yield k(Y, x) (p, c), bounds (c,) or None, and x (c, d), block by block."""
        device, step = self.accelerator, BLOCK_ROWS if self.device == "cpu" else ACCELERATOR_ROWS
        workspace, basis = Workspace(device), device.moved(self.basis)
        for batch in batches:
            for start in range(0, len(batch["x"]), step):
                x = batch["x"][start : start + step]
                given = batch.get("diagonal")
                bound = None if given is None else device.put(np.asarray(given[start : start + step], dtype=float))
                block = Block({"x": x}, np.dtype(float), workspace).on(workspace)
                yield evaluated(basis, block, [VALUE]).feature(VALUE), bound, x
                workspace.launched()


def cover_sums(
    features: LandmarkKernel, batches: Iterable[Mapping[str, Array]], state: LandmarkWhitening
) -> dict[str, Any]:
    """Return how well p landmarks cover the rows.

    A row x is covered if |psi(x)|^2 = |W^T k(Y, x)|^2 >= 0.5, W W^T the pseudo-inverse of k(Y, Y), and its mass is
    positive. `uncovered` counts the others, `missed` are the first; `farthest` is the largest 1 - |psi|^2, `heaviest`
    the largest mass, `lightest` the negative smallest; `unbounded` counts bounds that are not positive.
    """
    uncovered, unbounded, missed = 0, 0, FirstRows(())
    farthest, lightest, heaviest = Maximum(), Maximum(-np.inf), Maximum()
    device = features.accelerator
    get, whitening, masses = device.get, device.put(state.whitening), device.put(state.masses.weights)
    for k, bound, x in features.blocks(batches):
        cover, m = get(np.square(whitening.T @ k).sum(axis=0)), get(k.T @ masses)
        lightest, heaviest = lightest + Maximum(-float(m.min())), heaviest + Maximum(float(m.max()))
        rows = np.flatnonzero(~((cover >= COVERED) & (m > 0)))
        uncovered += len(rows)
        missed += FirstRows(tuple(np.asarray(x[rows], dtype=float)))
        farthest += Maximum(1 - float(cover.min()))
        unbounded += 0 if bound is None else int(np.count_nonzero(~(get(bound) > 0)))
    return {
        "uncovered": np.array(uncovered),
        "unbounded": np.array(unbounded),
        "farthest": farthest,
        "heaviest": heaviest,
        "lightest": lightest,
        "missed": missed,
    }


@dataclass(frozen=True, eq=False)
class FirstRows:
    """First rows of some kind, at most 1000, which add up like a sum."""

    rows: tuple[Array, ...]

    def __add__(self, other: FirstRows) -> FirstRows:
        return FirstRows((self.rows + other.rows)[:1000])

    @property
    def value(self) -> Array:
        return np.array(self.rows)


def kernel_total(k: Array, v: Array, d: Array | None) -> dict[str, Any]:
    """Return sum_i k(Y, x_i) (p,) over all rows."""
    return {"total": k.sum(axis=1)}


def block_sums(
    features: LandmarkKernel,
    block: Callable[[Array, Array, Array | None], dict[str, Any]],
    batches: Iterable[Mapping[str, Array]],
    state: Array,
) -> dict[str, Any]:
    """Return the sums of a `GradientTask` or `CertificateTask` over a range of rows."""
    sums: dict[str, Any] = {}
    device = features.accelerator
    with device.guarded():
        block, point = device.moved(block), device.put(state)
        for k, bound, _ in features.blocks(batches):
            part = block(k, point, bound)
            sums = {name: sums[name] + value if sums else value for name, value in part.items()}
        return {name: v if isinstance(v, Maximum) else device.get(v) for name, v in sums.items()}


@dataclass(eq=False)
class Passes:
    """Passes over the same rows; those with sums in a checkpoint are not repeated."""

    run: Run
    checkpoint: Checkpoint | None = None
    count: int = 0

    def __call__(self, task: partial[dict[str, Any]], state: Any = None) -> Mapping[str, Any]:
        checkpoint, number = self.checkpoint, self.count
        self.count += 1
        saved = {} if checkpoint is None or checkpoint.total is None else dict(checkpoint.total.sums)
        asked = _digest(task, state)
        if str(number) in saved and np.array_equal(saved[str(number)][ASKED], asked):
            return dict(saved[str(number)])
        found = self.run.reduce(task, state).sums
        sums = {k: np.asarray(getattr(v, "value", v)) for k, v in found.items()}
        if checkpoint is not None:  # later sums are of another path, and are dropped
            before = {key: value for key, value in saved.items() if int(key) < number}
            checkpoint.add(self.count, Total({**before, str(number): {**sums, ASKED: asked}}, count=1))
        return sums


def _digest(task: partial[dict[str, Any]], state: Any) -> Array:
    """Return a digest of task and point, as four numbers."""
    names = [getattr(part, "__name__", type(part).__name__) for part in (task.func, *task.args)]
    digest = hashlib.sha256(repr(names).encode())
    if isinstance(state, np.ndarray):
        digest.update(np.ascontiguousarray(state).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.int64)


def plan_embedding(source: Source, p: int, device: str = "cpu") -> Plan:
    """Return the plan of one pass with p landmarks; raise MemoryError if too large."""
    plan, threads = plan_rows(source, flops_of(source, p), device=device), local_threads()
    live = 1 + plan.live(1 + math.ceil(threads / plan.epoch))
    rows = DENSE_ROWS if device == "cpu" else ACCELERATOR_ROWS
    check_memory(predict_memory(p, source.dimension, rows, threads=threads, live=live, arrays=4, device=device))
    return plan


def probe_sums(
    extension: Extension, probes: Array, batches: Iterable[Mapping[str, Array]], state: Array | None = None
) -> dict[str, Array]:
    """Return sums over rows x_i with the exact kernel to probe rows (s, d).

    The masses (s,), and k(probe, x_i) w_i (s, r), with w_i = E_i / sqrt(m_i), of the first stage.
    """
    r, device = extension.stages[0], device_of(extension.device)
    points, masses, probes = device.moved((extension.points, extension.masses.weights, probes))
    step = ACCELERATOR_ROWS if device.accelerated else PROBE_ROWS
    sums: dict[str, Array] = {"mass": np.zeros(len(probes)), "products": np.zeros((len(probes), r))}
    for batch in batches:
        for start in range(0, len(batch["x"]), step):
            x = np.asarray(batch["x"][start : start + step], dtype=float)
            e = extension.of_prepared(x)[0][:, :r]
            if "diagonal" in batch:
                e = e * np.sqrt(np.asarray(batch["diagonal"][start : start + step], dtype=float))[:, None]
            there = device.put(x)
            m = device.get(masses @ extension.kernel.values(there, points))
            k = extension.kernel.values(there, probes)
            sums["mass"] += device.get(k.sum(axis=1))
            sums["products"] += device.get(k @ device.put(e / np.sqrt(m)[:, None]))
    return sums


@dataclass(frozen=True, eq=False)
class ProbeComparison:
    """Comparison of an embedding with the exact kernel at probe rows.

    `residual` is the relative change of their Gram matrix in a power step of the full problem; `embedding` (s, r) is
    E.
    """

    residual: float
    embedding: Array

    @classmethod
    def of(
        cls, passes: Passes, extension: Extension, overlap: Array, probes: Array, bound: Array | None
    ) -> ProbeComparison:
        """Return the result of one pass; `overlap` (r,) is the sum of sqrt(m_i) E_i."""
        sums = passes(partial(probe_sums, extension, probes))
        m, total = np.asarray(sums["mass"]), extension.masses.total
        d = extension.masses.bound(m, bound)
        weighted = sums["products"] - np.outer(m, overlap) / total
        weighted /= np.sqrt(m)[:, None]
        length = np.linalg.norm(weighted, axis=1, keepdims=True)
        moved = np.sqrt(np.maximum(d, 0))[:, None] * weighted / np.where(length > 0, length, 1.0)
        e = extension.of_prepared(probes)[0][:, : extension.stages[0]]
        e = e if bound is None else e * np.sqrt(bound)[:, None]
        return cls(gram_distance(e, moved), e)


def gram_distance(e: Array, other: Array) -> float:
    """Return |E E^T - F F^T| / |F F^T|, Frobenius norms, for E (s, q) and F (s, r)."""
    own, last = np.linalg.norm(e.T @ e) ** 2, np.linalg.norm(other.T @ other) ** 2
    cross = np.linalg.norm(e.T @ other) ** 2
    return float(np.sqrt(np.maximum(0.0, own + last - 2 * cross) / last))
