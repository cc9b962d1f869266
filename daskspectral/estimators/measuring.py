"""From a source and a basis to moments: one planned, checked, resumable pass."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, basis_from_state
from daskspectral.data.integrity import Listing, check_chunks, list_chunks
from daskspectral.data.readers import ZarrReader
from daskspectral.data.source import DaskReader, Preparation, Source
from daskspectral.engine import Run, plan_run
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import Memory, check_memory, local_threads, predict_memory, release
from daskspectral.engine.plan import Plan
from daskspectral.forms import first_moment
from daskspectral.moments import Measure, Moments, block_rows, update_digest
from daskspectral.operators import Operator

logger = logging.getLogger("daskspectral")


@dataclass(frozen=True, eq=False)
class Ground:
    """What moments are measured with: the basis, the prepared source, the rows left out."""

    basis: Basis
    preparation: Preparation
    excluded: NDArray[np.int64] | None

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        return {"basis": self.basis.state(), "preparation": self.preparation.state(), "excluded": self.excluded}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Ground:
        """The inverse of `state`."""
        basis = basis_from_state(state["basis"])
        return cls(basis, Preparation.from_state(state["preparation"]), state["excluded"])


class Store:
    """The zarr stores behind a source: whole before a run, unchanged after it."""

    def __init__(self, source: Source, *, allow_missing: bool):
        self._readers = dict(source.readers)
        self._before = {name: list_chunks(reader) for name, reader in self._readers.items()}
        if not allow_missing:
            for name, reader in self._readers.items():
                check_chunks(reader, self._before[name])

    def check_unchanged(self) -> None:
        """Raise OSError where a file was added, removed or rewritten since."""
        for name, before in self._before.items():
            if before is not None:
                after = list_chunks(self._readers[name])
                assert isinstance(after, Listing)
                before.check_unchanged(after)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these data from others: metadata, and the digest of the listing or, in memory, of the contents."""
        result = {}
        for name, reader in self._readers.items():
            listing = self._before[name]
            plain = {k: v for k, v in reader.identity.items() if k != "name"}
            result[{"x": "X", "weight": "sample_weight"}.get(name, name)] = {
                **plain,
                "files": None if listing is None else listing.digest,
            }
        return result


def plan_of(source: Source, p: int, start: int = 0) -> Plan:
    """The ranges of one pass over the rows from `start` on."""
    flops = 4.0 * p * p + 2.0 * p * source.dimension + 50.0 * p
    splittable = not source.dask_fields
    plan = plan_run(source.edges, flops_per_row=flops, row_bytes=8 * source.n_features_in, splittable=splittable)
    ranges = tuple((max(a, start), b) for a, b in plan.ranges if b > start)
    if start and not splittable and any(a == start for a, _ in ranges) and start not in source.edges:
        raise ValueError(
            f"rows from {start} on do not begin at a block of the dask array; rechunk it so that they do, or give a "
            "zarr or numpy array"
        )
    return Plan(ranges, plan.epoch, plan.split_every)


@dataclass(frozen=True, eq=False)
class PassPlan:
    """The ranges of one pass, and the memory of a process that runs it on the local scheduler."""

    ranges: Plan
    memory: Memory

    def __str__(self) -> str:
        return f"{len(self.ranges.ranges)} tasks in {len(self.ranges.epochs)} epochs; {self.memory}"


def plan_pass(source: Source, p: int, operator: Operator, dtype: str, start: int = 0) -> PassPlan:
    """The plan of one pass with p basis functions over the rows from `start` on."""
    plan, threads = plan_of(source, p, start), local_threads()
    chunk = 0
    for reader in source.readers.values():
        if isinstance(reader, ZarrReader):
            chunk += max(1 << 20, reader.chunk * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize)
        elif isinstance(reader, DaskReader):  # the blocks of a range are there whole
            rows = max(b - a for a, b in plan.ranges)
            chunk += rows * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize
    release()
    memory = predict_memory(
        p,
        source.dimension,
        rows=block_rows(p),
        dtype=dtype,
        threads=threads,
        live=plan.live(1 + math.ceil(threads / plan.epoch)),
        chunk_bytes=chunk,
        buffers=3 + sum(product.left.kind == "along" for product in operator.form.products),
    )
    return PassPlan(plan, memory)


def measure_moments(
    source: Source,
    ground: Ground,
    operator: Operator,
    *,
    dtype: str,
    on_invalid: str,
    progress: bool | None,
    store: Store,
    checkpoint: Checkpoint | None = None,
    start: int = 0,
) -> Moments:
    """The moments of the rows from `start` on, in one pass on the active scheduler.

    Raises as `Run.reduce` does, MemoryError where the pass would not fit, OSError where the data changed meanwhile.
    """
    basis = ground.basis
    source = source.with_preparation(mean=ground.preparation.mean, scale=ground.preparation.scale)
    plan = plan_pass(source, basis.size, operator, dtype, start)
    check_memory(plan.memory)
    task = Measure(basis, basis, operator.forms, {"first": first_moment}, operator, dtype)
    run = Run(source, plan.ranges, ground.excluded, on_invalid, progress, "fit")
    if checkpoint is not None:
        checkpoint.check = store.check_unchanged
    total = run.reduce(task, checkpoint=checkpoint)
    store.check_unchanged()
    release()
    return Moments(
        total.sums,
        total.weight,
        total.count,
        basis,
        operator,
        total.skipped,
        dtype,
        ground.preparation.state() | {"n_features_in": source.n_features_in},
        rows=source.n - start,
    )


def run_identity(store: Store, params: Mapping[str, Any], on_invalid: str) -> dict[str, Any]:
    """What a checkpoint is of: the data, every parameter, the treatment of invalid rows; arrays by their digest."""
    plain = {f"parameter {name}": _digested(value) for name, value in params.items()}
    return {**store.identity, **plain, "on_invalid": on_invalid}


def _digested(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256()
        update_digest(digest, value)
        return f"array {value.shape} {digest.hexdigest()[:16]}"
    if isinstance(value, Mapping):
        return {k: _digested(v) for k, v in value.items()}
    return value


def open_checkpoint(
    path: str | os.PathLike[str] | None, identity: Mapping[str, Any], every: float
) -> Checkpoint | None:
    """The checkpoint of this very run at a path, if there is one. Raises ValueError for one of another run."""
    if path is None:
        return None
    if not every >= 0:
        raise ValueError(f"checkpoint_every is a number of seconds, 0 or more; it is {every!r}")
    found = Checkpoint.open(path, identity, every)
    if found is not None:
        logger.info("going on from the checkpoint %s after %d epochs", path, found.epochs)
    return found
