"""Functions of other kinds that take part in an automatic choice, judged on the same rows as kernels at landmarks.

A kind of functions is one class, which registers itself by inheriting from `Kind`, and is then compared wherever
basis="auto" asks for it: `tests/test_adding.py` adds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, FourierLattice, NeuralBasis, SoftCells
from daskspectral.choosing.landmarks import Periods
from daskspectral.choosing.lattice import has_modes, pilot_box, with_method
from daskspectral.choosing.networks import TrainingRows, train
from daskspectral.choosing.pilot import Pilot
from daskspectral.choosing.search import Search, in_threads
from daskspectral.choosing.side import Open
from daskspectral.moments.folds import distinct_rows, mixed
from daskspectral.moments.lattice import UnresolvedError
from daskspectral.moments.prior_choice import FAMILIES, PENALTY, PriorSearch
from daskspectral.moments.trial import Split, compared, half_splits, merged, ranked
from daskspectral.neural import available
from daskspectral.passes.selection import Candidate

Array = NDArray[np.floating[Any]]
Marks = NDArray[np.bool_]
MOST_VARIABLES = 3  # of a lattice
COUNTS = (0.5, 0.75, 1.0, 1.5)  # of cells, times the cube root of the number of rows
RATIOS = (0.7, 1.0, 1.5)  # of the width to the distance of neighbouring centres
LEAST, LEAST_ROWS = 5, 100  # cells and rows
SAMPLE = 2000  # rows among which centres are found


@dataclass(frozen=True, eq=False)
class Rival:
    """The best functions of a kind, with their held-out `values` (splits, k); None for functions that are trained.

    In the table of the choice it is `shown` with a `factor` and a `penalty`. `again` gives the values (1, k) of the
    same functions on other rows of a pilot, of which those of landmarks are marked, in one split.
    """

    kind: str
    basis: Basis
    values: Array | None
    again: Callable[[Pilot, Marks, Split], Array]
    shown: str
    factor: float = 1.0
    penalty: float | None = None

    @classmethod
    def of(cls, kind: str, basis: Basis, search: Search, splits: Sequence[Split], shown: str) -> Rival:
        """A basis that is fitted and judged as it is."""
        part, halves = merged(splits, search.pilot.folds)
        trial = search.pilot.parted(part).trial(basis, None, search.landmark, "float64")
        values = trial.judged(halves, search.count, [1.0])[0]
        return cls(kind, basis, values, partial(_again, basis, search.count), shown)

    def candidate(self, score: float, compared: Array, why: str) -> Candidate:
        """The functions in the table of an automatic choice, with their own values, or those that were compared."""
        values = compared if self.values is None else self.values
        return Candidate.of(self.shown, self.factor, self.penalty, score, values, why)


class Kind(ABC):
    """Functions of another kind, as a rival of kernels at landmarks.

    `ahead` is added to its scores in the comparison with others, as by a hundredth where its pass over all rows is so
    much faster. Where functions are `trained` on the rows of the pilot, all kinds are judged on others, which none saw.
    """

    name: ClassVar[str]
    ahead: ClassVar[float] = 0.0
    trained: ClassVar[bool] = False

    @classmethod
    def family(cls) -> list[Kind]:
        """One of each kind, in the order of their definition."""
        return [kind() for kind in cls.__subclasses__()]

    def takes(self, wanted: Open, dimension: int, periods: Periods | None) -> bool:
        """Whether it is compared for what is left open, on so many columns."""
        return wanted.compares_bases and periods is None

    @abstractmethod
    def rival(
        self, search: Search, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival | None:
        """The best of its functions; None where none suits the rows of the pilot."""


class Cells(Kind):
    """Few soft cells, which short trajectories bear.

    Of m rows p cells leave a variance in proportion to p / m, and an error of their size: the best p grows slowly.
    """

    name = "cells"

    def takes(self, wanted: Open, dimension: int, periods: Periods | None) -> bool:
        return periods is None and wanted.judge.solver.two_sided

    def rival(
        self, search: Search, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival | None:
        points = np.asarray(search.pilot.points("x"), dtype=float)
        if len(points) < LEAST_ROWS or not search.landmark.any():
            return None
        sample = points[rng.permutation(len(points))[:SAMPLE]]
        counts = sorted({max(LEAST, round(share * np.cbrt(len(points)))) for share in COUNTS})
        drawn = [SoftCells.draw(sample, p, 1.0, rng) for p in counts]

        def rival(own: SoftCells, ratio: float) -> Rival:
            cells = SoftCells(own.centres, ratio * own.width)
            return replace(Rival.of(self.name, cells, search, splits, f"{cells.size} soft cells"), factor=ratio)

        found = in_threads(lambda asked: rival(*asked), [(cells, ratio) for cells in drawn for ratio in RATIOS])
        best: Rival = found[ranked(search.scores({i: own.values for i, own in enumerate(found)}))[0]]
        return best


class Lattice(Kind):
    """A Fourier lattice of the usual frequencies in the box of the pilot's rows, without the box, with its best prior.

    None where some column is constant, and where the rows fill a small part of the box.
    """

    name, ahead = "lattice", 0.01

    def takes(self, wanted: Open, dimension: int, periods: Periods | None) -> bool:
        judge = wanted.operator.comparable
        if not wanted.compares_bases or dimension > MOST_VARIABLES or judge is None or not judge.solver.needs_symmetry:
            return False
        return has_modes(judge)

    def rival(
        self, search: Search, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival | None:
        pilot = search.pilot
        boxed = pilot_box(np.asarray(pilot.points("x"), dtype=float), periods, pilot.source.n)
        if boxed is None:
            return None
        lattice = with_method(boxed, pilot.operator)
        own = _priors(lattice, pilot, search.landmark, search.open.components, splits)
        try:
            found = own.run()
        except (UnresolvedError, np.linalg.LinAlgError):
            return None
        prior, _, values = found.table[0]

        def again(pilot: Pilot, landmark: Marks, split: Split) -> Array:
            return _priors(lattice, pilot, landmark, search.open.components, [split]).judged(prior)

        shown = f"lattice, {found.kernel(prior, own.trial.moments)}"
        return Rival(self.name, FourierLattice(lattice.m), values, again, shown, prior.factor, prior.penalty)


def _again(basis: Basis, count: int, pilot: Pilot, landmark: Marks, split: Split) -> Array:
    return pilot.trial(basis, None, landmark, "float64").judged([split], count, [1.0])[0]


def _priors(
    lattice: FourierLattice, pilot: Pilot, landmark: Marks, components: int, splits: Sequence[Split]
) -> PriorSearch:
    """What is compared on the rows of a pilot that lie in the box."""
    inside = lattice.inside(np.asarray(pilot.points("x"), float))
    kept = np.arange(pilot.rows) if inside is None else np.flatnonzero(inside)
    part, halves = merged(splits, pilot.folds)
    trial = pilot.among(kept).parted(part).trial(lattice, None, landmark[kept], "float64")
    return PriorSearch(trial, halves, FAMILIES, (PENALTY * pilot.repeats,), compared(components), in_threads)


STEPS = 2000
SPLIT = (np.array([0]), np.array([1]))


class Network(Kind):
    """The usual network, to be trained on all data: on the rows of the pilot a tenth tell when to stop."""

    name, trained = "network", True

    def takes(self, wanted: Open, dimension: int, periods: Periods | None) -> bool:
        """For functions of one view and a known loss, where networks can be trained here."""
        operator = wanted.operator
        if operator.comparable is None or operator.derivative_order > 1 or operator.own_right_basis:
            return False
        return super().takes(wanted, dimension, periods) and wanted.dtype == "float64" and available()

    def rival(
        self, search: Search, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival:
        pilot, outputs, completed = search.pilot, search.open.components, search.open.left.completed
        basis = NeuralBasis(outputs=outputs)
        rows = distinct_rows(pilot.source.preparation.selected(pilot.raw["x"]))
        sample = TrainingRows(pilot.fields, mixed(rows) % 10 == 0)
        short, seed = replace(basis, steps=min(STEPS, basis.steps)), int(rng.integers(2**31))
        shared: dict[str, Any] = {"outputs": outputs, "completed": (completed, completed), "seed": seed}
        found, _ = train(short, None, lambda _: sample, pilot.source, pilot.operator, **shared)
        again = partial(_again, completed(found), search.count)
        shown = f"network, {'-'.join(map(str, basis.hidden))}"
        return Rival(self.name, basis, None, again, shown, penalty=1.0)


@dataclass(frozen=True, eq=False)
class Halves:
    """A pilot of which no basis sees one half: `seen` are the rows of the other, `whole` has both as its two folds."""

    whole: Pilot
    seen: Pilot
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, pilot: Pilot, rng: np.random.Generator) -> Halves:
        """Half of the folds of a pilot."""
        fitted, _ = half_splits(pilot.folds, 1, rng)[0]
        rows = np.flatnonzero(np.isin(pilot.fold, fitted))
        number = np.zeros(pilot.folds, dtype=np.int64)
        number[fitted] = np.arange(len(fitted))
        fold = np.ones(pilot.rows, dtype=np.int64)
        fold[rows] = 0
        seen = replace(pilot.among(rows), fold=number[pilot.fold[rows]], folds=len(fitted))
        return cls(replace(pilot, fold=fold, folds=2), seen, rows)

    def marked(self, landmark: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Marks of the rows that were seen as marks of all rows."""
        found = np.zeros(self.whole.rows, dtype=bool)
        found[self.rows] = landmark
        return found
