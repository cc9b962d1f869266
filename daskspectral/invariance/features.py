"""Invariant functions of a group as features for any scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from daskspectral.estimators.table import RunContext, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.groups import Group
from daskspectral.invariance.measuring import InvariantSpace
from daskspectral.manifolds import Manifold
from daskspectral.passes.functions import SpanValues
from daskspectral.passes.support import Support
from daskspectral.validation import NOT_NEGATIVE, check_number


class InvariantFeatures(Transformer):
    """Invariant eigenfunctions of a manifold as features (Soleymani and others 2025).

    A subsequent estimator returns the same at g x and at x, to rounding, for every g of the group. The functions are
    orthonormal for the uniform probability, in ascending order of eigenvalues.

    Parameters
    ----------
    manifold : Manifold, optional
        Manifold of the points, such as Sphere(3). None: the product of intervals over the columns' ranges; new rows
        beyond have the values at the ends, and are counted in a warning.
    group : Group, optional
        Group such as Permutations(3); None: no invariance.
    n_eigenfunctions : int, optional
        Largest number D of eigenfunctions, invariant or not; whole levels are used. By default 1000, or the number
        with 50 invariant functions if larger; at most half as many invariant functions as rows, but at least the
        first that are not constant.
    smoothness : float, default=0.0
        Order s >= 0: each function is divided by D_λ^(s / dimension), D_λ the number of eigenfunctions with an
        eigenvalue up to λ, so that a penalty on squared coefficients is the Sobolev norm of order s: start with half
        the dimension + 1. With 0 all functions have the mean square 1.

    Attributes
    ----------
    basis_ : InvariantBasis
        The functions without the factors of `smoothness`.
    invariant_dimensions_ : ndarray of shape (levels,)
        Number of invariant functions of each eigenspace.
    n_eigenfunctions_ : int
        D of the levels used.
    manifold_ : Manifold
        The manifold; an `Interval` with the ranges if none was passed.
    n_features_in_, feature_names_in_
        As in scikit-learn; the latter if columns have names.

    See Also
    --------
    daskspectral.InvariantRegressor : Regression with these functions.

    Examples
    --------
    Classify points of the sphere near a coordinate axis, invariant to order and signs of the coordinates:

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> sphere = dsp.manifolds.Sphere(3)
    >>> cube = dsp.groups.Generated([dsp.groups.Permutations(3), dsp.groups.SignFlips(3)])
    >>> x = sphere.sample(500, np.random.default_rng(0))
    >>> y = np.where(np.abs(x).max(axis=1) > 0.9, "axis", "other")
    >>> features = dsp.InvariantFeatures(sphere, cube, n_eigenfunctions=100)
    >>> features.fit_transform(x).shape
    (500, 4)
    >>> model = make_pipeline(features, LogisticRegression()).fit(x, y)
    >>> model.predict([[0.0, 0.0, -1.0], [0.6, 0.8, 0.0]]).tolist(), bool(model.score(x, y) > 0.95)
    (['axis', 'other'], True)
    """

    _fitted_attributes = ("basis_", "n_features_in_")

    def __init__(
        self,
        manifold: Manifold | None = None,
        group: Group | None = None,
        n_eigenfunctions: int | None = None,
        *,
        smoothness: float = 0.0,
    ):
        self.manifold = manifold
        self.group = group
        self.n_eigenfunctions = n_eigenfunctions
        self.smoothness = smoothness

    def fit(self, X: Any, y: Any = None, *, progress: bool | None = None) -> Self:
        """Construct the functions; without a manifold, one pass finds the columns' ranges.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Points, as in `SpectralDecomposition.fit`.
        y : ignored
            Present for scikit-learn's pipelines.
        progress : bool, optional
            As in `SpectralDecomposition.fit`.

        Returns
        -------
        InvariantFeatures
            The fitted transformer.

        Raises
        ------
        ValueError, TypeError
            If the number of columns is not the manifold's, the group does not act on the manifold, or the first
            rows are off it.
        """
        with open_table(self, X, RunContext(progress), fits=True, y=y) as table:
            check_number("smoothness", self.smoothness, NOT_NEGATIVE)
            space = InvariantSpace(self.manifold, self.group, None, self.n_eigenfunctions)
            space.check()
            self._check_whole(table.rows)
            with self._fitting(table, several=self.manifold is None) as (source, _):
                space.check_columns(source)
                space.check_first(source)
                levels = space.levels(source)
            basis = levels.first if self.n_eigenfunctions is None else levels.of(self.n_eigenfunctions)
            space.advise(basis, levels, asked=self.n_eigenfunctions is not None)
            self.basis_ = basis
        return self._restored()

    def _restored(self) -> Self:
        self.manifold_ = self.basis_.manifold
        self.invariant_dimensions_ = self.basis_.dimensions
        self.n_eigenfunctions_ = int(self.basis_.multiplicities.sum())
        return self

    def transform(self, X: Any, **options: Any) -> Any:
        """Return the functions at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points, in the containers of `SpectralDecomposition.transform`.
        **options : optional
            As in `SpectralDecomposition.transform`.

        Returns
        -------
        array of shape (n, k)
            Function values.

        Raises
        ------
        ValueError
            If points are off the manifold.
        """
        check_is_fitted(self)
        basis = self.basis_
        factors = basis.cumulative ** (-self.smoothness / basis.manifold.dimension)
        function = SpanValues(basis, np.diag(factors), support=Support.of(basis.manifold, None))
        return self._framed(function, X, coordinates={"eigenvalue": basis.eigenvalues}, **options)

    @property
    def _n_features_out(self) -> int:
        return self.basis_.size
