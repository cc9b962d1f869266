"""The automatic choice for a regression: kernels and scales are compared on a pilot by cross-validation over folds.

Each candidate is measured once by fold, and the sums alone tell the error of every penalty on folds that were left
out. Rows that are landmarks stay in: a function k(., y) knows nothing of the target at y.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskspectral import landmarks as choosing
from daskspectral.basis import LandmarkBasis, Landmarks
from daskspectral.choosing.landmarks import Periods, given_points, periodic, rows_by
from daskspectral.choosing.pilot import Pilot
from daskspectral.choosing.search import TRIAL_LANDMARKS, in_threads
from daskspectral.data.source import Source
from daskspectral.errors import FitWarning, warn_user
from daskspectral.kernels import Gaussian, Kernel, Matern
from daskspectral.moments.regression import ridge_problem
from daskspectral.moments.trial import Setting, climb, edge_of
from daskspectral.operators.regression import Regression
from daskspectral.passes.selection import Candidate, Selection
from daskspectral.solve.ridge import best_penalty

Array = NDArray[np.floating[Any]]
logger = logging.getLogger("daskspectral")
FACTORS, LARGEST_FACTOR = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0), 32.0
NEAR = (2**-0.5, 2**0.5)  # factors of the best scale
UNLIKE = 100.0  # the ratio of two columns' standard deviations
LEAST_ROWS = 6  # of a pilot: with fewer there is nothing to compare by
PLAIN = 1.0  # the factor where nothing can be compared


@dataclass(frozen=True)
class OpenRegression:
    """What a regression leaves to the data: a kernel of open scale, or None for the kernel too, of these `periods`.

    `landmarks` have their number. `alpha` is the penalty where it is given; folds are contiguous `blocks` where it is
    asked for. `cut` is that of the ridge problem.
    """

    kernel: Kernel | None
    periods: Periods | None
    landmarks: Landmarks
    gradient_weight: float
    alpha: float | None
    blocks: bool
    cut: float
    dtype: str


@dataclass(frozen=True, eq=False)
class _Found:
    """How a setting does: its errors (values, and gradients), the penalty, the share of the spread explained."""

    errors: Array
    alpha: float
    explained: float

    @property
    def error(self) -> float:
        return float(self.errors.sum())


def decide_regression(
    source: Source, operator: Regression, wanted: OpenRegression, rng: np.random.Generator
) -> Selection:
    """The table of the candidates, with the parameters chosen by it: kernel and landmarks.

    Raises InvalidRowError for an invalid row (on_invalid="raise"), ValueError where no row is valid, or all are equal.
    """
    pilot = Pilot.draw(source, operator, rng, blocks=wanted.blocks)
    _advise_units(pilot)
    families = (wanted.kernel,) if wanted.kernel is not None else families_of(operator, wanted.periods)
    points = pilot.points("x")
    embedded = families[0].embedded(points)
    median = choosing.median_of_distinct(embedded, rng) or 1.0  # any scale does where all points are equal
    landmarks = wanted.landmarks
    given, count = given_points(landmarks, source), min(int(landmarks.count), pilot.rows)
    if given is None:
        method = "kmeans++" if landmarks.method in choosing.BY_KERNEL else landmarks.method
        rows = choosing.choose(method, embedded, count, rng)
        trial = points[rows[:TRIAL_LANDMARKS]]
    else:
        trial = source.preparation(given)[:TRIAL_LANDMARKS]
    search = _Search(pilot, families, trial, median, wanted)
    found: dict[Setting, _Found] = {}
    edge = ""
    if pilot.rows >= LEAST_ROWS:
        found, edge = search.run()
    if found:
        order = sorted(found, key=lambda s: found[s].error)
        setting = order[0]
        logger.info("chosen among %d candidates: %s", len(order), search.kernel(setting))
    else:
        order, setting = [], Setting(len(families) - 1, PLAIN)
        logger.info("nothing was compared (%d rows are too few): %s", pilot.rows, search.kernel(setting))
    kernel = search.kernel(setting)
    if given is None:
        if landmarks.method in choosing.BY_KERNEL:
            rows = rows_by(landmarks.method, points, count, kernel, rng)
        given = np.asarray(pilot.raw["x"][rows])
    chosen = {"basis": replace(landmarks, kernel=kernel, points=given, count=len(given))}
    table = tuple(
        Candidate(
            str(search.kernel(s)),
            s.factor,
            found[s].alpha,
            found[s].explained,
            found[s].errors,
            pilot.folds,
            "" if place else "best",
        )
        for place, s in enumerate(order)
    )
    return Selection(table, chosen, pilot.rows, median, edge)


def _advise_units(pilot: Pilot) -> None:
    """Warn where one scale cannot serve all columns."""
    spread = pilot.points("x").std(axis=0)
    varied = spread[spread > 0]
    if len(varied) and varied.max() > UNLIKE * varied.min():
        warn_user(
            f"the standard deviations of the columns go from {varied.min():.3g} to {varied.max():.3g}, and a kernel of "
            "one scale hardly sees the columns of small ones: Rows(X, standardize=True) brings them to one",
            FitWarning,
        )


def families_of(operator: Regression, periods: Periods | None) -> tuple[Kernel, ...]:
    """A rough and a smooth kernel, their scales open; the rough one has two derivatives more for gradients."""
    found = Matern(2.5 if operator.gradients else 1.5, "auto"), Gaussian("auto")
    return tuple(periodic(kernel, periods, "periods= asks for") for kernel in found)


@dataclass(frozen=True, eq=False)
class _Search:
    """Kernels at `points` (p, d), whose scales are tried in units of the `median` distance."""

    pilot: Pilot
    families: tuple[Kernel, ...]
    points: Array
    median: float
    wanted: OpenRegression

    def kernel(self, setting: Setting) -> Kernel:
        return self.families[setting.family].resolve(setting.factor * self.median, "auto")

    def run(self) -> tuple[dict[Setting, _Found], str]:
        """What was tried; and `edge_of` its scales."""
        found: dict[Setting, _Found] = {}

        def best_of(family: int, factors: list[float]) -> float:
            new = [Setting(family, f) for f in factors]
            judged = in_threads(self._judge, new)
            found.update({s: f for s, f in zip(new, judged, strict=True) if f is not None})
            own = (s for s in found if s.family == family)
            return min(own, key=lambda s: found[s].error, default=Setting(family, PLAIN)).factor

        tried = [climb(FACTORS, partial(best_of, k), LARGEST_FACTOR) for k in range(len(self.families))]
        if not found:
            return found, ""
        best = min(found, key=lambda s: found[s].error)
        edge = edge_of(tried[best.family], best.factor)
        best_of(best.family, [f for f in (best.factor * step for step in NEAR) if f <= LARGEST_FACTOR])
        return found, edge

    def _judge(self, setting: Setting) -> _Found | None:
        """The setting at its best penalty; None where the rows cannot be left out by fold."""
        pilot, wanted = self.pilot, self.wanted
        basis = LandmarkBasis(self.kernel(setting), self.points)
        trial = pilot.trial(basis, None, np.zeros(pilot.rows, dtype=bool), wanted.dtype)
        problem = ridge_problem(trial.moments, wanted.gradient_weight)
        curve = problem.curve(wanted.alpha, wanted.cut)
        if curve.errors is None:
            return None
        totals = curve.errors.sum(axis=1)
        place = int(np.argmin(totals))
        return _Found(curve.errors[place], best_penalty(curve.alphas, totals), problem.explained(float(totals[place])))
