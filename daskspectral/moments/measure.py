"""What a task measures, block by block: forms between bases and functionals of them, or modes on a Fourier lattice."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, Block, Evaluation, FourierLattice
from daskspectral.basis.base import VALUE, evaluated
from daskspectral.basis.evaluation import pair_with_field
from daskspectral.devices import device_of, least_rows
from daskspectral.errors import renumbered
from daskspectral.forms import Atom, AtomProduct, Form, Functional, Pairing
from daskspectral.modes.matrices import ModeWeight, pairing_terms_of, terms_of
from daskspectral.modes.sums import ModeSum, mode_sum, rows_at_once
from daskspectral.operators import Operator
from daskspectral.workspace import Workspace

Array = NDArray[np.floating[Any]]
Sides = tuple[str, str]

NUMBER = "row number"
"""The field of a batch that holds the numbers of its rows in the data; no form can read a field of this name."""

UNFOLDED = frozenset({"points", "point sums", "point squares"})
"""The sums that folds do not keep apart."""

DENSE_ROWS = 2048
"""The rows of a block on the host, enough for adding products of p x p to cost little; panels are cut for the cache."""

MODES = "modes "
"""The beginning of the names of modes in moments; the name of their weight follows."""

MODERATE = 30  # powers of two by which the roots of weights may differ from 1 in float32 without being rescaled


class Measuring(ABC):
    """What is summed over blocks of rows of one task, on a device; immutable and picklable."""

    operator: Operator | None
    dtype: str
    device: str

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """Rows of a block."""

    def workspace(self) -> Workspace:
        """Buffers on the device. Raises ImportError or RuntimeError where there is none."""
        return Workspace(device_of(self.device))

    def blocks(self, batch: Mapping[str, Array], workspace: Workspace) -> Iterator[Block]:
        """A batch cut into blocks, with the fields that the operator derives; an empty batch is one block."""
        for start in range(0, max(1, len(batch["x"])), self.block_rows):
            rows = slice(start, start + self.block_rows)
            yield block_of({k: v[rows] for k, v in batch.items()}, self.operator, self.dtype, workspace)


@dataclass(frozen=True, eq=False)
class Measure(Measuring):
    """The sums that every task measures: forms between two bases, and functionals of each.

    The form named `gram` is measured between left and left functions, `right_gram` between right and right, every other
    form between left and right; the functional `right_first` of right functions, every other one of left functions.

    With `patterns` the columns and their squares are summed too.

    Called with the batches of one range of rows (mappings of fields, `x` (c, d), `weight` (c,) where given),
    it returns the sums by name.
    """

    left: Basis
    right: Basis
    forms: Mapping[str, Form]
    functionals: Mapping[str, Functional] = field(default_factory=dict)
    operator: Operator | None = None
    dtype: str = "float64"
    rows: int | None = None
    device: str = "cpu"
    patterns: bool = False
    brief = False

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Array]:
        """The sums over the rows of these batches."""
        workspace = self.workspace()
        measurement = Measurement(self, workspace)
        for batch in batches:
            for block in self.blocks(batch, workspace):
                measurement.add(block)
        return measurement.result()

    @property
    def gathers(self) -> bool:
        """Whether rows wait until they fill a block; short blocks leave an accelerator idle."""
        return self.device != "cpu"

    @property
    def block_rows(self) -> int:
        return self.rows or max(least_rows(self.device), DENSE_ROWS)

    def started(self, workspace: Workspace) -> Measurement:
        """The sums of one group of rows, none added yet."""
        return Measurement(self, workspace)


class Measurement:
    """The sums of one `Measure` in progress: blocks are added one by one.

    Each basis is evaluated once per block and view, for all the products that it takes part in; where the right basis
    is the left one, a single contraction serves all forms.
    """

    def __init__(self, measure: Measure, workspace: Workspace):
        self._workspace = workspace
        self._bases = {"left": self._there(measure.left)}
        if measure.right is not measure.left:
            self._bases["right"] = self._there(measure.right)
        self._forms: dict[str, tuple[Sides, Form]] = {}
        self._functionals: dict[str, tuple[str, Functional]] = {}
        products: dict[Sides, dict[AtomProduct, None]] = {}
        self._atoms: dict[str, dict[Atom, None]] = {side: {} for side in self._bases}
        self._vectors: dict[tuple[str, Pairing], Array] = {}
        self._pairings: dict[tuple[str, Pairing], None] = {}
        for name, form in measure.forms.items():
            sides = self._sides(name)
            self._forms[name] = sides, form
            products.setdefault(sides, {}).update(dict.fromkeys(form.products))
            for product in form.products:
                self._atoms[sides[0]][product.left] = self._atoms[sides[1]][product.right] = None
        for name, functional in measure.functionals.items():
            side = self._sides(name)[1] if name == "right_first" else "left"
            self._functionals[name] = side, functional
            self._pairings.update(dict.fromkeys((side, pairing) for pairing in functional.pairings))
            self._atoms[side].update(dict.fromkeys(pairing.atom for pairing in functional.pairings))
        self._shifts: Mapping[str, int] = {} if measure.operator is None else measure.operator.view_shifts
        dtype = np.dtype(measure.dtype)
        self._narrow = dtype != np.float64
        self._exponent: int | None = None
        self._contractions = {
            (a, b): self._bases[a].contraction(self._bases[b], tuple(wanted), dtype, workspace)
            for (a, b), wanted in products.items()
        }

    def _there(self, basis: Basis) -> Basis:
        """The basis with its arrays on the device, moved once for all groups of rows."""
        there: Basis = self._workspace.made(f"basis {id(basis)}", lambda: self._workspace.device.moved(basis))
        return there

    def _sides(self, name: str) -> Sides:
        if "right" not in self._bases:
            return "left", "left"
        return {"gram": ("left", "left"), "right_gram": ("right", "right")}.get(name, ("left", "right"))

    def add(self, block: Block) -> None:
        """Add one block of rows."""
        # OpenBLAS sets the flag of invalid values for finite products too; the sums are checked when they are solved
        with np.errstate(invalid="ignore"), numbered(block.fields):
            self._add(self._in_range(block).on(self._workspace))
        self._workspace.launched()

    def _add(self, block: Block) -> None:
        at = {
            side: evaluate(b, block.part(side), list(self._atoms[side]), self._shifts)
            for side, b in self._bases.items()
        }
        for side, pairing in self._pairings:
            part = pair_with_field(at[side][pairing.atom.view], pairing, block)
            before = self._vectors.get((side, pairing))
            self._vectors[side, pairing] = part if before is None else before + part
        for (left, right), contraction in self._contractions.items():
            contraction.add(at[left], at[right], block)

    def _in_range(self, block: Block) -> Block:
        """The block with the roots of its weights in units of 2^exponent, where float32 would not hold them."""
        if not self._narrow or block.scale is None:
            return block
        if self._exponent is None and block.scale.any():  # once: what was added before is in its unit
            exponent = math.frexp(block.scale.max())[1]
            self._exponent = exponent if abs(exponent) > MODERATE else 0
        return replace(block, scale=np.ldexp(block.scale, -self._exponent)) if self._exponent else block

    def result(self) -> dict[str, Array]:
        """The sums so far, by the name of form or functional."""
        sums = self._sums()
        return {k: np.ldexp(v, 2 * self._exponent) for k, v in sums.items()} if self._exponent else sums

    def _sums(self) -> dict[str, Array]:
        matrices = {sides: contraction.result() for sides, contraction in self._contractions.items()}
        sums = {name: _combine(f.expression.terms, matrices[sides]) for name, (sides, f) in self._forms.items()}
        if self._vectors:
            for name, (side, functional) in self._functionals.items():
                vectors = {p: self._workspace.device.get(v) for (s, p), v in self._vectors.items() if s == side}
                sums[name] = _combine(functional.expression.terms, vectors)
        return sums


def numbered(fields: Mapping[str, Array]) -> AbstractContextManager[None]:
    """A PointError raised inside names the row by its number in the data, where the fields hold the numbers."""
    numbers = fields.get(NUMBER)
    return nullcontext() if numbers is None else renumbered(numbers.__getitem__)


def block_of(fields: Mapping[str, Array], operator: Operator | None, dtype: str, workspace: Workspace) -> Block:
    """A block of rows with the roots of their weights, times the factors that the operator gives these.

    It has the fields that the operator derives, too.
    """
    found = {name: values for name, values in fields.items() if name != "weight"}
    scale = np.sqrt(fields["weight"], dtype=float) if "weight" in fields else None
    if operator is not None:
        with numbered(found):
            found |= operator.derived_fields(found)
            factors = operator.factors(found)
        if factors is not None:
            scale = np.sqrt(factors) if scale is None else np.sqrt(factors) * scale
    return Block(found, np.dtype(dtype), workspace, scale)


def evaluate(basis: Basis, block: Block, atoms: list[Atom], shifts: Mapping[str, int]) -> dict[str, Evaluation]:
    """The basis at each view of a block, for what these atoms need.

    Views of rows that follow one another, several `shifts` later, are evaluated together: each row once.
    """
    leaves = list(dict.fromkeys(leaf for a in atoms for leaf in a.leaves))
    views = dict.fromkeys(a.view for a in leaves)
    rows = joined(block, shifts) if len(shifts) > 1 and all(leaf.kind == "value" for leaf in leaves) else None
    if rows is None:
        return {v: evaluated(basis, block.view(v), [a for a in leaves if a.view == v]) for v in views}
    found = evaluated(basis, replace(block, fields={"x": rows}, scale=None), [VALUE])
    return {v: found.mapped(_following(block, shifts.get(v, 0))) for v in views}


def joined(block: Block, shifts: Mapping[str, int]) -> Array | None:
    """The rows of x and those that follow them, (c + s, d), where all views are parts of these; else None."""
    x, last = block.x, max(shifts, key=lambda view: shifts[view])
    c, longest = len(x), shifts[last]
    if block.host is not None or longest >= c:
        return None
    rows = np.concatenate([x, block.fields[last][c - longest :]])
    same = (np.array_equal(block.fields[view], rows[shift : shift + c]) for view, shift in shifts.items())
    return rows if all(same) else None


def _following(block: Block, shift: int) -> Callable[[Array], Array]:
    """The features of the rows of a block that come some rows later, with the roots of the weights."""
    return lambda feature: block.weighted(feature[:, shift : shift + len(block.x)])


def _combine(terms: tuple[tuple[float, Any], ...], sums: Mapping[Any, Array]) -> Array:
    factor, key = terms[0]
    if len(terms) == 1 and factor == 1:  # two forms may share it: nothing is added to it in place
        return np.asarray(sums[key])
    total = factor * sums[key]
    for factor, key in terms[1:]:
        total += factor * sums[key]
    return np.asarray(total)


# -- modes on a Fourier lattice ----------------------------------------------------------------------------------------


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

    def started(self, workspace: Workspace) -> ModeMeasurement:
        """The sums of one group of rows, none added yet."""
        return ModeMeasurement(self, workspace)


class ModeMeasurement:
    """The modes of one `ModeMeasure` in progress."""

    def __init__(self, measure: ModeMeasure, workspace: Workspace):
        self._measure, self._workspace = measure, workspace
        self._sum: ModeSum | None = None
        self._columns: list[tuple[str, tuple[int, ...], int]] = []

    def add(self, block: Block) -> None:
        """Add one block of rows."""
        with np.errstate(invalid="ignore"), numbered(block.fields):
            lattice, weights = self._measure.left, self._weights(block)
            if self._sum is None:
                orders, count = self._measure.orders, 1 if weights is None else len(weights)
                self._sum = mode_sum(orders, str(lattice.method), lattice.eps, self._workspace, weights=count)
            self._sum.add(lattice.angles(np.asarray(block.x, dtype=float)), weights)
        self._workspace.launched()

    def _weights(self, block: Block) -> NDArray[Any] | None:
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

    def result(self) -> dict[str, NDArray[Any]]:
        """The modes so far, (2 M_1 + 1, ...), or (m, 2 M_1 + 1, ...) of a weight of m columns, by name."""
        if self._sum is None:
            return {}
        found, sums, start = {}, self._sum.result(), 0
        for name, shape, count in self._columns:
            part = sums[start : start + count]
            found[name] = part.reshape(*shape, *part.shape[1:])
            start += count
        return found
