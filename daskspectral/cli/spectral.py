"""`fit`: spectral decompositions. `update` and `merge`: models that are kept as moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from daskspectral.basis import Basis, Landmarks
from daskspectral.cli import parameters as par
from daskspectral.cli import running as run
from daskspectral.cli.commands import say, session
from daskspectral.cli.signatures import given
from daskspectral.data.source import Preparation
from daskspectral.estimators.summary import moments_of
from daskspectral.kernels import Linear
from daskspectral.moments import Moments
from daskspectral.operators import Covariance, Cross, CrossCovariance, Operator, Transfer
from daskspectral.plot import eigenfunctions, refuse_picture, save_figure
from daskspectral.solvers import Regularized
from daskspectral.spectral import CCA, EOF, MCA, Koopman, SpectralDecomposition
from daskspectral.store import load

LINEAR = {repr(Covariance()): EOF, repr(Cross(center=True)): CCA, repr(CrossCovariance()): MCA}
"""Estimators of linear functions, by the operator."""
USUAL, COLUMNS = (repr(Landmarks()), repr(Regularized())), repr(Landmarks(Linear()))
"""Default basis and solver, and the basis of the columns."""


def fit(points: str, **options: Any) -> None:
    """Fit a spectral decomposition to POINTS.

    POINTS are a zarr array or group, NetCDF or Parquet files (a path or URL).

    Examples
    --------
    fit points.zarr --out model.zarr
    fit points.zarr --kernel gaussian:0.5 --landmarks 100 --components 4 --out g.zarr
    fit points.zarr --operator schroedinger --potential v.zarr --out s.zarr
    fit points.zarr --operator generator --drift b.zarr --diffusion 1.0 --out l.zarr
    fit path.zarr --operator transfer:5 --out koopman.zarr
    fit path.zarr --trajectory second-path.zarr --operator transfer:5 --out both.zarr
    fit sst.nc --operator covariance --sample-dims time --latitude lat --on-invalid skip --out eofs.zarr
    fit points.zarr --view b.zarr --operator cross:center --kernel linear --out cca.zarr
    fit points.zarr --functions-of model.zarr --out like-model.zarr
    """
    picture, overwrite = options["picture"], options["overwrite"]
    fields, weights = run.fields_of(options), options["weights"]
    run.refuse(options, points, weights, *options["views"], *options["trajectories"], *fields.values())
    if picture:
        refuse_picture(picture, overwrite)
    run.kernel_of(options)  # an unknown one is an error before POINTS are opened
    width = run.width_of(points, options)
    if (model := options["functions_of"]) is not None:
        functions = _functions_of(model, options)
    else:
        functions = {"basis": run.functions_of(options, width)}
    estimator = _estimator_of(
        run.operator_of(options, len(options["columns"] or range(width))),
        **functions,
        solver=run.solver_of(options),
        folds=options["folds"],  # None is a choice
        **given(options, par.SPECTRAL),
    )
    if options["rotate"] is not None and not hasattr(estimator, "rotated"):
        raise click.UsageError("--rotate is for the components of --operator covariance, without --kernel or --solver")
    rows = run.rows_of(run.points_of(points, options), options, fields=fields)
    if session().planning:
        with run.scheduler(options):
            run.say_plan(estimator.plan(rows, sample_weight=weights))
        return
    with run.scheduler(options), run.planned():
        estimator.fit(rows, sample_weight=weights, **run.saving(options))
        if options["rotate"] is not None:
            estimator = estimator.rotated(options["rotate"])
        run.finish(estimator, options)
        if picture:
            save_figure(eigenfunctions(estimator, points), picture, overwrite=overwrite)
            say(f"picture: {picture}", picture=picture)


def update(model: str, points: str, trust: tuple[str, ...], **options: Any) -> None:
    """Add rows appended to POINTS to a fitted MODEL.

    Only these are read if no file of the other rows was written since. All rows are read otherwise, and if MODEL has
    linear functions of fewer rows than columns.

    Examples
    --------
    update model.zarr points.zarr --out newer.zarr
    """
    weights, fields = options["weights"], run.fields_of(options)
    run.refuse(options, points, weights, options["targets"], options["gradients"], *options["views"], *fields.values())
    estimator = load(model, trusted=trust)
    if not hasattr(estimator, "update"):
        raise ValueError(f"{model} holds {type(estimator).__name__}, which cannot be updated: fit it again")
    values = run.targets_of(estimator, model, options)
    rows = run.rows_of(run.points_of(points, options), options, fields=fields or None)
    with run.scheduler(options):
        estimator.update(rows, **values, sample_weight=weights, progress=run.bar(options))
        run.finish(estimator, options)


def merge(parts: tuple[str, ...], trust: tuple[str, ...], **options: Any) -> None:
    """Add the moments of PARTS and solve again.

    PARTS are models or moments, measured with one basis. No data are read.

    Examples
    --------
    merge first.zarr second.zarr --out both.zarr
    """
    run.refuse(options, *parts)
    repeated = [part for part in parts if parts.count(part) > 1]
    if repeated:
        raise click.UsageError(f"{repeated[0]} is given twice: its rows would count twice")
    first = load(parts[0], trusted=trust)
    total = _moments(first, parts[0])
    for part in parts[1:]:
        total = total + _moments(load(part, trusted=trust), part)
    merged = total if isinstance(first, Moments) else first.fit_moments(total)
    run.finish(merged, options, "moments" if isinstance(merged, Moments) else "model")


def _estimator_of(operator: Operator, **parameters: Any) -> Any:
    """Return the estimator of an operator's users, or a SpectralDecomposition."""
    linear: Any = LINEAR.get(repr(operator))
    if linear is not None and repr(parameters["basis"]) in ([] if linear is CCA else [USUAL[0]]) + [COLUMNS]:
        known = {name: value for name, value in parameters.items() if name in linear._get_param_names()}
        if "solver" in known or repr(parameters["solver"]) == USUAL[1]:
            return linear(**known)
    if isinstance(operator, Transfer):
        parameters |= {"reversible": operator.reversible, "center": operator.center}
        return Koopman(operator.lag, method=None if operator.reversible else operator.solver.name, **parameters)
    return SpectralDecomposition(operator, **parameters)


