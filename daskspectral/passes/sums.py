"""The pass over the rows that sums the forms of an operator, and its plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis
from daskspectral.data.batches import READ_BYTES
from daskspectral.data.frames import TableReader
from daskspectral.data.integrity import Manifest
from daskspectral.data.readers import Reader
from daskspectral.data.source import Preparation, Source
from daskspectral.devices import least_rows
from daskspectral.engine import Plan, Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.engine.memory import (
    Memory,
    check_memory,
    local_threads,
    predict_memory,
    release,
    released,
    resident,
)
from daskspectral.engine.sampling import draw_rows
from daskspectral.engine.scheduler import active_client
from daskspectral.forms import Atom
from daskspectral.moments import DENSE_ROWS, Measure, Moments
from daskspectral.moments.autocovariance import AUTOCOVARIANCE, directions_of, share_of_pairs
from daskspectral.moments.counting import ORDER, RowRuns
from daskspectral.moments.folds import FoldRule, Groups, LandmarkMatcher, gathered
from daskspectral.moments.moments import LandmarkRows
from daskspectral.moments.patterns import MEASURED
from daskspectral.moments.sample import SAMPLE, reach_of, sample_size
from daskspectral.moments.summing import SumTask
from daskspectral.operators import Operator
from daskspectral.operators.base import with_derived
from daskspectral.operators.laplacian import has_graph
from daskspectral.passes.folds import FoldRequest, joined_plan
from daskspectral.passes.selection import Selection
from daskspectral.passes.wide import RowScores, with_points
from daskspectral.registry import Registered
from daskspectral.solve import NormConstrained

Array = NDArray[np.floating[Any]]
SHARE_SAMPLE = 256
THREAD_FLOPS = 8e10  # per second of one thread; 5e10 to 1e11 were measured
TESTED_ROWS, TESTED_SHARE = 8000, 1 / 32  # minimum rows and share for tests of transfer operators
MOST_DROPPED, MOST_APART = 0.1, 0.75  # shares of rows that coincide with landmarks
CHANCE = 0.06  # three standard errors of such a share in a sample


@dataclass(frozen=True)
class Outline:
    """Properties of the functions that determine a plan.

    `sizes` are the numbers p of left functions, and q of right ones, None if they are the same. With `apart`, rows that
    coincide with landmarks are summed apart from the folds. `basis` is ignored in comparisons. With `scores`, sums are
    over the scores of rows in that number of directions.
    """

    sizes: tuple[int, int | None]
    apart: bool = False
    basis: Basis | None = field(default=None, compare=False)
    scores: int | None = None


@dataclass(frozen=True, eq=False)
class Discretization(Registered):
    """Functions of a fit: bases, preparation of points, treatment of landmark rows.

    `right_basis` is given if the sides have different bases, `right_preparation` if their points are in different
    spaces. `penalty` is the strength c of the penalty, and `selection` the table of candidates. `operator` is the
    operator with estimated parameters, if any. `reserved` are the folds on which a network was not trained. `spanning`
    functions span all linear ones on these rows, so that products with columns are computed from other sums. Functions
    `of_rows` are combinations of these rows, not valid for others; their values at these rows may be known as `scores`.
    """

    expects: ClassVar = {
        "basis": Basis,
        "right_basis": Basis,
        "preparation": Preparation,
        "right_preparation": Preparation,
        "selection": Selection,
        "operator": Operator,
        "landmark_rows": LandmarkRows,
        "scores": RowScores,
    }

    basis: Basis
    preparation: Preparation
    landmark_rows: LandmarkRows = LandmarkRows.KEPT
    right_basis: Basis | None = None
    right_preparation: Preparation | None = None
    penalty: float | None = None
    selection: Selection | None = None
    operator: Operator | None = None
    reserved: tuple[int, ...] = ()
    spanning: bool = False
    of_rows: bool = False
    scores: RowScores | None = None

    @property
    def outline(self) -> Outline:
        sizes = self.basis.size, None if self.right_basis is None else self.right_basis.size
        directions = None if self.scores is None else self.scores.scores.shape[1]
        return Outline(sizes, self.landmark_rows == LandmarkRows.APART, self.basis, directions)

    @property
    def coincidence(self) -> LandmarkMatcher | None:
        """Test of prepared points for landmarks of the left basis; None without landmarks."""
        found = [b.landmarks for b in self.basis.landmark_parts]
        return LandmarkMatcher(np.concatenate(found)) if found else None

    def share_at_landmarks(self, source: Source) -> float:
        """Return the share of rows that coincide with landmarks, from a reproducible sample."""
        if self.coincidence is None:
            return 0.0
        _, points = draw_rows(source, SHARE_SAMPLE, np.random.default_rng(0))
        return float(self.coincidence(points).mean())

    @classmethod
    def of(cls, moments: Moments) -> Discretization:
        """Return the functions of moments, with all rows kept."""
        right = moments.preparation.get("right")
        return cls(
            moments.basis,
            Preparation.from_state(moments.preparation),
            right_basis=moments.right_basis,
            right_preparation=None if right is None else Preparation.from_state(right),
            penalty=moments.penalty,
            spanning=moments.pairs is not None,
        )

    def prepared(self, source: Source, operator: Operator) -> Source:
        source = source.with_preparation(mean=self.preparation.mean, scale=self.preparation.scale)
        right = self.right_preparation
        if right is not None:
            source = source.with_preparation(operator.right_view, mean=right.mean, scale=right.scale)
        return source


@dataclass(frozen=True, eq=False)
class PassPlan:
    """Plan of a pass: row ranges of tasks, predicted memory, folds, dtype and device.

    `seconds` is the time of one thread of a CPU, `faster` that of the same pass with a `FourierBasis`, None if that is
    not much faster or not possible.
    """

    ranges: Plan
    memory: Memory
    fold_rule: FoldRule | None
    dtype: str
    device: str
    seconds: float = 0.0
    faster: float | None = None

    def __str__(self) -> str:
        tasks, epochs = self.ranges.tasks, len(self.ranges.epochs)
        text = f"{tasks} task{'s' * (tasks > 1)} in {epochs} epoch{'s' * (epochs > 1)}; {self.memory}"
        if self.faster is None:
            return text
        return (
            f"{text}. The pass requires about {_duration(self.seconds)} of one thread, and about "
            f"{_duration(self.faster)} with basis=FourierBasis() (--lattice auto)"
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def seconds_of(source: Source, outline: Outline) -> float:
    """Return the approximate time in which one thread of a recent CPU sums all rows, with functions of this outline.

    Per row: a SYRK, a GEMM and 1000 operations of each function; on a lattice, 7^d points of the grid.
    """
    p, d = max(size or 0 for size in outline.sizes), source.dimension
    if outline.basis is not None and outline.basis.cheap_sums:
        return source.n * (1e-7 + 1.8e-9 * 7.0**d)
    return source.n * (3.0 * p * p + 2.0 * p * d + 1000.0 * p) / THREAD_FLOPS


def flops_of(source: Source, p: int) -> float:
    """Return the floating-point operations per row with p functions: p x p products, and evaluations."""
    return 4.0 * p * p + 2.0 * p * source.dimension + 50.0 * p


def plan_sums(
    source: Source,
    operator: Operator,
    outline: Outline,
    dtype: str,
    *,
    device: str = "cpu",
    start: int = 0,
    folds: FoldRequest | None = None,
    choosing: int = 0,
) -> PassPlan:
    """Return the plan of a pass over the rows from `start` on, with functions of this outline.

    `choosing` is the memory of the preceding automatic selection, in bytes. Raises MemoryError if the pass does not fit
    into memory, and ValueError if there are too few rows for the folds.
    """
    (left, right), apart, cost = outline.sizes, outline.apart, None
    if outline.scores is not None:
        source = with_points(source, np.broadcast_to(0.0, (source.n, outline.scores)))
    if outline.basis is not None:
        cost = outline.basis.sum_cost(operator.forms, operator.functionals, device)
    p = left if right is None else max(left, right)
    flops = flops_of(source, p) if cost is None else cost.flops
    plan, threads = plan_rows(source, flops, start=start, device=device), local_threads()
    block = max(DENSE_ROWS, least_rows(device))
    fold_rule = None if folds is None else folds.fold_rule(source)
    if cost is None:  # other sums are small for any number of rows per task
        parts = 1 if fold_rule is None or device != "cpu" else fold_rule.number + apart
        plan = joined_plan(plan, fold_rule, block=block, row_bytes=source.row_bytes, functions=p, parts=parts)

    def groups(ranges: range) -> int:
        if fold_rule is None:
            return 1
        return fold_rule.most(plan.ranges[ranges[0]][0], plan.ranges[ranges[-1]][1]) + apart

    kept = 0 if fold_rule is None else fold_rule.number + apart
    most = max(groups(range(i, i + 1)) for i in range(len(plan.ranges))) if plan.parts == 1 else 1
    longest = max(b - a for a, b in plan.ranges)
    read, x = chunk_bytes(source, longest, device), source.readers["x"]
    if most == 1 and x.chunk:  # blocks are not larger than a read
        block = min(block, max(x.chunk, READ_BYTES // max(1, x.shape[1] * x.dtype.itemsize)))
    in_flight = 1 + math.ceil(threads / (plan.epoch * plan.parts))
    live, clustered = plan.live(in_flight, groups), active_client() is not None
    if clustered or len(plan.epochs) > in_flight:
        live += max(1, kept)  # the sum of earlier epochs
        live += groups(plan.epochs[0]) if clustered else 0  # sums are new arrays there
    else:  # all tasks are in flight
        live = max(1, min(live, sum(groups(range(i, i + 1)) for i in range(len(plan.ranges))) - threads * most))
    if cost is not None:
        there, tasks = threads * (cost.there + most * cost.there_of_group), threads * (cost.block + 5 * read // 2)
        sums = cost.sums * live
        memory = Memory(resident(), tasks, sums, cost.solver, threads, there=there, device=device)
    else:
        leaves = _leaves(operator, apart=right is not None)
        pairs = 2 * len(operator.views) ** 2 * (source.on_invalid == "pairwise")
        arrays = 3 * len({(side, leaf.view) for side, leaf in leaves})
        arrays += sum(features_of(leaf, source, operator) for _, leaf in leaves)
        memory = predict_memory(
            p,
            source.dimension,
            block,
            threads=threads,
            live=live,
            sums=len(operator.forms.keys() | ({"right_gram"} if right is not None else set())) + pairs,
            groups=most,
            kept=kept,
            arrays=arrays,
            dtype=dtype,
            device=device,
            chunk_bytes=read,
            task_rows=-(-longest // plan.parts),
        )
        if plan.parts > 1:  # rows of all ranges in flight, and once more while they are split
            split = min(len(plan.ranges), in_flight * plan.epoch) + min(threads, len(plan.ranges))
            memory = replace(memory, tasks=memory.tasks + split * longest * (source.row_bytes + 8))
    memory = released(replace(memory, choosing=choosing))
    check_memory(memory)
    return PassPlan(plan, memory, fold_rule, dtype, device)


def measure(
    source: Source,
    discretization: Discretization,
    operator: Operator,
    plan: PassPlan,
    *,
    snapshot: Manifest,
    checkpoint: Checkpoint | None = None,
    after: Moments | None = None,
    description: str = "fit",
) -> Moments:
    """Measure the moments of the rows in one pass on the active scheduler, after those of `after`.

    A pass with a `checkpoint` resumes from its sums. Raises InvalidRowError for the first invalid row
    (on_invalid="raise"), PointError for a point outside the manifold of the operator, ValueError if no row remains or
    the checkpoint has another plan, MemoryError if less memory is free than the plan requires, and OSError if the data
    change during the pass.
    """
    basis, fold_rule, preparation = discretization.basis, plan.fold_rule, _preparation(source, discretization, operator)
    run, task = _run_of(source, discretization, operator, plan, description)
    source, operator, groups = run.source, task.operator, task.groups
    check_memory(released(plan.memory))  # after the selection of landmarks
    start, before = (0, 0) if after is None else (after.rows, after.short_trajectories)
    short = 0 if source.lagged is None else source.lagged.short - before
    if checkpoint is not None:
        checkpoint.check = snapshot.check_unchanged
    total = run.reduce(task, checkpoint=checkpoint)
    snapshot.check_unchanged()
    sums, total = dict(total.sums), replace(total, sums={})
    if checkpoint is not None:
        checkpoint.total = total  # its sums are written, and large for many folds
    order, sample, lagged = sums.pop(ORDER), sums.pop(SAMPLE, None), sums.pop(AUTOCOVARIANCE, None)
    scores = discretization.scores
    folds = None
    if fold_rule is not None and groups is not None:
        apart = groups.landmarks is not None
        folds, sums = gathered(sums, groups.number, release, landmarks=apart, **fold_rule.origin)
        folds = replace(folds, reserved=discretization.reserved)
    released(plan.memory)
    if basis.domain is not None:
        basis.domain.check(source.n - start - total.count - total.skipped, source.n - start)
    return Moments(
        {name: np.asarray(values) for name, values in (sums | ({} if scores is None else scores.arrays)).items()},
        total.weight,
        total.count,
        basis,
        operator,
        plan.dtype,
        preparation,
        discretization.right_basis,
        folds,
        rows=source.n - start,
        skipped=total.skipped,
        short_trajectories=short,
        seen=snapshot.seen(source.n),
        landmark_rows=discretization.landmark_rows,
        penalty=discretization.penalty,
        finalist_gap=None if discretization.selection is None else discretization.selection.finalist_gap,
        order=order if scores is None else scores.order,
        of_rows=discretization.of_rows,
        sample=sample,
        autocovariance=lagged if scores is None or lagged is None else scores.autocovariance(lagged),
    )


def _run_of(
    source: Source,
    discretization: Discretization,
    operator: Operator,
    plan: PassPlan,
    description: str,
) -> tuple[Run, SumTask]:
    basis, right, operator = discretization.basis, discretization.right_basis, discretization.operator or operator
    if discretization.scores is None:
        source = discretization.prepared(source, operator)
    else:
        source = with_points(source, discretization.scores.scores)
        basis = discretization.scores.basis(basis)
    rows, fold_rule, dtype, device = discretization.landmark_rows, plan.fold_rule, plan.dtype, plan.device
    touching = None if rows == LandmarkRows.KEPT else discretization.coincidence
    apart = touching if rows == LandmarkRows.APART and fold_rule is not None else None
    prepared = discretization.preparation
    groups = None if fold_rule is None else Groups(fold_rule, apart)
    measured = measure_of(
        basis, right, operator, dtype, device=device, patterns=True, products=not discretization.spanning
    )
    runs = RowRuns.of(basis, max(stop - start for start, stop in plan.ranges.ranges))
    gaps, sampled = source.on_invalid == "pairwise", None
    if has_graph(operator) and (size := sample_size(basis.dimension)):
        sampled = reach_of(source.n - plan.ranges.ranges[0][0], size), size
    tested = min(1.0, max(TESTED_SHARE, TESTED_ROWS / source.n))
    share = share_of_pairs(source.n) if discretization.scores is None else 1.0
    followed = share if follows(operator, basis) and prepared.delays == 1 else 0.0  # windows share rows
    options = groups, runs, gaps, sampled, tested, followed, source.series
    task = SumTask(measured, operator, prepared.scale, prepared.columns, *options)
    dropped = touching if rows == LandmarkRows.DROPPED else basis.domain
    return Run(source, plan.ranges, dropped, description, device), task


def follows(operator: Operator, basis: Basis) -> bool:
    """Return whether products of consecutive rows are summed, as for principal components of columns."""
    return operator.solver == NormConstrained() and directions_of(basis) is not None


def chunk_bytes(source: Source, rows: int, device: str = "cpu") -> int:
    """Return the decoded bytes that a task of `rows` rows reads at once, doubled if it reads ahead."""
    least = least_rows(device)
    found = sum(max(_part_bytes(part, rows, least) for part in reader.parts) for reader in source.readers.values())
    return 2 * found if least else found


def measure_of(
    basis: Basis,
    right: Basis | None,
    operator: Operator,
    dtype: str,
    *,
    device: str = "cpu",
    patterns: bool = False,
    products: bool = True,
) -> Measure:
    """Return the sums of the forms and functionals of an operator.

    `right` are other right functions, if any. With `patterns`, sums of columns, and their `products` with functions,
    are included if the operator has patterns.
    """
    forms, functionals = operator.forms, operator.functionals
    if right is not None and "right_gram" not in forms:  # other functions in the same space
        forms |= {"right_gram": forms["gram"]}
        functionals |= {"right_first": functionals["first"]}
    patterns = patterns and operator.has_patterns and not basis.cheap_sums
    if patterns and products:
        functionals |= MEASURED
    right = basis if right is None else right
    return Measure(basis, right, forms, functionals, operator, dtype, device=device, patterns=patterns)


def _preparation(source: Source, discretization: Discretization, operator: Operator) -> dict[str, Any]:
    preparation = discretization.preparation.state() | {"n_features_in": source.n_features_in}
    right = discretization.right_preparation
    if right is not None:
        preparation["right"] = right.state() | {"n_features_in": source.width(operator.right_view)}
    return preparation


def _leaves(operator: Operator, apart: bool) -> set[tuple[int, Atom]]:
    """Return the atoms evaluated on the left functions (0), and on the right ones (1) if `apart`."""
    products = [product for form in operator.forms.values() for product in form.products]
    pairings = [pairing for functional in operator.functionals.values() for pairing in functional.pairings]
    sides = {0: [p.left for p in products] + [p.atom for p in pairings], 1: [p.right for p in products]}
    return {(side if apart else 0, leaf) for side, atoms in sides.items() for atom in atoms for leaf in atom.leaves}


def features_of(leaf: Atom, source: Source, operator: Operator) -> int:
    """Return the number of arrays (p, c) of a basis for an atom, beyond those of every evaluation."""
    if leaf.kind in ("value", "gradient"):
        return 0
    if leaf.kind != "along" or leaf.direction is None or leaf.direction.path:
        return 1
    name = leaf.direction.name
    fields = {key: np.zeros((1, *reader.shape[1:])) for key, reader in source.readers.items()}
    shape = (fields if name in fields else with_derived(operator, fields))[name].shape
    return shape[1] if len(shape) == 3 else 1  # one per direction


def _part_bytes(reader: Reader, rows: int, least: int) -> int:
    """Return the bytes decoded at once; a thread holds 5 / 2 of it (`predict_memory`).

    The factor is that of measured peaks. A row group of Parquet is decoded as a whole, and in memory encoded, as a
    table and as numbers, in addition to the last one; so is a zarr chunk that is read in part. Blocks of a dask array
    are in memory with their inputs.
    """
    row = int(np.prod(reader.shape[1:])) * reader.dtype.itemsize
    if reader.lazy:
        block = max(rows, int(np.diff(reader.edges).max()))
        return block * row * 7 // 5
    if isinstance(reader, TableReader):
        return 2 * int(np.diff(reader.edges).max()) * row
    if not reader.chunk:
        return 0
    decoded = max(READ_BYTES, reader.chunk * row, least * row)
    return decoded if rows >= reader.chunk else 12 * decoded // 5
