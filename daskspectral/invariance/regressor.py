"""Regression that is exactly invariant under a group, from its generators alone."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import EquivariantBasis, InvariantBasis
from daskspectral.data.source import Source, open_regression
from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.regressor import Regressor
from daskspectral.estimators.summary import explained, row_facts
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.groups import Group
from daskspectral.invariance.intervals import advise_appended
from daskspectral.invariance.levels import InvariantSolver
from daskspectral.invariance.measuring import InvariantSpace
from daskspectral.invariance.problem import Uniformity, fit_invariant
from daskspectral.manifolds import Manifold
from daskspectral.moments import Moments
from daskspectral.moments.counting import counted_rows
from daskspectral.operators.regression import Regression
from daskspectral.passes.apply import Result
from daskspectral.passes.folds import FoldRequest, checked_folds
from daskspectral.passes.functions import EquivariantValues, SpanLeverage, SpanValues
from daskspectral.passes.parameters import sobolev_order
from daskspectral.passes.scale import with_target_scale
from daskspectral.passes.session import Session
from daskspectral.passes.sums import Discretization
from daskspectral.passes.support import Coverage, Support

Array = NDArray[np.floating[Any]]


class InvariantRegressor(Regressor):
    """Regression on a manifold by invariant functions of a group (Soleymani and others 2025).

    f = Σ_λ Σ_j c_(λ, j) u_(λ, j), over the invariant functions u of whole eigenspaces of the Laplace-Beltrami
    operator, computed from the group's generators: |f(g x) - f(x)| is rounding for every g, also for a group of 10^18
    elements.

    Parameters
    ----------
    manifold : Manifold, optional
        Manifold of the points, such as Sphere(3). None: the product of intervals over the columns' ranges, scaled to
        equal lengths and cut off before far outliers, with a warning; new rows beyond have the values at the ends,
        and are counted in a warning. With more than about 8 columns, polynomials have a low degree or no products,
        with a warning.
    group : Group, optional
        Group of isometries, such as Permutations(3) or SpecialOrthogonal(3); by default none.
    smoothness : float, optional
        Order s of the Sobolev norm, more than half the dimension of the manifold; by default 2, or dimension / 2 + 1
        if 2 is too small. Its weights are D_λ^alpha, alpha = 2 s / dimension, D_λ the number of eigenfunctions with
        an eigenvalue up to λ.
    n_eigenfunctions : int, optional
        Largest number D of eigenfunctions, invariant or not; whole levels are used. By default "least_squares"
        selects D by cross-validation, from levels of up to 1000 eigenfunctions, or 100 invariant ones if these are
        more and cheap; at most half as many invariant functions as rows (with gradients, as values and gradient
        components), but at least the first that are not constant. "projection" uses n^(1 / (1 + alpha)).
    solver : {"least_squares", "projection"}
        Ridge least squares with the Sobolev norm, to a relative error of 1e-6 if the data determine f; or, for
        uniform points, the projection: means of y u (Algorithm 1, with y about its mean).
    output : str, Representation or array (q, k, k), optional
        How the k components of y change with the group, f(g x) = ρ(g) f(x): "vector", a representation of
        `daskspectral.groups`, or the orthogonal matrices ρ(g) of the group's generators; None: invariant. By default
        levels then have at most 1500 eigenfunctions, equivariant functions are at most 1000 and half as many as
        values in y.
    alpha : float, optional
        Weight of the penalty, not of constants. By default selected with D by the validation error, or without folds
        by generalized cross-validation, which depends only on the mean leverage: keep the folds if rows are not
        uniform.
    gradient_weight : float
        Weight of a gradient against a value, 0 or more.
    folds : int, array (n,), "blocks", "random" or None
        Folds of the cross-validation; as in `SpectralDecomposition`.

    Attributes
    ----------
    coef_ : tuple of ndarray, each of shape (m,) or (m, k)
        Coefficients of all m eigenfunctions of each eigenspace, for k targets or components; of its invariant
        functions if the eigenspace was not constructed (`InvariantBasis`).
    invariant_dimensions_ : ndarray of shape (levels,)
        Number of invariant functions of each eigenspace.
    n_eigenfunctions_ : int
        D of the levels used.
    manifold_ : Manifold
        The manifold; an `Interval` with the ranges if none was passed.
    smoothness_ : float
        Order s of the Sobolev norm.
    alpha_, gcv_ : float
        Penalty and its generalized cross-validation score, with "least_squares".
    gcv_curve_ : ndarray of shape (levels, 3)
        D, the best penalty, and its validation error, or its score without folds.
    cv_ : float or None
        Mean squared validation error, summed over the targets, with gradients plus gradient_weight times their error;
        D and the penalty are chosen on the same folds. None without folds.
    cv_score_ : float or None
        Validation R² of the values about their mean, or of values and gradients; None without folds.
    cv_score_error_ : float or None
        Standard error of cv_score_, from its spread over the folds; None without folds.
    uniformity_ : Uniformity or None
        Deviation of the (weighted) rows from uniformity on the manifold; None with an output.
    moments_, basis_, n_features_in_, feature_names_in_
        As in `SpectralDecomposition`; the last only if columns have names.

    See Also
    --------
    InvariantFeatures : Invariant functions as features of another estimator.

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> sphere, group = dsp.manifolds.Sphere(3), dsp.groups.Permutations(3)
    >>> x = sphere.sample(500, np.random.default_rng(0))
    >>> f = dsp.InvariantRegressor(sphere, group, n_eigenfunctions=50).fit(x, x.prod(axis=1))
    >>> f.invariant_dimensions_  # of the harmonics of degree 0, 1, 2, 3, ...
    array([1, 1, 1, 2, 2, 2, 3])
    >>> bool(np.allclose(f.predict(x), x.prod(axis=1), atol=1e-4))
    True
    >>> bool(np.allclose(f.predict(x[:, ::-1]), f.predict(x), atol=1e-12))  # a permutation does not change f
    True
    """

    _fitted_attributes = (
        *("moments_", "levels_", "alpha_", "gcv_", "gcv_curve_", "cv_", "cv_score_", "cv_score_error_"),
        *("_coefficients", "_targets"),
    )

    def __init__(
        self,
        manifold: Manifold | None = None,
        group: Group | None = None,
        smoothness: float | None = None,
        n_eigenfunctions: int | None = None,
        solver: str = "least_squares",
        *,
        output: Any = None,
        alpha: float | None = None,
        gradient_weight: float = 1.0,
        folds: Any = 10,
    ):
        self.manifold = manifold
        self.group = group
        self.smoothness = smoothness
        self.n_eigenfunctions = n_eigenfunctions
        self.solver = solver
        self.output = output
        self.alpha = alpha
        self.gradient_weight = gradient_weight
        self.folds = folds

    def fit(
        self,
        X: Any,
        y: Any,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Fit the model to X, y and gradients in one pass on the active Dask scheduler.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Points, in the containers of `SpectralDecomposition.fit`, as y and gradients.
        y : array of shape (n,) or (n, k), or None
            Values. None fits gradients only, such as forces; the potential f then has mean 0.
        gradients : array of shape (n, d) or (n, k, d), optional
            Derivatives of y with respect to the columns of X; parts along the normals of an embedded manifold are
            dropped.
        sample_weight : array of shape (n,), optional
            Frequency weights: 2 counts the row twice (exactly only without folds and for up to 3000 rows).
        checkpoint, checkpoint_every, progress : optional
            As in `SpectralDecomposition.fit`.

        Returns
        -------
        InvariantRegressor
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            If smoothness is half the dimension or less, there are more functions than rows, a generator is not an
            isometry of the manifold, points are off it (by more than 1e-5, beyond an interval of its width), shapes
            differ, or solver="projection" has gradients.
        OSError
            If data are damaged or change during the pass.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        given = {"y": y, "gradients": gradients, "sample_weight": sample_weight}
        with open_table(self, X, context, fits=True, **given) as table:
            return self._fit_session(self._session(table), context)

    def _session(self, table: Table) -> Session:
        self._space.check()
        self._check_whole(table.rows)
        folds, gradients = checked_folds(self.folds), table.gradients
        options = {"slopes": gradients is not None, **table.options(folds)}
        source, operator = open_regression(table.rows, table.y, gradients=gradients, **options)
        if self.manifold is None:
            self._check_several(source)
        if operator.gradients:
            operator = replace(operator, manifold=self.manifold)
        self._space.check_columns(source)
        self._space.check_targets(operator)
        self._space.check_first(source)
        operator = with_target_scale(operator, source, shifted=self.output is None)

        def choose(source: Source, *_: Any) -> Discretization:
            levels = self._space.levels(source, operator.numbers(float(self.gradient_weight)))
            measured = replace(operator, manifold=levels.manifold) if operator.gradients else operator
            basis = self._space.selected_basis(levels, source)
            return Discretization(basis, source.preparation, operator=None if measured == operator else measured)

        return Session(source, operator, choose, self.dtype, chosen_device(self.device), folds)

    def _update_source(self, source: Source, folds: FoldRequest | None) -> Self:
        rows = self.moments_.rows
        updated = super()._update_source(source, folds)
        if self.manifold is None:
            advise_appended(source, rows, self.manifold_)
        return updated

    def _solve(self, moments: Moments) -> Self:
        self._space.check()
        basis, operator = moments.basis, moments.operator
        if not isinstance(operator, Regression) or not isinstance(basis, (InvariantBasis, EquivariantBasis)):
            raise ValueError(
                f"expected moments of InvariantRegressor.fit, got moments of {operator} with {basis.description}"
            )
        if not self._space.matches(basis):
            raise ValueError(
                "expected moments for the manifold, group and output of this model, got those of "
                f"{basis.group!r} on {basis.manifold!r}. Compute them again, or change these parameters"
            )
        self._space.check_targets(operator)
        solution, held_out = fit_invariant(
            moments,
            InvariantSolver.from_name(self.solver),
            exponent=self._space.exponent(basis.manifold),
            most=self.n_eigenfunctions,
            alpha=self.alpha,
            gradient_weight=float(self.gradient_weight),
        )
        coefficients = np.zeros((basis.size, solution.coefficients.shape[1]))
        coefficients[: len(solution.coefficients)] = solution.coefficients * operator.unit
        if operator.origin:
            coefficients[0] += operator.origin  # of the constant 1
        unit = operator.unit**2
        self._coefficients, self._targets = coefficients, operator.targets
        self.levels_ = int(np.count_nonzero(np.cumsum(basis.multiplicities) <= solution.most))
        self.alpha_, self.gcv_ = solution.alpha, None if solution.score is None else solution.score * unit
        self.gcv_curve_ = None if solution.curve is None else solution.curve * [1.0, 1.0, unit]
        self.cv_ = self.cv_score_ = self.cv_score_error_ = None
        if held_out is not None:
            self.cv_, self.cv_score_ = held_out.error * unit, held_out.score
            self.cv_score_error_ = held_out.standard_error
        self.moments_ = moments
        return self._restored()

    def _restored(self) -> Self:
        basis = cast(InvariantBasis | EquivariantBasis, self.moments_.basis)
        self.basis_ = basis
        self.manifold_ = basis.manifold
        self.smoothness_ = sobolev_order(self.smoothness, self.manifold_)
        self.n_features_in_ = int(self.moments_.preparation["n_features_in"])
        levels = self.levels_
        coefficients = self._coefficients if self._targets is not None else self._coefficients[:, 0]
        self.coef_ = basis.by_level(coefficients)[:levels]
        self.invariant_dimensions_ = basis.dimensions[:levels]
        self.n_eigenfunctions_ = int(basis.multiplicities[:levels].sum())
        rows = counted_rows(self.moments_)
        self.uniformity_ = Uniformity.of(self.moments_, rows) if basis.representation is None else None
        coverage = Coverage.of(basis, self.moments_.mean("gram"), rows)
        self._support = Support.of(basis.manifold, coverage)
        return self

    def leverage(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Return the leverage of rows X relative to the rows of the fit.

        u(x)ᵀ G⁻¹ u(x) / n, with the first invariant functions u (up to 100, each with 10 rows) and G the mean of u uᵀ
        over the rows of the fit; with k components the largest eigenvalue of the matrix (k, k). Above 1 there are no
        rows of the fit nearby; `predict` warns of such rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, in the containers of `predict`.
        out : optional
            As in `predict`.
        **options : optional
            As in `predict`.

        Returns
        -------
        array of shape (n,)
            Leverages.
        """
        check_is_fitted(self)
        function = SpanLeverage(self.basis_, support=self._support)
        return self._rows(function, X, output=Result("leverage", (), ()), out=out, **options)

    def _predictor(self) -> tuple[SpanValues | EquivariantValues, int | None]:
        if self.basis_.representation is not None:
            return EquivariantValues(self.basis_, self._coefficients, support=self._support), self._targets
        return SpanValues(self.basis_, self._coefficients, support=self._support), self._targets

    @property
    def _space(self) -> InvariantSpace:
        functions = (self.manifold, self.group, self.smoothness, self.n_eigenfunctions, self.output)
        return InvariantSpace(*functions, self.alpha, self.gradient_weight, self.solver)

    def _summary_parts(self) -> dict[str, Any]:
        basis: InvariantBasis | EquivariantBasis = self.basis_
        kind = "invariant" if basis.representation is None else "equivariant"
        facts: dict[str, Any] = {
            "manifold": self.manifold_,
            "group": "none" if self.group is None else self.group,
            "smoothness": f"{self.smoothness_:g}",
            "solver": InvariantSolver.from_name(self.solver).name.replace("_", " "),
            **row_facts(self.moments_),
            "functions": f"{int(self.invariant_dimensions_.sum())} {kind} ones of {self.n_eigenfunctions_}",
        }
        if basis.representation is not None:
            facts["output"] = f"{basis.representation!r}, {basis.representation.components(basis.group)} components"
        if self.alpha_ is not None:
            facts |= {"penalty": f"{self.alpha_:g}", "score": f"{self.gcv_:g}"}
        if self.cv_score_ is not None:
            share = "of values and gradients explained" if "dirichlet" in self.moments_.arrays else "R^2"
            facts["held out"] = (
                f"{self.cv_score_:.4g} +- {self.cv_score_error_:.1g} {share}, squared error {self.cv_:.4g}"
            )
        sampling = self.uniformity_
        if sampling is not None and not sampling.uniform:
            means = f"means of functions {sampling.deviation:.2g}, by chance {sampling.chance:.2g}"
            facts["sampling"] = f"not uniform: {means}"
        norms = [float(np.linalg.norm(coefficients)) for coefficients in self.coef_]
        levels = range(len(norms))
        columns = [
            ["level", *map(str, levels)],
            ["eigenvalue", *(f"{basis.manifold.eigenvalue(level):.6g}" for level in levels)],
            ["functions", *(str(basis.multiplicities[level]) for level in levels)],
            [kind, *(str(self.invariant_dimensions_[level]) for level in levels)],
            ["norm", *(f"{norm:.3g}" for norm in norms)],
        ]
        return {"verdict": explained(self.cv_score_, self.cv_score_error_), "facts": facts, "columns": columns}
