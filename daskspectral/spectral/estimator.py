"""Base class of spectral estimators: fit in one pass, update, evaluation, score, and export to xarray."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import BasisRecipe, Landmarks
from daskspectral.basis.names import basis_by_name
from daskspectral.basis.role import Role
from daskspectral.choosing.spectral_density import system_of
from daskspectral.data.labeled import ROW
from daskspectral.data.layout import Layout, free_names, plain
from daskspectral.data.rows import Rows
from daskspectral.data.source import Preparation, Source, are_trajectories, in_rows, open_data
from daskspectral.data.windows import DELAY
from daskspectral.engine.memory import chosen_device, device_here
from daskspectral.estimators.base import MeasuredEstimator
from daskspectral.estimators.reading import LABELS
from daskspectral.estimators.records import provenance, recording_warnings
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.estimators.transformer import Transformer
from daskspectral.moments import Moments
from daskspectral.moments.attributes import COMMON, Attributes
from daskspectral.moments.pairwise import SUMS
from daskspectral.moments.patterns import Patterns, patterns_of
from daskspectral.moments.reliability import UNCERTAIN, uncertainty
from daskspectral.moments.solution import SpanScore
from daskspectral.operators import Operator
from daskspectral.operators.density import estimate_of
from daskspectral.operators.paired import of_trajectories
from daskspectral.operators.regression import Regression
from daskspectral.passes.apply import RowFunction
from daskspectral.passes.folds import FoldRequest, checked_folds, continued_folds
from daskspectral.passes.functions import FittedValues, SpanValues
from daskspectral.passes.parameters import check_components, check_fit, checked_operator, is_share
from daskspectral.passes.score import measure_score
from daskspectral.passes.session import FoldRuleOf, Session, TrainingState
from daskspectral.passes.sums import Discretization
from daskspectral.solve import Problem, SymmetricPencil, resolve_cut
from daskspectral.solvers import Regularized, Solving, solver_of
from daskspectral.spectral.choice import choose_functions
from daskspectral.spectral.components import components_of
from daskspectral.spectral.summary import summary_parts
from daskspectral.validation import check_option, is_dask_array, is_data_array, is_sequence

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.inexact[Any]]
FIXED = ("operator", "basis", "right_basis", "solver")
"""Attributes that a class fixes if they are not among its parameters."""


def _reconstructed(patterns: Patterns, columns: tuple[int, ...] | None, values: Array) -> Array:
    """Return rows (..., width) from function values (..., k), NaN in columns that are not used."""
    found = patterns.reconstructed(values)
    if columns is not None:
        found[..., np.setdiff1d(np.arange(found.shape[-1]), columns)] = np.nan
    return found


class SpectralEstimator(Transformer, MeasuredEstimator):
    """Base class of estimators of the spectrum of `operator` on the distribution of the data.

    Subclasses have the parameters of `SpectralDecomposition` as arguments, or as class attributes if they are fixed.
    """

    __metadata_request__inverse_transform: ClassVar = {"F": UNUSED}

    operator: Operator | None
    basis: BasisRecipe | str | None = None
    right_basis: BasisRecipe | str | None = None
    n_components: float
    solver: Solving | None = None
    _options_of_rows: ClassVar[tuple[str, ...]] = ("delays", "column_weights")
    folds: Any
    random_state: Any

    coefficients_: NDArray[Any]
    right_coefficients_: NDArray[Any]
    left_coefficients_: NDArray[Any]
    eigenvalues_: NDArray[Any]
    eigenvalue_errors_: NDArray[Any]
    singular_values_: NDArray[Any]
    singular_value_errors_: NDArray[Any]
    standard_errors_: NDArray[Any]
    validation_values_: NDArray[Any]
    multiplets_: NDArray[np.integer[Any]]
    function_errors_: NDArray[Any]
    discretization_errors_: NDArray[Any]
    reliable_: NDArray[np.bool_]
    n_constants_: int
    rank_: int
    residuals_: NDArray[Any]
    message_: str
    support_: NDArray[Any]
    right_support_: NDArray[Any]
    layout_: Any

    dimension_names: ClassVar = {
        **dict.fromkeys((*COMMON, "kernel_", "eigenvalues_", "singular_values_"), ("component",)),
        **dict.fromkeys(("eigenvalue_errors_", "singular_value_errors_"), ("component", "bound")),
        **dict.fromkeys(("coefficients_", "left_coefficients_", "support_"), ("function", "component")),
        **dict.fromkeys(("right_coefficients_", "right_support_"), ("right_function", "component")),
    }
    _parts: ClassVar = {"basis": Landmarks, "right_basis": Landmarks, "solver": Regularized}

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FIXED and name not in self._get_param_names():
            raise AttributeError(f"{name} of {type(self).__name__} is fixed. Use SpectralDecomposition({name}=...)")
        super().__setattr__(name, value)

    @property
    def _fitted_attributes(self) -> tuple[str, ...]:
        return ("moments_", "search_results_", *Attributes(self.moments_.operator.solver).names)

    @property
    def _summary_attributes(self) -> tuple[str, ...]:
        names = Attributes(self.solver_)
        return (names.values, names.errors, *COMMON, "kernel_")

    def _summary_parts(self) -> dict[str, Any]:
        return summary_parts(self)

    @property
    def solver_(self) -> Problem:
        """Kind of problem of the fitted operator, which determines the names of the attributes."""
        found: Problem = self._fitted().moments_.operator.solver
        return found

    @property
    def _components(self) -> Any:
        """Requested number of functions, or share of the variance."""
        return self.n_components

    @property
    def _values(self) -> Any:
        return np.asarray(getattr(self, Attributes(self.solver_).values))

    def _coordinates(self) -> dict[str, Any]:
        """Return additional coordinates for `to_xarray`."""
        return {}

    def _variables(self) -> dict[str, Any]:
        return {}

    def _pattern_ends(self) -> Any:
        """Return the ends of the intervals of patterns, if there are any."""
        return ()

    @property
    def _takes_trajectories(self) -> bool:
        return "moments_" in vars(self) and of_trajectories(self.moments_.operator)

    def _pairs_y(self, learns: bool) -> bool:
        operator = checked_operator(self.operator) if learns else self._fitted().moments_.operator
        return not of_trajectories(operator) and len(operator.views) == 2

    def _restored(self) -> Self:
        moments = super()._restored().moments_
        if moments.right_basis is not None:
            self.right_basis_ = moments.right_basis
        density = estimate_of(moments.operator.density)
        if density is not None:
            self.density_ = density
        right = moments.preparation.get("right")
        if right is not None:
            self.right_preparation_ = Preparation.from_state(right)
            self.n_right_features_in_ = int(right["n_features_in"]) // self.right_preparation_.delays
        return self

    def _with(self, moments: Moments, solution: Mapping[str, Any], kept: Set[str]) -> Self:
        """Set the fitted attributes from a solution, except those `kept`."""
        known = {*kept, *LABELS, "feature_names_in_"}
        for name in [name for name in vars(self) if name.endswith("_") and name not in known]:
            delattr(self, name)  # from an earlier fit, perhaps by another solver
        for name, value in solution.items():
            setattr(self, name, value)
        self.moments_ = moments
        return self._restored()

    def _check_moments(self, moments: Moments) -> None:
        if isinstance(moments.operator, Regression):
            raise ValueError("expected moments of an operator, got moments of a regression. Use HermiteRegressor")
        if self.operator is not None and not checked_operator(self.operator).is_compatible_with(moments.operator):
            raise ValueError(f"operator must be that of the moments, {moments.operator}, got {self.operator}. Omit it")

    def _solve(self, moments: Moments) -> Self:
        solver, share = solver_of(self.solver), is_share(self._components)
        device = device_here(self.device)
        count = components_of(moments, self._components, solver, device) if share else int(self._components)
        system = system_of(moments, basis=basis_by_name(self.basis, "auto"), solver=solver, count=count)
        solution = system.solve(solver, count, names=self._column_names, device=device)
        if system.selection is not None:
            fixed = {} if estimate_of(moments.operator.density) is None else {"operator": moments.operator}
            solution["search_results_"] = system.selection.with_parameters({**self._given_params(), **fixed})
        known = vars(self).get("moments_")
        kept = {"search_results_"} if known is not None and known.fingerprint == moments.fingerprint else set()
        return self._with(moments, solution, kept)

    def _align_signs(self, before: SpectralEstimator) -> None:
        """Align the sign, or phase, of each function with the earlier one of largest overlap."""
        moments, own, new = self.moments_, before.coefficients_, self.coefficients_
        if moments.of_rows or before.moments_.of_rows:  # linear functions of other directions
            old, found = before.basis_.parts[-1].landmarks, self.basis_.parts[-1].landmarks
            own = np.vstack([own[: -len(old)], found @ (old.T @ own[-len(old) :])])
        gram = moments.mean("gram") if "gram" in moments.arrays else np.eye(len(new))
        overlap = own.conj().T @ gram @ new
        nearest = np.take_along_axis(overlap, np.abs(overlap).argmax(axis=0)[None], axis=0)[0]
        nearest = nearest if np.iscomplexobj(new) else nearest.real
        phases = np.divide(nearest.conj(), np.abs(nearest), out=np.ones_like(nearest), where=nearest != 0)
        for name in Attributes(self.solver_).functions:
            setattr(self, name, getattr(self, name) * phases)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | None = None,
    ) -> Self:
        """Fit the model in one pass over X on the active Dask scheduler.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL, tuple or list
            numpy, dask, zarr, xarray or scipy.sparse array, data frame, the path or URL of such data, or `Rows`
            with options for reading; a tuple of two for an operator between two views of each row; for Transfer a
            trajectory, or a list of several with lists of weights and fields.
        y : array-like, optional
            Second view of the rows, in place of a tuple (X, y).
        sample_weight : array of shape (n,), optional
            Frequency weights: a row of weight 2 counts as two rows.
        checkpoint : str or path, optional
            Directory or URL for partial sums. If interrupted, the same call resumes from them, with identical
            results on a device of the same kind. Only one process at a time may write there.
        checkpoint_every : float, default=60.0
            Seconds between writes of the checkpoint.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        SpectralEstimator
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError, MemoryError
            If the input is invalid or too large, before any task of the pass is submitted.
        InvalidRowError
            If a row contains NaN or infinity, unless such rows are skipped; reports the first one.
        OSError
            If the data are damaged or change during the pass, or the checkpoint is in use.
        """
        context = RunContext(progress, checkpoint, checkpoint_every)
        with open_table(self, X, context, fits=True, y=y, sample_weight=sample_weight) as table:
            session = self._session(table)
            self._check_several(session.source)
            self._fit_session(session, context)
            operator = self.moments_.operator
            values, ends = self._values, vars(self)[Attributes(operator.solver).errors]
            uncertain = uncertainty(values, ends, operator, constants=self.n_constants_)
            self.search_results_.advise(certain=uncertain <= UNCERTAIN)
        return self

    def _session(self, table: Table) -> Session:
        operator = in_rows(checked_operator(self.operator), table.rows)
        self._check_parameters(operator)
        folds = checked_folds(self.folds)
        source = open_data(operator, table.rows, **table.options(folds))
        return self._session_of(source, operator, folds)

    def _session_of(self, source: Source, operator: Operator, folds: FoldRequest | None) -> Session:
        wanted = choose_functions(self, operator)
        choice = wanted.fitted_to(source)
        if wanted.uses_gaps(source):
            source = replace(source, options=("skip", "pairwise"))
        choice.check_against(source)

        def choose(source: Source, fold_rule: FoldRuleOf, kept: TrainingState | None) -> Discretization:
            return choice.discretize(source, self.random_state, fold_rule, kept)

        planned = choice.outline(source), choice.selection_bytes(source), choice.lattice(source)
        return Session(source, operator, choose, self.dtype, chosen_device(self.device), folds, *planned)

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        folds: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Update the fit with rows appended to X, with the same functions.

        Only new rows are read if all fields are zarr stores in which no file with rows of the fit was written since
        (append whole chunks). All rows are read otherwise, and for linear functions of fewer rows than columns, which
        are recomputed. Functions keep their signs.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL, tuple or list
            All rows, old and new; new rows of trajectories continue the last one.
        y : array-like, optional
            Second view of all rows.
        sample_weight : array of shape (n,), optional
            Weights of all rows.
        folds : array of shape (n,), optional
            Labels of all rows; required if the folds of the fit are labels.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        SpectralEstimator
            The updated estimator.

        Raises
        ------
        ValueError
            If X has no more rows than before, its first rows are not those of the fit, moments were added from
            several arrays, or labels are missing or new.
        """
        before = self._fitted().moments_
        found = continued_folds(before.folds, folds)
        given = {"y": y, "sample_weight": sample_weight, "folds": folds}
        with open_table(self, X, RunContext(progress), **given) as table, recording_warnings(self):
            source = open_data(before.operator, table.rows, **table.options(found))
            fitted = copy.copy(self)
            self._update_source(source, found)
            self._align_signs(fitted)
        return self

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Any:
        """Fit the model and return the functions at the rows of X, an array or trajectories.

        Options are those of `fit`. Raises ValueError for several views.
        """
        operator = checked_operator(self.operator)
        if not of_trajectories(operator) and is_sequence(Rows.of(X).data) and len(operator.views) > 1:
            raise ValueError("fit_transform requires a single array. Call fit, and transform with one of the arrays")
        return super().fit_transform(X, y, **options)

    def _check_parameters(self, operator: Operator) -> None:
        check_components(self._components, operator)
        check_fit(self)
        solver = solver_of(self.solver)
        resolve_cut(solver.rtol, self.dtype)
        if solver.ridge and not isinstance(operator.solver, SymmetricPencil):
            raise ValueError(f"ridge requires a symmetric operator, got {operator.name}, solved by {operator.solver!r}")

    def transform(self, X: Any, *, side: str | None = None, **options: Any) -> Any:
        """Return the eigenfunctions, or singular functions, at the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path or URL
            Rows with the columns of the fit. Invalid rows raise InvalidRowError, or yield NaN with `Rows(X,
            on_invalid="skip")`; "pairwise" uses their finite entries, after a fit with this option.
        side : {"left", "right"}, optional
            "right" for right singular functions, at rows of y if they depend on other variables; "left" for
            eigenfunctions of the adjoint if values are complex. Otherwise ValueError is raised.
        extrapolate : {"nearest", "nan", "raise"}
            Values for rows at which all kernels at landmarks vanish, or outside the box of a FourierBasis: those at
            the nearest landmark or point of the box, or NaN, with an ExtrapolationWarning that counts these rows,
            or a ValueError.
        out : str or path, optional
            Path or URL of a new zarr group for the values and their labels, written atomically, in place of a
            returned array; `overwrite=True` replaces an existing one.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        array of shape (n, k)
            Functions of unit L²(ρ) norm, float64, or complex128 if values are complex; dask for zarr,
            xarray.DataArray for labeled data, a list for a list of trajectories.
        """
        self._check_frame(X, options.get("out"))
        check_is_fitted(self)
        check_option("side", side, (None, "left", "right"))
        if side is not None and len(self.solver_.sides) == 1:
            raise ValueError(
                f"side must be None for {type(self).__name__}, which has one kind of functions, got {side!r}"
            )
        coefficients = vars(self).get(f"{side}_coefficients_", self.coefficients_)
        right = side == "right" and coefficients is not self.coefficients_
        role = Role.TEST if right else Role.TRIAL
        return self._unlabeled(self._functions(coefficients, X, role, **options), X)

    @property
    def _n_features_out(self) -> int:
        return int(self.coefficients_.shape[1])

    @property
    def patterns_(self) -> Patterns:
        """Regression of the columns of X on the functions, in the units of X (`Patterns`).

        0 in columns that were left out. Raises ValueError on a FourierBasis, or with several views of a row.
        """
        found = patterns_of(self._fitted().moments_, self.coefficients_)
        return found.in_columns(self.preparation_, self.n_features_in_, units_of_columns(self))

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share (k,) of the variance of the fitted columns that each function explains.

        Raises as `patterns_`.
        """
        return self.patterns_.explained

    def to_xarray(self, X: Any = None) -> xr.Dataset:
        """Return the model as a Dataset of values, errors, functions and regression maps.

        Along `component`: the values with `_lower` and `_upper`, `standard_error`, `validation_value`, `multiplet`,
        `reliable`, `constant`, `function_error`, `coefficients` and `explained_variance_ratio`. `<variable>_pattern`
        and `<variable>_mean` have the dimensions and units of the data (`x` if unnamed), renamed to `x_component` and
        so on if in use. Patterns are missing if `patterns_` raises ValueError.

        Parameters
        ----------
        X : array-like, Rows, path, URL, tuple or list, optional
            Rows at which the variable `eigenfunction` is evaluated; the first of a pair of views; several
            trajectories are concatenated, with the coordinate `trajectory`.

        Returns
        -------
        xarray.Dataset
            The results.
        """
        return model_dataset(self._fitted(), X)

    def inverse_transform(self, F: Any) -> Any:
        """Return rows X (n, d) reconstructed from function values F (n, k) by regression.

        Exact for `Covariance()` with all components. After a fit with delays, rows are the last ones of windows.

        Parameters
        ----------
        F : array of shape (n, k), or DataArray of shape (..., k)
            Function values; with labels if the model was fitted to labeled data.

        Returns
        -------
        array of shape (n, d), DataArray or Dataset
            Rows in the dimensions and units of the data, lazy if F is chunked; NaN in columns that were left out.

        Raises
        ------
        ValueError
            If F has another shape, or `patterns_` raises it.
        """
        patterns = self.patterns_.of_columns(self.n_features_in_)
        rows = partial(_reconstructed, patterns, self.preparation_.row_columns)
        return self._in_columns(F, rows, len(patterns.maps))

    def _in_columns(self, F: Any, rows: Callable[[Any], Any], k: int) -> Any:
        """Return the columns of X that `rows` computes from values (n, k), labeled if X was."""
        if are_trajectories(F):
            return [self._in_columns(each, rows, k) for each in F]
        labeled = is_data_array(F)
        if labeled and self._numbering[0] in F.dims:
            F = F.transpose(..., self._numbering[0])
        values: Any = F.data if labeled else F
        lazy = is_dask_array(values)
        values = values if lazy else np.asarray(values)
        labeled = labeled and "layout_" in vars(self)
        if (values.ndim != 2 and not labeled) or values.shape[-1] != k:
            raise ValueError(f"F must have the shape (n, {k}) of transform, got {values.shape}")
        if lazy:
            import dask.array as da

            chunks = (*values.chunks[:-1], (rows(np.empty((0, k))).shape[-1],))
            meta = np.empty((0,) * values.ndim)
            found: Any = da.map_blocks(
                rows, values.rechunk({values.ndim - 1: -1}), chunks=chunks, dtype=float, meta=meta, token="inverse"
            )
        else:
            found = rows(values)
        if not labeled:
            return found
        coords = {name: c for name, c in F.coords.items() if self._numbering[0] not in c.dims}
        fields = in_the_field(self, found, F.dims[:-1], coords)
        if len(fields) == 1:
            return next(iter(fields.values()))
        import xarray as xr

        return xr.Dataset(fields, attrs=self.layout_.attrs)

    def _functions(self, coefficients: Array, X: Any, role: Role = Role.TRIAL, **options: Any) -> Any:
        moments, basis = self.moments_, self.basis_
        apart = role if moments.operator.own_right_basis else Role.TRIAL
        preparation = getattr(self, apart.named("preparation_"))
        if role == Role.TEST and moments.right_basis is not None:
            basis = moments.right_basis
        means = moments.mean(role.named("first")) @ coefficients if moments.operator.center else None
        function: RowFunction
        if Rows.of(X).on_invalid == "pairwise" and moments.pairs is not None:
            d = basis.dimension
            center = moments.mean(role.named("first"))[-d:] * moments.pairs.centered
            function = FittedValues(coefficients[-d:], center, preparation=preparation)
        else:
            basis, coefficients = basis.condensed(coefficients)
            function = SpanValues(
                basis, coefficients, means, device=chosen_device(self.device), preparation=preparation
            )
        labels = self._labels() if coefficients.shape[1] == len(self._values) else None
        return self._rows(function, X, coordinates=labels, role=apart, **options)

    def _labels(self) -> dict[str, Array]:
        """Return the values (k,), the ends of their intervals, and standard errors as variables."""
        names = Attributes(self.solver_)
        found, errors = {names.value: self._values}, vars(self).get(names.errors)
        if errors is not None:
            found |= {f"{names.value}_lower": errors[:, 0], f"{names.value}_upper": errors[:, 1]}
        if "standard_errors_" in vars(self):
            found["standard_error"] = self.standard_errors_
        return found

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        progress: bool | None = None,
    ) -> float:
        """Return the score of the first `n_components` functions on held-out rows X.

        Larger is better: minus the sum of Ritz values; for singular values and Transfer the sum of their squares
        (VAMP-2); for generators the sum of real parts. Use it to compare kernels, scales and bases.

        Parameters
        ----------
        X : array-like of shape (n, d), Rows, path, URL, tuple or list
            Rows that were not used in the fit.
        y : array-like, optional
            Second view of the rows.
        sample_weight : array of shape (n,), optional
            Frequency weights.
        progress : bool, optional
            Progress bar; by default on a terminal.

        Returns
        -------
        float
            The score; -inf if there are fewer functions.

        Raises
        ------
        ValueError
            If there are no more rows than functions, or columns differ from those of the fit.
        """
        return self._scored(X, y, sample_weight=sample_weight, progress=progress).score

    def _scored(self, X: Any, y: Any = None, *, sample_weight: Any = None, progress: bool | None = None) -> SpanScore:
        """Return the `score` with the values of the functions that it sums, and their number."""
        with open_table(self, X, RunContext(progress), y=y, sample_weight=sample_weight) as table:
            return measure_score(self, table.rows, sample_weight=table.sample_weight, progress=progress)


# -- a fitted decomposition as an xarray dataset -----------------------------------------------------------------------


COMPONENT = "component"


def model_dataset(estimator: Any, X: Any = None) -> xr.Dataset:
    """Return the Dataset of `SpectralDecomposition.to_xarray`."""
    import xarray as xr

    dim, first = estimator._numbering
    names = Attributes(estimator.solver_)
    value, values, bounds = names.value, getattr(estimator, names.values), getattr(estimator, names.errors)
    count = len(values)
    found: dict[str, Any] = {
        value: (dim, values, {"long_name": names.kind.value}),
        f"{value}_lower": (dim, bounds[:, 0], {"long_name": "lower end of the 95 % interval"}),
        f"{value}_upper": (dim, bounds[:, 1], {"long_name": "upper end of the 95 % interval"}),
        "standard_error": (dim, estimator.standard_errors_),
        "validation_value": (
            dim,
            estimator.validation_values_,
            {"long_name": f"{value} on held-out rows"},
        ),
        "multiplet": (
            dim,
            estimator.multiplets_,
            {"long_name": "number of the multiplet: its values are not distinguishable"},
        ),
        "reliable": (dim, estimator.reliable_, {"long_name": "value is reliable; always True for a constant"}),
        "constant": (dim, np.arange(count) < estimator.n_constants_, {"long_name": "function is a constant"}),
        "function_error": (dim, estimator.function_errors_, {"long_name": "sine of the angle of a group"}),
    }
    found |= estimator._variables()
    for name in names.functions:
        side = f"basis_{name.partition('coef')[0]}function"
        found[name.removesuffix("_")] = ((side, dim), getattr(estimator, name))
    dataset = xr.Dataset(
        found,
        {dim: np.arange(first, first + count), **estimator._coordinates()},
        attrs=plain(provenance(type(estimator).__name__, estimator._plain_params())),
    )
    if estimator.moments_.pairs is not None:
        about = "share of negative eigenvalues of the pairwise covariance matrix, which were clipped to 0"
        dataset["clipped_share"] = (), estimator.moments_.clipped, {"long_name": about}
    fields = _patterns(estimator) if SUMS in estimator.moments_.arrays else []
    if fields:
        dataset["explained_variance_ratio"] = dim, estimator.patterns_.explained
    layout: Layout | None = vars(estimator).get("layout_")
    if layout is not None and (own := layout.baseline) is not None:
        units, table = layout.units, np.asarray(own.climatology) * layout.units
        group: dict[str, Any] = {} if own.anomaly is None else {own.anomaly: list(own.labels)}
        degree, powers = "degree", {"degree": np.arange(1, own.degree + 1)}
        scale = {"center": own.center, "half": own.half, "unit of time": "(days since 1970-01-01 - center) / half"}
        scale |= {"calendar": own.calendar}
        fields += [FieldVariables("climatology", table if group else table[0], (*group,), group)]
        fields += [FieldVariables("trend", np.asarray(own.trend) * units, (degree,), powers, scale)]
    functions: dict[str, Any] = {}
    if X is not None:
        if isinstance((rows := Rows.of(X)).data, tuple) and not estimator._takes_trajectories:
            X = replace(rows, data=rows.data[0])
        values = estimator._functions(estimator.coefficients_, X)
        parts = [
            part
            if isinstance(part, xr.DataArray)
            else xr.DataArray(np.asarray(part), {dim: np.arange(count)}, (ROW, dim))
            for part in (values if isinstance(values, list) else [values])
        ]
        functions["eigenfunction"] = one_after_another(parts) if isinstance(values, list) else parts[0]
    return with_fields(dataset, estimator, fields, functions)


def one_after_another(parts: Sequence[xr.DataArray]) -> xr.DataArray:
    """Return concatenated values of trajectories, with the coordinate "trajectory"."""
    import xarray as xr

    dim = parts[0].dims[0]
    numbered = [
        part.assign_coords(trajectory=(dim, np.full(part.sizes[dim], number))) for number, part in enumerate(parts)
    ]
    return xr.concat(numbered, dim)


@dataclass(frozen=True, eq=False)
class FieldVariables:
    """Values (..., d) in the columns of X, written as variables `<name of the variable>_<kind>`.

    `dims` are the leading dimensions. The name is `kind` for a single variable if `alone`; columns are those of the
    `right` view if it is True; `per` is appended to the units of the data.
    """

    kind: str
    values: Any
    dims: tuple[str, ...] = ()
    coords: Mapping[str, Any] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    long_name: str = ""
    alone: bool = False
    right: bool = False
    per: str = ""

    def name_of(self, variable: str) -> str:
        return self.kind if self.alone else f"{variable}_{self.kind}"


def _patterns(estimator: Any) -> list[FieldVariables]:
    """Return the regression maps with their intervals, and the means."""
    patterns, dim = estimator.patterns_, estimator._numbering[0]
    bounds = [
        FieldVariables(f"pattern_{end}", values, (dim,), long_name=f"{end} end of the 95 % interval")
        for end, values in zip(("lower", "upper"), estimator._pattern_ends(), strict=False)
    ]
    maps = FieldVariables(
        "pattern", patterns.single, (dim,), long_name="regression of {} on each function, of variance 1"
    )
    return [*bounds, maps, FieldVariables("mean", patterns.mean)]


def with_fields(
    dataset: xr.Dataset, estimator: Any, fields: Sequence[FieldVariables], functions: Mapping[str, xr.DataArray]
) -> xr.Dataset:
    """Return the dataset with `fields` in the dimensions of the data, and `functions` of the rows.

    Dimensions and coordinates of the data whose names are in use are renamed to x_... .
    """
    layout: Layout | None = vars(estimator).get("layout_")
    names = ["x"] if layout is None else [variable.name or "x" for variable in layout.variables]
    own = {*dataset.dims, *dataset.variables, *functions, *(dim for part in fields for dim in part.dims)}
    reserved = own | {part.name_of(name) for name in names for part in fields}
    found: dict[str, Any] = {}
    for part in fields:
        for name, values in in_the_field(
            estimator, part.values, part.dims, part.coords, reserved, right=part.right
        ).items():
            attrs = {"long_name": part.long_name.format(name)} if part.long_name else {}
            if part.per and "units" in values.attrs:
                attrs["units"] = f"{values.attrs['units']}{part.per}"
            found[part.name_of(name)] = _apart(values.assign_attrs(**attrs, **part.attrs), found)
    for name, values in functions.items():
        dim = estimator._numbering[0]
        values = values.drop_vars([key for key in values.coords if dim in values[key].dims])
        rows = free_names([name for name in (*values.dims, *values.coords) if name != dim], reserved)
        found[name] = _apart(values.rename({key: new for key, new in rows.items() if key != new}), found)
    return dataset.assign(found)


def _apart(values: xr.DataArray, others: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return values with a 2 appended to the names of coordinates and dimensions that differ from those of others."""
    coords = {key: value.variable for one in others.values() for key, value in one.coords.items()}
    sizes = {dim: size for one in others.values() for dim, size in one.sizes.items()}
    names = {key for key in values.coords if key in coords and not coords[key].equals(values[key].variable)}
    names |= {dim for dim, size in values.sizes.items() if sizes.get(dim, size) != size}
    names |= {key for key, value in values.coords.items() if key in coords and names & {*value.dims}}
    return values.rename({name: f"{name}2" for name in names})