def _functions_of(path: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the bases of the model at a path, and set its columns."""
    chosen = {*run.AT_LANDMARKS, "kernel", "periods", "lattice", "network", "columns"}
    run.refuse_given(chosen, "and --functions-of exclude each other")
    model = load(path, trusted=options["trust"])
    moments = _moments(model, path)
    if moments.preparation["scale"] is not None or options["standardize"]:
        raise ValueError(
            f"columns were, or are to be, standardized, and POINTS have another scaling than {path}: scale them "
            "before, and leave --standardize out"
        )
    if moments.of_rows:
        raise ValueError(
            f"the functions of {path} are combinations of its rows, which are fewer than its columns, and other rows "
            "need others. Fit all rows together"
        )
    names, options["columns"] = (
        getattr(model, "columns_", None),
        Preparation.from_state(moments.preparation).row_columns,
    )
    if names is not None and names.feature_names is not None and options["columns"] is None:
        options["columns"] = [*names.labels]
    right = moments.preparation.get("right") or moments.preparation
    given = {"basis": _in_columns(moments.basis, moments.preparation)}
    if moments.right_basis is not None:
        given["right_basis"] = _in_columns(moments.right_basis, right)
    return given


def _in_columns(basis: Basis, preparation: Mapping[str, Any]) -> Basis:
    """Return functions of the columns with the span of a basis about a center."""
    found = None if preparation["mean"] is None else basis.translated(preparation["mean"])
    return basis if found is None else found.basis


def _moments(what: Any, path: str) -> Moments:
    found = moments_of(what)
    if found is None:
        raise ValueError(f"{path} holds {type(what).__name__}, which has no moments to add: fit all rows at once")
    return found
