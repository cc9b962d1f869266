"""Functions of other kinds that take part in an automatic choice, judged on the same rows as kernels at landmarks.

A kind of functions is one class, which registers itself by inheriting from `Kind`, and is then compared wherever
basis="auto" asks for it: `tests/test_adding.py` adds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, FourierLattice, SoftCells
from daskspectral.choosing.landmarks import Periods
from daskspectral.choosing.lattice import has_modes, pilot_box, with_method
from daskspectral.choosing.pilot import Pilot
from daskspectral.choosing.search import LandmarkSearch, in_threads
from daskspectral.choosing.side import Open
from daskspectral.moments.lattice import UnresolvedError
from daskspectral.moments.prior_choice import FAMILIES, PENALTY, Chosen, prior_evaluator
from daskspectral.moments.search import Setting, compared, ranked
from daskspectral.moments.trial import Split, Trial, merged

Array = NDArray[np.floating[Any]]
MOST_VARIABLES = 3  # of a lattice
COUNTS = (0.5, 0.75, 1.0, 1.5)  # of cells, times the cube root of the number of rows
RATIOS = (0.7, 1.0, 1.5)  # of the width to the distance of neighbouring centres
LEAST, LEAST_ROWS = 5, 100  # cells and rows
SAMPLE = 2000  # rows among which centres are found


@dataclass(frozen=True, eq=False)
class Rival:
    """The best functions of a kind, with their held-out `values` (splits, k).

    In the table of the choice it is `shown` with a `factor` and a `penalty`.
    """

    basis: Basis
    values: Array
    shown: str
    factor: float = 1.0
    penalty: float | None = None

    @classmethod
    def of(cls, basis: Basis, search: LandmarkSearch, splits: Sequence[Split], shown: str) -> Rival:
        """A basis that is fitted and judged as it is."""

        def trial(pilot: Pilot, _: Setting) -> Trial:
            return pilot.trial(basis, None, search.landmark, "float64")

        (values,) = search.evaluator(splits, trial, [1.0]).scores(Setting(0, 1.0)).values()
        return cls(basis, values, shown)


class Kind(ABC):
    """Functions of another kind, as a rival of kernels at landmarks.

    `ahead` is added to its scores in the comparison with others, as by a hundredth where its pass over all rows is so
    much faster.
    """

    name: ClassVar[str]
    ahead: ClassVar[float] = 0.0

    @classmethod
    def family(cls) -> list[Kind]:
        """One of each kind, in the order of their definition."""
        return [kind() for kind in cls.__subclasses__()]

    def takes(self, wanted: Open, dimension: int, periods: Periods | None) -> bool:
        """Whether it is compared for what is left open, on so many columns."""
        return wanted.compares_bases and periods is None

    @abstractmethod
    def rival(
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
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
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival | None:
        points = np.asarray(search.pilot.points("x"), dtype=float)
        if len(points) < LEAST_ROWS or not search.landmark.any():
            return None
        sample = points[rng.permutation(len(points))[:SAMPLE]]
        counts = sorted({max(LEAST, round(share * np.cbrt(len(points)))) for share in COUNTS})
        drawn = [SoftCells.draw(sample, p, 1.0, rng) for p in counts]

        def rival(asked: tuple[SoftCells, float]) -> Rival:
            own, ratio = asked
            cells = SoftCells(own.centres, ratio * own.width)
            return replace(Rival.of(cells, search, splits, f"{cells.size} soft cells"), factor=ratio)

        found = in_threads(rival, [(cells, ratio) for cells in drawn for ratio in RATIOS])
        scores = search.evaluator(splits).totals({i: own.values for i, own in enumerate(found)})
        best: Rival = found[ranked(scores)[0]]
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
        self, search: LandmarkSearch, splits: Sequence[Split], periods: Periods | None, rng: np.random.Generator
    ) -> Rival | None:
        pilot = search.pilot
        boxed = pilot_box(np.asarray(pilot.points("x"), dtype=float), periods, pilot.source.n)
        if boxed is None:
            return None
        lattice = with_method(boxed, pilot.operator)
        inside = lattice.inside(np.asarray(pilot.points("x"), float))
        kept = np.arange(pilot.rows) if inside is None else np.flatnonzero(inside)
        part, halves = merged(splits, pilot.folds)
        trial = pilot.among(kept).parted(part).trial(lattice, None, search.landmark[kept], "float64")
        penalties, count = (PENALTY * pilot.repeats,), compared(search.open.components)
        try:
            evaluator = prior_evaluator(trial, halves, FAMILIES, penalties, count)
            found = Chosen.by(evaluator, FAMILIES, trial.moments, in_threads)
        except UnresolvedError:
            return None
        kernel, factor, penalty, _, values = found.table[0]
        if len(evaluator.failed) == len(found.table):
            return None
        return Rival(FourierLattice(lattice.m), values, f"lattice, {kernel}", factor, penalty)
