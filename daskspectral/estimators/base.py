"""Base classes of estimators: parameters, saving, rows in any container, and the steps of a fit.

A fit opens the data, plans, resumes a checkpoint or chooses a discretization (scaling, landmarks), sums moments, and
solves.
"""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import getattr_static
from typing import Any, ClassVar, Self, final

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils._metadata_requests import RequestMethod
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import BasisRecipe, Landmarks
from daskspectral.basis.names import NAMES as FUNCTIONS
from daskspectral.data.integrity import Manifest
from daskspectral.data.rows import OpenedRows, Rows
from daskspectral.data.source import Preparation, Source
from daskspectral.engine.memory import chosen_device
from daskspectral.estimators.bases import BaseEstimator
from daskspectral.estimators.evaluator import Evaluator
from daskspectral.estimators.reading import LABELS, NAMES, names_of
from daskspectral.estimators.records import WARNINGS, identity_of, provenance, recording_warnings
from daskspectral.estimators.summary import PUBLIC, summary_of
from daskspectral.estimators.table import RunContext, Table, open_table
from daskspectral.groups import Group
from daskspectral.kernels import Kernel
from daskspectral.manifolds import Manifold
from daskspectral.moments import Moments
from daskspectral.moments.reliability import advise_reach
from daskspectral.operators import Operator
from daskspectral.operators.paired import of_trajectories
from daskspectral.passes.folds import FoldRequest, checked_folds, saved_folds
from daskspectral.passes.selection import Selection
from daskspectral.passes.session import Session, check_appended, measured_further
from daskspectral.passes.sums import Discretization, PassPlan
from daskspectral.registry import Function, Named
from daskspectral.solvers import BurerMonteiro, Regularized, Truncated

Array = NDArray[np.inexact[Any]]
Path = str | os.PathLike[str]
KEPT = (*LABELS, WARNINGS)  # with any model that has them


class _Request(RequestMethod):  # type: ignore[misc]
    """Method such as `set_fit_request`, with one line of documentation instead of forty."""

    def __get__(self, instance: Any, owner: type) -> Any:
        found = super().__get__(instance, owner)
        found.__doc__ = (
            f"Set the arguments that meta-estimators pass to `{self.name}`, by scikit-learn's metadata routing."
        )
        return found


