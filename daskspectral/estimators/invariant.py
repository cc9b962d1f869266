"""InvariantRegressor: regression that is exactly invariant under a group, from its generators alone."""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import HarmonicBasis, InvariantBasis
from daskspectral.data.opening import open_regression
from daskspectral.data.source import Source
from daskspectral.engine.checkpoint import leased
from daskspectral.errors import FitWarning, renumbered
from daskspectral.estimators.regressor import Regressor
from daskspectral.groups import Group
from daskspectral.manifolds import Manifold
from daskspectral.manifolds.base import MOST_FUNCTIONS
from daskspectral.moments import Moments
from daskspectral.moments.problem import checked_means
from daskspectral.moments.regression import explained_by_means
from daskspectral.operators.regression import Regression
from daskspectral.passes.apply import shaped
from daskspectral.passes.folds import checked_folds, continued_folds
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.networks import Training
from daskspectral.passes.parameters import check_amount, check_number, check_one_of, check_whole
from daskspectral.passes.sums import Discretisation
from daskspectral.solve.invariant import InvariantProblem, InvariantSolver

Array = NDArray[np.floating[Any]]
TOLERANCE = 1e-5  # how far points may lie off the manifold


class InvariantRegressor(Regressor):
    """Regression on a manifold among the functions that a group leaves as they are (Soleymani and others 2025).

    f = sum_lambda sum_j c_(lambda, j) u_(lambda, j), over the invariant functions u of whole eigenspaces of the
    Laplace-Beltrami operator, computed from the group's generators: |f(g x) - f(x)| is rounding for every g, and a
    group of 10^18 elements costs no more than its two generators. One pass sums the products of the functions with y
    and with each other.

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
        "projection"; for "least_squares" cross-validation chooses among at most 1000, without a group at most n / 2.
    solver : {"projection", "least_squares"}
        Means of y u (Algorithm 1), or ridge least squares with the Sobolev norm as its penalty. Where the data
        determine f, the relative error of least squares ends at the rounding of the sums, 1e-6 (squared, 1e-12).
    alpha : float, optional
        Weight of the penalty of "least_squares"; by default, with D, of least generalised cross-validation, which
        counts rows, whatever their weight.
    folds : int, array (n,), "blocks" or None
        Into how many parts the sums are kept apart, for held-out values; as in `SpectralDecomposition`.

    Attributes
    ----------
    coef_ : tuple of arrays (m,), or (m, k) for k targets, one for each eigenspace: coefficients of all its m
        eigenfunctions
    invariant_dimensions_ : (levels,), how many invariant functions each eigenspace has
    n_eigenfunctions_ : int, D of the levels used
    alpha_, gcv_ : with "least_squares", the penalty and its cross-validation score; gcv_curve_ (levels, 3): D, penalty,
        score
    moments_, basis_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> sphere, group = dsp.manifolds.Sphere(3), dsp.groups.Permutations(3)
    >>> x = sphere.sample(500, np.random.default_rng(0))
    >>> f = dsp.InvariantRegressor(sphere, group, n_eigenfunctions=50, solver="least_squares").fit(x, x.prod(axis=1))
    >>> f.invariant_dimensions_  # of the harmonics of degree 0, 1, 2, 3, ...
    array([1, 1, 1, 2, 2, 2, 3])
    >>> bool(np.allclose(f.predict(x), x.prod(axis=1), atol=1e-4))
    True
    >>> bool(np.allclose(f.predict(x[:, ::-1]), f.predict(x), atol=1e-12))  # a permutation changes nothing
    True
    """

    fitted_attributes = ("moments_", "levels_", "alpha_", "gcv_", "gcv_curve_", "_coefficients", "_targets")

    def __init__(
        self,
        manifold: Manifold,
        group: Group | None = None,
        smoothness: float = 2.0,
        n_eigenfunctions: int | None = None,
        solver: str = "projection",
        *,
        alpha: float | None = None,
        folds: Any = 10,
    ):
        self.manifold = manifold
        self.group = group
        self.smoothness = smoothness
        self.n_eigenfunctions = n_eigenfunctions
        self.solver = solver
        self.alpha = alpha
        self.folds = folds

    @leased
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
        `sample_weight` (n,) are for points that are not uniform: for "projection", 1 over their density. The other
        options are as in `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for a smoothness of half the dimension or less, D above n, a generator that is
        not an isometry of the manifold, points off it (by more than 1e-5), y of another length; OSError for data that
        are damaged or change meanwhile.
        """
        self._check_parameters(on_invalid)
        folds = checked_folds(self.folds)
        labels = None if folds is None else folds.labels
        source, operator = open_regression(X, y, weight=sample_weight, fold=labels)
        most = self._most(source)
        self._check_first(source.allowing_missing(allow_missing))

        def lay(source: Source, training: Training) -> Discretisation:
            return Discretisation(self._basis(most), source.preparation)

        return self._fit_source(
            source,
            operator,
            lay,
            folds=folds,
            on_invalid=on_invalid,
            allow_missing=allow_missing,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )

    def update(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
    ) -> Self:
        """Fold in rows that were appended to X and y since they were fitted: only these are read. D stays.

        `folds` are as in `SpectralDecomposition.update`. Raises ValueError where X has no more rows than before.
        """
        before: Moments = self.fitted().moments_
        found = continued_folds(before.folds, folds)
        labels = None if found is None else found.labels
        source, operator = open_regression(X, y, weight=sample_weight, fold=labels)
        if operator != before.operator:
            raise ValueError(f"the data are for {operator}, and the model was fitted on {before.operator}")
        options: dict[str, Any] = {"on_invalid": on_invalid, "allow_missing": allow_missing, "progress": progress}
        return self._update_source(source, folds=found, **options)

    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before, with this solver, penalty and smoothness; no data are touched.

        Raises ValueError for moments of another kind, or of another manifold or group, moments that are not finite, or
        weights that are all zero.
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
        means = checked_means(moments)
        solution = InvariantSolver.named(self.solver).solve(
            InvariantProblem(
                means["gram"],
                means["values"],
                means["value_squares"],
                int(moments.arrays["observed"][0]),
                basis.cumulative,
                self._exponent,
                self.n_eigenfunctions,
                self.alpha,
            )
        )
        if solution.curve is None and self.n_eigenfunctions is None:
            self._advise(moments, len(solution.coefficients), solution.most)
        coefficients = np.zeros_like(means["values"])
        coefficients[: len(solution.coefficients)] = solution.coefficients
        self._coefficients = coefficients if operator.targets is not None else coefficients[:, :1]
        self._targets = operator.targets
        harmonic = basis.harmonic
        self.levels_ = harmonic.manifold.levels_within(min(solution.most, harmonic.size))
        self.alpha_, self.gcv_, self.gcv_curve_ = solution.alpha, solution.score, solution.curve
        self.moments_ = moments
        return self.restored()

    def _advise(self, moments: Moments, size: int, most: int) -> None:
        """Warn where means of y u explain nothing of the folds that they are not taken over."""
        explained = explained_by_means(moments, size)
        if explained is None or explained > 0:
            return
        warnings.warn(
            f"the {size} invariant functions among the first {most} eigenfunctions explain nothing of rows that were "
            f'left out (R^2 = {explained:.2g} over {moments.count} rows): take solver="least_squares", which is more '
            "exact for few rows and chooses its functions, give n_eigenfunctions, or more rows",
            FitWarning,
            stacklevel=3,
        )

    def restored(self) -> Self:
        basis = self.moments_.basis
        assert isinstance(basis, InvariantBasis)
        self.basis_ = basis
        self.n_features_in_ = int(self.moments_.preparation["n_features_in"])
        levels = int(self.levels_)
        coefficients = self._coefficients if self._targets is not None else self._coefficients[:, 0]
        self.coef_ = basis.by_level(coefficients)[:levels]
        self.invariant_dimensions_ = np.array([u.shape[1] for u in basis.vectors[:levels]])
        self.n_eigenfunctions_ = sum(space.size for space in basis.harmonic.levels[:levels])
        return self

    def predict(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """f at the rows of X, (n,), or (n, k) for k targets, float64; lazy for dask, zarr and xarray.

        `out`, which gets (n, k) values, and the other options are as in `SpectralDecomposition.transform`. Raises
        ValueError for points off the manifold.
        """
        check_is_fitted(self)
        function, targets = self._predictor()
        found = self._rows(function, X, out=out, **options)
        shape = () if targets is None else (targets,)
        return None if out is not None else shaped(found, "prediction", shape, ("target",), {})

    def _predictor(self) -> tuple[SpanValues, int | None]:
        return SpanValues(self.basis_, self._coefficients), self._targets

    @property
    def _exponent(self) -> float:
        """alpha = 2 s / dimension."""
        return 2 * float(self.smoothness) / self.manifold.dimension

    def _most(self, source: Source) -> int:
        """The number D of eigenfunctions to measure."""
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
        return InvariantSolver.named(self.solver).default(n, self._exponent, self.group is not None)

    def _check_first(self, source: Source) -> None:
        """Raise ValueError where the first rows are off the manifold, before the functions are made."""
        first = np.asarray(source.readers["x"].read(0, min(1000, source.n)), dtype=float)
        finite = np.flatnonzero(np.isfinite(first).all(axis=1))
        with renumbered(lambda k: finite[k]):
            self.manifold.check(first[finite], tolerance=TOLERANCE)

    def _basis(self, most: int) -> InvariantBasis:
        harmonic = HarmonicBasis(self.manifold, most, tolerance=TOLERANCE)
        return InvariantBasis(harmonic, self.group) if self.group is not None else InvariantBasis.all_of(harmonic)

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
            check_whole("n_eigenfunctions", self.n_eigenfunctions, most=MOST_FUNCTIONS)
        InvariantSolver.named(self.solver)
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if self.alpha is not None:
            check_amount("alpha", self.alpha)
        if self.group is not None:
            self.group.check(self.manifold)


def _moves(group: Group | None) -> Array:
    """The generators that move something, [A, b] each, (k, d, d + 1)."""
    generators = () if group is None else group.generators
    return np.array([np.column_stack([g.matrix, g.shift]) for g in generators if not g.trivial])
