"""Selection of the kernel and its scale for a regression, by cross-validation on a pilot sample."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.choosing.candidates import Hyperparameters, RidgeEvaluator, Search
from daskspectral.choosing.pilot import Pilot
from daskspectral.choosing.search import TRIAL_LANDMARKS, CandidateFunctions, KernelFamily, families_of
from daskspectral.choosing.spaces import FunctionSpace
from daskspectral.data.source import Source
from daskspectral.errors import FitWarning, warn_user
from daskspectral.moments.counting import unequal_units
from daskspectral.moments.regression import ridge_problem
from daskspectral.operators.regression import Regression
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.ridge import RidgeProblem

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
FACTORS, LARGEST_FACTOR = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), 32.0
NEAR = (2**-0.5, 2**0.5)  # factors of the best scale
LEAST_ROWS = 6  # of a pilot: with fewer, candidates are not compared
PLAIN = 1.0  # the factor if candidates are not compared


@dataclass(frozen=True)
class RegressionSettings:
    """Settings of a regression: weight of a gradient relative to a value, penalty if fixed, relative cutoff."""

    gradient_weight: float
    alpha: float | None
    cut: float
    dtype: str


def decide_regression(
    source: Source,
    operator: Regression,
    side: FunctionSpace,
    terms: RegressionSettings,
    rng: np.random.Generator,
    *,
    blocks: bool,
) -> Selection:
    """Return the table of candidates, and the kernel and landmarks of the best.

    Folds are contiguous if `blocks`. Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError if no
    row is valid.
    """
    with Pilot.draw(source, operator, rng, blocks=blocks).counted() as pilot:
        return _decided(pilot, source, operator, side, terms, rng)


def _decided(
    pilot: Pilot,
    source: Source,
    operator: Regression,
    side: FunctionSpace,
    terms: RegressionSettings,
    rng: np.random.Generator,
) -> Selection:
    landmarks = side.drawing
    _advise_units(pilot)
    derivatives = 3 if operator.gradients else 0  # with gradients the rough kernel has two more
    kernels = families_of(landmarks.kernel, derivatives, side.periods_in(source, operator))
    first = KernelFamily.of(kernels[0], side, pilot, rng)
    first = replace(first, median=first.median or 1.0)  # if all points are equal, any scale is valid
    functions = CandidateFunctions(side, [replace(first, kernel=kernel) for kernel in kernels])

    def problem(candidate: Hyperparameters) -> RidgeProblem:
        basis = functions.of(candidate, TRIAL_LANDMARKS, 0.0)
        trial = pilot.trial(basis, None, np.zeros(pilot.rows, dtype=bool), terms.dtype)
        return ridge_problem(trial.moments, terms.gradient_weight)

    table: tuple[Candidate, ...] = ()
    setting, edge = Hyperparameters(len(kernels) - 1, PLAIN), ""
    if pilot.rows >= LEAST_ROWS and pilot.folds > 1:
        search = Search(RidgeEvaluator(problem, terms.alpha, terms.cut))
        for family in range(len(kernels)):
            search.line_search(family, FACTORS, LARGEST_FACTOR)
        best = search.order[0]
        edge = search.at_search_boundary(best)
        search.judge(replace(best, factor=f * best.factor) for f in NEAR if f * best.factor <= LARGEST_FACTOR)
        setting, table = search.order[0], functions.table(search)
    kernel = functions.kernel(setting)
    logger.info("chosen among %d candidates of %d rows: %s", len(table), pilot.rows, kernel)
    raw = first.raw(kernel, side, pilot, rng)
    return Selection(table, {"basis": side.basis_argument(raw, kernel, 0.0)}, pilot.rows, first.median, edge)


def _advise_units(pilot: Pilot) -> None:
    spreads = {c: float(s) for c, s in enumerate(pilot.points("x").std(axis=0)) if s > 0}
    if text := unequal_units(spreads, pilot.source.column_name):
        warn_user(text, FitWarning)
