"""What a task measures on a Fourier lattice: modes of the weights that the operator's forms need, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Arena, Block, FourierLattice, as_lattice
from daskspectral.devices import least_rows
from daskspectral.modes.matrices import ModeWeight, pairing_terms_of, terms_of
from daskspectral.modes.sums import ModeSum, mode_sum, rows_at_once
from daskspectral.moments.measure import Measuring, numbered
from daskspectral.moments.moments import Moments
from daskspectral.operators import Operator

Array = NDArray[Any]
MODES = "modes "
"""The beginning of the names of modes in moments; the name of their weight follows."""


def weights_of(operator: Operator, dimension: int) -> tuple[ModeWeight, ...]:
    """The weights of which the operator's forms and functionals need modes, 1 among them, the first.

    Raises ValueError for forms that take functions at two points of a row.
    """
    found: dict[ModeWeight, None] = {ModeWeight(): None}
    for form in operator.forms.values():
        found |= {term.weight: None for term in terms_of(form.expression, dimension)}
    for functional in operator.functionals.values():
        found |= {term.weight: None for term in pairing_terms_of(functional.expression, dimension)}
    return tuple(found)


def outside_rows(moments: Moments) -> int:
    """How many rows lie outside the box of the lattice, and count as absent."""
    return moments.rows - moments.count - moments.skipped if as_lattice(moments.basis) is not None else 0


@dataclass(frozen=True)
class Outside:
    """The test of points (c, d) for lying outside the box of a lattice."""

    lattice: FourierLattice

    def __str__(self) -> str:
        return f"outside the box {self.lattice.sides} of the lattice: give a wider one"

    def __call__(self, x: Array) -> NDArray[np.bool_]:
        """Which of the points are outside, (c,)."""
        inside = self.lattice.inside(x)
        return np.zeros(len(x), dtype=bool) if inside is None else ~inside


@dataclass(frozen=True, eq=False)
class ModeMeasure(Measuring):
    """The sums over rows of weight exp(-i j.t), |j_a| ≤ 2 m_a, for the `weights` of an operator's forms.

    Called for by the same pass as `Measure`; `started` gives the sums in progress.
    """

    left: FourierLattice
    weights: tuple[ModeWeight, ...]
    operator: Operator | None = None
    dtype: str = "float64"
    device: str = "cpu"
    patterns = False
    gathers = True
    """Rows wait until they fill a block: a transform of few rows costs as much as one of many."""

    brief = True
    """Other sums over all rows would cost more than the modes."""

    @property
    def right(self) -> FourierLattice:
        """The same functions."""
        return self.left

    @property
    def orders(self) -> tuple[int, ...]:
        """The highest modes along each axis, (d,)."""
        return tuple(2 * order for order in self.left.orders)

    @cached_property
    def block_rows(self) -> int:
        return max(least_rows(self.device), rows_at_once(str(self.left.method), self.left.orders))

    def started(self, arena: Arena) -> ModeMeasurement:
        """The sums of one group of rows, none added yet."""
        return ModeMeasurement(self, arena)


class ModeMeasurement:
    """The modes of one `ModeMeasure` in progress."""

    def __init__(self, measure: ModeMeasure, arena: Arena):
        self._measure, self._arena = measure, arena
        self._sum: ModeSum | None = None
        self._columns: list[tuple[str, tuple[int, ...], int]] = []

    def add(self, block: Block) -> None:
        """Add one block of rows."""
        with np.errstate(invalid="ignore"), numbered(block.fields):
            lattice, weights = self._measure.left, self._weights(block)
            if self._sum is None:
                orders, count = self._measure.orders, 1 if weights is None else len(weights)
                self._sum = mode_sum(orders, str(lattice.method), lattice.eps, self._arena, weights=count)
            self._sum.add(lattice.angles(np.asarray(block.x, dtype=float)), weights)
        self._arena.launched()

    def _weights(self, block: Block) -> Array | None:
        """The weights (W, c) of all modes, times the sample weights; None for 1 alone."""
        sample = None if block.scale is None else np.asarray(block.scale, dtype=float) ** 2
        columns, names = [], []
        for weight in self._measure.weights:
            found = weight.of(block.fields)
            own = np.ones(len(block.x)) if found is None else found
            rows = own[None] if own.ndim == 1 else own.T
            columns.append(rows if sample is None else rows * sample)
            names.append((MODES + weight.name, own.shape[1:], len(rows)))
        self._columns = names
        if len(columns) == 1 and sample is None and self._measure.weights[0] == ModeWeight():
            return None
        return np.concatenate(columns)

    def result(self) -> dict[str, Array]:
        """The modes so far, (2 M_1 + 1, ...), or (m, 2 M_1 + 1, ...) of a weight of m columns, by name."""
        if self._sum is None:
            return {}
        found, sums, start = {}, self._sum.result(), 0
        for name, shape, count in self._columns:
            part = sums[start : start + count]
            found[name] = part.reshape(*shape, *part.shape[1:])
            start += count
        return found
