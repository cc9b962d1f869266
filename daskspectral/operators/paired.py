"""Operators between views of a sample: two modalities, states a lag apart, augmentations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from daskspectral.errors import ParameterError
from daskspectral.forms import Field, Form, Functional, at, form, functional, gram_at, inner
from daskspectral.operators.base import RESERVED, TESTED, DerivedField, Operator, chosen_solver
from daskspectral.operators.lags import lags_of, multiples_of
from daskspectral.solve import NonNormal, NormConstrainedSVD, TwoMetricSVD
from daskspectral.validation import check_flag, check_integer

LATER = 5  # lags after which values of a single lag are tested


def conditional(view: str) -> Form:
    """Return E[f(x) g(y)], the form of the conditional expectation of g(y) given x."""

    @form
    def conditional(f: Any, g: Any, x: Any) -> Any:
        return inner(f, at(g, Field(view)))

    return conditional


def change(view: str) -> Form:
    """Return E[(f(x) - f(y)) (g(x) - g(y))] / 2: <f, (1 - K) g> for a reversible K, exactly 0 for constants."""

    @form
    def change(f: Any, g: Any, x: Any) -> Any:
        return 0.5 * inner(f - at(f, Field(view)), g - at(g, Field(view)))

    return change


@dataclass(frozen=True)
class Cross(Operator):
    """Conditional expectation (L g)(x) = E[g(y) | x] between two views: CLIP, CCA, VAMP.

    Without centering, constants are a pair with singular value 1.

    Parameters
    ----------
    center : bool, default=False
        Whether the means of the functions are subtracted.

    See Also
    --------
    CrossCovariance : Covariances instead of correlations.
    CCA : Estimator of this operator.

    Examples
    --------
    >>> operator = Cross(center=True)
    >>> operator.views, operator.solver
    (('x', 'y'), 'singular')
    """

    center: bool = False
    name = "cross"

    form = conditional("y")

    right_gram = gram_at("y")

    views = ("x", "y")

    right_view = "y"

    own_right_basis = True

    takes_gaps = True

    solver = TwoMetricSVD()

    @property
    def validation_operator(self) -> Operator | None:
        return replace(self, center=True) if self.solver.compares(0) else None


@dataclass(frozen=True)
class CrossCovariance(Cross):
    """Cross-covariance cov(f(X), g(Y)) of two views, relative to the norms of the function spaces (MCA).

    With the default kernel `Linear()` singular values are covariances of projections on unit vectors: maximum
    covariance analysis. The functions that `transform` evaluates have norm 1, not variance 1.

    Parameters
    ----------
    center : bool, default=True
        Whether the means are subtracted; otherwise values are second moments.

    See Also
    --------
    Cross : Correlations instead of covariances.
    Covariance : Covariances within one view (PCA).

    Examples
    --------
    >>> operator = CrossCovariance()
    >>> operator.views, operator.solver
    (('x', 'y'), 'covariance')
    """

    center: bool = True
    name = "cross covariance"

    takes_gaps = False

    solver = NormConstrainedSVD()


@dataclass(frozen=True)
class Transfer(Operator):
    """Transfer (Koopman) operator (K g)(x_t) = E[g(x_{t + lag}) | x_t] of trajectories.

    Left functions are orthonormal in L2 of the starts, right ones of the ends of pairs; with solver="eigen" complex
    eigenvalues descend in modulus; with `reversible=True` they are real, from E |f(x_t) - f(x_{t + lag})|² / 2
    relative to the mean Gram matrix of both ends. Constants have the value 1 unless `center`. Rows with times are
    paired by these; pairs whose distance differs from the lag by more than half a step are dropped. A lag in time must
    be a whole number of steps, to which the fit converts it. Timescales are in rows or time steps.

    Of several lags the first is solved; the same pass sums the others for implied timescales, the Chapman-Kolmogorov
    test and, by twice the lag of reversible processes, residuals. All lags use the starts that are followed by the
    longest; trajectories that are not longer are skipped and counted. A reversible fit with a single lag, not a tuple,
    also sums twice the lag, unless more than a tenth of the pairs are in trajectories too short for it. Values
    of a single lag are tested at five times it, on some batches: they are not reliable if functions decay more slowly
    than they imply, as those of a slow process behind noise do.

    Parameters
    ----------
    lag : int, str, timedelta or a tuple of these, default=1
        Rows, or time such as "6h", numpy.timedelta64(1, "D") or datetime.timedelta(hours=6). Several lags must be
        multiples of the first, which is solved.
    solver : {"singular", "eigen"}, optional
        Values that are computed, by default "singular"; not with `reversible`.
    center : bool, default=False
        Whether the means of the functions are subtracted.
    reversible : bool, default=False
        Whether the process in equilibrium is invariant under time reversal.

    Raises
    ------
    ValueError
        If the lag is not positive, or if lags are not multiples of the first.

    See Also
    --------
    Koopman : Estimator of this operator.
    Generator : Generator of a diffusion process, without a lag.

    Examples
    --------
    >>> import daskspectral as dsp
    >>> import numpy as np
    >>> turn = np.linspace(0, 200 * np.pi, 2001)[:, None]  # a twentieth of a turn between rows
    >>> model = dsp.Koopman(1, method="eigen", basis=dsp.basis.MonomialBasis(2, 1), n_components=3)
    >>> model.fit(np.hstack([np.cos(turn), np.sin(turn)])).eigenvalues_[1:].real.round(3)
    array([0.951, 0.951])
    >>> Transfer((10, 50), reversible=True).multiples
    (1, 2, 5)
    """

    lag: Any = 1
    solver: Any = None
    center: bool = False
    reversible: bool = False
    name = "transfer"

    def __post_init__(self) -> None:
        check_flag("reversible", self.reversible)
        lag = lags_of(self.lag)
        object.__setattr__(self, "lag", lag if self.reversible or not isinstance(lag, tuple) or lag[1:] else lag[0])
        default = "symmetric" if self.reversible else "singular"
        solver = chosen_solver(default if self.solver is None else self.solver, self.form)
        if self.reversible and (solver.two_sided or not solver.needs_symmetry or self.center):
            raise ValueError("reversible=True determines solver and center: omit them")
        object.__setattr__(self, "solver", NonNormal("modulus") if isinstance(solver, NonNormal) else solver)

    @property
    def form(self) -> Form:
        return self._form_at("future")

    @property
    def gram(self) -> Form:
        return both_ends if self.reversible else gram_at("x")

    @property
    def right_gram(self) -> Form | None:
        return gram_at("future") if self.solver.two_sided else None

    @property
    def multiples(self) -> tuple[int, ...]:
        """Measured lags as multiples of the first, ascending from 1."""
        given = multiples_of(self._given)
        tested = self.reversible and self.lag != (self.first_lag,)
        return tuple(sorted({*given, 2} if tested else given))

    @property
    def first_lag(self) -> int | str:
        """Lag that is solved."""
        return self._given[0]

    @property
    def _given(self) -> tuple[int | str, ...]:
        return self.lag if isinstance(self.lag, tuple) else (self.lag,)

    @property
    def lags(self) -> tuple[int, ...]:
        """Measured lags in rows."""
        lag = self.first_lag
        if isinstance(lag, str):
            raise ValueError(f"the lag {lag!r} is in time: fit the operator to convert it to rows")
        return tuple(m * lag for m in self.multiples)

    @property
    def without_optional_lags(self) -> Operator | None:
        """Operator without the optional lags, which require long trajectories, or None."""
        return replace(self, lag=(self.lag,)) if self.reversible and self.lag != self._given else None

    def in_rows(self, first: int) -> Transfer:
        """Return the operator with lags in rows, the first of which is `first`."""
        lags = tuple(m * first for m in multiples_of(self._given))
        return replace(self, lag=lags if self.lag == self._given else first)

    @property
    def shifts(self) -> dict[str, int]:
        """Rows from `x` to each other view of a trajectory."""
        shifts = dict(zip(self.views[1:], self.lags, strict=True))
        return {**shifts, "later": LATER * self.lags[0]} if self._tests_later else shifts

    @property
    def views(self) -> tuple[str, ...]:
        return ("x", "future", *(f"future_{m}" for m in self.multiples[1:]))

    def is_compatible_with(self, measured: Operator) -> bool:
        if not isinstance(measured, Transfer):
            return False
        first = measured.first_lag
        converted = self.in_rows(first) if isinstance(self.first_lag, str) and isinstance(first, int) else self
        return measured in (converted, converted.without_optional_lags)

    @property
    def forms(self) -> dict[str, Form]:
        ends = {} if self.solver.two_sided else {"future_gram": gram_at("future")}
        if self.reversible:
            ends = {"followed": followed, "end_gram": gram_at("future")}
        if self._tests_later:
            ends["later"] = later
        return super().forms | ends | {f"form_{m}": self._form_at(f"future_{m}") for m in self.multiples[1:]}

    right_view = "future"

    @property
    def _tests_later(self) -> bool:
        """Whether values of a single lag are tested at a longer one within each batch."""
        return not (self._given[1:] or (self.solver.two_sided and self.center))

    @property
    def derived(self) -> Mapping[str, DerivedField]:
        if not (self.reversible or self._tests_later):
            return {}
        return {"later": DerivedField(("x",)), "follows": DerivedField(("x",)), TESTED: DerivedField()}

    def prepared(self, fields: Mapping[str, Any], scale: Any, columns: Any) -> Mapping[str, Any]:
        if not self._tests_later or "future" not in fields:
            return fields
        x, future, lag = fields["x"], fields["future"], self.lags[0]
        count = max(len(x) - (LATER - 1) * lag, 0)
        follows, meets = np.zeros(len(x)), (x[lag:] == future[:-lag]).all(axis=1)  # an end of a pair starts another
        follows[:count] = np.all([meets[i * lag : i * lag + count] for i in range(LATER - 1)], axis=0)
        follows *= fields[TESTED]
        return {**fields, "later": np.concatenate([future[len(x) - count :], future[count:]]), "follows": follows}

    def statistics(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        found = super().statistics(fields)
        for name in ("follows", TESTED):
            if name in fields:
                found[name] = np.array([np.sum(fields[name] * fields.get("weight", 1.0))])
        return found

    def reported_values(self, values: Any) -> Any:
        return 1 - values if self.reversible else values

    @property
    def validation_operator(self) -> Operator:
        return Transfer(self.first_lag, center=True)  # the constant is exact, and few rows would perturb its norm

    def _form_at(self, view: str) -> Form:
        return change(view) if self.reversible else conditional(view)


def of_trajectories(operator: Operator) -> TypeGuard[Transfer]:
    """Return whether the operator relates rows of trajectories at a lag."""
    return isinstance(operator, Transfer)


def scoring_operator(operator: Operator) -> Operator:
    """Return the operator that scores functions on new rows."""
    return Transfer(operator.first_lag, center=operator.center) if of_trajectories(operator) else operator


@form
def both_ends(f: Any, g: Any, x: Any) -> Any:
    """Return the mean inner product of the starts and of the ends of pairs of rows."""
    return 0.5 * inner(f, g) + 0.5 * inner(at(f, x.future), at(g, x.future))


@form
def followed(f: Any, g: Any, x: Any) -> Any:
    """Return E[f(x) g(y)] over the tested pairs, symmetric in equilibrium."""
    return inner(f, at(g, x.future), weight=x.tested)


@form
def later(f: Any, g: Any, x: Any) -> Any:
    """Return E[f(x) g(z)] over the tested pairs that start `LATER` consecutive ones, which end in z."""
    return inner(f, at(g, x.later), weight=x.follows)


@dataclass(frozen=True, init=False)
class Augmentation(Operator):
    """Mean squared difference E |f(xi) - f(xi')|² between augmented versions of a row (equation (20)).

    Parameters
    ----------
    views : int or sequence of str, default=2
        Number of versions of each row, or their names (x, x1, ...). `fit((x, x1, ...))` requires an array (n, d) for
        each.

    See Also
    --------
    TangentPropagation : Its limit for infinitesimal changes.
    Cross : Conditional expectation between two views.

    Examples
    --------
    >>> Augmentation(3).views
    ('x', 'x1', 'x2')
    """

    views: tuple[str, ...] = ("x", "x1")
    name = "augmentation"

    def __init__(self, views: int | Sequence[str] = 2):
        if isinstance(views, (str, int, float)):
            names: tuple[str, ...] = ("x", *(f"x{k}" for k in range(1, check_integer("views", views, 2))))
        else:
            names = tuple(views)
        if len(names) < 2 or names[0] != "x" or len({*names} - RESERVED) < len(names):
            expected = f"two or more distinct names, the first 'x', none of them {' or '.join(sorted(RESERVED))}"
            raise ParameterError("views", expected, names)
        object.__setattr__(self, "views", names)

    @property
    def form(self) -> Form:
        m = len(self.views)

        @form
        def augmentation(f: Any, g: Any, x: Any) -> Any:
            # orthonormal contrasts: a mean over pairs from m - 1 symmetric products, exactly 0 for constants
            def contrast(function: Any, k: int) -> Any:
                seen = [at(function, Field(v)) for v in self.views]
                return sum(seen[:k], start=-k * seen[k])

            return sum(2 / ((m - 1) * k * (k + 1)) * inner(contrast(f, k), contrast(g, k)) for k in range(1, m))

        return augmentation

    @property
    def gram(self) -> Form:
        @form
        def gram(f: Any, g: Any, x: Any) -> Any:
            parts = sum(inner(at(f, Field(v)), at(g, Field(v))) for v in self.views)
            return 1 / len(self.views) * parts

        return gram

    has_patterns = False  # a row is several points

    @property
    def functionals(self) -> dict[str, Functional]:
        @functional
        def first_moment(f: Any, x: Any) -> Any:
            return 1 / len(self.views) * sum(inner(at(f, Field(v)), 1.0) for v in self.views)

        return {"first": first_moment}
