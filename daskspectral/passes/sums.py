"""The sums of an operator's forms over the rows: the one pass by which everything is measured, and its plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.data.integrity import Snapshot
from daskspectral.data.readers import Reader, ZarrReader
from daskspectral.data.source import DaskReader, Preparation, Source
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import Memory, check_memory, local_threads, predict_memory, release, resident
from daskspectral.engine.tasks import add_sums
from daskspectral.forms import Atom
from daskspectral.moments import Measure, Moments, block_rows, numbered
from daskspectral.operators import Operator
from daskspectral.registry import Registered

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Discretisation(Registered):
    """What moments are measured with: the bases, the preparation of points, the sorted numbers of rows left out.

    `right_basis` is None where left and right functions share one basis, `right_preparation` None where both are
    functions of points in the same space. `operator` is the operator with what was estimated for it, None where nothing
    was.
    """

    expects: ClassVar = {
        "basis": Basis,
        "right_basis": Basis,
        "preparation": Preparation,
        "right_preparation": Preparation,
        "operator": Operator,
    }

    basis: Basis
    preparation: Preparation
    excluded: NDArray[np.int64] | None = None
    right_basis: Basis | None = None
    right_preparation: Preparation | None = None
    operator: Operator | None = None

    @property
    def sizes(self) -> tuple[int, int | None]:
        """The numbers of functions: p left, and q right ones where they differ, else None."""
        return self.basis.size, None if self.right_basis is None else self.right_basis.size

    def prepared(self, source: Source, operator: Operator) -> Source:
        """The source with the points of each side prepared."""
        source = source.with_preparation(mean=self.preparation.mean, scale=self.preparation.scale)
        right = self.right_preparation
        if right is not None:
            source = source.with_preparation(operator.right_view, mean=right.mean, scale=right.scale)
        return source


@dataclass(frozen=True, eq=False)
class PassPlan:
    """The ranges of one pass, and the memory of a process that runs it on the local scheduler."""

    ranges: Plan
    memory: Memory

    def __str__(self) -> str:
        return f"{len(self.ranges.ranges)} tasks in {len(self.ranges.epochs)} epochs; {self.memory}"


def flops_of(source: Source, p: int) -> float:
    """Floating-point operations per row with p functions: products of p x p matrices, and the functions themselves."""
    return 4.0 * p * p + 2.0 * p * source.dimension + 50.0 * p


def plan_sums(
    source: Source, operator: Operator, sizes: tuple[int, int | None], dtype: str, *, start: int = 0
) -> PassPlan:
    """The plan of one pass over the rows from `start` on, with p basis functions, and q right ones where they differ.

    Raises MemoryError where it would not fit.
    """
    left, right = sizes
    leaves = _leaves(operator, apart=right is not None)
    p = left if right is None else max(left, right)
    plan, threads = plan_rows(source, flops_of(source, p), start=start), local_threads()
    longest = max(b - a for a, b in plan.ranges)
    release()
    memory = predict_memory(
        p,
        source.dimension,
        rows=block_rows(p),
        dtype=dtype,
        threads=threads,
        live=plan.live(1 + math.ceil(threads / plan.epoch)),
        chunk_bytes=chunk_bytes(source, longest),
        buffers=3 * len({(side, leaf.view) for side, leaf in leaves})
        + sum(_features(leaf, source, operator) for _, leaf in leaves),
        sums=2 if operator.right_gram is None and right is None else 3,
    )
    check_memory(memory)
    return PassPlan(plan, memory)


def measure(
    source: Source,
    discretisation: Discretisation,
    operator: Operator,
    plan: PassPlan,
    *,
    dtype: str,
    on_invalid: str,
    progress: bool | None,
    snapshot: Snapshot,
    checkpoint: Checkpoint | None = None,
    start: int = 0,
) -> Moments:
    """Measure the moments of the rows from `start` on, in one pass on the active dask scheduler.

    With a `checkpoint` the pass goes on from the sums that it holds. Raises InvalidRowError for the lowest invalid row
    (on_invalid="raise"), PointError for a point that the operator's manifold does not accept, ValueError where no row
    is left or the checkpoint follows another plan, MemoryError where less memory is free than the plan needs, and
    OSError where the data changed meanwhile.
    """
    basis, right = discretisation.basis, discretisation.right_basis
    operator = discretisation.operator or operator
    source = discretisation.prepared(source, operator)
    task = SumTask(_measure(discretisation, operator, dtype), operator, discretisation.preparation)
    release()
    check_memory(replace(plan.memory, now=resident()))  # what the landmarks have left of it
    run = Run(source, plan.ranges, discretisation.excluded, on_invalid, progress, "fit")
    if checkpoint is not None:
        checkpoint.check = snapshot.check_unchanged
    total = run.reduce(task, checkpoint=checkpoint)
    snapshot.check_unchanged()
    release()
    return Moments(
        total.sums,
        total.weight,
        total.count,
        basis,
        operator,
        total.skipped,
        dtype,
        _preparation(source, discretisation, operator),
        rows=source.n - start,
        right_basis=right,
    )


@dataclass(frozen=True, eq=False)
class SumTask:
    """The sums of one range: forms and functionals of the functions, and the operator's own statistics of the rows."""

    measure: Measure
    operator: Operator
    preparation: Preparation

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """The sums over the rows of these batches. Raises PointError for a point that the operator does not accept."""
        statistics: dict[str, Array] = {}

        def prepared() -> Iterator[Mapping[str, Array]]:
            nonlocal statistics
            for batch in batches:
                with numbered(batch):
                    self.operator.check_points(batch["x"])
                fields = self.operator.prepared(batch, self.preparation.scale, self.preparation.columns)
                statistics = add_sums(statistics, self.operator.statistics(fields))
                yield fields

        return self.operator.together(self.measure(prepared())) | statistics


