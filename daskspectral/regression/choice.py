"""The automatic choice for a regression: kernels and scales are compared on a pilot by cross-validation over folds.

Each candidate is measured once by fold, and the sums alone tell the error of every penalty on folds that were left
out. Rows that are landmarks stay in: a function k(., y) knows nothing of the target at y.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral.choosing.pilot import Pilot
from daskspectral.choosing.search import TRIAL_LANDMARKS, Family, SideFunctions, families_of, in_threads
from daskspectral.choosing.side import Side
from daskspectral.data.source import Source
from daskspectral.errors import FitWarning, warn_user
from daskspectral.moments.counting import unlike_columns
from daskspectral.moments.regression import ridge_problem
from daskspectral.moments.trial import Setting, climb_families, edge_of
from daskspectral.operators.regression import Regression
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.ridge import best_penalty

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
FACTORS, LARGEST_FACTOR = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), 32.0
NEAR = (2**-0.5, 2**0.5)  # factors of the best scale
LEAST_ROWS = 6  # of a pilot: with fewer there is nothing to compare by
PLAIN = 1.0  # the factor where nothing can be compared


@dataclass(frozen=True)
class Terms:
    """The weight of a gradient against a value, the penalty `alpha` where it is given, and the cut of the problem."""

    gradient_weight: float
    alpha: float | None
    cut: float
    dtype: str


@dataclass(frozen=True, eq=False)
class _Found:
    """How a setting does: its errors (values, and gradients), the penalty, the share of the spread explained."""

    errors: Array
    alpha: float
    explained: float


def decide_regression(
    source: Source, operator: Regression, side: Side, terms: Terms, rng: np.random.Generator, *, blocks: bool
) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel and landmarks; folds may be `blocks`.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid.
    """
    pilot, landmarks = Pilot.draw(source, operator, rng, blocks=blocks), side.landmarks
    assert landmarks is not None
    _advise_units(pilot)
    derivatives = 3 if operator.gradients else 0  # for gradients the rough kernel has two more
    kernels = families_of(landmarks.kernel, derivatives, side.periods_in(source, operator))
    first = Family.of(kernels[0], side, pilot, rng)
    first = replace(first, median=first.median or 1.0)  # any scale does where all points are equal
    functions = SideFunctions(side, [replace(first, kernel=kernel) for kernel in kernels])
    found: dict[Setting, _Found] = {}
    edge = ""
    if pilot.rows >= LEAST_ROWS and pilot.folds > 1:
        found, edge = _compared(functions, pilot, terms)
    order = _ordered(found)
    setting = order[0] if order else Setting(len(kernels) - 1, PLAIN)
    kernel = functions.kernel(setting)
    if order:
        logger.info("chosen among %d candidates: %s", len(order), kernel)
    else:
        logger.info("nothing was compared (%d rows are too few): %s", pilot.rows, kernel)
    raw = first.raw(kernel, side, pilot, rng)
    table = tuple(_candidate(str(functions.kernel(s)), s.factor, found[s], pilot, s is setting) for s in order)
    return Selection(table, {"basis": side.given_at(raw, kernel, 0.0)}, pilot.rows, first.median, edge)


def _advise_units(pilot: Pilot) -> None:
    """Warn where one scale cannot serve all columns."""
    spreads = {c: float(s) for c, s in enumerate(pilot.points("x").std(axis=0)) if s > 0}
    if text := unlike_columns(spreads, pilot.source.preparation.columns):
        warn_user(text, FitWarning)


def _candidate(kernel: str, factor: float, found: _Found, pilot: Pilot, best: bool) -> Candidate:
    why = "best" if best else ""
    return Candidate(kernel, factor, found.alpha, found.explained, found.errors, pilot.folds, why)


def _compared(functions: SideFunctions, pilot: Pilot, terms: Terms) -> tuple[dict[Setting, _Found], str]:
    """What was tried; and `edge_of` its scales."""

    def judge(setting: Setting) -> _Found:
        """The setting at its best penalty."""
        basis = functions.of(setting, TRIAL_LANDMARKS, 0.0)
        trial = pilot.trial(basis, None, np.zeros(pilot.rows, dtype=bool), terms.dtype)
        problem = ridge_problem(trial.moments, terms.gradient_weight)
        curve = problem.curve(terms.alpha, terms.cut)
        assert curve.errors is not None
        totals = curve.errors.sum(axis=1)
        place = int(np.argmin(totals))
        return _Found(curve.errors[place], best_penalty(curve.alphas, totals), problem.explained(float(totals[place])))

    count = len(functions.families)
    tried, found = climb_families([FACTORS] * count, (None,), judge, _ordered, in_threads, LARGEST_FACTOR)
    best = _ordered(found)[0]
    near = [replace(best, factor=f) for f in (best.factor * step for step in NEAR) if f <= LARGEST_FACTOR]
    return found | dict(zip(near, in_threads(judge, near), strict=True)), edge_of(tried[best.family], best.factor)


def _ordered(found: Mapping[Setting, _Found]) -> list[Setting]:
    """The settings, the least error first."""
    return sorted(found, key=lambda s: float(found[s].errors.sum()))
