"""Committors and mean first passage times between sets, by trajectories at a lag or by a generator."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Boundary
from daskspectral.basis.outside import outside_of
from daskspectral.data.integrity import Snapshot
from daskspectral.data.source import Source, lag_in_rows, open_data
from daskspectral.data.stopped import open_stopped
from daskspectral.engine.memory import chosen_device
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import TrustWarning, warn_user
from daskspectral.estimators.base import MeasuredEstimator
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.moments import Moments
from daskspectral.moments.intervals import jackknife_ends
from daskspectral.operators.lags import lag_of
from daskspectral.operators.stopped import Stopped
from daskspectral.passes.apply import Result
from daskspectral.passes.folds import FoldRequest, checked_folds
from daskspectral.passes.functions import SpanFunction, SpanValues
from daskspectral.passes.sums import Discretisation, measure, plan_sums
from daskspectral.solve import resolve_cut
from daskspectral.solvers import solving
from daskspectral.spectral.committors import FirstPassage, passage_of_generator, stopped_passage

Array = NDArray[np.floating[Any]]
PARTS = ["value", "lower", "upper"]
SAMPLED = 5000  # rows, on which the excess of a committor is measured
LARGE_EXCESS = 0.1


class Passages(Transformer, MeasuredEstimator):
    """The part of a spectral decomposition that asks where a process goes first, and when."""

    passage_: FirstPassage

    def first_passage(
        self, X: Any, a: Any, b: Any = None, *, lag: Any = None, sample_weight: Any = None, progress: Any = None
    ) -> FirstPassage:
        """Measure when the process enters a or b, and with which chance b first, by one pass; kept as `passage_`.

        `committor` and `passage_time` evaluate both. Functions are those of the fit's basis, all of them.

        - Of `Transfer`, X is the trajectory, or a list of several, and `a` and `b` are booleans (n,) for its rows, a
          list of these, or functions that take rows (c, d) and give c booleans. Each row is followed for `lag` rows, by
          default the longest lag of the fit, or until it enters a set, so that any lag gives the same functions, but
          for what the basis cannot resolve, which longer lags lessen (Strahan and others 2021).
        - Of `Laplacian`, `AnisotropicDiffusion` and `Generator`, rows need no order; X are those of the fit, and `a`
          and `b` are boundaries in the prepared columns, such as `BallBoundary(radius, center)`, each the domain in
          which it is positive. The committor is the guess u / (u + v) plus functions that vanish in both sets, for u
          and v minus the boundaries of a and b.

        Without `b` there is the time until a alone. Folds are of the fit's kind, blocks where they were labels. Raises
        ValueError for sets that share rows, for a set without rows, and for other operators; TypeError for labels or
        edges where the other is wanted, and for dask arrays.
        """
        with open_table(self, X, RunContext(progress), sample_weight=sample_weight) as table:
            return self._first_passage(table, a, b, lag)

    def _first_passage(self, table: Table, a: Any, b: Any, lag: Any) -> FirstPassage:
        model, both = cast(Any, self), b is not None
        operator, sets = self.moments_.operator, (a, b) if both else (a,)
        cut = resolve_cut(solving(model.solver).rtol, self.moments_.dtype)
        if self.basis_.domain is not None:
            raise ValueError("first passages take basis=Landmarks(), or TrigonometricBasis for angles, not a lattice")
        rows, found = table.rows, replace(Discretisation.of(self.moments_), right_basis=None)
        if operator.lag is not None:
            lag = max(model.lags_) if lag is None else lag_in_rows(lag_of(lag), rows.data)
            if edges := [s for s in sets if isinstance(s, Boundary)]:
                raise TypeError(f"sets of trajectories are booleans, or functions that give them, got {edges[0]!r}")
            source = open_stopped(rows, lag, (a, b), **table.options)
            moments = self._measured(source, Stopped(), found)
            return self._kept(stopped_passage(moments, cut, both=both), source, "outcome")
        if not operator.annihilates_constants or operator.views != ("x",) or operator.solver.by_norm:
            raise ValueError(f"{operator.name} is no generator of a process: fit Transfer, Generator or Laplacian")
        if wrong := [s for s in sets if not isinstance(s, Boundary)]:
            raise TypeError(f"sets of a generator are boundaries, as BallBoundary(radius, center), got {wrong[0]!r}")
        if lag is not None:
            raise ValueError(f"{operator.name} has no lag: leave it out")
        source = open_data(operator, rows, **table.options)
        found = replace(found, basis=outside_of(sets, self.basis_))
        return self._kept(passage_of_generator(self._measured(source, operator, found), cut, both=both), source)

    def committor(self, X: Any, **options: Any) -> Any:
        """The chance of entering b before a, from each row of X, (n, 3): with the ends of its 95 % interval.

        Values and ends below 0 or above 1 are cut off; `passage_.excess` is by how much values exceed them. Of the last
        `first_passage`. Within a it is 0 and within b 1 where a generator knows the sets; sets of a trajectory are
        labels of its rows, and what comes for rows within them means nothing. Options as in `transform`. Raises
        ValueError where none was measured between two sets.
        """
        if not self._known_passage().both:
            raise ValueError("a committor is between two sets, and the first passage was to one: give a and b")
        return self._passage(0, X, "committor", options)

    def passage_time(self, X: Any, **options: Any) -> Any:
        """The mean time until a or b is entered, from each row of X, (n, 3): with the ends of its 95 % interval.

        In rows of a trajectory, or in the time of the generator; values and ends are cut off at 0. As `committor`.
        """
        return self._passage(1, X, "passage_time", options)

    def _kept(self, found: FirstPassage, source: Source, outcome: str | None = None) -> FirstPassage:
        """Keep a first passage, with the excess of its committor on rows of the source that are in neither set."""
        self.passage_ = found
        if not found.both:
            return found
        source = source.with_preparation(mean=self.preparation_.mean, scale=self.preparation_.scale)
        numbers, x = draw_rows(source, SAMPLED, np.random.default_rng(0), description="committor")
        if outcome is not None:
            x = x[take_rows(source, numbers, view=outcome)[1][:, 0] > 0]
        basis = self.basis_ if found.basis is None else found.basis
        values = SpanValues(basis, found.coefficients[0, :, :1]).of_prepared(x)[0][:, 0]
        excess = float(np.quantile(np.maximum(values - 1, -values), 0.99)) if len(values) else 0.0
        self.passage_ = replace(found, excess=max(excess, 0.0))
        if excess > LARGE_EXCESS:
            warn_user(
                f"the committor is a chance, and exceeds 0 to 1 by {excess:.2g} for one of 100 rows, which is cut off. "
                "Use more landmarks, a longer lag or larger sets",
                TrustWarning,
            )
        return self.passage_

    def _known_passage(self) -> FirstPassage:
        if not hasattr(self, "passage_"):
            raise ValueError("no first passage was measured yet: call first_passage(X, a, b) first")
        return self.passage_

    def _passage(self, which: int, X: Any, name: str, options: Any) -> Any:
        known, device = self._known_passage(), chosen_device(self.device)
        basis = self.basis_ if known.basis is None else known.basis
        coefficients, highest = known.coefficients[:, :, which].T, (1.0, np.inf)[which]
        function = SpanInterval(
            basis, coefficients, known.factor, highest, device=device, preparation=self.preparation_
        )
        output = Result(name, (3,), ("part",), {"part": PARTS})
        return self._rows(function, X, output=output, **options)

    def _measured(self, source: Any, operator: Any, discretisation: Discretisation) -> Moments:
        asked = checked_folds(cast(Any, self).folds)
        if asked is not None:
            asked = (FoldRequest(blocks=True) if asked.labels is not None else asked).counted(source)
        device = chosen_device(self.device)
        plan = plan_sums(source, operator, discretisation.outline, self.moments_.dtype, device=device, folds=asked)
        return measure(source, discretisation, operator, plan, snapshot=Snapshot(source), description="first passage")


@final
@dataclass(frozen=True, eq=False)
class SpanInterval(SpanFunction):
    """A function in the span of a basis with the ends of its 95 % interval, (c, 3), by a jackknife.

    The function and its interval, which holds it, are cut off below 0 and above `highest`.
    `coefficients` (p, 1 + S) are those of all rows, and without each of S folds, whose variance has the `factor`.
    """

    coefficients: Array
    factor: float
    highest: float
    columns = 3

    @cached_property
    def _samples(self) -> SpanValues:
        return SpanValues(self.basis, self.coefficients, device=self.device)

    def block(self, x: Array, out: Array) -> None:
        found = np.empty((len(x), self.coefficients.shape[1]))
        self._samples.block(x, found)
        out[:, 0], out[:, 1:] = found[:, 0], jackknife_ends(found.T, self.factor)
        np.clip(out, 0.0, self.highest, out=out)