def chunk_bytes(source: Source, rows: int) -> int:
    """The decoded size of what is read at once for a range of so many rows."""
    return sum(max(_part_bytes(part, rows) for part in reader.parts) for reader in source.readers.values())


def _measure(discretisation: Discretisation, operator: Operator, dtype: str) -> Measure:
    basis, right = discretisation.basis, discretisation.right_basis
    forms, functionals = operator.forms, operator.functionals
    if right is not None and "right_gram" not in forms:  # other functions, of the same space
        forms |= {"right_gram": forms["gram"]}
        functionals |= {"right_first": functionals["first"]}
    return Measure(basis, basis if right is None else right, forms, functionals, operator, dtype)


def _preparation(source: Source, discretisation: Discretisation, operator: Operator) -> dict[str, Any]:
    """What was done to the columns, with their number."""
    preparation = discretisation.preparation.state() | {"n_features_in": source.n_features_in}
    right = discretisation.right_preparation
    if right is not None:
        preparation["right"] = right.state() | {"n_features_in": source.width(operator.right_view)}
    return preparation


def _leaves(operator: Operator, apart: bool) -> set[tuple[int, Atom]]:
    """The atoms evaluated on the left functions (0) and on the right ones (1), where these are `apart`."""
    products = [product for form in operator.forms.values() for product in form.products]
    pairings = [pairing for functional in operator.functionals.values() for pairing in functional.pairings]
    sides = {0: [p.left for p in products] + [p.atom for p in pairings], 1: [p.right for p in products]}
    return {(side if apart else 0, leaf) for side, atoms in sides.items() for atom in atoms for leaf in atom.leaves}


def _features(leaf: Atom, source: Source, operator: Operator) -> int:
    """How many arrays (p, c) a basis keeps for an atom, besides the arrays that every evaluation has."""
    if leaf.kind in ("value", "gradient"):
        return 0
    if leaf.kind != "along" or leaf.direction is None or leaf.direction.path:
        return 1
    name = leaf.direction.name
    fields = {key: np.zeros((1, *reader.shape[1:])) for key, reader in source.readers.items()}
    shape = (fields if name in fields else operator.derived_fields(fields))[name].shape
    return shape[1] if len(shape) == 3 else 1  # one along each of several directions


def _part_bytes(reader: Reader, rows: int) -> int:
    """The bytes decoded at once: chunks of a zarr array, or the blocks of a dask array that a range covers."""
    if isinstance(reader, DaskReader):
        return rows * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize
    if not isinstance(reader, ZarrReader):
        return 0
    return max(1 << 20, reader.chunk * int(np.prod(reader.shape[1:])) * reader.dtype.itemsize)
