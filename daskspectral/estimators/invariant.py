"""InvariantRegressor: regression that is exactly invariant under a group, from its generators alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.data.source import Preparation, Source, open_source
from daskspectral.engine.checkpoint import Checkpoint
from daskspectral.errors import renumbered
from daskspectral.estimators.common import check_head
from daskspectral.estimators.functions import Eigenfunctions
from daskspectral.estimators.measuring import Store, open_checkpoint, run_identity
from daskspectral.estimators.parameters import (
    check_amount,
    check_number,
    check_one_of,
    check_whole,
    params_from_state,
    params_state,
)
from daskspectral.estimators.regressing import checked_targets, measure_regression, shaped
from daskspectral.estimators.rows import apply_rows
from daskspectral.estimators.saved import Saved
from daskspectral.groups import Group
from daskspectral.manifolds import Manifold
from daskspectral.moments import Moments
from daskspectral.operators.regression import Regression
from daskspectral.solve import solve_ridge
from daskspectral.solve.ridge import Observed
from daskspectral.store import moments_from_state, moments_state

Array = NDArray[np.floating[Any]]
MOST = 1000  # eigenfunctions of "least_squares", unless told
TOLERANCE = 1e-5  # of points off the manifold
CUT = 1e-13  # of directions of the Gram matrix: harmonics of n points are well conditioned, or not determined at all
SOLUTION = ("levels_", "alpha_", "gcv_", "gcv_curve_")


class InvariantRegressor(Saved, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression on a manifold among the functions that a group leaves as they are (Soleymani and others 2025).

    f = sum_lambda sum_j c_(lambda, j) u_(lambda, j), over the invariant functions u of whole eigenspaces of the
    Laplace-Beltrami operator, found from the group's generators: |f(g x) - f(x)| is rounding for every g, and a group
    of 10^18 elements costs no more than its two generators. One pass sums their products with y and each other.

    Parameters
    ----------
    manifold : Manifold
        Where the points lie, such as Sphere(3); its `sample` is the density that "projection" assumes.
    group : Group, optional
        Given by generators, such as Permutations(3); None: no invariance.
    smoothness : float
        s, above half the manifold's dimension: the Sobolev norm has the weights D_lambda^alpha,
        alpha = 2 s / dimension, with D_lambda the number of eigenfunctions with an eigenvalue up to lambda.
    n_eigenfunctions : int, optional
        D: as many whole levels as have at most D eigenfunctions, invariant or not. By default n^(1 / (1 + alpha)) for
        "projection"; for "least_squares" 1000, and without a group at most n / 2, of which cross-validation chooses.
    solver : {"projection", "least_squares"}
        Means of y u (Algorithm 1), or ridge least squares with the Sobolev norm as its penalty. Where the data
        determine the functions its relative error ends at the rounding of the sums, 1e-6 (squared, 1e-12).
    alpha : float, optional
        Weight of the penalty of "least_squares"; by default, with D, of least generalised cross-validation, which
        counts rows, whatever their weight.

    Attributes
    ----------
    coef_ : tuple of arrays (m,), or (m, k) for k targets, one an eigenspace: coefficients of all its eigenfunctions
    invariant_dimensions_ : (levels,), how many invariant functions each eigenspace has
    n_eigenfunctions_ : int, D of the levels used
    alpha_, gcv_ : of "least_squares", the penalty and its cross-validation; gcv_curve_ (levels, 3): D, penalty, score
    moments_, basis_, n_features_in_
    """

    kind = "invariant"

    def __init__(
        self,
        manifold: Manifold,
        group: Group | None = None,
        smoothness: float = 2.0,
        n_eigenfunctions: int | None = None,
        solver: str = "projection",
        *,
        alpha: float | None = None,
    ):
        self.manifold = manifold
        self.group = group
        self.smoothness = smoothness
        self.n_eigenfunctions = n_eigenfunctions
        self.solver = solver
        self.alpha = alpha

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Measure the moments of X (n, d) and y, (n,) or (n, k), in one pass on the active dask scheduler, and solve.

        X and y are numpy (also memory-mapped), dask, zarr or xarray arrays, or paths or URLs of zarr arrays.
        `sample_weight` (n,), where the points are not uniform: for "projection", 1 over their density. The other
        options are those of `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for a smoothness of half the dimension or less, D above n, a generator that is
        not an isometry of the manifold, points off it (by more than 1e-5), y of another length; OSError for data that
        are damaged or change meanwhile.
        """
        self._check_parameters(on_invalid)
        source = open_source(X, weight=sample_weight, y=y)
        operator = checked_targets(source)
        most = self._most(source)
        source = source.allowing_missing(allow_missing)
        first = np.asarray(source.readers["x"].read(0, min(1000, source.n)), dtype=float)
        finite = np.flatnonzero(np.isfinite(first).all(axis=1))
        with renumbered(lambda k: finite[k]):
            self.manifold.check(first[finite], tolerance=TOLERANCE)
        store = Store(source, allow_missing=allow_missing)
        identity: dict[str, Any] = {}
        if checkpoint is not None:
            identity = run_identity(store, self._described(), on_invalid)
        saved = open_checkpoint(checkpoint, identity, checkpoint_every)
        if saved is not None:
            basis = InvariantBasis.from_state(saved.constants["basis"])
        else:
            basis = self._basis(most)
            if checkpoint is not None:
                saved = Checkpoint.start(checkpoint, identity, {"basis": basis.state()}, checkpoint_every)
        moments = measure_regression(
            source,
            basis,
            operator,
            dtype="float64",
            on_invalid=on_invalid,
            progress=progress,
            store=store,
            checkpoint=saved,
        )
        return self.fit_moments(replace(moments, head=source.head(source.n)))

    def update(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X and y since they were fitted: only these are read. D stays.

        Raises ValueError where X has no more rows than before.
        """
        check_is_fitted(self)
        before: Moments = self.moments_
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        source = open_source(X, weight=sample_weight, y=y)
        if source.n_features_in != self.n_features_in_:
            raise ValueError(f"X has {source.n_features_in} columns, and the model was fitted on {self.n_features_in_}")
        if source.n <= before.rows:
            raise ValueError(f"X has {source.n} rows, and the model has seen {before.rows}: there is nothing to add")
        source = source.allowing_missing(allow_missing)
        check_head(before, source)
        operator = checked_targets(source)
        if operator != before.operator:
            raise ValueError(f"the data are for {operator}, and the model was fitted on {before.operator}")
        added = measure_regression(
            source,
            before.basis,
            operator,
            dtype="float64",
            on_invalid=on_invalid,
            progress=progress,
            store=Store(source, allow_missing=allow_missing),
            start=before.rows,
        )
        return self.fit_moments(before + replace(added, start=before.rows, head=before.head))

    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, with this solver, penalty and smoothness; no data are touched.

        Raises ValueError where they are not of regression on an invariant basis of this manifold and group, not
        finite, or the weights are all zero.
        """
        self._check_parameters()
        basis, operator = moments.basis, moments.operator
        if not isinstance(operator, Regression) or operator.gradients or not isinstance(basis, InvariantBasis):
            raise ValueError(
                f"these are moments of {operator} with {basis.description}; measure them with InvariantRegressor.fit"
            )
        found, wanted = _moves(basis.group), _moves(self.group)
        same = found.shape == wanted.shape and np.allclose(found, wanted, rtol=0, atol=1e-12)
        if not (same and basis.harmonic.manifold == self.manifold):
            raise ValueError(
                f"these are moments of {basis.group!r} on {basis.harmonic.manifold!r}, and this model has "
                f"{self.group!r} on {self.manifold!r}; measure them again, or give the model their manifold and group"
            )
        if moments.weight <= 0:
            raise ValueError(f"the total sample weight is {moments.weight:g}; some row needs a positive weight")
        values = moments.mean("values")
        if not (np.isfinite(values).all() and np.isfinite(moments.mean("value_squares")).all()):
            raise ValueError("the moments are not finite: the targets overflow; scale them")
        solve = self._projected if self.solver == "projection" else self._least_squares
        found = solve(moments, basis, values)
        coefficients = np.zeros_like(values)
        coefficients[: len(found)] = found
        self._coefficients = coefficients if operator.targets is not None else coefficients[:, :1]
        self._targets = operator.targets
        self.moments_, self.basis_ = moments, basis
        self.n_features_in_ = int(moments.preparation["n_features_in"])
        return self._described_solution()

    def predict(
        self,
        X: Any,
        *,
        out: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Any:
        """f at the rows of X, (n,), or (n, k) for k targets, float64; lazy for dask, zarr and xarray.

        `out`, which gets (n, k) values, and the other options are those of `SpectralDecomposition.transform`. Raises
        ValueError for points off the manifold.
        """
        check_is_fitted(self)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        function = Eigenfunctions(self.basis_, self._coefficients, Preparation(), on_invalid == "skip")
        n = self.n_features_in_
        options: dict[str, Any] = {"out": out, "overwrite": overwrite, "progress": progress}
        found = apply_rows(function, X, n_features=n, coordinates={}, allow_missing=allow_missing, **options)
        shape = () if self._targets is None else (self._targets,)
        return None if out is not None else shaped(found, "prediction", shape, ("target",), {})

    def state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return {
            "params": {"group": self.group is not None, **self._plain()},
            "moments": moments_state(self.moments_),
            "coefficients": self._coefficients,
            "targets": self._targets,
            "solution": {name: getattr(self, name) for name in SOLUTION},
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        moments = moments_from_state(state["moments"])
        basis = moments.basis
        assert isinstance(basis, InvariantBasis)
        params = {k: v for k, v in state["params"].items() if k != "group"}
        group = basis.group if state["params"]["group"] else None
        estimator = cls(basis.harmonic.manifold, group, **params_from_state(params))
        estimator.moments_, estimator.basis_ = moments, basis
        estimator.n_features_in_ = int(moments.preparation["n_features_in"])
        estimator._coefficients, estimator._targets = state["coefficients"], state["targets"]
        for name in SOLUTION:
            setattr(estimator, name, state["solution"][name])
        return estimator._described_solution()

    # -- solving ------------------------------------------------------------------------------------------------------

    @property
    def _exponent(self) -> float:
        """alpha = 2 s / dimension."""
        return 2 * float(self.smoothness) / self.manifold.dimension

    def _projected(self, moments: Moments, basis: InvariantBasis, values: Array) -> Array:
        """Algorithm 1: the means of y u, of the levels with D_lambda <= D."""
        observed = int(moments.arrays["observed"][0])
        most = self.n_eigenfunctions or self._default(observed)
        if most > observed:
            raise ValueError(f"n_eigenfunctions={most} is more than the {observed} rows of positive weight; lower it")
        kept = int(np.count_nonzero(basis.cumulative <= most))
        self.levels_ = basis.harmonic.manifold.levels_within(min(most, basis.harmonic.size))
        self.alpha_: float | None = None
        self.gcv_: float | None = None
        self.gcv_curve_: Array | None = None
        return values[:kept]

    def _least_squares(self, moments: Moments, basis: InvariantBasis, values: Array) -> Array:
        """Ridge least squares over the first levels, their number and the penalty of least cross-validation."""
        gram, squares = moments.mean("gram"), moments.mean("value_squares")
        count, cumulative = int(moments.arrays["observed"][0]), basis.cumulative
        penalty = cumulative.astype(float) ** self._exponent
        ends = [int(np.count_nonzero(cumulative <= total)) for total in np.unique(cumulative)]
        chosen = self.n_eigenfunctions is None and self.alpha is None
        candidates = [ends[i] for i in _spread(len(ends))] if chosen else ends[-1:]
        curve, best = [], None
        for end in candidates:
            if best is not None and end > count:
                break  # more functions than observations say nothing that fewer do not
            part = Observed(gram[:end, :end], values[:end], squares, count)
            fit = solve_ridge([part], np.diag(penalty[:end]), alpha=self.alpha, cut=CUT)
            curve.append((float(cumulative[end - 1]), fit.alpha, fit.score))
            if best is None or fit.score < best.score:
                best = fit
        assert best is not None
        size = len(best.coefficients)
        self.levels_ = basis.harmonic.manifold.levels_within(int(cumulative[size - 1]))
        self.alpha_, self.gcv_, self.gcv_curve_ = best.alpha, best.score, np.array(curve)
        return best.coefficients

    def _described_solution(self) -> Self:
        """What is told of the solution, from its coefficients."""
        basis, levels = self.basis_, int(self.levels_)
        coefficients = self._coefficients if self._targets is not None else self._coefficients[:, 0]
        self.coef_ = basis.by_level(coefficients)[:levels]
        self.invariant_dimensions_ = np.array([u.shape[1] for u in basis.vectors[:levels]])
        self.n_eigenfunctions_ = sum(space.size for space in basis.harmonic.levels[:levels])
        return self

    # -- checks -------------------------------------------------------------------------------------------------------

    def _default(self, n: int) -> int:
        """D of Algorithm 1, n^(1 / (1 + alpha)), rounded down but for rounding."""
        return max(1, int(n ** (1 / (1 + self._exponent)) + 1e-9))

    def _most(self, source: Source) -> int:
        """D of the functions to measure."""
        manifold, n = self.manifold, source.n
        if source.n_features_in != manifold.ambient:
            raise ValueError(
                f"X has {source.n_features_in} columns, and points of {manifold!r} have {manifold.ambient} coordinates"
            )
        most = self.n_eigenfunctions
        if most is not None and most > n:
            raise ValueError(f"n_eigenfunctions={most} is more than the {n} rows of X; lower it")
        if most is not None:
            return most
        if self.solver == "projection":
            return self._default(n)
        return MOST if self.group is not None else max(1, min(n // 2, MOST))  # of many, few are invariant

    def _basis(self, most: int) -> InvariantBasis:
        harmonic = HarmonicBasis(self.manifold, most, tolerance=TOLERANCE)
        return InvariantBasis(harmonic, self.group) if self.group is not None else InvariantBasis.all_of(harmonic)

    def _plain(self) -> dict[str, Any]:
        params = self.get_params(deep=False)
        return params_state({k: v for k, v in params.items() if k not in ("manifold", "group")})

    def _described(self) -> dict[str, Any]:
        names = {"manifold": repr(self.manifold), "group": repr(self.group)}
        return {**self._plain(), **names, "generators": _moves(self.group)}

    def _check_parameters(self, on_invalid: str = "raise") -> None:
        if not isinstance(self.manifold, Manifold):
            raise TypeError(f"manifold must be one of daskspectral.manifolds, such as Sphere(3); got {self.manifold!r}")
        if self.group is not None and not isinstance(self.group, Group):
            raise TypeError(f"group must be one of daskspectral.groups, such as Permutations(3); got {self.group!r}")
        check_number("smoothness", self.smoothness)
        if not self.smoothness > self.manifold.dimension / 2:
            raise ValueError(
                f"smoothness must be above half the dimension of {self.manifold!r}, {self.manifold.dimension / 2:g}: "
                f"only then are Sobolev functions continuous; it is {self.smoothness!r}"
            )
        if self.n_eigenfunctions is not None:
            check_whole("n_eigenfunctions", self.n_eigenfunctions)
        check_one_of("solver", self.solver, ("projection", "least_squares"))
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if self.alpha is not None:
            check_amount("alpha", self.alpha)
        if self.group is not None:
            self.group.check(self.manifold)


def _spread(count: int) -> list[int]:
    """Numbers below `count`: the first ones, then ever fewer, and the last one; not many more than 40."""
    return sorted({min(count - 1, k) for k in range(16)} | set(np.geomspace(1, count, 30).astype(int) - 1))


def _moves(group: Group | None) -> Array:
    """The generators that move something, [A, b] each, (k, d, d + 1)."""
    generators = () if group is None else group.generators
    return np.array([np.column_stack([g.matrix, g.shift]) for g in generators if not g.trivial])