class Estimator(Evaluator, BaseEstimator):
    """Estimator with scikit-learn's parameters, saved with its `_fitted_attributes`.

    `warnings_` lists the warnings of the last fit, update or solution, "Category: message" each. The `repr` of a fitted
    estimator is its summary in one line.
    """

    expects: ClassVar = {
        "operator": Operator,
        **dict.fromkeys(("kernel", "weights"), Kernel),
        **dict.fromkeys(("basis", "right_basis"), BasisRecipe),
        "landmarks": Landmarks,
        "manifold": Manifold,
        "group": Group,
        "solver": (Named, Regularized, Truncated, BurerMonteiro),
        **dict.fromkeys(("u", "d"), Function),
    }
    _parts: ClassVar[Mapping[str, Any]] = {}
    """Defaults for None, by parameter."""

    feature_names_in_: NDArray[Any]
    warnings_: list[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in [*vars(cls).items()]:
            if type(value) is RequestMethod:
                setattr(cls, name, _Request(value.name, value.keys))

    @property
    @abstractmethod
    def _fitted_attributes(self) -> tuple[str, ...]:
        """Attributes that are saved; `_restored` computes all others from them."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _restored(self) -> Self:
        """Return this estimator with the attributes that follow from the saved ones."""
        return self

    def _summary_parts(self) -> dict[str, Any]:
        found = {name: getattr(self, name, None) for name in self._fitted_attributes}
        shown = {name: f"array {v.shape}" if isinstance(v, np.ndarray) else v for name, v in found.items()}
        return {"verdict": "fitted", "facts": {"model": BaseEstimator.__repr__(self), **shown}}

    @property
    def _summary_attributes(self) -> tuple[str, ...]:
        """Attributes that a `Summary` contains as numbers: all public ones."""
        return (*(name for name in self._fitted_attributes if not name.startswith("_")), *PUBLIC)

    @final
    def _summary(self) -> Any:
        try:
            return summary_of(self)
        except (NotFittedError, AttributeError):  # not fitted, or fitting
            return None

    @final
    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        found = self._summary()
        return str(super().__repr__(N_CHAR_MAX)) if found is None else str(found.line)

    @final
    def _repr_html_inner(self) -> str:
        found = self._summary()
        return str(super()._repr_html_inner() if found is None else found.html())

    @final
    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        shown = {"text/html": self._repr_html_inner()} if sklearn.get_config()["display"] == "diagram" else {}
        return {"text/plain": repr(self), **shown}

    @final
    def state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes; raise NotFittedError before `fit`."""
        check_is_fitted(self)
        found = {name: getattr(self, name) for name in (*self._fitted_attributes, *KEPT) if hasattr(self, name)}
        if NAMES in vars(self):
            found[NAMES] = self.feature_names_in_.tolist()
        return {"params": _as_saved(self._plain_params()), **found}

    @final
    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the estimator of a `state`, without solving: another LAPACK may rotate degenerate functions."""
        fitted = {name: value for name, value in state.items() if name != "params"}
        estimator = cls(**_as_saved(state["params"]))
        for name, value in fitted.items():
            if getattr_static(cls, name, None) is None:  # files cannot replace methods
                setattr(estimator, name, value)
        if NAMES in fitted:
            estimator.feature_names_in_ = np.array([str(name) for name in fitted[NAMES]], dtype=object)
        known = {name for name in (*estimator._fitted_attributes, *KEPT, NAMES) if name in vars(estimator)}
        strange = sorted(set(fitted) - known)
        if strange:
            raise ValueError(
                f"unexpected attributes of {cls.__name__}: {', '.join(strange)}. The file was changed after saving."
            )
        return estimator._restored()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            True to include those of objects, such as basis__kernel__scale.

        Returns
        -------
        dict
            Values by name.
        """
        found: dict[str, Any] = super().get_params(deep)
        return found

    def get_metadata_routing(self) -> Any:
        """Return the arguments that meta-estimators pass to methods (metadata routing)."""
        return super().get_metadata_routing()

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params
            Values by name, also of parameters of objects: basis__kernel__scale=0.5.

        Returns
        -------
        Self
            The estimator.

        Raises
        ------
        ValueError
            If an object has no parameters.
        """
        present = self.get_params(deep=False)
        for name in params:
            owner, nested, parameter = name.partition("__")
            if not nested or owner not in present:
                continue
            given = params.get(owner, present[owner])
            if given is None and owner in self._parts:
                given = self._parts[owner]()
            elif isinstance(given, str) and given in FUNCTIONS and owner in ("basis", "right_basis"):
                given = FUNCTIONS[given]()
            if not hasattr(given, "set_params"):
                raise ValueError(f"{owner} must be an object with parameters to set its {parameter}, got {given!r}.")
            setattr(self, owner, copy.deepcopy(given))
            if owner in params:
                params[owner] = getattr(self, owner)
        super().set_params(**params)
        return self

    def _plain_params(self) -> dict[str, Any]:
        """Return the parameters for files: labels of folds, and a generator, as None."""
        params = dict(self.get_params(deep=False))
        for name, value in params.items():
            if name == "folds" and not isinstance(value, (int, np.integer, str, os.PathLike, type(None))):
                params[name] = None  # labels are data; the model contains their sums
            elif name == "random_state" and not isinstance(value, (int, np.integer)):
                params[name] = None
        return params

    @final
    def _provenance(self) -> dict[str, Any]:
        return provenance(type(self).__name__, self._plain_params())

    @final
    def _fitted(self) -> Self:
        """Return this estimator; raise sklearn's NotFittedError (a ValueError) before `fit`."""
        check_is_fitted(self)
        return self

    @final
    def _as_fitted(self, rows: Rows) -> Rows:
        """Return rows with the columns of the fit, without scaling; arrays must have as many columns."""
        self._check_as_fitted(rows)
        operator = vars(self)["moments_"].operator if "moments_" in vars(self) else None
        single = operator is None or (not of_trajectories(operator) and len(operator.views) == 1)
        fitted = vars(self).get("preparation_") or Preparation()
        data = self._like_fit(rows.data) if single else rows.data
        own: dict[str, Any] = {"columns": fitted.row_columns, "standardize": False, "delays": fitted.delays}
        if isinstance(rows, OpenedRows):
            sides = {"weights": fitted, "right_weights": vars(self).get("right_preparation_", Preparation())}
            widths = self.n_features_in_, vars(self).get("n_right_features_in_", 0)
            own |= {name: _raw_weights(side, width) for (name, side), width in zip(sides.items(), widths, strict=True)}
        return replace(rows, data=data, **own)

    def _pairs_y(self, learns: bool) -> bool:
        """Return whether y is the second view of rows, of the operator to fit (`learns`) or the fitted one."""
        return False

    @final
    def _column_names(self) -> Sequence[str]:
        return names_of(vars(self).get("columns_"), vars(self).get("layout_"))

    @final
    def _check_several(self, source: Source) -> None:
        if source.n < 2:
            raise ValueError(f"{type(self).__name__} requires 2 or more rows, got 1 (n_samples = 1).")

    @final
    def _check_whole(self, rows: Rows) -> None:
        """Raise ValueError for selected or scaled columns if the model does not support them."""
        name = "columns" if rows.columns is not None else "standardize" if rows.standardize else ""
        if name:
            raise ValueError(f"{type(self).__name__} does not support {name}=. Omit it.")


def _raw_weights(preparation: Preparation, width: int) -> Array | None:
    """Return the weights of the columns of the data, 1 for unused ones; None without weights."""
    if preparation.weights is None:
        return None
    found = np.ones(width)
    columns = preparation.row_columns
    found[slice(None) if columns is None else list(columns)] = preparation.weights[: len(columns or found)]
    return found


def _as_saved(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for files, without paths that the next fit would read or write."""
    return {name: saved_folds(value) if name == "folds" else value for name, value in params.items()}


class MeasuredEstimator(Estimator):
    """Estimator that is solved from moments, summed in one pass and updated with more rows."""

    dtype: str = "float64"
    device: str = "cpu"
    search_results_: Selection
    moments_: Moments
    basis_: Any
    kernel_: Kernel | str | None

    def _restored(self) -> Self:
        moments = self.moments_
        self.basis_ = moments.basis
        self.kernel_ = next((b.kernel for b in moments.basis.landmark_parts), None)
        if moments.basis.after_pass:
            self.kernel_ = self.search_results_.best_params["basis"].kernel
        self.preparation_ = Preparation.from_state(moments.preparation)
        self.n_features_in_ = int(moments.preparation["n_features_in"]) // self.preparation_.delays
        return self

    @final
    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments from an earlier run with these parameters, without data.

        Parameters
        ----------
        moments : Moments
            Moments of the same operator.

        Returns
        -------
        Self
            The fitted estimator.

        Raises
        ------
        ValueError
            For another operator, manifold or group, functions that all vanish, sums that are not finite, and weights
            with sum zero.
        """
        with recording_warnings(self):
            self._check_moments(moments)
            return self._solve(moments)

    def _check_moments(self, moments: Moments) -> None: ...

    @abstractmethod
    def _solve(self, moments: Moments) -> Self: ...

    @abstractmethod
    def _session(self, table: Table) -> Session:
        """Return a fit to the checked data of a call; only metadata are read."""

    @final
    def _fit_session(self, session: Session, context: RunContext) -> Self:
        def identity(snapshot: Manifest) -> dict[str, Any]:
            return identity_of(snapshot, session.source, {**self._plain_params(), "device": session.device})

        discretization, moments = session.measured(identity, context.checkpoint, context.checkpoint_every)
        fitted = self._solve(moments)
        chosen = discretization.selection
        if chosen is not None and discretization.basis.after_pass:  # the basis was chosen on the pilot
            earlier = self.search_results_
            self.search_results_ = replace(earlier, candidates=(*earlier.candidates, *chosen.candidates))
        elif chosen is not None:
            given = self._given_params()
            self.search_results_ = replace(
                chosen, best_params={k: chosen.best_params.get(k, v) for k, v in given.items()}
            )
        return fitted

    @final
    def plan(
        self,
        X: Any,
        y: Any = None,
        gradients: Any = None,
        *,
        sample_weight: Any = None,
    ) -> PassPlan:
        """Return the tasks and the peak memory of `fit` on these data, without a fit.

        Parameters
        ----------
        X : array-like or Rows
            Data as for `fit`; only metadata are read if they suffice.
        y : array-like, optional
            Targets, or second views.
        gradients : array-like, optional
            Gradients of the targets.
        sample_weight : array-like, optional
            Weights.

        Returns
        -------
        PassPlan
            The plan.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError
            For invalid input.
        OSError
            If chunks of a store are missing.
        MemoryError
            If the run would exceed the memory.
        """
        fields = {"y": y, "gradients": gradients, "sample_weight": sample_weight}
        with open_table(self, X, RunContext(progress=False, dry_run=True), fits=True, **fields) as table:
            return self._session(table).plan()

    @final
    def _given_params(self) -> dict[str, Any]:
        """Return the parameters, with sequences as arrays."""
        folds = {} if not hasattr(self, "folds") else {"folds": self.folds}  # labels are data, which files do not keep
        return {**self._plain_params(), **folds}

    def _update_source(self, source: Source, folds: FoldRequest | None) -> Self:
        """Sum the rows of opened data that are not in the fitted moments, add, and solve.

        Bases that are combinations of rows are rebuilt from all rows, which are summed again.
        """
        before = self.moments_
        if not before.of_rows:
            moments = measured_further(before, source, folds, chosen_device(self.device))
            advise_reach(before, moments)
            return self._solve(moments)
        check_appended(before, source, Manifest(source))
        labeled = folds is not None and folds.labels is not None
        folds = folds if labeled else checked_folds(getattr(self, "folds", None))
        source = Discretization.of(before).prepared(source, before.operator)
        return self._fit_session(self._session_of(source, before.operator, folds), RunContext())

    def _session_of(self, source: Source, operator: Any, folds: FoldRequest | None) -> Session:
        """Return a fit to opened data with the basis of the parameters, if it depends on rows."""
        raise NotImplementedError
