"""Tasks of the pass over the data: sums of forms, functionals and statistics, by group of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.evaluation import NUMBER, numbered
from daskspectral.moments.autocovariance import AUTOCOVARIANCE, ONE_SERIES, AutocovarianceSums, Series, directions_of
from daskspectral.moments.counting import ORDER, RowRuns, RunSums
from daskspectral.moments.folds import ALL, COUNT, FOLD, WEIGHT, Groups, mixed, name_in
from daskspectral.moments.measure import UNFOLDED, Measure
from daskspectral.moments.pairwise import SQUARES, SUMS, zero_filled
from daskspectral.moments.sample import SAMPLE, Sample
from daskspectral.operators import Operator
from daskspectral.operators.base import TESTED
from daskspectral.operators.regression import side_by_side
from daskspectral.workspace import Workspace

Array = NDArray[Any]
Rows = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class SumTask:
    """Sums of one range of rows: forms and functionals of the functions, and statistics of the operator.

    With `groups`, each nonempty group has separate sums, named `folds.name_in(group, name)`, and the result contains
    the weight and the number of rows of all groups. Further results, over all groups:

    - `counting.ORDER`: sums over `runs` of rows; for bases with cheap sums, over a few runs of each batch.
    - `sample.SAMPLE`: a sample of rows, of the reach and size `sampled`.
    - `autocovariance.AUTOCOVARIANCE`: products of a share `followed` of the rows, if positive, with the next rows in
      their `series`.
    - The sums of `moments.pairwise`, with `gaps`: missing values are NaN.

    A share `tested` of the rows contributes to products for tests of the fit. Targets are prepared with `scale` and
    `columns` of X.
    """

    measure: Measure
    operator: Operator
    scale: Array | None = None
    columns: tuple[int, ...] | None = None
    groups: Groups | None = None
    runs: RowRuns | None = None
    gaps: bool = False
    sampled: tuple[float, int] | None = None
    tested: float = 1.0
    followed: float = 0.0
    series: Series = ONE_SERIES

    def __call__(self, batches: Iterable[Rows], state: Any = None) -> dict[str, Any]:
        """Return the sums over the rows of these batches.

        Raises PointError for a point outside the domain.
        """
        workspace = self.measure.workspace()
        groups: dict[int, _GroupSums] = {}

        def add(group: int, rows: Rows, whole: bool) -> None:
            if group not in groups:
                groups[group] = _GroupSums(self, workspace)
            groups[group].add(rows, whole)

        with workspace.device.guarded():
            sums = self._read(batches, add)
            if self.groups is None:
                return sums | groups.get(0, _GroupSums(self, workspace)).result()
            for group in sorted(groups):  # one by one, to release memory
                for name, values in _named(group, groups.pop(group).result()).items():
                    sums[name] = sums[name] + values if name in sums else values
        return sums

    def split(self, batches: Iterable[Rows]) -> list[Any]:
        """Return a list of the sums over all groups, and the rows of each group, None without rows."""
        assert self.groups is not None
        parts: list[list[Rows]] = [[] for _ in range(self.groups.number)]
        sums = self._read(batches, lambda group, rows, whole: parts[group].append(rows))
        return [sums, *(_joined(rows) if rows else None for rows in parts)]

    def sum_part(self, rows: Rows, group: int) -> dict[str, Any]:
        """Return the sums of the rows of a group."""
        workspace = self.measure.workspace()
        with workspace.device.guarded():
            sums = _GroupSums(self, workspace)
            sums.add(rows, whole=True)
            return _named(group, sums.result())

    def _read(self, batches: Iterable[Rows], add: Callable[[int, Rows, bool], None]) -> dict[str, Any]:
        """Call `add` with the rows of each group of a batch, and return the sums over all groups."""
        groups = self.groups
        order = None if self.runs is None else RunSums(self.runs)
        weight, count = np.zeros((2, groups.number if groups else 1))
        sample: Sample | None = None
        directions = directions_of(self.measure.left) if self.followed else None
        lagged = None if directions is None else AutocovarianceSums(directions, self.followed, self.series)
        for batch in batches:
            if self.sampled is not None:
                more = Sample.of_batch(batch, *self.sampled)
                sample = more if sample is None else sample + more
            with numbered(batch):
                self.operator.check_points(batch["x"])
            if order is not None:
                x = _mean_filled(batch["x"]) if self.gaps else batch["x"]
                order.add(x, spread=self.measure.left.cheap_sums)
            if lagged is not None:
                lagged.add(_mean_filled(batch["x"]) if self.gaps else batch["x"], batch.get("weight"), batch[NUMBER])
            if TESTED in self.operator.derived:
                drawn = self.tested >= 1 or mixed(batch[NUMBER]) < self.tested * 2.0**64
                batch = {**batch, TESTED: np.broadcast_to(np.asarray(drawn, float), len(batch["x"]))}
            fields = self.operator.prepared(batch, self.scale, self.columns)
            for group, rows in ((0, fields),) if groups is None else groups.split(fields):
                count[group] += len(rows["x"])
                weight[group] += rows["weight"].sum() if "weight" in rows else len(rows["x"])
                add(group, {k: v for k, v in rows.items() if k != FOLD}, len(rows["x"]) == len(batch["x"]))
        sums: dict[str, Any] = {} if order is None else {ORDER: order.result()}
        sums |= {} if sample is None else {SAMPLE: sample}
        sums |= {} if lagged is None else {AUTOCOVARIANCE: lagged.result()}
        return sums if groups is None else sums | {WEIGHT: weight, COUNT: count}


def _named(group: int, sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sums of a group by their names among those of all groups."""
    return {name_in(ALL if name in UNFOLDED else group, name): values for name, values in sums.items()}