def units_of_columns(estimator: Any, right: bool = False) -> Any:
    """Return the factors (d,), or 1, from values in columns of X to its units."""
    layout = vars(estimator).get(f"{'right_' * right}layout_")
    if layout is None or layout.weights is None:
        return 1.0
    return np.tile(layout.units, vars(estimator)[f"{'right_' * right}preparation_"].delays)


def in_the_field(
    estimator: Any,
    values: Any,
    dims: tuple[Any, ...] = (),
    coords: Any = None,
    reserved: Collection[Any] = (),
    *,
    right: bool = False,
) -> dict[str, xr.DataArray]:
    """Return values (..., d) in the columns of X as one array per variable of the fit.

    `x` for unlabeled data; windows of rows have the dimension `delay`. Columns are those of the `right` view if it is
    True. Dimensions and coordinates of the data whose names are `reserved`, or in `dims`, are renamed to x_... .
    """
    import xarray as xr

    side = "right_" * right
    layout: Layout | None = vars(estimator).get(f"{side}layout_")
    delays, width = vars(estimator)[f"{side}preparation_"].delays, values.shape[-1]
    if delays > 1 and width == delays * (vars(estimator)[f"n_{side}features_in_"] if layout is None else layout.width):
        values = values.reshape(*values.shape[:-1], delays, width // delays)
        dims, about = (*dims, DELAY), {"long_name": "rows before the last one of a window", "units": "1"}
        coords = {**(coords or {}), DELAY: (DELAY, np.arange(delays), about)}
    if layout is not None:
        return layout.spread(values, dims, coords, reserved=reserved)
    names = vars(estimator).get(f"{side}columns_")
    known = {"feature": np.arange(values.shape[-1])} if names is None else names.coordinates("feature")
    levels = free_names([] if names is None or names.levels is None else known, {*dims, *(coords or {}), *reserved})
    own = {levels.get(key, key): value for key, value in known.items()}
    found = xr.DataArray(values, {**own, **(coords or {})}, (*dims, "feature"), name="x")
    index: Any = {"feature": [*levels.values()]} if levels else {}
    return {"x": found.set_index(index)}
