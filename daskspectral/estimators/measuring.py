"""From a source and a basis to moments: one planned, checked, resumable pass."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, basis_from_state
from daskspectral.data.integrity import Listing, check_chunks, check_headers, list_chunks
from daskspectral.data.readers import Reader, ZarrReader
from daskspectral.data.source import DaskReader, Preparation, Source, label_of, open_source
from daskspectral.data.trajectories import open_trajectories
from daskspectral.engine import Run, plan_run
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import Memory, check_memory, local_threads, predict_memory, release
from daskspectral.engine.plan import Plan
from daskspectral.estimators.common import check_head
from daskspectral.estimators.weighing import banded_squares
from daskspectral.forms import Atom
from daskspectral.moments import Measure, Moments, block_rows, numbered, update_digest
from daskspectral.operators import Operator

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")


@dataclass(frozen=True, eq=False)
class Ground:
    """What moments are measured with: the bases, the preparation of points, the rows left out.

    `right_basis` None: right functions are of the same basis; `right_preparation` None: of points of the same space.
    """

    basis: Basis
    preparation: Preparation
    excluded: NDArray[np.int64] | None
    right_basis: Basis | None = None
    right_preparation: Preparation | None = None

    def state(self) -> dict[str, Any]:
        """Plain data and arrays."""
        right, right_preparation = self.right_basis, self.right_preparation
        return {
            "basis": self.basis.state(),
            "preparation": self.preparation.state(),
            "excluded": self.excluded,
            "right_basis": None if right is None else right.state(),
            "right_preparation": None if right_preparation is None else right_preparation.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Ground:
        """The inverse of `state`."""
        right, right_preparation = state["right_basis"], state["right_preparation"]
        return cls(
            basis_from_state(state["basis"]),
            Preparation.from_state(state["preparation"]),
            state["excluded"],
            None if right is None else basis_from_state(right),
            None if right_preparation is None else Preparation.from_state(right_preparation),
        )

    def prepared(self, source: Source, operator: Operator) -> Source:
        """The source with the points of each side prepared."""
        source = source.with_preparation(mean=self.preparation.mean, scale=self.preparation.scale)
        right = self.right_preparation
        if right is not None:
            source = source.with_preparation(operator.right_view, mean=right.mean, scale=right.scale)
        return source


def open_data(
    operator: Operator, X: Any, *, columns: Sequence[int] | None, weight: Any, fields: Mapping[str, Any] | None
) -> Source:
    """What an operator reads: one array, the views of a sample row by row, or the pairs of trajectories.

    Raises ValueError or TypeError where the data do not fit the operator; nothing is read but metadata.
    """
    if not isinstance(fields, (Mapping, type(None))):
        raise TypeError(f"fields is a mapping of names to arrays; it is {type(fields).__name__}")
    given = {name: value for name, value in (fields or {}).items() if value is not None}
    if given.keys() != operator.data_fields:
        operator.check_fields(dict.fromkeys(given, ()), 0)  # says which are missing or unknown
    views, apart = operator.views, operator.own_right_basis
    if operator.lag is not None:
        source = open_trajectories(X, operator.lag, columns=columns, fields={"weight": weight, **given})
    elif len(views) > 1:
        if not isinstance(X, (tuple, list)) or len(X) != len(views):
            got = f"{type(X).__name__} of {len(X)}" if isinstance(X, (tuple, list)) else type(X).__name__
            raise ValueError(
                f"the operator {operator.name} takes {len(views)} views of each row: fit(({', '.join(views)})); X is "
                f"a {got}"
            )
        others = dict(zip(views[1:], X[1:], strict=True))
        right = {operator.right_view: others.pop(operator.right_view)} if apart else {}
        source = open_source(X[0], columns=columns, views=others, apart=right, weight=weight, fields=given)
    else:
        source = open_source(X, columns=columns, weight=weight, fields=given)
    operator.check(source.dimension, source.dimension_at(operator.right_view) if apart else None)
    operator.check_fields({name: source.readers[name].shape[1:] for name in given}, source.dimension)
    return source


def rows_of(source: Source) -> str:
    """How many rows a source has, for messages."""
    return f"{source.n} rows" if source.lagged is None else f"{source.n} pairs of rows {source.lagged.lag} apart"


def open_appended(
    before: Moments, X: Any, *, weight: Any, fields: Mapping[str, Any] | None, allow_missing: bool
) -> Source:
    """Data to which rows were appended since these moments were measured. Raises ValueError where they do not fit."""
    operator, fitted = before.operator, {"x": before.preparation}
    source = open_data(operator, X, columns=fitted["x"]["columns"], weight=weight, fields=fields)
    if operator.own_right_basis:
        fitted[operator.right_view] = before.preparation["right"]
    for view, preparation in fitted.items():
        found, wanted = source.width(view), preparation["n_features_in"]
        if found != wanted:
            raise ValueError(f"{label_of(view)} has {found} columns, and the model was fitted on {wanted}")
    if source.n <= before.rows:
        raise ValueError(f"X has {rows_of(source)}, and the model has seen {before.rows}: there is nothing to add")
    source = source.allowing_missing(allow_missing)
    check_head(before, source)
    return source


class Store:
    """The zarr stores behind a source: whole before a run, unchanged after it."""

    def __init__(self, source: Source, *, allow_missing: bool):
        self._fields = dict(source.readers)
        self._readers = {id(part): part for reader in self._fields.values() for part in reader.parts}
        self._before = {key: list_chunks(reader) for key, reader in self._readers.items()}
        for key, reader in self._readers.items():
            if not allow_missing:
                check_chunks(reader, self._before[key])
            check_headers(reader, self._before[key])

    def check_unchanged(self) -> None:
        """Raise OSError where a file was added, removed or rewritten since."""
        for key, before in self._before.items():
            if before is not None:
                after = list_chunks(self._readers[key])
                assert isinstance(after, Listing)
                before.check_unchanged(after)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these data from others: metadata, and the digest of the listing or, in memory, of the contents."""
        result: dict[str, Any] = {}
        for name, reader in self._fields.items():
            parts = [self._of_part(part) for part in reader.parts]
            if reader.parts == (reader,):
                result[label_of(name)] = parts[0]
            else:
                result[label_of(name)] = {**reader.identity, "parts": parts}
        return result

    def _of_part(self, reader: Reader) -> dict[str, Any]:
        listing = self._before[id(reader)]
        plain = {k: v for k, v in reader.identity.items() if k != "name"}
        return {**plain, "files": None if listing is None else listing.digest}