class _GroupSums:
    """Sums of one group.

    Rows wait until they fill blocks, because short blocks cost more per row.
    """

    def __init__(self, task: SumTask, workspace: Workspace):
        self._task, self._workspace = task, workspace
        self._accumulator = task.measure.started(workspace)
        self._statistics: dict[str, Array] = {}
        self._waiting: list[Rows] = []
        self._count = 0  # of waiting rows

    def add(self, rows: Rows, whole: bool) -> None:
        """Add rows; a `whole` batch of one group is summed directly."""
        size = self._task.measure.block_rows
        if whole and not self._waiting and (len(rows["x"]) >= size or not self._task.measure.gathers):
            self._sum(rows)
            return
        self._waiting.append(rows)
        self._count += len(rows["x"])
        if self._count >= size:
            joined, left = _joined(self._waiting), self._count % size
            full = self._count - left
            self._sum({k: v[:full] for k, v in joined.items()})
            self._waiting, self._count = [{k: v[full:] for k, v in joined.items()}] if left else [], left

    def result(self) -> dict[str, Array]:
        """Return the sums, including waiting rows."""
        if self._waiting:
            self._sum(_joined(self._waiting))
            self._waiting = []
        return side_by_side(self._accumulator.result()) | self._statistics

    def _sum(self, rows: Rows) -> None:
        pairs: dict[str, Array] = {}
        if self._task.gaps:
            rows, pairs = zero_filled(rows, self._task.operator.views)
        more = self._task.operator.statistics(rows) | pairs
        if self._task.measure.patterns:
            more = more | _columns(rows)
        before = self._statistics
        self._statistics = {k: before[k] + v if k in before else v for k, v in more.items()}
        for block in self._task.measure.blocks(rows, self._workspace):
            self._accumulator.add(block)


def _columns(rows: Rows) -> dict[str, Array]:
    """Return the weighted sums of columns and of their squares, (d,)."""
    x = np.asarray(rows["x"], dtype=float)
    if "weight" in rows:
        return {SUMS: rows["weight"] @ x, SQUARES: rows["weight"] @ x**2}
    return {SUMS: x.sum(axis=0), SQUARES: np.einsum("nd,nd->d", x, x)}


def _mean_filled(x: Array) -> Array:
    """Return points with missing values replaced by the mean of the column."""
    present = ~np.isnan(x)
    means = np.where(present, x, 0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, x, means)


def _joined(parts: list[Rows]) -> Rows:
    return parts[0] if len(parts) == 1 else {k: np.concatenate([part[k] for part in parts]) for k in parts[0]}
