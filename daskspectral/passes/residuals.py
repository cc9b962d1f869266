"""How well a fitted function predicts targets, in one pass: the coefficient of determination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.data.integrity import Snapshot
from daskspectral.data.rows import Rows
from daskspectral.data.source import open_regression
from daskspectral.engine import Run, plan_rows
from daskspectral.errors import renumbered
from daskspectral.moments import NUMBER
from daskspectral.passes.rows import RowFunction

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Variation:
    """The weight of rows, the mean (m,) of their targets, and sums of squares: about the mean, and of the residuals.

    Sums about the mean add by the formula of Chan, Golub and LeVeque (1983), which loses no digits to a large mean.
    """

    weight: float
    mean: Array
    squares: Array
    residuals: Array

    def __add__(self, other: Variation) -> Variation:
        weight = self.weight + other.weight
        if not weight:
            return self
        apart, share = other.mean - self.mean, other.weight / weight
        return Variation(
            weight,
            self.mean + share * apart,
            self.squares + other.squares + share * self.weight * apart**2,
            self.residuals + other.residuals,
        )

    @classmethod
    def of(cls, y: Array, predicted: Array, weights: Array) -> Variation:
        """The variation of targets y (c, m) about their mean and about a prediction, with weights (c,)."""
        total, first = float(weights.sum()), y[0]
        mean = first + (weights @ (y - first) / total if total else 0.0)
        return cls(total, mean, weights @ (y - mean) ** 2, weights @ (y - predicted) ** 2)

    @property
    def explained(self) -> float:
        """R^2 = 1 - residuals / squares, averaged over the targets; of a constant target 1 where it is met, else 0."""
        constant = self.squares == 0
        ratio = self.residuals / np.where(constant, 1.0, self.squares)
        return float(np.mean(np.where(constant, np.where(self.residuals == 0, 1.0, 0.0), 1 - ratio)))


@dataclass(frozen=True, eq=False)
class _Compare:
    """A task over rows: the variation of their targets about a function's values."""

    function: RowFunction

    def __call__(self, batches: Iterable[Mapping[str, Array]], state: Any = None) -> dict[str, Any]:
        total: Variation | None = None
        for batch in batches:
            y = np.asarray(batch["y"], dtype=float).reshape(len(batch["y"]), -1)
            if not len(y):
                continue
            weights = np.asarray(batch["weight"], dtype=float) if "weight" in batch else np.ones(len(y))
            with renumbered(batch[NUMBER].__getitem__):
                part = Variation.of(y, self.function.of_prepared(batch["x"])[0], weights)
            total = part if total is None else total + part
        return {} if total is None else {"variation": total}


def determination(
    function: RowFunction, targets: int | None, rows: Rows, y: Any, sample_weight: Any, progress: bool | None
) -> float:
    """R^2 of a function's values (n, m) against y, (n,) for `targets` None or (n, m), averaged over the targets.

    Rows are read once, chunk by chunk. Raises ValueError where y has not the targets of the fit, for a single row, and
    for weights that sum to 0; InvalidRowError for the lowest invalid row, unless on_invalid="skip" leaves such rows
    out; OSError where the data changed meanwhile.
    """
    source, operator = open_regression(rows, y, weight=sample_weight, progress=progress)
    if (operator.targets or 1) != (targets or 1):
        raise ValueError(f"y has {operator.targets or 1} columns, and the model was fitted on {targets or 1} targets")
    if source.n < 2:
        raise ValueError("R^2 compares with the spread of y, and X has 1 row; give 2 or more")
    scale = function.preparation
    source = source.with_preparation(mean=scale.mean, scale=scale.scale)
    snapshot = Snapshot(source)
    plan = plan_rows(source, 2000.0 * function.columns, device=function.device)
    run = Run(source, plan, None, "score", function.device)
    total = run.reduce(_Compare(function))
    snapshot.check_unchanged()
    if total.count < 2:
        raise ValueError(f"R^2 compares with the spread of y, and {total.count} of {source.rows} is left; give more")
    if not total.weight > 0:
        raise ValueError(f"the total sample weight is {total.weight:g}; some row needs a weight above zero")
    found: Variation = total.sums["variation"]
    return found.explained
