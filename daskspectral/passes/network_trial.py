"""A network on trial: trained on half of a pilot, judged on the other half beside the best of the other bases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Basis, NeuralBasis
from daskspectral.moments.folds import mixed
from daskspectral.moments.row_keys import distinct_rows
from daskspectral.moments.trial import half_splits
from daskspectral.neural import available
from daskspectral.operators import Operator
from daskspectral.passes.networks import TrainingRows, train
from daskspectral.passes.pilot import Pilot

Array = NDArray[Any]
STEPS = 2000
SPLIT = (np.array([0]), np.array([1]))


def suits_network(operator: Operator) -> bool:
    """Whether networks can be trained here, for an operator with functions of one view and a known loss."""
    judge = operator.comparable
    if judge is None or operator.derivative_order > 1 or operator.own_right_basis:
        return False
    return available()


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

    def judged(self, basis: Basis, count: int, penalty: float | None, dtype: str) -> Array:
        """The values (1, k) of a basis, fitted to one half and judged on the other."""
        trial = self.whole.trial(basis, None, np.zeros(self.whole.rows, dtype=bool), dtype)
        return trial.judged([SPLIT], count, [penalty])[0]


def network_candidate(
    halves: Halves, components: int, count: int, completed: Callable[[Basis], Basis], seed: int
) -> tuple[NeuralBasis, Array, str]:
    """The usual network, to be trained on all data, and how it did when on the rows of one half, of which a tenth
    told when to stop: its values (1, k), and what it is called."""
    basis = NeuralBasis(outputs=components)
    pilot = halves.seen
    rows = distinct_rows(pilot.source.preparation.selected(pilot.raw["x"]))
    sample = TrainingRows(pilot.fields, mixed(rows) % 10 == 0)
    short = replace(basis, steps=min(STEPS, basis.steps))
    shared: dict[str, Any] = {"outputs": components, "completed": (completed, completed), "seed": seed}
    trained, _ = train(short, None, lambda _: sample, pilot.source, pilot.operator, **shared)
    values = halves.judged(completed(trained), count, 1.0, "float64")
    shown = f"network, {'-'.join(map(str, basis.hidden))}"
    return basis, values, shown