def plan_of(source: Source, p: int, start: int = 0) -> Plan:
    """The ranges of one pass over the rows from `start` on."""
    flops = 4.0 * p * p + 2.0 * p * source.dimension + 50.0 * p
    splittable = not source.dask_fields
    plan = plan_run(source.edges, flops_per_row=flops, row_bytes=source.row_bytes, splittable=splittable)
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


def plan_pass(
    source: Source, p: int, operator: Operator, dtype: str, start: int = 0, *, q: int | None = None
) -> PassPlan:
    """The plan of one pass over the rows from `start` on, with p basis functions.

    The right functions are q others, or where q is None the same.
    """
    products = [product for form in operator.forms.values() for product in form.products]
    sides: list[list[Atom]] = [[p.left for p in products], [p.right for p in products]]
    atoms = {(0 if q is None else side, leaf) for side in (0, 1) for atom in sides[side] for leaf in atom.leaves}
    evaluations = len({(side, leaf.view) for side, leaf in atoms})
    p = p if q is None else max(p, q)
    plan, threads = plan_of(source, p, start), local_threads()
    longest = max(b - a for a, b in plan.ranges)
    chunk = sum(max(_chunk_bytes(part, longest) for part in reader.parts) for reader in source.readers.values())
    release()
    memory = predict_memory(
        p,
        source.dimension,
        rows=block_rows(p),
        dtype=dtype,
        threads=threads,
        live=plan.live(1 + math.ceil(threads / plan.epoch)),
        chunk_bytes=chunk,
        buffers=3 * evaluations + sum(_features(leaf, source, operator) for _, leaf in atoms),
        sums=2 if operator.right_gram is None and q is None else 3,
    )
    return PassPlan(plan, memory)


def _features(leaf: Atom, source: Source, operator: Operator) -> int:
    """How many arrays (p, c) a basis keeps for an atom, besides those that every evaluation has."""
    if leaf.kind in ("value", "gradient"):
        return 0
    if leaf.kind != "along" or leaf.direction is None or leaf.direction.path:
        return 1
    name = leaf.direction.name
    fields = {key: np.zeros((1, *reader.shape[1:])) for key, reader in source.readers.items()}
    shape = (fields if name in fields else operator.derived_fields(fields))[name].shape
    return shape[1] if len(shape) == 3 else 1  # one along each of several directions


def _chunk_bytes(reader: Reader, rows: int) -> int:
    """The decoded size of what is read of a zarr array at once, or of a dask array, whose blocks a range has whole."""
    if isinstance(reader, DaskReader):
        return rows * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize
    if not isinstance(reader, ZarrReader):
        return 0
    return max(1 << 20, reader.chunk * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize)


@dataclass(frozen=True, eq=False)
class MeasureWeighted:
    """The sums of one range, and `weight_squares` (3,), the `banded_squares` of the weights.

    Raises PointError for a point that the operator does not take.
    """

    measure: Measure

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """The sums over the rows of these batches."""
        squares, operator = np.zeros(3), self.measure.operator

        def weighed() -> Iterator[Mapping[str, Array]]:
            for batch in batches:
                if operator is not None:
                    with numbered(batch):
                        operator.check_points(batch["x"])
                squares[:] += banded_squares(batch["weight"] if "weight" in batch else np.ones(len(batch["x"])))
                yield batch

        return self.measure(weighed()) | {"weight_squares": squares}


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
    basis, right = ground.basis, ground.right_basis
    source = ground.prepared(source, operator)
    plan = plan_pass(source, basis.size, operator, dtype, start, q=None if right is None else right.size)
    check_memory(plan.memory)
    forms, functionals = operator.forms, operator.functionals
    if right is not None and "right_gram" not in forms:  # other functions, of the same space
        forms |= {"right_gram": forms["gram"]}
        functionals |= {"right_first": functionals["first"]}
    task = MeasureWeighted(Measure(basis, basis if right is None else right, forms, functionals, operator, dtype))
    run = Run(source, plan.ranges, ground.excluded, on_invalid, progress, "fit")
    if checkpoint is not None:
        checkpoint.check = store.check_unchanged
    total = run.reduce(task, checkpoint=checkpoint)
    store.check_unchanged()
    release()
    preparation = ground.preparation.state() | {"n_features_in": source.n_features_in}
    if ground.right_preparation is not None:
        width = source.width(operator.right_view)
        preparation["right"] = ground.right_preparation.state() | {"n_features_in": width}
    return Moments(
        total.sums,
        total.weight,
        total.count,
        basis,
        operator,
        total.skipped,
        dtype,
        preparation,
        rows=source.n - start,
        right_basis=right,
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
