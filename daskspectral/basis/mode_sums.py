"""Modes of rows: the sums that a Fourier lattice takes in place of matrices of forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis.accumulators import Accumulator
from daskspectral.basis.evaluation import Block
from daskspectral.modes.matrices import MODES, ModeWeight
from daskspectral.modes.sums import ModeSum, mode_sum
from daskspectral.workspace import Workspace

if TYPE_CHECKING:
    from daskspectral.basis.lattice import FourierLattice


class ModeSums(Accumulator):
    """Sums of exp(-i j.t) times each of the `weights` of the forms of a lattice, |j_a| <= 2 m_a, by their names."""

    def __init__(self, lattice: FourierLattice, weights: Sequence[ModeWeight], workspace: Workspace):
        super().__init__(workspace)
        self._lattice, self._mode_weights = lattice, weights
        self._sum: ModeSum | None = None
        self._columns: list[tuple[str, tuple[int, ...], int]] = []

    def _add(self, block: Block) -> None:
        lattice, weights = self._lattice, self._weights(block)
        if self._sum is None:
            orders, count = tuple(2 * order for order in lattice.orders), 1 if weights is None else len(weights)
            method = lattice.method or "matmul"
            self._sum = mode_sum(orders, method, lattice.eps, self._workspace, weights=count)
        self._sum.add(lattice.angles(np.asarray(block.x, dtype=float)), weights)

    def _weights(self, block: Block) -> NDArray[Any] | None:
        """Return the weights (W, c) of all modes, times the sample weights; None for 1 alone."""
        sample = None if block.scale is None else np.asarray(block.scale, dtype=float) ** 2
        columns, names = [], []
        for weight in self._mode_weights:
            found = weight.of(block.fields)
            own = np.ones(len(block.x)) if found is None else found
            rows = own[None] if own.ndim == 1 else own.T
            columns.append(rows if sample is None else rows * sample)
            names.append((MODES + weight.name, own.shape[1:], len(rows)))
        self._columns = names
        if len(columns) == 1 and sample is None and self._mode_weights[0] == ModeWeight():
            return None
        return np.concatenate(columns)

    def result(self) -> dict[str, NDArray[Any]]:
        """Return the modes so far, (2 M_1 + 1, ...), or (m, 2 M_1 + 1, ...) of a weight of m columns, by name."""
        if self._sum is None:
            return {}
        found, sums, start = {}, self._sum.result(), 0
        for name, shape, count in self._columns:
            part = sums[start : start + count]
            found[name] = part.reshape(*shape, *part.shape[1:])
            start += count
        return found
