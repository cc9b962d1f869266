"""What estimators share: parameters, saving, rows in any container, and the steps from data to moments to a solution.

A fit is: open the data, plan, take up a checkpoint or choose a discretisation (scaling, landmarks), measure, solve.
`Estimator` saves and applies; `MeasuredEstimator` has the steps, each once, for all that is solved from moments.
"""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import getattr_static
from typing import Any, ClassVar, Self, final

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from daskspectral.basis import Basis, FourierLattice
from daskspectral.data.integrity import Snapshot
from daskspectral.data.labelled import stack_rows
from daskspectral.data.remote import stored
from daskspectral.data.source import Source
from daskspectral.data.writing import refuse_existing, refuse_input
from daskspectral.engine.accelerators import chosen_device
from daskspectral.engine.checkpoint import Checkpoint, checkpoint_directory
from daskspectral.estimators.columns import NAMES, NamedColumns
from daskspectral.estimators.doubts import WARNINGS
from daskspectral.estimators.identity import identity_of, provenance
from daskspectral.estimators.notebook import head_html
from daskspectral.groups import Group
from daskspectral.kernels import Kernel
from daskspectral.manifolds import Manifold
from daskspectral.moments import Moments
from daskspectral.moments.folds import Dealing, Dealt
from daskspectral.operators import Operator
from daskspectral.passes.appended import check_appended
from daskspectral.passes.apply import Result, apply_rows
from daskspectral.passes.folds import FoldRequest
from daskspectral.passes.networks import Kept, Training
from daskspectral.passes.parameters import check_one_of
from daskspectral.passes.rows import RowFunction
from daskspectral.passes.selection import Selection
from daskspectral.passes.sums import Discretisation, PassPlan, measure, plan_sums
from daskspectral.registry import Function, Named, Registered, Trusted
from daskspectral.store import load, save

Array = NDArray[np.inexact[Any]]
Path = str | os.PathLike[str]
LAYOUTS = ("layout_", "right_layout_")
KEPT = (*LAYOUTS, WARNINGS)  # with any model that has them
planning = logging.getLogger("daskspectral.plan")


