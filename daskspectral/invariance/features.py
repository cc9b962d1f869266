"""InvariantFeatures: functions that a group leaves as they are, as features for any estimator of scikit-learn."""

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
    """The values of a manifold's first eigenfunctions that a group leaves as they are.

    They are all invariant functions of whole eigenspaces of the Laplace-Beltrami operator, as `InvariantRegressor`
    fits them (Soleymani and others 2025): whatever follows in a pipeline gives the same at g x and at x, to rounding,
    for every g of the group. They are orthonormal for the uniform probability, the lowest eigenvalues first.

    Parameters
    ----------
    manifold : Manifold, optional
        Where the points lie, such as Sphere(3). None: any columns of numbers, on the product of intervals over their
        ranges in the fit, as in `InvariantRegressor`; new rows beyond an interval have the values at its end, and are
        counted in a warning.
    group : Group, optional
        Given by generators, such as Permutations(3), or by a Lie algebra; None: no invariance.
    n_eigenfunctions : int, optional
        D: as many whole levels as have at most D eigenfunctions, invariant or not. By default 1000, or as many as have
        50 invariant functions if these are more, and at most half as many invariant functions as rows, but the first
        that are not constant.
    smoothness : float
        s, 0 or more: each function is divided by D_λ^(s / dimension), D_λ the number of eigenfunctions with an
        eigenvalue up to λ. A penalty on the squares of coefficients, as of LogisticRegression or Ridge, is then the
        norm of the Sobolev space of order s: half the dimension + 1 is a good start, with a penalty that is chosen by
        cross-validation. 0 leaves all functions with the mean square 1.

    Attributes
    ----------
    basis_ : InvariantBasis, the functions without the factors of `smoothness`
    invariant_dimensions_ : (levels,), how many invariant functions each eigenspace has
    n_eigenfunctions_ : int, D of the levels used
    manifold_ : the manifold, `Interval` with the ranges where none was given
    n_features_in_, feature_names_in_ (if named)

    Examples
    --------
    Points of the sphere near an axis of coordinates, and others, whatever the order and the signs of the coordinates:

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

    fitted_attributes = ("basis_", "n_features_in_")

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
        """Make the functions for the rows of X (n, d): a pass finds the columns' ranges, where no manifold is given.

        X and the options are as in `SpectralDecomposition.fit`. Raises ValueError or TypeError for another number of
        columns, a group that does not act on the manifold, and where the first rows are off it.
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
        """The functions at the rows of X, (n, k); containers and options as in `SpectralDecomposition.transform`.

        Raises ValueError for points off the manifold.
        """
        check_is_fitted(self)
        basis = self.basis_
        factors = basis.cumulative ** (-self.smoothness / basis.manifold.dimension)
        function = SpanValues(basis, np.diag(factors), support=Support.of(basis.manifold, None))
        return self._framed(function, X, coordinates={"eigenvalue": basis.eigenvalues}, **options)

    @property
    def _n_features_out(self) -> int:
        return self.basis_.size
