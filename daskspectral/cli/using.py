"""`transform`, `predict`, `score` and `info`: what a saved model is used for."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import click

from daskspectral.cli import parameters as par
from daskspectral.cli import settings
from daskspectral.cli.commands import say, written
from daskspectral.cli.options import CALLS
from daskspectral.cli.running import (
    bar,
    fields_of,
    kept,
    points_of,
    print_summary,
    refuse,
    rows_of,
    scheduler,
    targets_of,
)
from daskspectral.cli.signatures import given
from daskspectral.data.stores import open_zarr
from daskspectral.estimators.regressor import Regressor
from daskspectral.estimators.summary import aligned, named_lines, plain, rounded, summary_of, values_columns
from daskspectral.moments import Moments
from daskspectral.moments.attributes import Attributes
from daskspectral.moments.solution import SpanScore
from daskspectral.spectral import SpectralClustering
from daskspectral.spectral.estimator import SpectralEstimator
from daskspectral.store import load

FOLLOWING = {
    "right": "transform",
    "sets": "metastable_sets",
    "committor": "first_passage",
    "passage_time": "first_passage",
    "equilibrium": "equilibrium_weights",
}
"""Options of `transform` in place of the functions, and the methods that they call."""


def transform(model: str, points: str, trust: tuple[str, ...], **options: Any) -> None:
    """Evaluate the functions of MODEL at every row of POINTS.

    With --sets, --committor, --passage-time or --equilibrium these are evaluated in place of the functions.

    Examples
    --------
    transform model.zarr points.zarr --out functions.zarr
    transform koopman.zarr path.zarr --sets 2 --out memberships.zarr
    transform koopman.zarr path.zarr --committor left.zarr,right.zarr --out committor.zarr
    """
    from sklearn.base import TransformerMixin

    out = options["out"]
    refuse(options, model, points)
    estimator = loaded(model, trust)
    if not isinstance(estimator, TransformerMixin):
        raise ValueError(
            f"{model} must be a transformer, got {type(estimator).__name__}. Use `daskspectral predict` for a regressor"
        )
    asked = [name for name in FOLLOWING if options[name] is not None and options[name] is not False]
    if len(asked) > 1:
        raise click.UsageError(
            f"--right, --sets, --committor, --passage-time and --equilibrium exclude each other, got {len(asked)}"
        )
    functions = _following(estimator, asked[0], points, options) if asked else estimator.transform
    shape = _write(functions, points, options, **given(options, par.FAR))
    *rows, columns = shape if len(shape) > 1 else (*shape, 1)
    written("embedding", out, f", {prod(rows)} rows, {columns} components", rows=prod(rows), components=columns)


def predict(model: str, points: str, gradient: bool, trust: tuple[str, ...], **options: Any) -> None:
    """Evaluate the regressor MODEL at every row of POINTS, or find the clusters of the rows.

    Examples
    --------
    predict regressor.zarr points.zarr --out predicted.zarr
    """
    out = options["out"]
    refuse(options, model, points)
    estimator = loaded(model, trust)
    clusters = isinstance(estimator, SpectralClustering)
    if not clusters and not isinstance(estimator, Regressor):
        raise ValueError(
            f"{model} must be a regressor or a clustering, got {type(estimator).__name__}. Use `daskspectral transform`"
        )
    if clusters and gradient:
        raise click.UsageError("--gradient is for regressors")
    what, function = "labels" if clusters else "prediction", estimator.predict
    if gradient:
        what, function = "gradient", estimator.predict_gradient
    rows, *shape = _write(function, points, options)
    columns = prod(shape)
    many = "" if columns == 1 else "s"
    written(what, out, f", {rows} rows, {columns} column{many}", rows=rows, columns=columns)


def score(model: str, points: str, trust: tuple[str, ...], **options: Any) -> None:
    """Score MODEL on rows that it was not fitted to.

    A larger score is better.

    Of a regressor it is R^2. Of eigenvalues it is minus the sum of the functions' Ritz values on the new rows, which
    are printed; of singular values the sum of their squares there.

    Examples
    --------
    score model.zarr points.zarr
    score regressor.zarr points.zarr --targets y.zarr --json
    """
    estimator = loaded(model, trust)
    weights, progress = options["weights"], bar(options)
    if not isinstance(estimator, (SpectralEstimator, Regressor)):
        raise ValueError(
            f"{model} holds {type(estimator).__name__}, which has no score: spectral decompositions and regressors have"
        )
    values = targets_of(estimator, model, options)
    if isinstance(estimator, SpectralEstimator):
        rows = rows_of(points_of(points, options), options, fields=fields_of(options))
        with scheduler(options):
            found = estimator._scored(rows, sample_weight=weights, progress=progress)
        say(_scored(estimator, found), score=found.score, rows=found.rows, values=plain(found.values))
        return
    with scheduler(options):
        share = estimator.score(rows_of(points, options), values["y"], weights, progress=progress)
    say(f"score       {share:.6g}", score=float(share))


def info(model: str, details: bool, only_settings: bool, trust: tuple[str, ...]) -> None:
    """Describe a saved model, or saved moments.

    Examples
    --------
    info model.zarr --details
    info model.zarr --settings
    info model.zarr --json
    """
    import yaml

    if only_settings:
        text = kept(model)
        if text is None:
            raise ValueError(f"{model} must be the output of a command to have settings, got a store without settings")
        found = {name: value for name, value in settings.parsed(text, model).items() if name not in CALLS}
        say(yaml.safe_dump(found, sort_keys=False).rstrip(), **plain(found))
        return
    found = load(model, trusted=trust)
    try:
        print_summary(found, details=details)
    except (AttributeError, LookupError, TypeError) as error:  # parts of types that save does not write
        raise ValueError(f"{model} cannot be described, because it was altered after saving: {error}") from error


def _scored(model: SpectralEstimator, found: SpanScore) -> str:
    """Return a table of the score on new rows, and of the values of functions there and in the fit."""
    kind = model.solver_
    columns = values_columns(kind.value, getattr(model, Attributes(kind).values)[: len(found.values)])
    columns.append([f"{found.kind} here", *(f"{rounded(value, found.values):.6g}" for value in found.values)])
    rows = aligned(list(zip(*columns, strict=True)))
    return "\n".join([*named_lines({"score": f"{found.score:.6g}", "rows": found.rows}), "", *rows])


def loaded(path: str, trust: tuple[str, ...]) -> Any:
    """Return the model at a path; raise ValueError for moments."""
    model = load(path, trusted=trust)
    if isinstance(model, Moments):
        raise ValueError(f"{path} must be a model, got moments. Solve them by fit_moments in Python")
    return model


def _following(estimator: Any, option: str, points: str, options: dict[str, Any]) -> Any:
    """Return the method that an option evaluates in place of the functions."""
    method, value = getattr(estimator, FOLLOWING[option], None), options[option]
    if method is None or (option == "right" and not hasattr(estimator, "right_coefficients_")):
        raise click.UsageError(f"--{option.replace('_', '-')} is not for {type(estimator).__name__}")
    if option == "right":
        return partial(method, side="right")
    if option == "sets":
        found = method(value, rows_of(points, options))
        say(repr(found), sets=summary_of(found).numbers)
        return found.memberships
    if option in ("committor", "passage_time"):
        if len(value) > 2 or (option == "committor" and len(value) < 2):
            raise click.UsageError("--committor requires A.zarr,B.zarr, and --passage-time A.zarr or A.zarr,B.zarr")
        return getattr(method(rows_of(points, options), *value), option)
    return method


def _write(function: Any, points: str, options: dict[str, Any], **more: Any) -> tuple[int, ...]:
    """Write the values of a function at the rows of POINTS, and return their shape."""
    out, overwrite = options["out"], options["overwrite"]
    with scheduler(options):
        function(rows_of(points, options), out=out, overwrite=overwrite, progress=bar(options), **more)
    return open_zarr(out).shape
