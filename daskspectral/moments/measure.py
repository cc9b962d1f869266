"""Sums of forms between bases and of functionals, computed by tasks in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Accumulator, Basis, Block
from daskspectral.basis.base import DENSE_ROWS
from daskspectral.basis.evaluation import numbered
from daskspectral.devices import device_of, least_rows
from daskspectral.forms import Forms, Functionals
from daskspectral.operators import Operator
from daskspectral.operators.base import with_derived
from daskspectral.operators.density import density_factors
from daskspectral.operators.paired import of_trajectories
from daskspectral.workspace import Workspace

Array = NDArray[np.floating[Any]]

UNFOLDED = frozenset({"points", "point sums", "point squares"})
"""Sums that are not kept by fold."""


@dataclass(frozen=True, eq=False)
class Measure:
    """Sums of every task: forms between two bases, and functionals of each.

    Immutable and picklable. `Basis.accumulator` defines the functions of a form or functional. With `patterns`, columns
    and their squares are summed, too. Blocks have `rows` rows, by default a number suitable for the left basis and the
    device.

    A call with the batches of one range of rows (mappings of fields, `x` (c, d), optionally `weight` (c,)) returns the
    sums by name.
    """

    left: Basis
    right: Basis
    forms: Forms
    functionals: Functionals = field(default_factory=dict)
    operator: Operator | None = None
    dtype: str = "float64"
    rows: int | None = None
    device: str = "cpu"
    patterns: bool = False

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """Return the sums over the rows of these batches."""
        workspace = self.workspace()
        sums = self.started(workspace)
        for batch in batches:
            for block in self.blocks(batch, workspace):
                sums.add(block)
        return sums.result()

    @property
    def block_rows(self) -> int:
        return self.rows or max(least_rows(self.device), self.left.block_rows)

    @property
    def gathers(self) -> bool:
        """True if rows are collected until they fill a block, because short blocks cost as much as full ones."""
        return self.block_rows > DENSE_ROWS

    def workspace(self) -> Workspace:
        """Return buffers on the device; raise ImportError or RuntimeError without a device."""
        return Workspace(device_of(self.device))

    def blocks(self, batch: Mapping[str, Array], workspace: Workspace) -> Iterator[Block]:
        """Split a batch into blocks with the fields that the operator derives.

        An empty batch is one block.
        """
        for start in range(0, max(1, len(batch["x"])), self.block_rows):
            rows = slice(start, start + self.block_rows)
            yield block_of({k: v[rows] for k, v in batch.items()}, self.operator, self.dtype, workspace)

    def started(self, workspace: Workspace) -> Accumulator:
        """Return empty sums for a group of rows."""
        return self.left.accumulator(self.right, self.forms, self.functionals, dtype=self.dtype, workspace=workspace)


def block_of(fields: Mapping[str, Array], operator: Operator | None, dtype: str, workspace: Workspace) -> Block:
    """Return a block of rows with derived fields and roots of weights."""
    found = {name: values for name, values in fields.items() if name != "weight"}
    scale = np.sqrt(fields["weight"], dtype=float) if "weight" in fields else None
    if operator is not None:
        with numbered(found):
            found = with_derived(operator, found)
            factors = density_factors(operator.density, found)
        if factors is not None:
            scale = np.sqrt(factors) if scale is None else np.sqrt(factors) * scale
    shifts = operator.shifts if operator is not None and of_trajectories(operator) else {}
    return Block(found, np.dtype(dtype), workspace, scale, shifts=shifts)
