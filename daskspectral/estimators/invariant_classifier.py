"""InvariantClassifier: classes that a group cannot change, by logistic regression among invariant functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import InvariantBasis
from daskspectral.data.containers import labels_reader
from daskspectral.data.integrity import Snapshot
from daskspectral.data.remote import stored
from daskspectral.data.source import check_rows, open_source
from daskspectral.engine import Run, plan_rows
from daskspectral.engine.checkpoint import Checkpoint, leased
from daskspectral.engine.run import checkpoint_signals
from daskspectral.errors import warn_user
from daskspectral.estimators.base import Estimator
from daskspectral.estimators.identity import identity_of
from daskspectral.estimators.labelled import labelled
from daskspectral.groups import Group
from daskspectral.manifolds import Manifold
from daskspectral.moments.coverage import Coverage
from daskspectral.passes.apply import Result
from daskspectral.passes.classes import (
    LikeliestClass,
    Probabilities,
    accuracy,
    classes_of,
    named_classes,
    open_classes,
)
from daskspectral.passes.embedding import Passes
from daskspectral.passes.folds import checked_folds
from daskspectral.passes.functions import SpanLeverage, SpanValues
from daskspectral.passes.invariant import InvariantSpace, advise_few
from daskspectral.passes.multinomial import ClassFit, Classification, EmptyClassError, LabelledRows
from daskspectral.passes.parameters import check_number, check_one_of, check_whole
from daskspectral.passes.ranges import advise_products
from daskspectral.passes.sums import flops_of
from daskspectral.passes.support import Support

Array = NDArray[np.floating[Any]]


class InvariantClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Multinomial logistic regression on a manifold among the functions that a group leaves as they are.

    The log-odds of the classes are combinations of the invariant functions of whole eigenspaces of the Laplace-Beltrami
    operator, as in `InvariantRegressor`: the probabilities at g x and at x agree to rounding for every g of the group.
    The coefficients c_k of the classes minimise the mean log loss plus

        alpha / 2 Σ_k Σ_λ D_λ^s' |c_(k, λ)|²,              s' = 2 smoothness / dimension,

    in which the constant is free. A bound of the Hessian that does not depend on the coefficients (Boehning 1992),
    1/2 (I - 1 1ᵀ / K) x Gram matrix, is factored once; passes over the rows sum gradients only, and limited-memory
    BFGS in the metric of the bound needs few of them. One pass serves the models of all folds.

    Parameters
    ----------
    manifold : Manifold, optional
        Where the points lie, such as Sphere(3); None: intervals over the ranges of the columns.
    group : Group, optional
        Given by generators, such as Permutations(3); None: no invariance.
    smoothness : float, optional
        As in `InvariantRegressor`, above half the manifold's dimension.
    n_eigenfunctions : int, optional
        D: as many whole levels as have at most D eigenfunctions, invariant or not. By default 1000, or as many as have
        50 invariant functions if these are more, and at most half as many invariant functions as rows, but the first
        that are not constant.
    alpha : float, optional
        Weight of the penalty, positive; by default the one of least log loss on folds that were left out, of a ladder
        of powers of ten.
    folds : int, array (n,), "blocks" or None
        Of how many parts of the rows each is left out once; as in `SpectralDecomposition`. None needs alpha, and gives
        no held-out values.
    tolerance : float
        The descent ends when half the squared gradient in the metric of the bound, in nats, is below it.
    max_passes : int
        Passes of one descent after which it ends in any case.
    cache : {"auto", "never"}
        Whether the values of the functions are kept between passes where they fit: 1 GB at most, not on a cluster.
    sample_dims, latitude : optional
        Rows, and weights by latitude, of data with labels, as in `SpectralDecomposition`.

    Attributes
    ----------
    classes_ : (K,) labels, sorted
    coef_ : tuple of arrays (m, K), one for each eigenspace: coefficients of all its m eigenfunctions (of large ones of
        the invariant functions), which add up to 0 over the classes
    invariant_dimensions_ : (levels,), how many invariant functions each eigenspace has
    n_eigenfunctions_ : int, D of the levels used
    alpha_ : float, the penalty
    held_out_ : `log_loss` (nats) and `accuracy` on rows that were left out, with standard errors over the folds; None
        without folds
    held_out_curve_ : (g, 3) penalties, their held-out log loss and its standard error, from the largest penalty on
    shares_ : (K,) the classes' shares of the weight
    manifold_ : the manifold, `Interval` with the ranges where none was given
    n_passes_, basis_, n_features_in_, feature_names_in_ (of a data frame)

    Examples
    --------
    Points of the sphere near an axis of coordinates, and others, whatever the order and the signs of the coordinates:

    >>> import numpy as np
    >>> import daskspectral as dsp
    >>> sphere = dsp.manifolds.Sphere(3)
    >>> cube = dsp.groups.Generated([dsp.groups.Permutations(3), dsp.groups.SignFlips(3)])
    >>> x = sphere.sample(500, np.random.default_rng(0))
    >>> y = np.where(np.abs(x).max(axis=1) > 0.9, "axis", "other")
    >>> f = dsp.InvariantClassifier(sphere, cube).fit(x, y)
    >>> f.classes_.tolist(), f.predict([[0.0, 0.0, -1.0], [0.6, 0.8, 0.0]]).tolist()
    (['axis', 'other'], ['axis', 'other'])
    >>> bool(f.score(x, y) > 0.95)
    True
    """

    fitted_attributes = (
        "alpha_",
        "basis_",
        "held_out_",
        "held_out_curve_",
        "n_features_in_",
        "n_passes_",
        "shares_",
        "_coefficients",
        "_coverage",
        "_labels",
    )

    def __init__(
        self,
        manifold: Manifold | None = None,
        group: Group | None = None,
        smoothness: float | None = None,
        n_eigenfunctions: int | None = None,
        *,
        alpha: float | None = None,
        folds: Any = 5,
        tolerance: float = 1e-9,
        max_passes: int = 500,
        cache: str = "auto",
        sample_dims: str | Sequence[str] | None = None,
        latitude: str | None = None,
    ):
        self.manifold = manifold
        self.group = group
        self.smoothness = smoothness
        self.n_eigenfunctions = n_eigenfunctions
        self.alpha = alpha
        self.folds = folds
        self.tolerance = tolerance
        self.max_passes = max_passes
        self.cache = cache
        self.sample_dims = sample_dims
        self.latitude = latitude

    @stored
    @labelled
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
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Fit the labels y (n,), numbers or text, of the rows X (n, d) on the active dask scheduler.

        X and y are numpy, dask, zarr or xarray arrays, or paths or URLs of zarr arrays; a first pass over y finds the
        classes. With `checkpoint`, passes that were made are not made again. The other options are as in
        `SpectralDecomposition.fit`.

        Raises ValueError or TypeError for parameters as in `InvariantRegressor.fit`, for labels of one class, for
        nearly as many labels as rows, and for a class without weight; InvalidRowError for a missing label.
        """
        self._check_parameters(on_invalid)
        space = self._space
        labels = labels_reader(y)
        request = checked_folds(self.folds)
        fields = {"weight": sample_weight, "fold": None if request is None else request.labels}
        points = open_source(X, **fields)
        check_rows({**points.readers, "y": labels})
        self._keep_names(X)
        space.check_columns(points)
        space.check_first(points)
        classes = classes_of(labels, progress)
        source = open_classes(X, labels, classes, **fields)
        request = None if request is None else request.counted(source, progress=progress)
        snapshot = Snapshot(source)

        def constants() -> dict[str, Any]:
            levels = space.levels(source, on_invalid=on_invalid, progress=progress)
            basis = levels.first if self.n_eigenfunctions is None else levels.bounded(self.n_eigenfunctions)
            if not (self.n_eigenfunctions is None and advise_few(basis, levels)) and self.manifold is None:
                advise_products(basis)
            return {"basis": basis}

        saved = None
        if checkpoint is not None:
            identity = identity_of(snapshot, self.plain_params(), on_invalid)
            saved = Checkpoint.take_up(checkpoint, identity, constants, {"basis": InvariantBasis}, checkpoint_every)
        basis: InvariantBasis = (constants() if saved is None else saved.constants)["basis"]
        plan = plan_rows(source, flops_of(source, basis.size))
        dealing = None if request is None else request.dealing(source, plan)
        if dealing is None and self.alpha is None:
            raise ValueError(
                f"folds={self.folds!r} of {source.rows} leave none to choose the penalty by: give alpha, or more folds"
            )
        run = Run(source, plan, None, on_invalid, progress, "fit", keyed=dealing is not None and dealing.keyed)
        folds = 1 if dealing is None else dealing.number
        fit = Classification(Passes(run, saved), LabelledRows(basis, dealing), len(classes), folds, self.max_passes)
        if saved is not None:
            saved.agree(plan)
            saved.check = snapshot.check_unchanged
        with checkpoint_signals(saved):
            found = self._found(fit, classes, basis)
        snapshot.check_unchanged()
        if saved is not None:
            saved.write()
        self.basis_, self.n_features_in_ = basis, source.n_features_in
        self._coefficients, self._labels = found.coefficients, _plain_labels(classes)
        self.alpha_, self.held_out_, self.held_out_curve_ = found.alpha, found.held_out, found.curve
        self.shares_, self.n_passes_ = found.shares, found.passes
        self._coverage = Coverage.of(basis, found.gram, found.rows)
        return self.restored()

    def _found(self, fit: Classification, classes: Array, basis: InvariantBasis) -> ClassFit:
        weights = basis.cumulative.astype(float) ** self._space.exponent(basis.manifold)
        weights[0] = 0
        try:
            found = fit.kept(self.cache == "auto").fit(weights, self.alpha, float(self.tolerance))
        except EmptyClassError as error:
            label = classes.tolist()[error.number]
            raise ValueError(f"the class {label!r} has no row of positive weight: leave its rows out") from None
        if not found.done:
            warn_user(
                f"the descent ended after {self.max_passes} passes with half the squared gradient at {found.gap:.3g}, "
                f"above tolerance={self.tolerance:g}; raise max_passes, or alpha if the classes are separable",
                ConvergenceWarning,
            )
        return found

    def restored(self) -> Self:
        basis = self.basis_
        self.manifold_ = basis.manifold
        self._support = Support.of(basis.manifold, self._coverage)
        self.classes_ = np.array(self._labels["values"], dtype=self._labels["dtype"])
        self.coef_ = basis.by_level(self._coefficients)
        self.invariant_dimensions_ = basis.dimensions
        self.n_eigenfunctions_ = int(basis.multiplicities.sum())
        return self

    def decision_function(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The scores of the classes at the rows of X, (n, K), the logarithms of probabilities but for a shift.

        For two classes the log-odds of the second, (n,). Lazy for dask, zarr and xarray; the options are as in
        `SpectralDecomposition.transform`. Raises ValueError for points off the manifold.
        """
        check_is_fitted(self)
        c = self._coefficients
        binary = c.shape[1] == 2
        scores = self._scores(c[:, 1:] - c[:, :1] if binary else c)
        return self._rows(scores, X, output=self._output("score", binary), out=out, **options)

    def predict_proba(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The probabilities of the classes at the rows of X, (n, K), with options as in `decision_function`."""
        return self._probabilities(X, out, False, options)

    def predict_log_proba(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The logarithms of the probabilities at the rows of X, (n, K), with options as in `decision_function`."""
        return self._probabilities(X, out, True, options)

    def _probabilities(self, X: Any, out: str | os.PathLike[str] | None, logarithms: bool, options: Any) -> Any:
        check_is_fitted(self)
        function = Probabilities(self._scores(self._coefficients), logarithms)
        output = self._output("log_probability" if logarithms else "probability", False)
        return self._rows(function, X, output=output, out=out, **options)

    @stored
    def predict(
        self,
        X: Any,
        *,
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """The label of highest probability at each row of X, (n,), lazy for dask, zarr and xarray.

        With labels it is a DataArray, of the name and attributes of y where y had labels too.
        Invalid rows are an error, having no label; `predict_proba` has NaN for them with on_invalid="skip".
        """
        check_is_fitted(self)
        function = LikeliestClass(self._scores(self._coefficients))
        layout = vars(self).get("layout_")
        target = None if layout is None else layout.target
        output = (
            Result("class", (), ()) if target is None else Result(target.name or "class", (), (), attrs=target.attrs)
        )
        found = self._rows(function, X, output=output, allow_missing=allow_missing, progress=progress)
        return named_classes(found, self.classes_)

    @stored
    @labelled
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> float:
        """The share of the rows X, by weight, whose label is predicted right; in one pass, chunk by chunk.

        The options are `on_invalid`, `allow_missing` and `progress`, as in `SpectralDecomposition.fit`.
        """
        check_is_fitted(self)
        function = LikeliestClass(self._scores(self._coefficients))
        return accuracy(function, self.classes_, self._like_fit(X), y, sample_weight, **options)

    def leverage(self, X: Any, *, out: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """The leverage (n,) of new rows X among the rows of the fit, as in `InvariantRegressor`: above 1 none are near.

        Containers and options are as in `decision_function`; predictions warn of such rows.
        """
        check_is_fitted(self)
        function = SpanLeverage(self.basis_, self._support)
        return self._rows(function, X, output=Result("leverage", (), ()), out=out, **options)

    def _scores(self, coefficients: Array) -> SpanValues:
        return SpanValues(self.basis_, coefficients, support=self._support)

    def _output(self, name: str, binary: bool) -> Result:
        if binary:
            return Result(name, (), ())
        return Result(name, (len(self.classes_),), ("class",), {"class": self.classes_})

    @property
    def _space(self) -> InvariantSpace:
        """The functions that parameters ask for."""
        return InvariantSpace(self.manifold, self.group, self.smoothness, self.n_eigenfunctions)

    def _check_parameters(self, on_invalid: str) -> None:
        """Raise ValueError or TypeError for parameters that cannot work."""
        self._space.check()
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        check_number("tolerance", self.tolerance)
        if not self.tolerance > 0:
            raise ValueError(f"tolerance must be positive; it is {self.tolerance!r}")
        check_whole("max_passes", self.max_passes)
        check_one_of("cache", self.cache, ("auto", "never"))
        if self.alpha is not None:
            check_number("alpha", self.alpha)
            if not self.alpha > 0:
                raise ValueError(
                    f"alpha must be positive: the log loss of separable classes has no minimum; it is {self.alpha!r}"
                )


def _plain_labels(classes: Array) -> dict[str, Any]:
    """Labels as files keep them."""
    return {"values": classes.tolist(), "dtype": "object" if classes.dtype.kind in "OT" else classes.dtype.str}