class Estimator(NamedColumns, Registered, BaseEstimator):  # type: ignore[misc]
    """An estimator with scikit-learn's parameters, saved with the attributes that `fitted_attributes` names.

    `warnings_` is what the last fit, update or solution warned of, "Category: message" each. In a notebook a fitted
    estimator shows what a report begins with (`daskspectral.report`), others scikit-learn's diagram.
    """

    expects: ClassVar = {
        "operator": Operator,
        "kernel": Kernel,
        "right_kernel": Kernel,
        "weights": Kernel,
        "basis": Basis,
        "right_basis": Basis,
        "manifold": Manifold,
        "group": Group,
        "solver": Named,
        "u": Function,
        "d": Function,
    }
    shapes: ClassVar = {"spectrum_": "k", "eigenvalues_": "k"}

    @property
    @abstractmethod
    def fitted_attributes(self) -> tuple[str, ...]:
        """The attributes that are saved; `restored` makes all others from them."""

    def restored(self) -> Self:
        """This estimator with the attributes that follow from the saved attributes."""
        return self

    @final
    def _repr_html_inner(self) -> str:
        return head_html(self) or str(super()._repr_html_inner())

    @final
    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        shown = head_html(self)
        if not shown:
            found: dict[str, Any] = super()._repr_mimebundle_(**options)
            return found
        diagram = sklearn.get_config()["display"] == "diagram"
        return {"text/plain": repr(self), **({"text/html": shown} if diagram else {})}

    @final
    def state(self) -> dict[str, Any]:
        """The parameters and the fitted attributes; raises sklearn's NotFittedError before `fit`."""
        check_is_fitted(self)
        found = {name: getattr(self, name) for name in (*self.fitted_attributes, *KEPT) if hasattr(self, name)}
        if NAMES in vars(self):
            found[NAMES] = self.feature_names_in_.tolist()
        return {"params": self.plain_params(), "fitted": found}

    @final
    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `state`; nothing is solved again, since another LAPACK may rotate degenerate functions."""
        params, fitted = dict(state["params"]), state["fitted"]
        if params.get("periods") is not None:
            params["periods"] = {int(column): period for column, period in params["periods"].items()}
        estimator = cls(**params)
        for name, value in fitted.items():
            if getattr_static(cls, name, None) is None:  # a file replaces no method
                setattr(estimator, name, value)
        if NAMES in fitted:
            estimator.feature_names_in_ = np.array([str(name) for name in fitted[NAMES]], dtype=object)
        known = {name for name in (*estimator.fitted_attributes, *KEPT, NAMES) if name in vars(estimator)}
        strange = sorted(set(fitted) - known)
        if strange:
            raise ValueError(
                f"a fitted {cls.__name__} does not save {', '.join(strange)}: the file was altered after saving"
            )
        return estimator.restored()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, of kernels too, as kernel__scale=0.5. Raises ValueError for those of a kernel not given."""
        own = self.get_params(deep=False)
        for name in params:
            owner, nested, parameter = name.partition("__")
            given = params.get(owner, own.get(owner))
            if nested and owner in own and (given is None or isinstance(given, str)):
                raise ValueError(
                    f"{name} is the {parameter} of {owner}={given!r}, which is no object yet: give one whose "
                    f"parameters are to be set, such as {type(self).__name__}({owner}=daskspectral.kernels.Gaussian())"
                )
        super().set_params(**params)
        return self

    @final
    def plain_params(self) -> dict[str, Any]:
        """The constructor's arguments as they are saved: sequences as arrays, a generator as None."""
        params = dict(self.get_params(deep=False))
        for name, value in params.items():
            if name in ("landmarks", "right_landmarks", "rescale") and not isinstance(value, (str, type(None))):
                params[name] = np.asarray(value)
            elif name == "columns" and value is not None:
                params[name] = [int(c) for c in value]
            elif name == "folds" and not isinstance(value, (int, np.integer, str, os.PathLike, type(None))):
                params[name] = None  # labels are data: the model keeps their sums
            elif name == "periods" and value is not None:
                params[name] = {str(column): float(period) for column, period in value.items()}
            elif name == "random_state" and not isinstance(value, (int, np.integer)):
                params[name] = None
        return params

    @final
    def save(self, path: Path, *, overwrite: bool = False, storage_options: Mapping[str, Any] | None = None) -> None:
        """Write the fitted estimator as a zarr group (`daskspectral.save`)."""
        save(self, path, overwrite=overwrite, storage_options=storage_options)

    @final
    @classmethod
    def load(
        cls, path: Path, *, trusted: Iterable[Trusted] = (), storage_options: Mapping[str, Any] | None = None
    ) -> Self:
        """A saved estimator of this class (`daskspectral.load`). Raises ValueError where it is of another class."""
        model = load(path, trusted=trusted, storage_options=storage_options)
        if not isinstance(model, cls):
            what = type(model).__name__
            raise ValueError(f"{os.fspath(path)} holds {what}, not {cls.__name__}; use daskspectral.load")
        return model

    @final
    def fitted(self) -> Self:
        """This estimator; raises sklearn's NotFittedError (a ValueError) before `fit`."""
        check_is_fitted(self)
        return self

    @final
    @stored
    def _rows(
        self,
        function: RowFunction,
        X: Any,
        *,
        n_features: int | None = None,
        coordinates: Mapping[str, Array] | None = None,
        name: str = "eigenfunction",
        output: Result | None = None,
        side: str = "",
        out: Path | None = None,
        overwrite: bool = False,
        on_invalid: str = "raise",
        allow_missing: bool = False,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """The function at the rows of X, in X's container, with the options of `transform` and `predict`.

        The `output` is by default called `name`, with `coordinates` (columns,) along its dimension "component".
        """
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        if out is not None:
            refuse_existing(out, overwrite)
            refuse_input(out, X if isinstance(X, (str, os.PathLike)) else None)
        if output is None:
            output = Result.of_components(name, function.columns, coordinates)
        laid = stack_rows(X, sample_dims=getattr(self, "sample_dims", None), layout=vars(self).get(f"{side}layout_"))
        return apply_rows(
            replace(function, nan_rows=on_invalid == "skip"),
            self._like_fit(X if laid is None else laid.reader, n_features),
            output=output,
            rows=None if laid is None else laid.rows,
            provenance=provenance(type(self).__name__, self.plain_params()) if out is not None else None,
            out=out,
            overwrite=overwrite,
            progress=progress,
        )


class MeasuredEstimator(Estimator):
    """An estimator that is solved from moments: measured in one pass, updated with appended rows, solved again."""

    dtype: str = "float64"
    device: str = "cpu"
    choice_: Selection

    @abstractmethod
    def fit_moments(self, moments: Moments) -> Self:
        """Solve moments measured before; no data are touched."""

    @final
    def _fit_source(
        self,
        source: Source,
        operator: Operator,
        lay: Callable[[Source, Training], Discretisation],
        *,
        sizes: tuple[int, int | None] | None = None,
        folds: FoldRequest | None = None,
        apart: bool = False,
        choosing: int = 0,
        lattice: FourierLattice | None = None,
        on_invalid: str,
        checkpoint: Path | None,
        checkpoint_every: float,
        progress: bool | None,
    ) -> Self:
        """The steps of a fit after its data are opened and checked; `lay` chooses the bases to measure them with.

        `sizes` are the numbers of functions, where they are known: the plan is then made before any work. `apart` says
        that rows which coincide with landmarks are expected to be summed apart from the `folds`; `choosing` is the
        memory of an automatic choice, in bytes; on a `lattice` modes are summed.
        """
        device = chosen_device(self.device)
        if folds is not None:
            folds = folds.counted(source, progress=progress)
        plan = None if sizes is None else self._planned(source, operator, sizes, folds, apart, choosing, lattice)
        snapshot = Snapshot(source)

        def dealing(sizes: tuple[int, int | None]) -> Dealing | None:
            return self._planned(source, operator, sizes, folds, apart).dealing

        kept: Kept | None = None

        def constants() -> dict[str, Any]:
            by_tasks = plan is not None and isinstance(plan.dealing, Dealt)
            return {"discretisation": lay(replace(source, by_tasks=by_tasks), Training(dealing, kept))}

        saved = None
        if checkpoint is None:
            known = constants()
        else:
            identity = identity_of(snapshot, {**self.plain_params(), "device": device}, on_invalid)
            kept = Kept(checkpoint_directory(checkpoint), identity)
            kinds = {"discretisation": Discretisation}
            saved = Checkpoint.take_up(checkpoint, identity, constants, kinds, checkpoint_every)
            kept.clear()
            known = dict(saved.constants)
        laid: Discretisation = known["discretisation"]
        found = laid.landmark_rows == "apart"
        other = laid.sizes != sizes or (lattice is None) != (laid.lattice is None)
        if plan is None or other or found != apart:  # fewer landmarks than were asked for, or rows alike
            plan = self._planned(source, operator, laid.sizes, folds, found, lattice=laid.lattice)
        moments = measure(
            source,
            laid,
            operator,
            plan,
            dtype=self.dtype,
            device=device,
            on_invalid=on_invalid,
            progress=progress,
            snapshot=snapshot,
            checkpoint=saved,
        )
        fitted = self.fit_moments(moments)
        if laid.selection is not None and laid.lattice is not None:  # chosen on the pilot; its prior after the pass
            own = self.choice_
            self.choice_ = replace(own, candidates=(*own.candidates, *laid.selection.candidates))
        elif laid.selection is not None:
            self.choice_ = laid.selection.with_parameters(self.given_params())
        return fitted

    @final
    def given_params(self) -> dict[str, Any]:
        """The constructor's arguments, sequences as arrays."""
        return {**self.plain_params(), **_as_given(self)}

    @final
    def _planned(
        self,
        source: Source,
        operator: Operator,
        sizes: tuple[int, int | None],
        folds: FoldRequest | None,
        apart: bool,
        choosing: int = 0,
        lattice: FourierLattice | None = None,
    ) -> PassPlan:
        plan = plan_sums(
            source,
            operator,
            sizes,
            self.dtype,
            device=chosen_device(self.device),
            folds=folds,
            apart=apart,
            choosing=choosing,
            lattice=lattice,
        )
        planning.info("plan: %s", plan)
        return plan

    @final
    def _update_source(
        self,
        source: Source,
        *,
        folds: FoldRequest | None,
        on_invalid: str,
        progress: bool | None,
    ) -> Self:
        """Measure the rows of opened data that the fitted moments have not seen, and solve the sum."""
        before: Moments = self.moments_
        check_one_of("on_invalid", on_invalid, ("raise", "skip"))
        device = chosen_device(self.device)
        snapshot = Snapshot(source)
        digests = check_appended(before, source, snapshot, progress)
        source = source.begun_at(before.rows)
        apart = before.landmark_rows == "apart"
        laid = replace(Discretisation.of(before), landmark_rows=before.landmark_rows)
        added = measure(
            source,
            laid,
            before.operator,
            plan_sums(
                source,
                before.operator,
                laid.sizes,
                before.dtype,
                device=device,
                start=before.rows,
                folds=folds,
                apart=apart,
                lattice=laid.lattice,
            ),
            dtype=before.dtype,
            device=device,
            on_invalid=on_invalid,
            progress=progress,
            snapshot=snapshot,
            after=before,
        )
        assert added.digests is not None
        return self.fit_moments(replace(before + added, digests=digests + added.digests))


def _as_given(estimator: MeasuredEstimator) -> dict[str, Any]:
    """The arguments that files keep in another form, or not at all."""
    given = estimator.get_params(deep=False)
    found = {name: given[name] for name in ("folds",) if name in given}
    return found if given.get("periods") is None else {**found, "periods": dict(given["periods"])}
