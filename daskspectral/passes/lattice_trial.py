"""A Fourier lattice on the rows of a pilot, judged on the same rows as kernels at landmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import FourierLattice
from daskspectral.moments import Folds, Moments
from daskspectral.moments.lattice import UnresolvedError
from daskspectral.moments.prior_choice import FAMILIES, PENALTY, Parts, PriorSearch
from daskspectral.moments.summing import SumTask
from daskspectral.moments.trial import Setting, Split, compared
from daskspectral.operators import Operator
from daskspectral.passes.automatic import Search, in_threads
from daskspectral.passes.lattice import pilot_box, with_method
from daskspectral.passes.periods import Periods
from daskspectral.passes.pilot import Pilot
from daskspectral.passes.selection import Candidate
from daskspectral.passes.sums import measure_of

Array = NDArray[np.floating[Any]]
MOST_VARIABLES = 3


@dataclass(frozen=True, eq=False)
class LatticeRival:
    """A lattice, without a box, with the held-out values (splits, k) of its best prior."""

    name: ClassVar[str] = "lattice"

    basis: FourierLattice
    values: Array
    kernel: str
    prior: Setting
    boxed: FourierLattice

    def candidate(self, score: float, why: str) -> Candidate:
        """The lattice in the table of an automatic choice."""
        return Candidate.of(f"lattice, {self.kernel}", self.prior.factor, self.prior.penalty, score, self.values, why)

    def judged(self, pilot: Pilot, landmark: NDArray[np.bool_], components: int, split: Split) -> Array:
        """The values (1, k) of the prior that was chosen, on other rows."""
        return _search_on(self.boxed, pilot, landmark, components, [split]).judged(self.prior)


def suits_lattice(operator: Operator, dimension: int) -> bool:
    """Whether an operator's forms are modes of data of so many columns, of which a lattice can hold enough."""
    comparable = operator.comparable
    if dimension > MOST_VARIABLES or comparable is None or not comparable.solver.needs_symmetry:
        return False
    return operator.views == ("x",) and operator.lag is None


def lattice_candidate(
    pilot: Pilot, search: Search, splits: Sequence[Split], components: int, periods: Periods | None
) -> LatticeRival | None:
    """A lattice of the usual frequencies in the box of the pilot's rows.

    None where some column is constant, and where the rows fill a small part of the box.
    """
    operator, points = pilot.operator, np.asarray(pilot.points("x"), dtype=float)
    if not suits_lattice(operator, points.shape[1]):
        return None
    lattice = pilot_box(points, periods, pilot.source.n)
    if lattice is None:
        return None
    lattice = with_method(lattice, operator)
    own = _search_on(lattice, pilot, search.landmark, components, splits)
    try:
        found = own.run()
    except (UnresolvedError, np.linalg.LinAlgError):
        return None
    prior, _, values = found.table[0]
    return LatticeRival(FourierLattice(lattice.m), values, str(found.kernel(prior, own.moments)), prior, lattice)


def _search_on(
    lattice: FourierLattice,
    pilot: Pilot,
    landmark: NDArray[np.bool_],
    components: int,
    splits: Sequence[Split],
) -> PriorSearch:
    """What is compared on the rows of a pilot that lie in the box."""
    operator, points, preparation = pilot.operator, np.asarray(pilot.points("x"), float), pilot.source.preparation
    task = SumTask(measure_of(lattice, None, operator, "float64"), operator, preparation.scale, preparation.columns)
    outside = lattice.inside(points)
    inside = np.ones(pilot.rows, dtype=bool) if outside is None else outside
    parts = [_folds(task, pilot, inside & chosen) for chosen in (~landmark, landmark)]
    judged, aside = parts[0].total(), parts[1].total()
    arrays = {name: judged[name] + aside[name] for name in judged}
    moments = Moments(
        arrays,
        float(sum(part.weight.sum() for part in parts)),
        int(inside.sum()),
        lattice,
        operator,
        folds=parts[0],
    )
    penalties, together = (PENALTY * pilot.repeats,), Parts.of(moments, splits, parts[1])
    return PriorSearch(moments, operator, FAMILIES, penalties, compared(components), in_threads, together)


def _folds(task: SumTask, pilot: Pilot, chosen: NDArray[np.bool_]) -> Folds:
    """The modes of some of the pilot's rows by fold."""
    own: list[dict[str, Array]] = []
    weight, count = np.zeros(pilot.folds), np.zeros(pilot.folds, dtype=np.int64)
    for k in range(pilot.folds):
        rows = np.flatnonzero(chosen & (pilot.fold == k))
        batch = {name: values[rows] for name, values in pilot.fields.items()}
        weight[k] = batch["weight"].sum() if "weight" in batch else len(rows)
        count[k] = len(rows)
        own.append(task([batch]))
    return Folds({name: np.stack([part[name] for part in own]) for name in own[0]}, weight, count)
