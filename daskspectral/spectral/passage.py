"""Metastable sets, committors and mean first passage times, from trajectories or a generator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from daskspectral.basis import Boundary, NormalizedRBF
from daskspectral.basis.dirichlet import vanishing_in
from daskspectral.data.integrity import Manifest
from daskspectral.data.source import Source, check_widths, lag_in_rows, open_data
from daskspectral.data.stopped import open_stopped
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.memory import chosen_device
from daskspectral.engine.sampling import draw_rows, take_rows
from daskspectral.errors import ReliabilityWarning, warn_user
from daskspectral.estimators.evaluator import ModelFunctions
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.moments import Moments
from daskspectral.moments.intervals import jackknife_ends
from daskspectral.moments.lags import LagMatrices
from daskspectral.operators import Operator
from daskspectral.operators.base import derivative_orders
from daskspectral.operators.lags import lag_of
from daskspectral.operators.paired import of_trajectories, scoring_operator
from daskspectral.operators.stopped import Stopped
from daskspectral.passes.apply import Extrapolated, Result
from daskspectral.passes.folds import FoldRequest, checked_folds
from daskspectral.passes.functions import SpanFunction, SpanValues
from daskspectral.passes.scale import added
from daskspectral.passes.selection import shortened
from daskspectral.passes.sums import Discretization, measure, plan_sums
from daskspectral.passes.support import nearest_points
from daskspectral.solve import resolve_cut
from daskspectral.solvers import solver_of
from daskspectral.spectral.committors import passage_of_generator, stopped_passage
from daskspectral.spectral.cores import visits_of
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.spectral.metastable import metastable_sets, passage_time_ends, passage_times, rate_ends
from daskspectral.spectral.sets import MetastableSets
from daskspectral.validation import check_integer

Array = NDArray[np.floating[Any]]
PARTS = ["value", "lower", "upper"]
SAMPLED = 5000  # rows on which the excess of a committor is measured
CANDIDATES = 20_000  # rows among which the vertices of memberships are selected
LARGE_EXCESS = 0.1


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FirstPassage(ModelFunctions):
    """First passage of a process to sets: the committor and the mean first passage time.

    Parameters
    ----------
    basis, n_features_in_, preparation_, layout_, columns_, device, model, unit : object
        Basis, preparation of rows, names of columns, device, parameters and unit of time of the fitted model.
    coefficients : ndarray of shape (1 + S, p, 2)
        Committor to b and time until a or b in the `basis`, for all rows and without each of S folds.
    factor : float
        Factor of the jackknife variance.
    both : bool
        Whether there are two sets, and so a committor.
    sets : tuple of str
        Description of the sets: a boundary, the name of a function, or "labels of rows".
    lag : int or None
        Largest number of rows for which each row of a trajectory was followed; None for a generator.
    shares : ndarray of shape (3,) or None
        Shares of the rows outside the sets, in a and in b; None for the sets of a generator.
    excess : float
        99 % quantile of the excess of the committor below 0 or above 1, before it is clipped.

    See Also
    --------
    Koopman : Transfer operator of trajectories.
    MetastableSets : Metastable sets of a process.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> x = dsp.datasets.langevin(20_000, seed=1)
    >>> basis = dsp.basis.Landmarks("gaussian:0.5", 15)
    >>> model = dsp.Koopman(5, reversible=True, n_components=2, basis=basis, random_state=0).fit(x)
    >>> passage = model.first_passage(x, x[:, 0] < -0.8, x[:, 0] > 0.8)
    >>> passage.committor([[0.0]]).shape  # with its interval
    (1, 3)
    """

    dimension_names: ClassVar = {"coefficients": ("solution", "function", "quantity"), "shares": ("place",)}

    coefficients: Array
    factor: float
    both: bool
    sets: tuple[str, ...]
    lag: int | None = None
    shares: Array | None = None
    excess: float = 0.0
    _summary_attributes = ("both", "sets", "lag", "unit", "shares", "excess")

    def _summary_parts(self) -> dict[str, Any]:
        followed = "" if self.lag is None else f", each row followed for at most {self.lag} rows"
        bars = (
            f"jackknife of {len(self.coefficients) - 1} folds"
            if len(self.coefficients) > 1
            else "none, because there are no folds"
        )
        beyond = (
            {"beyond": f"{self.excess:.2g}, 99 % quantile of the excess of committors beyond 0 to 1"}
            if self.both
            else {}
        )
        columns = [["set", *"ab"[: len(self.sets)]], ["defined by", *self.sets]]
        if self.shares is not None:
            columns.insert(1, ["rows", *(f"{share:.1%}" for share in self.shares[1 : 1 + len(self.sets)])])
        return {
            "of": f" of {self.model['estimator']}",
            "verdict": f"first passage to {'a or b' if self.both else 'a'}{followed}",
            "facts": {"times": self.unit, "intervals": bars, **beyond},
            "columns": columns,
        }

    def committor(self, X: Any, **options: Any) -> Any:
        """Return the probability to enter b before a from each row of X, with its 95 % interval, (n, 3).

        Values and ends are clipped to [0, 1]. The committor of a generator is 0 within a and 1 within b; for
        trajectories, sets are labels of rows, and values within them are not meaningful. Options are those of
        `transform`. Raises ValueError if there is one set.
        """
        if not self.both:
            raise ValueError("a committor requires two sets, got one. Call first_passage with a and b")
        return self._interval(0, 1.0, "committor", X, options)

    def passage_time(self, X: Any, **options: Any) -> Any:
        """Return the mean time from each row of X until a or b is entered, with its 95 % interval, (n, 3).

        The unit is rows of a trajectory, or the time of the generator; values and ends are clipped at 0. Options are
        those of `transform`.
        """
        return self._interval(1, np.inf, "passage_time", X, options)

    def _interval(self, which: int, highest: float, name: str, X: Any, options: Any) -> Any:
        function = SpanInterval(self.basis, self.coefficients[:, :, which].T, self.factor, highest)
        return function.at(self, X, name, options)


class Process(SpectralEstimator):
    """Estimator of operators, with metastable sets and first passages if they are those of processes."""

    def first_passage(
        self, X: Any, a: Any, b: Any = None, *, lag: Any = None, sample_weight: Any = None, progress: Any = None
    ) -> FirstPassage:
        """Estimate the committor and the mean first passage time to sets a and b in one pass.

        The solution is in the span of the fitted basis. Without `b`, only the time until a is estimated. Folds are of
        the kind of the fit, or blocks if those were labels.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL or list
            For `Transfer` the trajectory, or a list of several; for `Laplacian`, `AnisotropicDiffusion` and
            `Generator` the rows of the fit, in any order.
        a, b : array of bool, list, callable or Boundary
            Disjoint sets. For `Transfer`, booleans (n,) for the rows, a list of these, or functions that map rows
            (c, d) to c booleans. For generators, boundaries in the prepared columns, such as `BallBoundary(radius,
            center)`, which are positive inside the set; the committor is u / (u + v) plus functions that vanish in
            both sets, for u and v minus the boundaries of a and b.
        lag : int, str or timedelta, optional
            For `Transfer`: rows, or time, for which each row is followed until it enters a set; by default the
            longest lag of the fit. The solution does not depend on it, except for errors of the basis, which
            decrease with the lag (Strahan and others 2021).
        sample_weight : array of shape (n,), optional
            Frequency weights.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        FirstPassage
            The solution, with intervals by a jackknife over folds.

        Raises
        ------
        ValueError
            If sets have common rows or no rows, or the operator is not that of a process.
        TypeError
            If boundaries and labels are confused, or for dask arrays.
        """
        with open_table(self, X, RunContext(progress), sample_weight=sample_weight) as table:
            return self._first_passage(table, a, b, lag)

    def _first_passage(self, table: Table, a: Any, b: Any, lag: Any) -> FirstPassage:
        both, moments = b is not None, self.moments_
        operator: Any = moments.operator
        sets = (a, b) if both else (a,)
        given = {"both": both, "sets": tuple(map(_described, sets))}
        cut = resolve_cut(solver_of(self.solver).rtol, moments.dtype)
        if a is None:
            raise TypeError("a must be a set, got None")
        if self.basis_.domain is not None:
            raise ValueError(
                "first passages require basis=Landmarks(), or TrigonometricBasis for angles, got a FourierBasis"
            )
        rows, found = table.rows, replace(Discretization.of(moments), right_basis=None)
        if of_trajectories(operator):
            lag = max(operator.lags) if lag is None else lag_in_rows(lag_of(lag), rows.data)
            if edges := [s for s in sets if isinstance(s, Boundary)]:
                raise TypeError(
                    f"sets of trajectories must be booleans or functions that return them, got {edges[0]!r}"
                )
            source = open_stopped(rows, lag, (a, b), **table.options())
            check_widths(moments, source)
            functions, factor, shares = stopped_passage(self._measured(source, Stopped(), found), cut, both=both)
            given |= {"coefficients": functions, "factor": factor, "shares": shares, "lag": lag}
            return self._checked(FirstPassage.of(self, self.basis_, **given), source, "outcome")
        if not _is_generator(operator):
            raise ValueError(
                f"expected the generator of a process, got {operator.name}. Fit Transfer, Generator or Laplacian"
            )
        if wrong := [s for s in sets if not isinstance(s, Boundary)]:
            raise TypeError(
                f"sets of a generator must be boundaries, as BallBoundary(radius, center), got {wrong[0]!r}"
            )
        if lag is not None:
            raise ValueError(f"lag must be None for {operator.name}, got {lag!r}")
        for name, one in zip("ab", sets, strict=False):
            if one.dimension not in (None, self.basis_.dimension):
                raise ValueError(
                    f"{name} must have {self.basis_.dimension} columns, as the functions, got {one.dimension}"
                )
        source = open_data(operator, rows, **table.options())
        check_widths(moments, source)
        _check_entered(self._prepared(source), sets)
        found = replace(found, basis=vanishing_in(sets, self.basis_))
        coefficients, factor = passage_of_generator(self._measured(source, operator, found), cut, both=both)
        passage = FirstPassage.of(self, found.basis, coefficients=coefficients, factor=factor, **given)
        return self._checked(passage, source)

    def metastable_sets(self, m: int, X: Any = None) -> MetastableSets:
        """Find m metastable sets by PCCA+ in the constant and the m - 1 slowest functions.

        Parameters
        ----------
        m : int
            Number of sets, at least 2.
        X : array-like, Rows, path, URL or list, optional
            Trajectory, list of trajectories, or rows of a generator. At most 20 000 of them are candidates for the
            vertices of the memberships; without X landmarks or centers of cells are. For trajectories, rates and
            passage times are estimated from visits to the cores of the sets, in one pass.

        Returns
        -------
        MetastableSets
            The sets. A ReliabilityWarning is issued if the data support fewer than m.

        Raises
        ------
        ValueError
            If m is less than 2 or exceeds the number of functions, functions are complex, or the operator is not
            that of a process; before data are read.
        """
        matrices, m = self._propagation(), check_integer("m", m, 2)
        functions = matrices.processes[: m - 1]
        if len(functions) < m - 1:
            have = len(matrices.processes)
            raise ValueError(f"{m} sets require {m - 1} nonconstant functions, got {have}. Increase n_components")
        values = self._values[functions]
        if np.any(np.abs(values.imag) > 1e-9 * np.abs(values)):
            raise ValueError(f"{m} sets require real functions, got the values {np.round(values, 4)}. Use fewer sets")
        timescales, propagators = matrices.timescales()[0][0], matrices.propagators(functions)[:, 0].real
        places = [part.landmarks for part in self.basis_.landmark_parts]
        places += [part.centers for part in self.basis_.parts if isinstance(part, NormalizedRBF)]
        if X is None and not places:
            raise ValueError("the basis has no landmarks. Pass rows X to search for the sets")
        with self._opened(X) as source:
            points = places[:1] * 2 if source is None else _drawn(source)
            values, others = (self._span(functions, np.eye(m)[:, 1:]).of_prepared(x)[0] for x in points)
            lag = matrices.lags[0].item()
            found = metastable_sets(values, others, functions, propagators, timescales, lag, matrices.factor)
            span = self._span(functions, found.weights)
            visits = None if source is None or source.lagged is None else visits_of(source, span)
        if visits is not None and (rates := visits.rates) is not None:
            ends = rate_ends(visits.jumps, visits.rows), passage_time_ends(visits.jumps, visits.rows)
            times = passage_times(rates)
            ends[1][..., 1] = np.maximum(ends[1][..., 1], times)
            found = replace(found, rates=rates, rate_errors=ends[0], passage_times=times, passage_time_errors=ends[1])
        if found.supported < m:
            warn_user(
                f"the data support {found.supported} sets: transitions between {m} are uncertain or invalid. "
                "Use fewer sets, a longer lag or more functions",
                ReliabilityWarning,
            )
        return MetastableSets.of(self, span.basis, coefficients=span.coefficients, means=span.means, **vars(found))

    def _propagation(self) -> LagMatrices:
        """Return the operator between the functions; raise ValueError unless of a reversible generator."""
        moments = self._fitted().moments_
        operator = moments.operator
        if of_trajectories(operator) or not _is_generator(operator) or not operator.form.symmetric:
            raise ValueError(f"expected a reversible generator, got {operator!r}. Fit Koopman to trajectories")
        if "form" not in moments.arrays:
            raise ValueError(
                "metastable sets require basis=Landmarks(), or TrigonometricBasis for angles, got a FourierBasis"
            )
        return LagMatrices.of_generator(moments, self.coefficients_)

    def _checked(self, found: FirstPassage, source: Source, outcome: str | None = None) -> FirstPassage:
        """Return the first passage with the excess of its committor at rows outside the sets."""
        if not found.both:
            return found
        source = self._prepared(source)
        numbers, x = draw_rows(source, SAMPLED, np.random.default_rng(0), description="committor")
        if outcome is not None:
            x = x[take_rows(source, numbers, view=outcome)[1][:, 0] > 0]
        values = SpanValues(found.basis, found.coefficients[0, :, :1]).of_prepared(x)[0][:, 0]
        excess = float(np.quantile(np.maximum(values - 1, -values), 0.99)) if len(values) else 0.0
        if excess > LARGE_EXCESS:
            warn_user(
                f"the committor, a probability, exceeds 0 to 1 by {excess:.2g} for 1 % of the rows, and is clipped. "
                "Use more landmarks, a longer lag or larger sets",
                ReliabilityWarning,
            )
        return replace(found, excess=max(excess, 0.0))

    def _span(self, functions: NDArray[np.int64], weights: Array) -> SpanValues:
        """Return (1, f) A of real functions f with indices (m - 1,) and weights A (m, k)."""
        coefficients, means = self.coefficients_[:, functions].real @ weights[1:], -weights[0]
        if self.moments_.operator.center:
            means = means + self.moments_.mean("first") @ coefficients
        return self._combined(coefficients, means)

    def _combined(self, coefficients: Any, means: Any = None) -> SpanValues:
        """Return combinations of the basis functions, minus their means, as a function of rows."""
        basis, coefficients = self.basis_.condensed(coefficients)
        device = chosen_device(self.device)
        return SpanValues(basis, coefficients, means, device=device, preparation=self.preparation_)

    @contextmanager
    def _opened(self, X: Any) -> Iterator[Source | None]:
        """Return the prepared rows of X, for trajectories those with a future; None without X."""
        if X is None:
            yield None
            return
        with open_table(self, X) as table:
            source = open_data(scoring_operator(self.moments_.operator), table.rows, weight=None)
            check_widths(self.moments_, source)
            yield self._prepared(source)

    def _prepared(self, source: Source) -> Source:
        """Return the rows, scaled as in the fit."""
        return source.with_preparation(mean=self.preparation_.mean, scale=self.preparation_.scale)

    def _measured(self, source: Any, operator: Any, discretization: Discretization) -> Moments:
        asked = checked_folds(self.folds)
        if asked is not None:
            asked = (FoldRequest(blocks=True) if asked.labels is not None else asked).counted(source)
        device = chosen_device(self.device)
        plan = plan_sums(source, operator, discretization.outline, self.moments_.dtype, device=device, folds=asked)
        return measure(source, discretization, operator, plan, snapshot=Manifest(source), description="first passage")


def _described(one: Any) -> str:
    if isinstance(one, Boundary):
        return shortened(repr(one))
    return str(getattr(one, "__name__", "labels of rows"))


def _is_generator(operator: Operator) -> bool:
    return operator.annihilates_constants and operator.views == ("x",) and any(derivative_orders(operator))


def _check_entered(source: Source, sets: Sequence[Boundary]) -> None:
    """Raise ValueError if a set has no row; read all rows only if a sample has none in it."""
    count = partial(_entered, sets)
    found = count({"x": draw_rows(source, SAMPLED, np.random.default_rng(0), description="sets")[1]})["entered"]
    if not found.all():
        found = Run(source, plan_rows(source, 2000.0), None, "sets").reduce(partial(added, count)).sums["entered"]
    if not found.all():
        raise ValueError(f"no row is in {'ab'[np.argmin(found)]}. Pass sets that rows enter and leave")


def _entered(sets: Sequence[Boundary], batch: Mapping[str, Array]) -> dict[str, Any]:
    return {"entered": np.array([np.count_nonzero(one.values(batch["x"]) > 0) for one in sets])}


def _drawn(source: Source) -> list[Array]:
    return [draw_rows(source, CANDIDATES, np.random.default_rng(seed))[1] for seed in (0, 1)]


@final
@dataclass(frozen=True, eq=False)
class SpanInterval(SpanFunction):
    """Function in the span of a basis with the ends of its 95 % interval, (c, 3), by a jackknife.

    Values and ends are clipped to [0, `highest`]; ends are NaN without folds. `coefficients` (p, 1 + S) are for all
    rows and without each of S folds; `factor` is that of the jackknife variance.
    """

    coefficients: Array
    factor: float
    highest: float
    columns = 3
    needed = slice(1)

    def at(self, model: Any, X: Any, name: str, options: Mapping[str, Any]) -> Any:
        function = replace(self, device=chosen_device(model.device), preparation=model.preparation_)
        return model._rows(function, X, output=Result(name, (3,), ("part",), {"part": PARTS}), **options)

    @cached_property
    def _samples(self) -> SpanValues:
        return SpanValues(self.basis, self.coefficients, device=self.device, extrapolate=self.extrapolate)

    def block(self, x: Array, out: Array) -> Extrapolated | None:
        found = np.empty((len(x), self.coefficients.shape[1]))
        extrapolated, parts, boundaries = (
            self._samples.block(x, found),
            self.basis.landmark_parts,
            self.basis.boundaries,
        )
        if extrapolated is None and boundaries and (outside := self._outside(x)) is not None:
            far = outside[0] & (boundaries[0].values(x) > 0)  # values within sets are known
            if parts and far.any() and self.extrapolate == "nearest":
                near = nearest_points(x[far], np.concatenate([b.landmarks for b in parts]), parts[0].kernel)
                found[far] = self._samples.of_prepared(near)[0]
            extrapolated = far, None
        out[:, 0], out[:, 1:] = found[:, 0], jackknife_ends(found.T, self.factor)
        np.clip(out, 0.0, self.highest, out=out)
        return extrapolated
